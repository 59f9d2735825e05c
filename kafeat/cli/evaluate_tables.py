"""The tables of `kafeat evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rich.table import Table

from kafeat.cli import log
from kafeat.cli.tables import TableColumn, fitting
from kafeat.evaluation.cost_rows import cost_rows, findings, spell_megabytes, spell_seconds
from kafeat.evaluation.recommendation import choose
from kafeat.evaluation.records import Estimate, EvaluationRecord, Report, Summary, estimate_of
from kafeat.evaluation.summary import spell, spell_briefly

# The width of lines in a pipe or a file.
_ENDLESS = 100_000


def show(report: Report) -> None:
    """Print the tables, notes and the recommendation of an evaluation."""
    width = log.console().width if sys.stdout.isatty() else None
    console = log.console(width=_ENDLESS)
    left_out: list[str] = []
    for title, (table, without) in (
        _one(report, width) if len(report["summary"]) == 1 else _several(report, width)
    ):
        if title:
            console.print(title, style="italic", soft_wrap=True)
        console.print(table)
        left_out += [head for head in without if head not in left_out]
    if left_out:
        console.print(_without(left_out), soft_wrap=True)
    for note in _notes(report, left_out):
        console.print(note, soft_wrap=True)


def _several(report: Report, width: int | None) -> Iterator[tuple[str, tuple[Table, list[str]]]]:
    yield _many(report, width)
    if "score_map" in report["summary"][0]:
        yield _cost_title(report["summary"][0]), _learning_costs(report, width)


def _without(heads: Sequence[str]) -> str:
    return f"left out, as the terminal is too narrow: {', '.join(heads)}; --json and --report have everything"


def _one(report: Report, width: int | None) -> Iterator[tuple[str, tuple[Table, list[str]]]]:
    entry = report["summary"][0]
    seeds = f", {entry['seeds']} seeds" if entry["seeds"] > 1 else ""
    rows = [
        (text, _figure(estimate_of(entry, key), ".4g"))
        for key, text in (
            ("relative_frobenius", "relative, Frobenius norm"),
            ("relative_spectral", "relative, spectral norm"),
            ("max_abs_error", "largest, absolute"),
            ("mean_abs_error", "mean, absolute"),
            ("bias", "mean, signed"),
            ("distortion_max", "largest relative error of a squared distance"),
            ("distortion_mean", "mean relative error of a squared distance"),
        )
        if key in entry
    ]
    if "distortion_bound" in report["records"][0]:
        bound = report["records"][0]["distortion_bound"]
        rows.append(("bound of Johnson and Lindenstrauss", f"{bound:.4g}"))
    yield (
        f"{spell(entry)} against the exact kernel, {entry['rows']:,} rows, D = {entry['n_components']:,}{seeds}",
        _listed("error of z(x)·z(y)", rows, width),
    )
    yield "", _listed("cost", list(_costs(entry)), width)
    if "score_raw" in entry:
        record = report["records"][0]
        yield (
            f"{record['learner']}, {record['rows_train']:,} rows to train, {record['rows_test']:,} to test",
            _scores(entry, record, width),
        )
        yield _cost_title(entry), _learning_costs(report, width)


def _listed(what: str, rows: Sequence[tuple[str, str]], width: int | None) -> tuple[Table, list[str]]:
    texts, figures = zip(*rows, strict=True)
    return fitting(TableColumn(what, texts), [TableColumn("value", figures)], width)


def _costs(entry: Summary) -> Iterator[tuple[str, str]]:
    if entry["fit_seconds"]["mean"] is not None:
        yield "seconds to fit", _figure(entry["fit_seconds"], ".2f")
    yield "seconds to transform these rows", _figure(entry["transform_seconds"], ".4f")
    yield "bytes per row", f"{entry['bytes_per_row']:,}"


def _scores(entry: Summary, record: EvaluationRecord, width: int | None) -> tuple[Table, list[str]]:
    score = "accuracy" if record["task"] == "classification" else "R²"
    rows = (
        f", trained on {record['rows_exact']:,} rows" if record["rows_exact"] < record["rows_train"] else ""
    )
    names, scores, counts = [], [], []
    for key, name, unit in (
        ("raw", "the raw columns", "columns"), ("map", "the map's features", "features"),
        ("exact", f"the exact kernel{rows}", "rows"),
    ):  # fmt: skip
        names.append(name)
        scores.append(_figure(estimate_of(entry, f"score_{key}"), ".4f"))
        counts.append(f"{estimate_of(entry, f'nonzero_{key}')['mean']:,.0f} {unit}")
    if rows:
        names.append(f"the map's features{rows}")
        scores.append(_figure(entry["score_map_exact_rows"], ".4f"))
        counts.append("")
    figures = [TableColumn(score, scores), TableColumn("nonzero coefficients", counts, 1)]
    return fitting(TableColumn("on", names), figures, width)


def _cost_title(entry: Summary) -> str:
    rows = f"{entry['rows_train']:,} rows to train"
    if entry["rows_exact"] < entry["rows_train"]:
        rows += f" ({entry['rows_exact']:,} with the exact kernel)"
    return f"costs of {rows}, and to predict {entry['rows_test']:,}"


def _learning_costs(report: Report, width: int | None) -> tuple[Table, list[str]]:
    """Return the table of costs: the raw columns, every map and the exact machines."""
    rows = cost_rows(report["summary"])
    score = "accuracy" if report["records"][0]["task"] == "classification" else "R²"
    figures = [
        TableColumn("columns", [f"{row.width:,}" for row in rows], 3),
        TableColumn(score, [_mean(row.score, ".4f") for row in rows], 4),
        TableColumn("fit s", [spell_seconds(row.fit) for row in rows], 2),
        TableColumn("Z or K s", [spell_seconds(row.made) for row in rows], 2),
        TableColumn("learn s", [spell_seconds(row.learn) for row in rows], 2),
        TableColumn("total s", [spell_seconds(row.total) for row in rows]),
        *_of_same_rows(report, [row.same_rows for row in rows]),
        TableColumn("search s", [spell_seconds(row.search or None) for row in rows], 5),
        TableColumn("predict s", [spell_seconds(row.predict) for row in rows]),
        TableColumn("peak MB", [spell_megabytes(row.peak_bytes) for row in rows], 1),
        TableColumn("Z or K MB", [spell_megabytes(row.matrix_bytes) for row in rows], 6),
    ]
    return fitting(TableColumn("on", [row.name for row in rows]), figures, width, framed=False)


def _of_same_rows(report: Report, seconds: Sequence[float | None]) -> Iterator[TableColumn]:
    """Yield a column with the total for the training rows of the exact machine, if these are not all."""
    first = report["summary"][0]
    if first["rows_exact"] < first["rows_train"]:
        yield TableColumn(f"{first['rows_exact']:,} rows s", [spell_seconds(one) for one in seconds])


def _many(report: Report, width: int | None) -> tuple[str, tuple[Table, list[str]]]:
    records, entries = report["records"], report["summary"]
    held = all(record["rows_seen_in_fit"] == 0 for record in records)
    title = f"{len(entries)} maps on {records[0]['rows']:,} rows{' that were held out' if held else ''}"
    seeds = entries[0]["seeds"]
    error = TableColumn("error", [_figure(entry["relative_frobenius"], ".4f") for entry in entries])
    scores: list[TableColumn] = []
    if "score_map" in entries[0]:
        score = "accuracy" if records[0]["task"] == "classification" else "R²"
        raw = _figure(entries[0]["score_raw"], ".4f")
        title += f"; {records[0]['learner']} on {records[0]['rows_train']:,} rows, {score} {raw} on the raw columns"
        scores = [
            TableColumn(score, [_figure(entry["score_map"], ".4f") for entry in entries]),
            TableColumn("exact", [_mean(entry["score_exact"], ".4f") for entry in entries], 1),
            TableColumn("on its rows", [_mean(entry["score_map_exact_rows"], ".4f") for entry in entries], 2),
        ]
    figures = [
        TableColumn("D", [f"{entry['n_components']:,}" for entry in entries]), error, *scores,
        *([] if scores else [TableColumn("fit s", [_mean(entry["fit_seconds"], ".2f") for entry in entries], 4)]),
        TableColumn("transform s", [_mean(entry["transform_seconds"], ".3f") for entry in entries], 3),
    ]  # fmt: skip
    maps = TableColumn("map", [spell_briefly(entry) for entry in entries])
    return title + (f"; ± over {seeds} seeds" if seeds > 1 else ""), fitting(
        maps, figures, width, framed=False
    )


def _mean(figure: Estimate, form: str) -> str:
    return "" if figure["mean"] is None else format(figure["mean"], form)


def _figure(figure: Estimate, form: str) -> str:
    if figure["mean"] is None:
        return "undefined"
    error = figure["standard_error"]
    return format(figure["mean"], form) + (f" ± {error:.1g}" if error else "")


def _notes(report: Report, left_out: Sequence[str]) -> Iterator[str]:
    said = set()
    for record in report["records"]:
        if record["rows_seen_in_fit"]:
            yield (
                f"note: {record['map']} was fitted on this file, and {record['rows_seen_in_fit']:,} of these rows "
                "were in the fit sample"
            )
        if record["rows_seen_in_fit"] is None and record["map"] not in said:
            said.add(record["map"])
            yield f"note: {record['map']} was fitted on another file; it is unknown whether it saw these rows"
        if record["reference"] and record["reference"] not in said:
            said.add(record["reference"])
            yield f"note: {record['reference']}"
    for which, text in (("raw", "the raw columns"), ("map", "the features"), ("exact", "the exact kernel")):
        if not all(record.get(f"converged_{which}", True) for record in report["records"]):
            yield f"note: on {text} the solver stopped before it converged: the score may be too low"
    first = report["records"][0]
    fewer = first.get("rows_exact", 0) < first.get("rows_train", 0)
    if len(report["summary"]) > 1 and fewer and "exact" not in left_out:
        note = f"note: the exact machine was trained on {first['rows_exact']:,} rows (--exact-rows)"
        if "on its rows" not in left_out:
            note += "; `on its rows` is the score of the features trained on the same rows"
        yield note
    for budget in report["budgets"].get("columns", []):
        yield f"best with at most {budget['budget']:,} columns: {spell(budget)}"
    for budget in report["budgets"].get("seconds", []):
        yield f"best within {budget['budget']:.2g} s to transform these rows: {spell(budget)}"
    entry = choose(report["summary"]) or report["summary"][0]
    if "score_map" in entry:
        yield from findings(report["summary"], entry)
    if report["recommendation"]:
        yield report["recommendation"]
