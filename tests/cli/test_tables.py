"""Tables of any width: no figure is cut, and what is left out is told."""

import io
from importlib.metadata import version

import numpy as np
import pyarrow as pa
from rich.console import Console

import kafeat
from kafeat.cli.evaluate_tables import fitting, show
from kafeat.study.records import Report
from kafeat.study.tables import TableColumn
from tests.study.summaries import entry, figure, record_of, summary_of

MAPS = TableColumn("map", ["configs/nystroem.yaml (gamma = 0.001)", "表.yaml", "[red]c.yaml"])
FIGURES = [
    TableColumn("D", ["16", "32", "1,024"]),
    TableColumn("error", ["0.2720 ± 3e-05", "0.9999 ± 5e-05", "0.2103 ± 0.0005"]),
    TableColumn("on its rows", ["0.9206", "0.2173", "0.9429"], 1),
    TableColumn("transform s", ["0.008", "120.125", ""], 2),
]


def drawn(table):
    console = Console(width=10_000, file=io.StringIO(), markup=False, emoji=False)
    console.print(table)
    return console.file.getvalue()


def test_figures_stay_whole_at_any_width():
    told = set()
    for width in [*range(10, 130), None]:
        table, left_out = fitting(MAPS, FIGURES, width)
        text = drawn(table)
        told.add(tuple(left_out))
        for column in FIGURES:
            for cell in column.cells if column.head not in left_out else ():
                assert cell in text, (width, column.head)
        lines = [line.rstrip() for line in text.splitlines()]
        # the narrowest: 12 of the texts, 5, 15, and the lines between them
        if width is not None and width >= 12 + 5 + 15 + 10 and version("rich") >= "13.8":
            assert max(Console().measure(line).maximum for line in lines) <= width
        assert "[red" in text  # a name is no markup
    assert told == {(), ("transform s",), ("transform s", "on its rows")}
    assert "(gamma = 0.001)" in drawn(fitting(MAPS, FIGURES, None)[0])


def test_what_is_left_out_is_said(monkeypatch, capsys):
    summary = summary_of(entry(
        "configs/nystroem.yaml", setting={"gamma": 0.001, "n_components": 16}, n_components=16, seeds=2, columns_raw=64,
        rows=359, rows_train=1438, rows_test=359, rows_test_exact=359, rows_exact=300, transform_seconds=0.008,
        relative_frobenius=figure(0.272, 0.00003), score_raw=figure(0.9526, 0.0), score_map=figure(0.9123, 0.03),
        score_constant=0.1, score_exact=0.9638, score_map_exact_rows=0.9206,
    ))  # fmt: skip
    record = {"rows": 359, "rows_seen_in_fit": 0, "reference": None, "task": "classification", "learner": "ridge",
              "rows_train": 1438, "rows_exact": 300, "rows_test": 359, "map": "m",
              "boosting_left_out": "there is no scikit-learn"}  # fmt: skip
    none = {"recommendation": None, "score_of_choice": None}
    report = Report(records=[record_of(record)], summaries=[summary] * 2, **none)
    show(report)
    whole = capsys.readouterr().out
    assert "with the same 300 rows" in whole
    assert "note: gradient boosting is left out: there is no scikit-learn\n" in whole
    assert "left out, as" not in whole
    assert "costs: --details" in whole
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    show(report, details=True)
    narrow = capsys.readouterr().out
    assert "left out, as the terminal is too narrow: features (or kernel), MB, search, s, bytes" in narrow
    assert "nystroem.yaml" in narrow
    assert "0.9123 ± 0.03" in narrow  # over the seeds, which is more than √(p(1 − p)/n) of the rows
    assert "0.9526 ± 0.01" in narrow
    assert "costs: --details" not in narrow


def test_splits_and_scores_by_name_are_in_the_tables(capsys):
    X = np.random.default_rng(0).normal(size=(80, 2))
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": (X[:, 0] > 0).astype(int)})
    asked = {"data": table, "label": "y", "rows": 10, "jobs": 1}
    asked |= {"splits": 2, "scoring": ["error_rate", "auc"]}
    for sweep in ({}, {"n_components": [2, 4]}):
        config = {"steps": [{"kind": "fourier", "n_components": 4}]}
        report = kafeat.evaluate(config=config, sweep=sweep, **asked)
        show(report.report, ("error_rate", "auc"))
        text = capsys.readouterr().out
        assert "± is the deviation over 2 splits\n" in text
        for summary in report["summary"]:
            mean, deviation = summary["score_map"]["mean"], summary["score_map"]["deviation"]
            assert f"{-mean:.4f}" + (f" ± {deviation:.1g}" if deviation else "") in text
            assert f"{summary['auc_map']['mean']:.4f}" in text
        assert "error rate" in text
        assert "AUC" in text


def test_the_kinds_that_most_tables_need_stand_first_and_none_is_missing(in_process):
    from kafeat import registry

    lines = in_process("kinds").stdout.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == sorted(registry.kinds())
    assert listed[:4] == ["nystroem", "fourier", "homogeneous", "arc_cosine"]
    scalers = listed[len(registry.samplers()) :]
    assert scalers[:3] == ["standardize", "quantile", "one_hot"]
