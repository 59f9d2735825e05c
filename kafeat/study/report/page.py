"""The HTML page of an evaluation: recommendation, scores, costs, and a collapsible section about the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from kafeat.maths import SCORES
from kafeat.pictures import MapFigures, Picture, TableColumn
from kafeat.study.recommendation import answer, choose
from kafeat.study.records import Entries, Report
from kafeat.study.report.document import document, figures, importance, table, write_page
from kafeat.study.report.pictures import pictures
from kafeat.study.summary import is_scored
from kafeat.study.tables import (
    caption,
    cost_table,
    error_table,
    findings,
    part_table,
    rows_of,
    score_table,
)

# Prefixes of the names of pictures for the sections on scores and on costs. All other pictures are about kernels.
_OF_SCORES = ("reliability", "confusion", "score-over")
_OF_COSTS = ("time-over",)


def write_evaluation(folder: str, data: str, report: Report, exhibits: Sequence[MapFigures]) -> None:
    """Write the page of an evaluation, and its pictures."""
    drawn = list(pictures(report.summaries, exhibits))
    write_page(folder, page(report, data, drawn), drawn)


def page(report: Report, data: str, pictures: Sequence[Picture]) -> str:
    """Return the HTML page of an evaluation, with its pictures embedded."""
    labelled = is_scored(report.summaries[0])
    kernels = [one for one in pictures if not one.name.startswith((*_OF_SCORES, *_OF_COSTS))]
    body = [
        f"<h1>Evaluation on {escape(data)}</h1>",
        f'<p class="answer">{"<br>".join(map(escape, answer(report)))}</p>',
        *(_scores(report, _some(pictures, _OF_SCORES)) if labelled else ()),
        "<h2>Costs</h2>", *_costs(report, _some(pictures, _OF_COSTS)),
        "<h2>Data</h2>", *_data(report),
        f"<details{'' if labelled else ' open'}><summary>Kernels: errors and pictures</summary>",
        *_kernels(report, kernels),
        "</details>",
    ]  # fmt: skip
    return document(f"kafeat evaluate: {data}", body, pictures)


def _some(pictures: Sequence[Picture], names: Sequence[str]) -> list[Picture]:
    """Return the pictures whose names begin with one of these prefixes, in the order of the prefixes."""
    return [one for name in names for one in pictures if one.name.startswith(name)]


def _scores(report: Report, pictures: Sequence[Picture]) -> Iterator[str]:
    """Yield the HTML section with all scores, the importance of columns, and figures of the predictions."""
    entries, split = report.summaries, report.records[0].about["split"]
    best = choose(entries)
    chosen = [i for i, row in enumerate(rows_of(entries)) if row.which == "map" and row.entry is best]
    yield "<h2>Scores</h2>"
    yield from table(score_table(entries, details=True), next(iter(chosen), None))
    rows = "a random fifth of the rows" if split is None else f"those that {split} names"
    yield f"<p>{escape(f'{caption(report)}. Test rows: {rows}.')}</p>"
    if part_table(entries):
        yield "<h2>What each part of a union is worth</h2>"
        yield from table(part_table(entries))
    for why in dict.fromkeys(one.about.get("boosting_left_out") for one in report.records):
        if why is not None:
            yield f"<p>Gradient boosting is left out: {escape(why)}.</p>"
    for record in _with_losses(report):
        score = SCORES[record["scoring"]]
        yield from importance(record["map"], record["importance"], record["importance_error"], score)
    yield from figures(pictures)


def _with_losses(report: Report) -> list[Entries]:
    """Return, for each map, the entries of its first record that has the importance of columns."""
    every = [record.about for record in reversed(report.records)]
    known = {about["map"]: about for about in every if about.get("importance")}
    return list(known.values())[::-1]


def _data(report: Report) -> Iterator[str]:
    """Yield an HTML table of the data: numbers of rows and columns, the label, and the missing values."""
    first = report.records[0].about
    cells = {"rows": f"{first['data_rows']:,}", "columns": _range(report, "n_features_in")}
    if any(one.about["columns_raw"] != one.about["n_features_in"] for one in report.records):
        cells["columns as numbers"] = _range(report, "columns_raw")
    if "task" in first:
        classes = first["classes"]
        cells["label"] = "a number" if classes is None else f"{classes:,} classes"
        cells["rows to train"], cells["rows to test"] = f"{first['rows_train']:,}", f"{first['rows_test']:,}"
    missing = max(record.about["missing_share"] for record in report.records)
    cells["missing"] = f"{100.0 * missing:.2g} %" if missing else "none"
    yield from table([TableColumn(head, [cell]) for head, cell in cells.items()])


def _range(report: Report, key: str) -> str:
    widths = sorted({record.about[key] for record in report.records})
    return " to ".join(f"{width:,}" for width in dict.fromkeys((widths[0], widths[-1])))


def _costs(report: Report, pictures: Sequence[Picture]) -> Iterator[str]:
    """Yield the HTML section with the cost of everything that was trained: raw columns, maps and exact kernels."""
    entries = report.summaries
    yield from table(cost_table(entries))
    if is_scored(entries[0]):
        said = [f"{text[0].upper()}{text[1:]}." for text in findings(entries, choose(entries) or entries[0])]
        yield f"<p>{escape(' '.join([_COSTS, *said]))}</p>"
    yield from figures(pictures)


_COSTS = (
    "Total is the time to fit the map, to make the features or the kernel matrix of the training rows, and to learn "
    "once, without the search for a penalty. Predict is the time from raw columns to predictions of the test rows."
)


def _kernels(report: Report, pictures: Sequence[Picture]) -> Iterator[str]:
    first = report.records[0].about
    yield from table(error_table(report.summaries))
    seen = first["rows_seen_in_fit"]
    rows = f"{first['rows']:,} rows" + (f"; the map was fitted on {seen:,} of them" if seen else "")
    yield f"<p>Errors of z(x)·z(y) against the exact kernel on {rows}.</p>"
    yield from figures(pictures)
