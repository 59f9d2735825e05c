"""Figures of one map: their data, taken from the matrices of an evaluation, and functions that draw them.

Only drawing needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.maths.calibration import Reliability
from kafeat.types import Array, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kafeat.pictures.canvas import Style

_GRAM_ROWS = 200
_PAIRS = 40_000

ModelFigures = tuple[Reliability, tuple[Array, tuple[str, ...]]]
"""The reliability of a model's probabilities, and its confusion matrix (k, k) with the names of the classes."""


@dataclass(frozen=True)
class MapFigures:
    """The data for the figures of one map with one setting, for its first seed."""

    about: Mapping[str, Any]
    """The record of the map: its name as `map`, its `setting`, and its errors such as `relative_frobenius`."""
    exact: Floats
    approximate: Floats
    """Gram matrices of some rows, (r, r), with similar rows next to each other."""
    distances: tuple[Floats, Floats]
    """Distances of random pairs of rows: ‖φ(x) − φ(y)‖ by the exact kernel, and ‖z(x) − z(y)‖ of features."""
    model: ModelFigures | None = None
    """None if the map does not end in a predictor of classes."""


def same_map(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if both describe one map with one setting."""
    return (one["map"], one["setting"]) == (other["map"], other["setting"])


def map_figures(
    about: Mapping[str, Any], K: Floats, Z: Floats, model: ModelFigures | None = None
) -> MapFigures:
    """Return the data for the figures of a map, from the exact kernel K (n, n) and features Z (n, D) of some rows."""
    rng = np.random.default_rng(0)
    some = _in_order(K, rng)
    i, j = rng.integers(len(K), size=(2, _PAIRS))
    apart = i != j
    i, j = i[apart], j[apart]
    near = np.einsum("ij,ij->i", Z[i], Z[j])
    norms = np.einsum("ij,ij->i", Z, Z)
    return MapFigures(
        about=about,
        exact=K[np.ix_(some, some)],
        approximate=Z[some] @ Z[some].T,
        distances=(
            np.sqrt(np.maximum(K[i, i] + K[j, j] - 2.0 * K[i, j], 0.0)),
            np.sqrt(np.maximum(norms[i] + norms[j] - 2.0 * near, 0.0)),
        ),
        model=model,
    )


def _in_order(K: Floats, rng: np.random.Generator) -> Array:
    """Return the numbers of some rows, ordered along K's leading eigenvector, so that matrices show blocks."""
    some = np.sort(rng.choice(len(K), min(len(K), _GRAM_ROWS), replace=False))
    part = K[np.ix_(some, some)]
    centred = part - part.mean(axis=0) - part.mean(axis=1)[:, None] + part.mean()
    return some[np.argsort(np.linalg.eigh(centred)[1][:, -1])]


def gram(axes: Sequence[Axes], style: Style, exhibit: MapFigures) -> None:
    """Draw the exact and approximate matrix on one colour scale, and their difference on another."""
    K, G = exhibit.exact, exhibit.approximate
    low, high = float(min(K.min(), G.min())), float(max(K.max(), G.max()))
    off = max(float(np.abs(G - K).max()), 1e-12)
    for one, values, title, limits, colours in (
        (axes[0], K, "exact", (low, high), "viridis"),
        (axes[1], G, "approximate", (low, high), "viridis"),
        (axes[2], G - K, f"difference, up to {off:.2g}", (-off, off), "RdBu_r"),
    ):
        shown = one.imshow(values, vmin=limits[0], vmax=limits[1], cmap=colours, interpolation="nearest")
        one.set_title(title)
        one.set_xticks([])
        one.set_yticks([])
        bar = one.figure.colorbar(shown, ax=one, shrink=0.8)
        bar.ax.tick_params(colors=style.ink, labelsize=8)
        bar.outline.set_edgecolor(style.faint)


def distances(axes: Axes, style: Style, exhibit: MapFigures) -> None:
    """Draw the joint histogram of distances by the exact kernel and of distances between features."""
    before, after = exhibit.distances
    top = float(max(before.max(), after.max(), 1e-12))
    counts, xs, ys = np.histogram2d(before, after, bins=90, range=[[0.0, top], [0.0, top]])
    shown = axes.pcolormesh(xs, ys, np.ma.masked_equal(counts.T, 0), cmap="viridis", rasterized=True)
    axes.plot([0, top], [0, top], color=style.ink, lw=1)
    axes.set(xlabel="distance before the map", ylabel="distance after the map")
    bar = axes.figure.colorbar(shown, ax=axes, label="pairs")
    bar.ax.tick_params(colors=style.ink, labelsize=8)
    bar.ax.yaxis.label.set_color(style.ink)
    bar.outline.set_edgecolor(style.faint)


# With more classes than this, there is no room for their names or counts.
_MOST_NAMES, _MOST_COUNTS = 30, 12


def reliability(axes: Axes, style: Style, bins: Reliability) -> None:
    """Draw a reliability diagram: the accuracy over the probability of the predicted class."""
    axes.bar(bins.probability, bins.share, width=0.02, color=style.faint)
    axes.plot([0, 1], [0, 1], ":", lw=1, color=style.ink)
    axes.plot(bins.probability, bins.accuracy, "o-", lw=1.4, ms=4, color=style.hues[0])
    axes.set(
        xlabel="probability of the predicted class", ylabel="share of right predictions", ylim=(0.0, 1.0)
    )


def confusion(axes: Axes, _style: Style, rows: tuple[Array, Sequence[str]]) -> None:
    """Draw a confusion matrix: for each class, the shares of its rows by predicted class, with counts if they fit."""
    counts, classes = rows
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, vmin=0.0, vmax=1.0, cmap="viridis", interpolation="nearest")
    axes.set(xlabel="predicted", ylabel="true")
    if len(counts) <= _MOST_NAMES:
        axes.set_xticks(range(len(counts)), classes, rotation=90)
        axes.set_yticks(range(len(counts)), classes)
    if len(counts) <= _MOST_COUNTS:
        for (i, j), n in np.ndenumerate(counts):
            ink = "black" if shares[i, j] > 0.6 else "white"
            axes.text(j, i, f"{n:,}", ha="center", va="center", color=ink, fontsize=7)
