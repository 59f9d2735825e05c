"""Tables of costs: every machine once, two digits, and only differences that matter."""

from kafeat.pictures.tables import MEGABYTES, spell_number, spell_seconds
from kafeat.study.tables import cost_table, findings, rows_of
from tests.study.summaries import entry, summary_of


def test_figures_have_two_digits():
    assert [spell_seconds(s) for s in (0.0004, 0.0123, 0.46, 3.24, 120.4)] == [
        "<0.001", "0.012", "0.46", "3.2", "120",
    ]  # fmt: skip
    assert spell_number(2345.6) == "2,346"
    assert [MEGABYTES.spell(size) for size in (740_000, 1.28e9)] == ["0.74", "1,280"]


def costs(name, total=(0.1, 0.1, 0.1), exact_score=0.9, rows_exact=100):
    totals = {
        f"total_seconds_{which}": one for which, one in zip(("raw", "map", "exact"), total, strict=True)
    }
    return summary_of(entry(
        name, n_components=16, columns_raw=4, rows=20, rows_train=100, rows_exact=rows_exact, score_map=0.8,
        score_exact=exact_score, total_seconds_map_exact_rows=total[1] / 2 if rows_exact < 100 else total[1], **totals,
    ))  # fmt: skip


def test_rows_of_costs_name_every_machine_once():
    same = rows_of([costs("a"), costs("b")])
    assert [(row.name, row.width) for row in same] == [
        ("a constant", 0), ("raw columns", 4), ("a", 16), ("b", 16), ("exact kernel, 100 rows", 100),
    ]  # fmt: skip
    assert [row.of_kernel("fit_seconds") for row in same] == [None, None, 0.1, 0.1, None]
    other = rows_of([costs("a"), costs("b", exact_score=0.7)])
    assert [row.name for row in other[4:]] == ["exact kernel, 100 rows, a", "exact kernel, 100 rows, b"]


def test_the_table_of_costs_has_no_empty_columns():
    table = {column.head: list(column.cells) for column in cost_table([costs("a")])}
    assert table["on"] == ["raw columns", "a", "exact kernel, 100 rows"]
    assert table["features (or kernel), s"] == ["", "0.020", "0.040"]
    assert table["bytes a row"] == ["", "64", ""]
    assert "transform 20 rows, s" not in table  # these entries have no such seconds
    fewer = [column.head for column in cost_table([costs("a", rows_exact=50)])]
    assert "total with the same 50 rows, s" in fewer


def test_only_times_that_differ_are_findings():
    def said(*total, **more):
        return list(findings([costs("a")], costs("a", (0.0, *total), **more)))

    assert said(0.1, 0.15) == []
    assert said(0.001, 0.009) == []  # both are nothing
    assert said(0.46, 3.2) == [
        "to fit, transform and learn once from 100 rows, the exact machine took 7.0 times as long as the features "
        "(3.2 s against 0.46 s)"
    ]
    assert said(3.2, 0.46)[0].startswith("to fit, transform and learn once from 100 rows, the features")
    assert "50 rows, the exact machine took 20 times" in said(1.0, 10.0, rows_exact=50)[0]  # of the same rows
