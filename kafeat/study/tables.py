"""The tables of an evaluation: rows and columns once, which terminals, pages and notebooks lay out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafeat.maths.scoring import PROPER, SCORES, Score, scores_of
from kafeat.study.records import Estimate, Report, Summary
from kafeat.study.summary import (
    is_scored,
    scoring_of,
    spell,
    spell_briefly,
    spell_value,
    spelled_score,
    spread_of,
)

# Two measured times that differ by less than this factor count as equal, and times below these seconds as none.
_SAME_TIME, _NO_TIME = 2.0, 0.01


class TableColumn(NamedTuple):
    """A head and its cells. Columns with the largest `idle` are dropped first, those with 0 never."""

    head: str
    cells: Sequence[str]
    idle: int = 0


@dataclass(frozen=True)
class Row:
    """A row of the table of scores: what is scored, a name, the width of the input, and the summary."""

    which: str
    name: str
    width: int
    entry: Summary

    def of(self, figure: str) -> float | None:
        """Return the mean of a figure; None if it is unknown or absent."""
        return self.entry.mean(self.which, figure)

    def of_kernel(self, figure: str) -> float | None:
        """Return the mean of a figure of the map itself; None for all that is no map."""
        known = self.entry.kernel.get(figure) if self.which == "map" else None
        return None if known is None else known["mean"]

    def same_rows(self, figure: str) -> Estimate | None:
        """Return a figure of the learner on the training rows of the exact machine alone."""
        scored = self.entry.scored
        estimates = scored.tested if self.which == "exact" else scored.exact_rows
        known: Estimate | None = estimates.get(self.which, {}).get(figure)
        return known


def rows_of(summaries: Sequence[Summary]) -> list[Row]:
    """Return what a report with a label has scored: a constant, raw columns, boosting, maps and exact machines."""
    about = [one.about for one in summaries]
    rows = [Row("constant", "a constant", 0, summaries[0])]
    rows += _distinct([Row("raw", "raw columns", one.about["columns_raw"], one) for one in summaries])
    rows += _distinct([
        Row("boosting", _boosting(one), one.about["columns_raw"], one)
        for one in summaries if "boosting" in one.scored.tested
    ])  # fmt: skip
    for one in summaries:
        width = one.about["n_components"]
        rows.append(Row("map", spell_briefly(one.about), width, one))
        if "model" in one.scored.tested:
            rows.append(Row("model", f"{spell_briefly(one.about)}: its own predictions", width, one))
    exact = f"exact kernel, {about[0]['rows_exact']:,} rows"
    return rows + _distinct([Row("exact", exact, one.about["rows_exact"], one) for one in summaries])


def _distinct(rows: Sequence[Row]) -> list[Row]:
    """Return one row if all have the same width and score, as they are one machine, else one for each map."""
    if len({(row.width, row.of("score")) for row in rows}) < 2:
        return list(rows[:1])
    named = {spell_briefly(row.entry.about): row for row in reversed(rows)}
    return [Row(row.which, f"{row.name}, {name}", row.width, row.entry) for name, row in named.items()][::-1]


def _boosting(entry: Summary) -> str:
    rounds, rows = (entry.mean("boosting", what) or 0.0 for what in ("rounds", "rows"))
    fewer = f", {rows:,.0f} rows" if rows < entry.about["rows_train"] else ""
    return f"gradient boosting (scikit-learn, {rounds:.0f} rounds{fewer})"


def score_table(
    summaries: Sequence[Summary], scoring: Sequence[str] = (), details: bool = False
) -> list[TableColumn]:
    """Return the scores of everything that was scored; `scoring` names scores beside the first, `details` takes all."""
    rows, first = rows_of(summaries), summaries[0]
    about, decides = first.about, scoring_of(first)
    named = scores_of(about["task"]) if details else _beside(rows, scoring[1:])
    # That of the constant alone says nothing.
    named = [one for one in named if any(row.of(one.name) is not None for row in rows[1:])]
    columns = [
        TableColumn("on", [row.name for row in rows]),
        TableColumn(
            "columns", ["" if row.which in ("constant", "exact") else spell_count(row.width) for row in rows]
        ),
        TableColumn(str(decides), [spelled_score(row.entry, row.which) for row in rows]),
        *(
            TableColumn(str(score), [_value(row, score.name) for row in rows], 2 if details else 0)
            for score in dict.fromkeys(named)
            if score != decides
        ),
    ]
    if about["rows_exact"] < about["rows_train"]:
        same = [_spelled(row.entry, decides, row.same_rows("score")) for row in rows]
        columns.append(TableColumn(f"with the same {about['rows_exact']:,} rows", same, 1))
    if details:
        columns += [
            TableColumn("calibration error", [_value(row, "calibration_error") for row in rows], 3),
            TableColumn("on the training rows", [_value(row, "training_score") for row in rows], 4),
            TableColumn("nonzero coefficients", [spell_count(row.of("nonzero")) for row in rows], 5),
        ]
    return [column for column in columns if any(column.cells)]


def _beside(rows: Sequence[Row], scoring: Sequence[str]) -> list[Score]:
    """Return the scores beside the first: those that were asked for, and the proper one of classes if a map has it."""
    proper = PROPER["classification"]
    likely = any(row.of(proper.name) is not None for row in rows if row.which in ("map", "model"))
    return [*(SCORES[name] for name in scoring), *([proper] if likely else [])]


def _value(row: Row, figure: str) -> str:
    known = row.entry.scored.tested.get(row.which, {}).get(figure)
    decides = scoring_of(row.entry) if figure == "training_score" else None
    return _spelled(row.entry, decides, known)


def _spelled(entry: Summary, score: Score | None, figure: Estimate | None) -> str:
    """Return a figure, or as it is usually stated if it is that `score`."""
    if figure is None or figure["mean"] is None:
        return ""
    # Over one split, only the score that decides has a standard error of the rows.
    spread = figure["deviation"] if entry.splits > 1 else None
    mean = figure["mean"] if score is None else score.stated(figure["mean"])
    return spell_value(mean) + (f" ± {spread:.1g}" if spread else "")


_ERRORS = {
    "relative_frobenius": "relative, Frobenius norm",
    "relative_spectral": "relative, spectral norm",
    "max_abs_error": "largest, absolute",
    "mean_abs_error": "mean, absolute",
    "bias": "mean, signed",
    "distortion_max": "largest relative error of a squared distance",
    "distortion_mean": "mean relative error of a squared distance",
    "distortion_bound": "bound of Johnson and Lindenstrauss",
    "kernel_pca_error_least": "Frobenius norm, the least of this rank",
    "kernel_pca_spectrum": "leading eigenvalues, relative",
    "kernel_pca_subspace": "leading eigenvectors, mean cos² of the angles",
    "closed_form_error_max": "closed form, largest at a ratio y/x, per (xy)^(γ/2)",
    "closed_form_error_mean": "closed form, mean over the ratios",
}


def error_table(summaries: Sequence[Summary]) -> list[TableColumn]:
    """Return the errors of z(x)·z(y) against the exact kernel."""

    def cell(entry: Summary, key: str) -> str:
        known = entry.kernel.get(key)
        if known is None or known["mean"] is None:
            return ""
        spread = spread_of(entry, known)
        return f"{known['mean']:.4g}" + (f" ± {spread:.1g}" if spread else "")

    columns = [
        TableColumn("map", [spell_briefly(entry.about) for entry in summaries]),
        TableColumn("columns", [spell_count(entry.about["n_components"]) for entry in summaries]),
        *(
            TableColumn(head, [cell(entry, key) for entry in summaries], idle)
            for idle, (key, head) in enumerate(_ERRORS.items())
        ),
    ]
    return [column for column in columns if any(column.cells)]


def cost_table(summaries: Sequence[Summary]) -> list[TableColumn]:
    """Return what each machine costs; without a label, what each map does."""
    about = summaries[0].about
    rows = [Row("map", spell_briefly(one.about), one.about["n_components"], one) for one in summaries]
    same = ""
    if is_scored(summaries[0]):
        rows = [row for row in rows_of(summaries) if row.which not in ("constant", "model")]
        if about["rows_exact"] < about["rows_train"]:
            same = f"total with the same {about['rows_exact']:,} rows, s"

    def column(head: str, cost: str, idle: int = 0) -> TableColumn:
        return TableColumn(head, [spell_seconds(row.of(cost)) for row in rows], idle)

    made = [row.of("kernel_seconds" if row.which == "exact" else "transform_seconds") for row in rows]
    totals = [row.same_rows("total_seconds") for row in rows]
    columns = [
        TableColumn("on", [row.name for row in rows]),
        TableColumn("columns", [spell_count(row.width) if row.which == "map" else "" for row in rows]),
        TableColumn("fit, s", [spell_seconds(row.of_kernel("fit_seconds")) for row in rows], 2),
        TableColumn("features (or kernel), s", list(map(spell_seconds, made)), 2),
        column("learn, s", "learn_seconds", 2),
        column("total, s", "total_seconds"),
        *([TableColumn(same, [spell_seconds(one and one["mean"]) for one in totals])] if same else []),
        TableColumn("search, s", [spell_seconds(row.of("search_seconds") or None) for row in rows], 5),
        column("predict, s", "predict_seconds"),
        TableColumn("features (or kernel), MB", [spell_megabytes(row.of("matrix_bytes")) for row in rows], 6),
        TableColumn(
            f"transform {about['rows']:,} rows, s",
            [spell_seconds(row.of_kernel("transform_seconds")) for row in rows], 3,
        ),
        TableColumn("bytes a row", [_bytes(row) for row in rows], 4),
    ]  # fmt: skip
    return [one for one in columns if any(one.cells)]


def _bytes(row: Row) -> str:
    return f"{row.entry.about['bytes_per_row']:,}" if row.which == "map" else ""


def part_table(summaries: Sequence[Summary]) -> list[TableColumn]:
    """Return the score without each part of a union, for maps that are unions."""
    parts = [(one, part) for one in summaries for part in one.parts]
    of = f"{scoring_of(summaries[0])} without it"
    scores = [(scoring_of(one), part["score_without"]["mean"]) for one, part in parts]
    columns = [
        TableColumn("map", [spell_briefly(one.about) for one, _ in parts]),
        TableColumn("part", [part["part"] for _, part in parts]),
        TableColumn("columns", [spell_count(part["columns"]) for _, part in parts]),
        TableColumn(of, ["" if mean is None else spell_value(score.stated(mean)) for score, mean in scores]),
    ]
    return columns if parts else []


def transposed(table: Sequence[TableColumn]) -> list[TableColumn]:
    """Return a table of one row as a table of two columns."""
    name, *figures = table
    heads, cells = [one.head for one in figures], [one.cells[0] for one in figures]
    return [TableColumn(name.cells[0], heads), TableColumn("value", cells)]


def caption(report: Report) -> str:
    """Return what the scores of a report with a label are of, and what stands behind ±."""
    about, entry = report.records[0].about, report.summaries[0]
    seeds = f" and {entry.seeds} seeds" if entry.seeds > 1 else ""
    spread = f"the deviation over {entry.splits} splits{seeds}" if entry.splits > 1 else "the standard error"
    return (
        f"{about['learner']} learned from {about['rows_train']:,} rows, scored on {about['rows_test']:,} others; "
        f"± is {spread}"
    )


def findings(summaries: Sequence[Summary], entry: Summary) -> Iterator[str]:
    """Yield what the times of a map and its exact machine say: ratios that are no noise.

    Both totals are of the training rows of the exact machine.
    """
    name, scored = spell(entry.about) if len(summaries) > 1 else "", entry.scored
    learned = f"to fit, transform and learn once from {entry.about['rows_exact']:,} rows"
    for what, near, cost in (
        (learned, scored.exact_rows, "total_seconds"),
        ("to predict the test rows", scored.tested, "predict_seconds"),
    ):
        yield from _ratio(what, name, *(of[cost]["mean"] for of in (near["map"], scored.tested["exact"])))


def _ratio(what: str, name: str, near: float, exact: float) -> Iterator[str]:
    """Say how many times as long the map or the exact machine took, unless that is noise."""
    least, most = sorted((near, exact))
    if most < _NO_TIME or most < _SAME_TIME * least:
        return
    features = f"features of {name}" if name else "features"
    slow, fast = ("exact machine", features) if exact == most else (features, "exact machine")
    times = f"{spell_number(most / least)} times as long as" if least else "longer than"
    yield (
        f"{what}, the {slow} took {times} the {fast} ({spell_seconds(most)} s against {spell_seconds(least)} s)"
    )


def spell_seconds(seconds: float | None) -> str:
    """Return seconds with the two digits that a measurement has, and nothing below a millisecond."""
    if seconds is None:
        return ""
    return "<0.001" if seconds < 0.001 else spell_number(seconds, 3)


def spell_number(value: float, most: int = 1) -> str:
    """Return a number with two digits, and at most so many decimals."""
    digits = next((n for n in range(most) if value * 10**n >= 10.0), most)
    return f"{value:,.{digits}f}"


def spell_megabytes(size: float | None) -> str:
    """Return bytes in MB."""
    return "" if size is None else spell_number(size / 1e6, 2)


def spell_count(count: float | None) -> str:
    """Return a number of rows or columns."""
    return "" if count is None else f"{count:,.0f}"
