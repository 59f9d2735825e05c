"""Print the tables and notes of `kafeat evaluate` so that they fit a terminal.

Long texts wrap, less important columns are dropped, and numbers are never cut.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from math import isfinite

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table

from kafeat.cli import log
from kafeat.maths.scoring import SCORES, scores_of
from kafeat.pictures.tables import TableColumn
from kafeat.study.recommendation import answer, choose
from kafeat.study.records import Entries, Record, Report
from kafeat.study.summary import is_scored
from kafeat.study.tables import (
    caption,
    cost_table,
    error_table,
    findings,
    part_table,
    score_table,
    transposed,
)


def notes(report: Report, details: bool) -> Iterator[str]:
    """Yield notes that qualify scores and errors, such as rows that a map had seen; with `details`, also `_details`."""
    records, labelled = report.records, is_scored(report.summaries[0])
    yield from _of_records(records, details or not labelled)
    for which, text in (("raw", "the raw columns"), ("map", "the features"), ("exact", "the exact kernel")):
        if not all(record.scored.tested.get(which, {}).get("converged", True) for record in records):
            yield f"note: on {text} the solver stopped before it converged: the score may be too low"
    reasons = [one.about["boosting_left_out"] for one in records if "boosting_left_out" in one.about]
    for reason in dict.fromkeys(reasons):
        yield f"note: gradient boosting is left out: {reason}"
    if details or not labelled:
        yield from _details(report)
    else:
        yield "kernel errors and costs: --details"


def _details(report: Report) -> Iterator[str]:
    """Yield the call of scikit-learn that makes the same model, and the times of map and exact kernel machine."""
    tested, entries = report.records[0].scored.tested, report.summaries
    same = [tested[which].get("equivalent") for which in ("model", "map") if which in tested]
    if any(same) and len(report.records) == 1:
        yield f"the same model of scikit-learn on the features: {next(filter(None, same))}"
    if is_scored(entries[0]):
        yield from findings(entries, choose(entries) or entries[0])


def _of_records(records: Sequence[Record], errors: bool) -> Iterator[str]:
    """Yield notes, each once, about rows that a map saw when fitting and, with `errors`, about its exact kernel."""
    said = set()
    for record in records:
        about, name = record.about, record.about["map"]
        if about["rows_seen_in_fit"]:
            yield (
                f"note: {name} was fitted on this file, and {about['rows_seen_in_fit']:,} of these rows were in the "
                "fit sample"
            )
        if about["rows_seen_in_fit"] is None and name not in said:
            said.add(name)
            yield f"note: {name} was fitted on another file; it is unknown whether it saw these rows"
        seen = record.scored.tested.get("model", {}).get("test_rows_seen")
        if seen:
            yield (
                f"note: the predictor of {name} may have learned from {seen:,} of the test rows: its scores are of new "
                "rows only if it was fitted with the same --split"
            )
        if errors and about["reference"] and about["reference"] not in said:
            said.add(about["reference"])
            yield f"note: {about['reference']}"


# Columns are dropped until texts are _ENOUGH cells wide. Texts are never narrower than _LEAST cells.
_ENOUGH, _LEAST = 24, 12


def fitting(texts: TableColumn, figures: Sequence[TableColumn], width: int | None) -> tuple[Table, list[str]]:
    """Return a table at most `width` cells wide (None: any width), and the heads of the dropped columns.

    The table is wider if the columns that are never dropped need more. The terminal then wraps the table's lines.
    """
    kept, left_out, whole = list(figures), [], _width(texts)
    widths = _widths(kept, whole, width)
    while widths[0] < min(whole, _ENOUGH) and any(one.idle for one in kept):
        idlest = max(kept, key=lambda one: one.idle)
        kept.remove(idlest)
        left_out.append(idlest.head)
        widths = _widths(kept, whole, width)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for one, cells in zip([texts, *kept], [max(widths[0], _LEAST), *widths[1:]], strict=True):
        table.add_column(one.head, justify="left" if one is texts else "right", width=cells, overflow="fold")
    for row in zip(texts.cells, *(one.cells for one in kept), strict=True):
        table.add_row(*row)
    return table, left_out


def _widths(figures: Sequence[TableColumn], whole: int, width: int | None) -> list[int]:
    """Return the widths of the column of texts (`whole` cells, or less if there is less room) and of all `figures`."""
    if width is None:
        return [whole, *map(_width, figures)]
    for folded in (False, True):
        taken = [_width(one, folded) for one in figures]
        room = width - 3 * len(figures) - sum(taken)
        if room >= whole:
            break
    return [min(whole, room), *taken]


def _width(column: TableColumn, folded: bool = False) -> int:
    """Return the width of the widest cell, the head included. If the head is `folded`, its widest word counts."""
    heads = column.head.split() if folded else [column.head]
    return max(map(cell_len, [*heads, *column.cells]))


# The assumed width of lines in a pipe or a file.
_ENDLESS = 100_000


class _Printer:
    """Prints tables and lines, and collects the heads of the columns that do not fit into the terminal."""

    def __init__(self) -> None:
        self._width = log.console().width if sys.stdout.isatty() else None
        self._console = log.console(width=_ENDLESS)
        self.left_out: list[str] = []

    def line(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, soft_wrap=True)

    def table(self, title: str, columns: Sequence[TableColumn]) -> None:
        self.line(title, "italic")
        table, without = fitting(columns[0], columns[1:], self._width)
        self._console.print(table)
        self.left_out += [head for head in without if head not in self.left_out]


def show(report: Report, scoring: Sequence[str] = (), details: bool = False) -> None:
    """Print the conclusion, the tables and the notes of an evaluation. `scoring` names additional scores to show."""
    printer, entries = _Printer(), report.summaries
    labelled = is_scored(entries[0])
    for line in answer(report):
        printer.line(line, "bold")
    if labelled:
        printer.table(caption(report), score_table(entries, scoring, details))
    if details or not labelled:
        rows = f"{entries[0].about['rows']:,} rows"
        unseen = all(one.about["rows_seen_in_fit"] == 0 for one in report.records)
        held = " that were held out" if unseen else ""
        errors = error_table(entries)
        printer.table(
            f"errors of z(x)·z(y) against the exact kernel on {rows}{held}",
            transposed(errors) if len(entries) == 1 else errors,
        )
    if details:
        printer.table("costs", cost_table(entries))
        if part_table(entries):
            printer.table("what each part of a union is worth", part_table(entries))
    if printer.left_out:
        heads = ", ".join(printer.left_out)
        printer.line(f"left out, as the terminal is too narrow: {heads}; --json and --report have everything")
    for note in notes(report, details):
        printer.line(note)


def _show_promises(printer: _Printer, about: Entries, model: Entries) -> None:
    """Print coverage, score and calibration error on the new rows, next to those on rows held out when fitting."""
    held = model["held_out"]
    rows = [
        (f"coverage of {one['level']:.0%}", one["level"], one["coverage"], one["p_value"])
        for one in model["coverage"]
    ]
    # Both R² divide by the variance of the training rows, so that they can be compared.
    name = "accuracy" if about["task"] == "classification" else "R² by the variance of training rows"
    rows.append((name, held["score"], held["score_here"], held["p_value"]))
    if "calibration_error" in held:
        here = model["calibration_error"], held["calibration_p_value"]
        rows.append(("calibration error", held["calibration_error"], *here))
    columns = list(zip(*rows, strict=True))
    printer.table(f"{about['map']}: does it still hold? p is small if these rows are worse", [
        TableColumn("", list(map(str, columns[0]))),
        *(TableColumn(title, ["" if one is None else f"{one:z.4f}" for one in column])
          for title, column in zip(("fit", "here", "p"), columns[1:], strict=True)),
    ])  # fmt: skip
    if held.get("calibration_p_value", 1.0) is None:
        printer.line(
            f"note: {about['map']} was fitted by an older kafeat, which kept too little to tell if the calibration "
            "error got worse: fit it again"
        )


def _spelled(value: float | None) -> str:
    return "undefined" if value is None or not isfinite(value) else f"{value:z.4f}"


def show_predictions(record: Record) -> None:
    """Print the scores of the predictions of a finished model."""
    printer, about, tested = _Printer(), record.about, record.scored.tested
    score, model = SCORES[about["scoring"]], tested["model"]
    values = {str(one): model[one.name] for one in scores_of(about["task"]) if model[one.name] is not None}
    if "calibration_error" in model:
        values["calibration error"] = model["calibration_error"]
    printer.table(f"{about['map']}: predictions of {about['rows_test']:,} rows", [
        TableColumn("score", list(values)), TableColumn("value", list(map(_spelled, values.values()))),
    ])  # fmt: skip
    constant = score.stated(tested["constant"]["score"])
    printer.line(f"{score} of the best constant prediction of these rows: {_spelled(constant)}")
    if "held_out" in model:
        _show_promises(printer, about, model)
    if model["test_rows_seen"]:
        printer.line(
            f"note: {about['map']} may have learned from {model['test_rows_seen']:,} of these rows: it was fitted on "
            "this file"
        )
