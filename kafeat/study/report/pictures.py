"""Choose and draw the figures of an evaluation. Needs matplotlib."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from kafeat.pictures import portraits
from kafeat.pictures.canvas import Picture, Style, drawn
from kafeat.pictures.figure_data import MapFigures, same_map
from kafeat.study.importance import SHUFFLES
from kafeat.study.recommendation import choose
from kafeat.study.records import Summary
from kafeat.study.report import comparisons
from kafeat.study.summary import spell


def pictures(summaries: Sequence[Summary], exhibits: Sequence[MapFigures]) -> Iterator[Picture]:
    """Yield the figures that apply to these maps, comparisons first."""
    yield from _comparisons(summaries)
    best = list(_best_of_each(summaries, exhibits))
    for exhibit in best:
        yield from _of_one(exhibit)


def _comparisons(summaries: Sequence[Summary]) -> Iterator[Picture]:
    widths = len({entry["n_components"] for entry in summaries}) > 1
    others = comparisons.swept(summaries)
    for axis in [*([comparisons.COLUMNS] if widths else []), *others]:
        over = "columns" if axis == comparisons.COLUMNS else axis.key
        yield drawn(
            f"error-over-{_slug(over)}", "svg", f"Error over {over}", _OF_ERROR[axis == comparisons.COLUMNS],
            partial(comparisons.error_over, summaries=summaries, axis=axis),
        )  # fmt: skip
    if "score_map" in summaries[0]:
        for axis in [*([comparisons.COLUMNS] if widths else []), *others, comparisons.SECONDS]:
            over = {comparisons.COLUMNS: "columns", comparisons.SECONDS: "time"}.get(axis, axis.key)
            yield drawn(
                f"score-over-{_slug(over)}", "svg", f"Score over {over}", _OF_SCORE,
                partial(comparisons.score_over, summaries=summaries, axis=axis),
            )  # fmt: skip
    if widths:
        yield drawn(
            "time-over-columns", "svg", "Time over columns",
            "Seconds to transform the rows that were compared and, dashed, to fit, to transform all rows to train on "
            "and to learn once. A row takes the bytes of its columns: four or eight each.",
            lambda axes, style: comparisons.times_over_columns(axes, style, summaries),
        )  # fmt: skip


_OF_ERROR = {
    True: "Relative Frobenius error of the kernel matrix and, dashed, the same in the spectral norm; bars are standard "
    "errors over the seeds, or deviations over the splits. The dotted line falls like 1/√D, as averages over random "
    "features do.",
    False: "Relative Frobenius error of the kernel matrix, each setting against its own exact kernel; bars are "
    "standard errors over the seeds. Errors against different kernels say how near each map is to its own, not which "
    "suits.",
}
_OF_SCORE = (
    "The score on rows that were held out; the axis runs from a constant to perfect predictions. The lines are a "
    "linear model on the raw columns and the machine with the exact kernel: a map is worth its cost between the two, "
    "and above. Over columns and seconds, points show where the two machines stand themselves; each row of a kernel "
    "matrix has a column for every training row."
)


def _best_of_each(summaries: Sequence[Summary], exhibits: Sequence[MapFigures]) -> Iterator[MapFigures]:
    """Yield one setting of each map: the recommended one, or the best of the map, or that with most columns."""
    overall = choose(summaries)
    for name in dict.fromkeys(exhibit.record["map"] for exhibit in exhibits):
        own = [entry for entry in summaries if entry["map"] == name]
        best = overall if overall in own else choose(own) or max(own, key=lambda one: one["n_components"])
        yield next(one for one in exhibits if same_map(one.record, best))


@dataclass(frozen=True)
class _Portrait:
    """A picture of one map: what it is drawn from, None if a map has none, and how."""

    name: str
    kind: str
    title: str
    caption: str
    of: Callable[[MapFigures], Any]
    draw: Callable[[Any, Style, Any], None]
    _: KW_ONLY
    columns: int = 1


_PORTRAITS = (
    _Portrait(
        "gram", "png", "Gram matrices",
        "Exact, approximate, and their difference, of rows in the order of the leading eigenvector.",
        lambda one: one, portraits.gram, columns=3,
    ),
    _Portrait(
        "entries", "png", "Entries",
        "Left, the approximate against the exact value of random pairs: on the line where they agree. Right, how the "
        "errors are distributed.",
        lambda one: one, portraits.entries, columns=2,
    ),
    _Portrait(
        "distances", "png", "Distances",
        "Distance of random pairs in the kernel's space, before, and between their features, after.",
        lambda one: one, portraits.distances,
    ),
    _Portrait(
        "reliability", "svg", "Reliability",
        "Share of right predictions over the probability of the predicted class, of the test rows in bins: on the "
        "line where probabilities are honest. Bars are the shares of the rows.",
        lambda one: one.learning.model.reliability, portraits.reliability,
    ),
    _Portrait(
        "confusion", "png", "Confusion matrix",
        "Test rows of each class, and the share of them that was predicted as each.",
        lambda one: one.learning.model.confusion, portraits.confusion,
    ),
    _Portrait(
        "residuals", "png", "Residuals",
        "The true minus the predicted number of the test rows, over the latter; of several labels, the first.",
        lambda one: one.learning.model.residuals, portraits.residuals,
    ),
    _Portrait(
        "importance", "svg", "Columns that weigh most",
        f"What the score of test rows loses when a column is shuffled: mean of {SHUFFLES} times, with standard error. "
        "Columns that tell the same share their worth.",
        lambda one: one.learning.importance and (one.learning.importance, one.record["scoring"]),
        portraits.importance,
    ),
)  # fmt: skip


def _of_one(exhibit: MapFigures) -> Iterator[Picture]:
    """Draw what one map predicts, its kernel, and what its fit has found."""
    name, what = _slug(exhibit.record["map"]), spell(exhibit.record)
    for one in _PORTRAITS:
        data = one.of(exhibit)
        if data is not None:
            draw = partial(_draw, one.draw, data)
            yield drawn(
                f"{one.name}-{name}", one.kind, f"{one.title}: {what}", one.caption, draw, one.columns
            )


def _draw(draw: Callable[[Any, Style, Any], None], data: Any, axes: Any, style: Style) -> None:
    draw(axes, style, data)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "map"
