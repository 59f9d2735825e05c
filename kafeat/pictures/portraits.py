"""Figures of one map: Gram matrices, entries, distances, a line, spectra, single kinds, and its predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from kafeat.maths.calibration import Reliability
from kafeat.maths.scoring import lower_is_better, spell_score
from kafeat.pictures.canvas import Style, cycle, legend
from kafeat.pictures.figure_data import Losses, MapFigures, SignatureCurves, Surface
from kafeat.types import Array, Floats


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


def entries(axes: Sequence[Axes], style: Style, exhibit: MapFigures) -> None:
    """Draw approximate over exact values, and the histogram of their differences."""
    exact, near = exhibit.pairs
    axes[0].scatter(exact, near, s=2, alpha=0.25, lw=0, color=style.hues[0], rasterized=True)
    ends = [float(min(exact.min(), near.min())), float(max(exact.max(), near.max()))]
    axes[0].plot(ends, ends, color=style.ink, lw=1)
    axes[0].set(xlabel="exact", ylabel="approximate")
    axes[1].hist(near - exact, bins=80, color=style.hues[0])
    axes[1].axvline(0.0, color=style.ink, lw=1)
    axes[1].set(xlabel="error", ylabel="pairs")
    axes[1].xaxis.set_major_locator(MaxNLocator(5))  # small errors have long labels


def distances(axes: Axes, style: Style, exhibit: MapFigures) -> None:
    """Draw the joint histogram of distances before and after the map."""
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


def lines(axes: Axes, style: Style, family: Sequence[MapFigures], varied: str) -> None:
    """Draw each map and its exact kernel along a line; the maps differ in the parameter `varied`."""
    known = [(one.record, one.line) for one in family if one.line is not None]
    one_kernel = all(np.allclose(line[1], known[0][1][1], rtol=0.0, atol=1e-9) for _, line in known)
    for (record, (t, exact, near)), hue in zip(known, cycle(style), strict=False):
        columns = varied.endswith("n_components") or not varied
        label = f"D = {record['n_components']:,}" if columns else f"{varied} = {record['setting'][varied]}"
        axes.plot(t, near, color=hue, lw=1.4, label=label)
        if not one_kernel:
            axes.plot(t, exact, color=hue, lw=1.4, ls="--")
    if one_kernel:
        t, exact, _ = known[0][1]
        axes.plot(t, exact, color=style.ink, lw=1.6, ls="--", label="exact")
    else:
        axes.plot([], [], color=style.ink, lw=1.4, ls="--", label="exact, in the same colour")
    axes.set(xlabel="way from a row to another", ylabel="k(x, y)")
    legend(axes, style)


def spectra(axes: Axes, style: Style, exhibit: MapFigures) -> None:
    """Draw the eigenvalues, largest first; the legend has the largest gap of the exact ones."""
    labels = (f"exact, {_largest_gap(exhibit.spectra[0])}", "approximate")
    for values, hue, label in zip(exhibit.spectra, style.hues, labels, strict=False):
        least = float(values.max(initial=0.0)) * 1e-8
        axes.plot(
            np.arange(1, len(values) + 1), np.where(values > least, values, np.nan), color=hue, label=label
        )
    axes.set(xscale="log", yscale="log", xlabel="number of the eigenvalue", ylabel="eigenvalue")
    legend(axes, style)


def _largest_gap(values: Floats) -> str:
    gaps = (values[:-1] - values[1:]) / len(values)
    if not len(gaps):
        return "a single one"
    r = int(gaps.argmax()) + 1
    return f"largest gap (λ{r} − λ{r + 1})/n = {gaps[r - 1]:.2g}"


_PANELS = (("raw", "raw columns"), ("map", "the map's features"), ("exact", "exact kernel"))


def surface(axes: Sequence[Axes], style: Style, plane: Surface) -> None:
    """Draw what each machine predicts in the plane of two columns, with test rows in the colours of their labels."""
    (left, bottom), (right, top) = plane.corners
    every = [plane.labels, *(values.ravel() for values in plane.planes.values())]
    limits = {
        "vmin": min(one.min() for one in every),
        "vmax": max(one.max() for one in every),
        "cmap": "viridis",
    }
    for one, (which, title) in zip(axes, _PANELS, strict=True):
        one.imshow(
            plane.planes[which], extent=(left, right, bottom, top), origin="lower", aspect="auto", alpha=0.55,
            interpolation="nearest", **limits,
        )  # fmt: skip
        one.scatter(
            plane.rows[:, 0], plane.rows[:, 1], c=plane.labels, s=7, lw=0.3, edgecolors=style.ink, **limits
        )
        one.set(title=title, xlabel=plane.names[0])
    axes[0].set(ylabel=plane.names[1])


def landmarks(axes: Axes, style: Style, points: tuple[Floats, Floats]) -> None:
    """Draw the rows and the landmarks."""
    rows, chosen = points
    axes.scatter(rows[:, 0], rows[:, 1], s=3, alpha=0.4, lw=0, color=style.hues[0], label="rows")
    axes.scatter(chosen[:, 0], chosen[:, 1], s=12, marker="x", lw=0.9, color=style.hues[1], label="landmarks")
    axes.set(xlabel="first direction", ylabel="second direction")
    legend(axes, style)


_MOST_COLUMNS = 15


def importance(axes: Axes, style: Style, losses: tuple[Losses, str]) -> None:
    """Draw what the score, which has this name, loses without the columns that are worth most, as bars."""
    (of_columns, scoring), hue = losses, style.hues[0]
    most = list(of_columns.items())[:_MOST_COLUMNS]
    names = [name if len(name) <= 24 else f"{name[:23]}…" for name, _ in most]
    means, errors = zip(*(loss for _, loss in most), strict=True)
    axes.barh(range(len(most)), means, xerr=errors, color=hue, ecolor=style.ink)
    axes.set_yticks(range(len(most)), names)
    axes.invert_yaxis()
    change = "rise" if lower_is_better(scoring) else "loss"
    axes.set(xlabel=f"{change} of {spell_score(scoring)}")


# More classes than this have no room for their names or counts.
_MOST_NAMES, _MOST_COUNTS = 30, 12


def reliability(axes: Axes, style: Style, bins: Reliability) -> None:
    """Draw the accuracy over the probability of the predicted class."""
    axes.bar(bins.probability, bins.share, width=0.02, color=style.faint)
    axes.plot([0, 1], [0, 1], ":", lw=1, color=style.ink)
    axes.plot(bins.probability, bins.accuracy, "o-", lw=1.4, ms=4, color=style.hues[0])
    axes.set(
        xlabel="probability of the predicted class", ylabel="share of right predictions", ylim=(0.0, 1.0)
    )


def confusion(axes: Axes, _style: Style, rows: tuple[Array, Sequence[str]]) -> None:
    """Draw the shares of the rows of each class by predicted class, with the counts if there is room."""
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


def residuals(axes: Axes, style: Style, points: tuple[Floats, Floats]) -> None:
    """Draw y − ŷ over ŷ."""
    predicted, errors = points
    axes.scatter(predicted, errors, s=3, alpha=0.3, lw=0, color=style.hues[0], rasterized=True)
    axes.axhline(0.0, color=style.ink, lw=1)
    axes.set(xlabel="predicted", ylabel="true − predicted")


def signature(axes: Sequence[Axes], style: Style, curves: SignatureCurves) -> None:
    """Draw the signature, the spectrum and the distortion, each in axes of its own."""
    ratios = _mirrored(curves.ratios, -1.0)
    axes[0].plot(ratios, _mirrored(curves.exact), color=style.ink, lw=3, alpha=0.3, label="exact")
    axes[0].plot(ratios, _mirrored(curves.near), color=style.hues[0], lw=1.4, label="map")
    axes[0].set(xlabel="ω = log(y/x)", ylabel="signature K(ω)")
    _spectrum(axes[1], style, curves)
    _distortion(axes[2], style, curves)
    legend(axes[0], style)


def _spectrum(axes: Axes, style: Style, curves: SignatureCurves) -> None:
    axes.set(xlabel="λ", ylabel="spectrum κ(λ)")
    if not len(curves.frequencies):
        axes.text(
            0.5, 0.5, "none: one feature is exact", ha="center", color=style.ink, transform=axes.transAxes
        )
        axes.set(xticks=[], yticks=[])
        return
    axes.plot(curves.frequencies, curves.spectrum, color=style.ink, lw=3, alpha=0.3)
    at, values = curves.sampled
    axes.vlines(at, 0.0, values, color=style.hues[0], lw=1.0)
    axes.plot(at, values, "o", ms=4, color=style.hues[0])
    axes.set_ylim(bottom=0.0)


def _distortion(axes: Axes, style: Style, curves: SignatureCurves) -> None:
    ratios = np.exp(_mirrored(curves.ratios, -1.0))
    shade = axes.twinx()
    seen = _mirrored(curves.weights) / max(float(curves.weights.max()), 1e-300)
    shade.fill_between(ratios, seen, color=style.faint, alpha=0.6, lw=0)
    shade.set_ylim(bottom=0.0)
    shade.set_yticks([])
    for spine in shade.spines.values():
        spine.set_visible(False)
    axes.set_zorder(shade.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(ratios, _mirrored(curves.near - curves.exact), color=style.hues[0], lw=1.4)
    axes.axhline(0.0, color=style.ink, lw=0.8)
    axes.set(xscale="log", xlabel="y/x", ylabel="error / √(xy)")
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _mirrored(values: Floats, sign: float = 1.0) -> Floats:
    """Return the values of an even function on both sides of 0; of an odd one with a sign of −1."""
    return np.concatenate([sign * values[:0:-1], values])
