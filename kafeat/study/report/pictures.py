"""Choose and draw the figures of an evaluation. Needs matplotlib."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from kafeat.pictures import MapFigures, Picture, drawn, portraits, same_map
from kafeat.study.recommendation import choose
from kafeat.study.records import Summary
from kafeat.study.report import comparisons
from kafeat.study.summary import is_scored, spell


def pictures(summaries: Sequence[Summary], exhibits: Sequence[MapFigures]) -> Iterator[Picture]:
    """Yield the figures: maps compared by the number of columns, if it varies, then the figures of each map."""
    if len({entry.about["n_components"] for entry in summaries}) > 1:
        yield from _comparisons(summaries)
    for exhibit in _best_of_each(summaries, exhibits):
        yield from _of_one(exhibit)


def _comparisons(summaries: Sequence[Summary]) -> Iterator[Picture]:
    yield drawn(
        "error-over-columns", "svg", "Error over columns",
        "Relative error of the kernel matrix in the Frobenius norm and, dashed, in the spectral norm. Bars are "
        "standard errors over the seeds, or deviations over the splits. The dotted line falls like 1/√D, as averages "
        "over random features do.",
        partial(comparisons.error_over_columns, summaries=summaries),
    )  # fmt: skip
    if is_scored(summaries[0]):
        yield drawn(
            "score-over-columns", "svg", "Score over columns",
            "The score on held-out rows. The axis runs from a constant prediction to perfect ones. The points are a "
            "linear model on the raw columns and the machine with the exact kernel, which has as many columns as "
            "training rows.",
            partial(comparisons.score_over_columns, summaries=summaries),
        )  # fmt: skip
    yield drawn(
        "time-over-columns", "svg", "Time over columns",
        "Seconds to transform the compared rows and, dashed, to fit the map, transform all training rows and learn "
        "once. Features need four or eight bytes per column and row.",
        partial(comparisons.time_over_columns, summaries=summaries),
    )  # fmt: skip


def _best_of_each(summaries: Sequence[Summary], exhibits: Sequence[MapFigures]) -> Iterator[MapFigures]:
    """Yield the figures of one setting of each map: the recommended, the best or, without scores, the widest."""
    overall = choose(summaries)
    for name in dict.fromkeys(exhibit.about["map"] for exhibit in exhibits):
        own = [entry for entry in summaries if entry.about["map"] == name]
        best = (
            overall if overall in own else choose(own) or max(own, key=lambda one: one.about["n_components"])
        )
        yield next(one for one in exhibits if same_map(one.about, best.about))


def _of_one(exhibit: MapFigures) -> Iterator[Picture]:
    """Yield the figures of one map: its kernel and distances, and the predictions of its model, if there is one."""
    name, of_map = _slug(exhibit.about["map"]), spell(exhibit.about)
    yield drawn(
        f"gram-{name}", "png", f"Gram matrices: {of_map}",
        "The exact and the approximate matrix and their difference. Rows are sorted by the leading eigenvector.",
        partial(portraits.gram, exhibit=exhibit), 3,
    )  # fmt: skip
    yield drawn(
        f"distances-{name}", "png", f"Distances: {of_map}",
        "Distances between random pairs of rows: by the exact kernel (before) and between their features (after).",
        partial(portraits.distances, exhibit=exhibit),
    )  # fmt: skip
    if exhibit.model is None:
        return
    bins, counts = exhibit.model
    yield drawn(
        f"reliability-{name}", "svg", f"Reliability: {of_map}",
        "Share of right predictions over the probability of the predicted class, for test rows in bins. Calibrated "
        "probabilities lie on the dotted line. Bars are the share of rows in each bin.",
        partial(portraits.reliability, bins=bins),
    )  # fmt: skip
    yield drawn(
        f"confusion-{name}", "png", f"Confusion matrix: {of_map}",
        "For each true class, the number of test rows by predicted class. Colours are shares of the true class.",
        partial(portraits.confusion, rows=counts),
    )  # fmt: skip


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "map"
