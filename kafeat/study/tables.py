"""The tables of an evaluation, defined once by rows and columns, for terminals, pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafeat.maths import PROPER, SCORES, Score, scores_of
from kafeat.pictures import (
    COUNT,
    MEGABYTES,
    SECONDS,
    Column,
    TableColumn,
    laid,
    spell_number,
    spell_seconds,
)
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

# Two times that differ by less than this factor count as equal, and times below this many seconds are not compared.
_SAME_TIME, _NO_TIME = 2.0, 0.01


@dataclass(frozen=True)
class Row:
    """A row of the table of scores: the key of what was scored (such as `raw`), its name and width, and its summary."""

    which: str
    name: str
    width: int
    entry: Summary

    def of(self, figure: str) -> float | None:
        """Return the mean of a figure, or None if the figure is undefined or absent."""
        return self.entry.mean(self.which, figure)

    def of_kernel(self, figure: str) -> float | None:
        """Return the mean of a figure from comparing kernels, or None if the row is not a map."""
        known = self.entry.kernel.get(figure) if self.which == "map" else None
        return None if known is None else known["mean"]

    def of_map(self, key: str) -> Any:
        """Return an entry about the map, or None if the row is not a map."""
        return self.entry.about.get(key) if self.which == "map" else None

    def same_rows(self, figure: str) -> Estimate | None:
        """Return a figure of the learner that is trained only on the rows of the exact kernel machine."""
        scored = self.entry.scored
        estimates = scored.tested if self.which == "exact" else scored.exact_rows
        known: Estimate | None = estimates.get(self.which, {}).get(figure)
        return known


def rows_of(summaries: Sequence[Summary]) -> list[Row]:
    """Return a row for everything that was scored: a constant, raw columns, boosting, maps and exact kernels."""
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
    """Return one row for each map, or a single row if all rows are one model, with the same width and score."""
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
    """Return the table of the deciding score and of the further scores in `scoring` or, with `details`, all scores."""
    rows, entry = rows_of(summaries), summaries[0]
    about, decides = entry.about, scoring_of(entry)
    named = scores_of(about["task"]) if details else _beside(rows, scoring[1:])
    columns: list[Column[Row]] = [
        Column("on", lambda row: row.name),
        Column("columns", lambda row: None if row.which in ("constant", "exact") else row.width, COUNT),
        Column(str(decides), lambda row: spelled_score(row.entry, row.which)),
        *(
            Column(str(score), partial(_value, figure=score.name), idle=2 if details else 0)
            for score in dict.fromkeys(named)
            # A column in which only the constant has a score is not informative.
            if score != decides and any(row.of(score.name) is not None for row in rows[1:])
        ),
    ]
    if about["rows_exact"] < about["rows_train"]:
        title = f"with the same {about['rows_exact']:,} rows"
        columns.append(
            Column(title, lambda row: _spelled(row.entry, decides, row.same_rows("score")), idle=1)
        )
    return laid(rows, [*columns, *(_DETAILS if details else ())])


def _beside(rows: Sequence[Row], scoring: Sequence[str]) -> list[Score]:
    """Return the scores to show after the first: those requested, and log loss if a map predicts probabilities."""
    proper = PROPER["classification"]
    likely = any(row.of(proper.name) is not None for row in rows if row.which in ("map", "model"))
    return [*(SCORES[name] for name in scoring), *([proper] if likely else [])]


def _value(row: Row, figure: str) -> str | None:
    known = row.entry.scored.tested.get(row.which, {}).get(figure)
    decides = scoring_of(row.entry) if figure == "training_score" else None
    return _spelled(row.entry, decides, known)


_DETAILS: list[Column[Row]] = [
    Column("calibration error", partial(_value, figure="calibration_error"), idle=3),
    Column("on the training rows", partial(_value, figure="training_score"), idle=4),
    Column("nonzero coefficients", lambda row: row.of("nonzero"), COUNT, 5),
]


def _spelled(entry: Summary, score: Score | None, figure: Estimate | None) -> str | None:
    """Return a figure as text. For a figure that is a `score`, errors become positive numbers."""
    if figure is None or figure["mean"] is None:
        return None
    # With one split, only the deciding score has a standard error.
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
    "kernel_pca_error_least": "Frobenius norm, best of this rank",
    "kernel_pca_spectrum": "leading eigenvalues, relative",
    "kernel_pca_subspace": "leading eigenvectors, mean cos² of the angles",
    "closed_form_error_max": "closed form, largest error, divided by (xy)^(γ/2)",
    "closed_form_error_mean": "closed form, mean error, divided by (xy)^(γ/2)",
}


def error_table(summaries: Sequence[Summary]) -> list[TableColumn]:
    """Return the table of errors of z(x)·z(y) against the exact kernel."""

    def error(entry: Summary, key: str) -> str | None:
        known = entry.kernel.get(key)
        if known is None or known["mean"] is None:
            return None
        spread = spread_of(entry, known)
        return f"{known['mean']:.4g}" + (f" ± {spread:.1g}" if spread else "")

    return laid(summaries, [
        *_OF_MAP,
        *(Column(title, partial(error, key=key), idle=i) for i, (key, title) in enumerate(_ERRORS.items())),
    ])  # fmt: skip


_OF_MAP: list[Column[Summary]] = [
    Column("map", lambda entry: spell_briefly(entry.about)),
    Column("columns", lambda entry: entry.about["n_components"], COUNT),
]


def cost_table(summaries: Sequence[Summary]) -> list[TableColumn]:
    """Return the table of costs of everything that was trained or, without a label, of each map."""
    about, scored = summaries[0].about, is_scored(summaries[0])
    rows = [Row("map", spell_briefly(one.about), one.about["n_components"], one) for one in summaries]
    if scored:
        rows = [row for row in rows_of(summaries) if row.which not in ("constant", "model")]
    fewer = [Column(f"total with the same {about['rows_exact']:,} rows", _total_of_same, SECONDS)] if (
        scored and about["rows_exact"] < about["rows_train"]
    ) else []  # fmt: skip
    return laid(rows, [
        Column("on", lambda row: row.name),
        Column("columns", lambda row: row.of_map("n_components"), COUNT),
        Column("fit", lambda row: row.of_kernel("fit_seconds"), SECONDS, 2),
        Column("features (or kernel)", lambda row: row.of("transform_seconds") or row.of("kernel_seconds"), SECONDS, 2),
        Column("learn", lambda row: row.of("learn_seconds"), SECONDS, 2),
        Column("total", lambda row: row.of("total_seconds"), SECONDS),
        *fewer,
        Column("search", lambda row: row.of("search_seconds") or None, SECONDS, 5),
        Column("predict", lambda row: row.of("predict_seconds"), SECONDS),
        Column("features (or kernel)", lambda row: row.of("matrix_bytes"), MEGABYTES, 6),
        Column(f"transform {about['rows']:,} rows", lambda row: row.of_kernel("transform_seconds"), SECONDS, 3),
        Column("bytes a row", lambda row: row.of_map("bytes_per_row"), COUNT, 4),
    ])  # fmt: skip


def _total_of_same(row: Row) -> float | None:
    known = row.same_rows("total_seconds")
    return known and known["mean"]


def part_table(summaries: Sequence[Summary]) -> list[TableColumn]:
    """Return a table with a row for each part of a union, and the score of the features without this part."""
    score = scoring_of(summaries[0])
    return laid([(one, part) for one in summaries for part in one.parts], [
        Column("map", lambda row: spell_briefly(row[0].about)),
        Column("part", lambda row: row[1]["part"]),
        Column("columns", lambda row: row[1]["columns"], COUNT),
        Column(f"{score} without it", lambda row: _stated(score, row[1]["score_without"]["mean"])),
    ])  # fmt: skip


def _stated(score: Score, mean: float | None) -> str | None:
    return None if mean is None else spell_value(score.stated(mean))


def transposed(table: Sequence[TableColumn]) -> list[TableColumn]:
    """Turn a table with one row into one with two columns, names and values."""
    name, *figures = table
    heads, cells = [one.head for one in figures], [one.cells[0] for one in figures]
    return [TableColumn(name.cells[0], heads), TableColumn("value", cells)]


def caption(report: Report) -> str:
    """Return the caption of the table of scores. It explains the value after ±."""
    about, entry = report.records[0].about, report.summaries[0]
    seeds = f" and {entry.seeds} seeds" if entry.seeds > 1 else ""
    spread = f"the deviation over {entry.splits} splits{seeds}" if entry.splits > 1 else "the standard error"
    return (
        f"{about['learner']} learned from {about['rows_train']:,} rows, scored on {about['rows_test']:,} others; "
        f"± is {spread}"
    )


def findings(summaries: Sequence[Summary], entry: Summary) -> Iterator[str]:
    """Yield sentences that compare the times of a map and its exact kernel machine, if they differ beyond noise.

    Both times are for training on the rows of the exact kernel machine.
    """
    name, scored = spell(entry.about) if len(summaries) > 1 else "", entry.scored
    learned = f"to fit, transform and learn once from {entry.about['rows_exact']:,} rows"
    for what, near, cost in (
        (learned, scored.exact_rows, "total_seconds"),
        ("to predict the test rows", scored.tested, "predict_seconds"),
    ):
        yield from _ratio(what, name, *(of[cost]["mean"] for of in (near["map"], scored.tested["exact"])))


def _ratio(what: str, name: str, near: float, exact: float) -> Iterator[str]:
    """Yield a sentence on how much longer the slower of map and exact machine took, or nothing if both are level."""
    least, most = sorted((near, exact))
    if most < _NO_TIME or most < _SAME_TIME * least:
        return
    features = f"features of {name}" if name else "features"
    slow, fast = ("exact machine", features) if exact == most else (features, "exact machine")
    times = f"{spell_number(most / least)} times as long as" if least else "longer than"
    yield (
        f"{what}, the {slow} took {times} the {fast} ({spell_seconds(most)} s against {spell_seconds(least)} s)"
    )
