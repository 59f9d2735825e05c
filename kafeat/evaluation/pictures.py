"""All pictures of an evaluation that mean something for its maps; they need matplotlib."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafeat.evaluation import comparisons, portraits
from kafeat.evaluation.canvas import Picture, drawn
from kafeat.evaluation.gallery import Exhibit
from kafeat.evaluation.summary import spell


def pictures(summaries: Sequence[Mapping[str, Any]], exhibits: Sequence[Exhibit]) -> Iterator[Picture]:
    """All pictures that mean something for these maps, the comparisons first."""
    if len({entry["n_components"] for entry in summaries}) > 1:
        yield drawn(
            "error-over-columns", "svg", "Error over columns",
            "Relative Frobenius error of the kernel matrix; bars are standard errors over the seeds. The dotted line "
            "falls like 1/√D, as random Fourier features do: what is below it, or steeper, does better than chance.",
            lambda axes, style: comparisons.error_over_columns(axes, style, summaries),
        )  # fmt: skip
    if "score_map" in summaries[0] and len(summaries) > 1:
        for key, name, text in (
            ("n_components", "columns", "Score over columns"), ("transform_seconds", "time", "Score over time"),
        ):  # fmt: skip
            yield drawn(
                f"score-over-{name}", "svg", text,
                "The score on rows that were held out. The lines are a linear model on the raw columns and the machine "
                "with the exact kernel: a map is worth its cost between the two, and above.",
                lambda axes, style, key=key: comparisons.score_over(axes, style, summaries, key),  # type: ignore[misc]
            )  # fmt: skip
    if len({entry["n_components"] for entry in summaries}) > 1:
        yield drawn(
            "time-over-columns", "svg", "Time over columns",
            "Seconds to transform the rows that were compared and, dashed, to learn from the features of all rows to "
            "train on. A row takes the bytes of its columns: four or eight each.",
            lambda axes, style: comparisons.times_over_columns(axes, style, summaries),
        )  # fmt: skip
    for exhibit in _last_of_each(exhibits):
        yield from _of_one(exhibit, [one for one in exhibits if one.record["map"] == exhibit.record["map"]])


def _last_of_each(exhibits: Sequence[Exhibit]) -> list[Exhibit]:
    """Of each map the setting with most columns."""
    found: dict[str, Exhibit] = {}
    for exhibit in exhibits:
        old = found.get(exhibit.record["map"])
        if old is None or exhibit.record["n_components"] >= old.record["n_components"]:
            found[exhibit.record["map"]] = exhibit
    return list(found.values())


def _of_one(exhibit: Exhibit, family: Sequence[Exhibit]) -> Iterator[Picture]:
    name, what = _slug(exhibit.record["map"]), spell(exhibit.record)
    yield drawn(
        f"gram-{name}", "png", f"Gram matrices: {what}",
        "Exact, approximate, and their difference, of rows in the order of the leading eigenvector.",
        lambda axes, style: portraits.gram(axes, style, exhibit), columns=3,
    )  # fmt: skip
    yield drawn(
        f"entries-{name}", "png", f"Entries: {what}",
        "Left, the approximate against the exact value of random pairs: on the line where they agree. Right, how the "
        "errors are distributed.",
        lambda axes, style: portraits.entries(axes, style, exhibit), columns=2,
    )  # fmt: skip
    yield drawn(
        f"distances-{name}", "png", f"Distances: {what}",
        "Distance of random pairs in the kernel's space, before, and between their features, after.",
        lambda axes, style: portraits.distances(axes, style, exhibit),
    )  # fmt: skip
    lines = [one for one in family if one.line is not None]
    if lines:
        yield drawn(
            f"line-{name}", "svg", f"The kernel along a line: {exhibit.record['map']}",
            "Between a row and the points on the way to the row that is least like it, exact and approximated.",
            lambda axes, style: portraits.lines(axes, style, lines),
        )  # fmt: skip
    yield drawn(
        f"spectrum-{name}", "svg", f"Spectra: {what}",
        "Eigenvalues of the kernel matrix, exact and approximate. Where the exact ones fall fast, few landmarks do.",
        lambda axes, style: portraits.spectra(axes, style, exhibit),
    )  # fmt: skip
    if exhibit.curve is not None:
        yield drawn(
            f"curve-{name}", "svg", f"Closed-form error: {what}",
            "Error of the homogeneous map at the ratio y/x of two entries, per √(xy); the shade is how often the data "
            "have that ratio.",
            lambda axes, style: portraits.curve(axes, style, exhibit),
        )  # fmt: skip
    if exhibit.landmarks is not None:
        yield drawn(
            f"landmarks-{name}", "png", f"Landmarks: {what}",
            "Rows and landmarks, in the plane that shows most of the rows.",
            lambda axes, style: portraits.landmarks(axes, style, exhibit),
        )  # fmt: skip


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "map"
