"""Pictures of an evaluation, each in a light and a dark version; they need matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from kafeat.evaluation.gallery import Exhibit
from kafeat.evaluation.summary import spell, spell_briefly


@dataclass(frozen=True)
class Style:
    """Colours of a version."""

    name: str
    ink: str
    paper: str
    faint: str
    hues: tuple[str, ...]


# Distinct for people who do not see red and green apart: Okabe & Ito's, darkened or lightened to be read on the paper.
STYLES = (
    Style("light", "#1c1f24", "#ffffff", "#d8dbe0",
          ("#0b62a4", "#c2550a", "#12806a", "#8e3b8a", "#7a6a00", "#444a52")),
    Style("dark", "#e6e8eb", "#16191d", "#3a4048",
          ("#6bb8f0", "#f2a25c", "#4fd1b0", "#e08ad8", "#e3d04a", "#b4bac2")),
)  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A picture in both versions: {style: bytes}, PNG or SVG, with what it shows in words."""

    name: str
    kind: str
    title: str
    caption: str
    panels: int
    files: Mapping[str, bytes]


def pictures(summaries: Sequence[Mapping[str, Any]], exhibits: Sequence[Exhibit]) -> Iterator[Picture]:
    """All pictures that mean something for these maps, the comparisons first."""
    if len({entry["n_components"] for entry in summaries}) > 1:
        yield _drawn(
            "error-over-columns", "svg", "Error over columns",
            "Relative Frobenius error of the kernel matrix; bars are standard errors over the seeds. The dotted line "
            "falls like 1/√D, as random Fourier features do: what is below it, or steeper, does better than chance.",
            lambda axes, style: _error_over_columns(axes, style, summaries),
        )  # fmt: skip
    if "score_map" in summaries[0] and len(summaries) > 1:
        for key, name, text in (
            ("n_components", "columns", "Score over columns"), ("transform_seconds", "time", "Score over time"),
        ):  # fmt: skip
            yield _drawn(
                f"score-over-{name}", "svg", text,
                "The score on rows that were held out. The lines are a linear model on the raw columns and the machine "
                "with the exact kernel: a map is worth its cost between the two, and above.",
                lambda axes, style, key=key: _score(axes, style, summaries, key),  # type: ignore[misc]
            )  # fmt: skip
    if len({entry["n_components"] for entry in summaries}) > 1:
        yield _drawn(
            "time-over-columns", "svg", "Time over columns",
            "Seconds to transform the rows that were compared and, dashed, to learn from the features of all rows to "
            "train on. A row takes the bytes of its columns: four or eight each.",
            lambda axes, style: _times(axes, style, summaries),
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
    yield _drawn(
        f"gram-{name}", "png", f"Gram matrices: {what}",
        "Exact, approximate, and their difference, of rows in the order of the leading eigenvector.",
        lambda axes, style: _gram(axes, style, exhibit), columns=3,
    )  # fmt: skip
    yield _drawn(
        f"entries-{name}", "png", f"Entries: {what}",
        "Left, the approximate against the exact value of random pairs: on the line where they agree. Right, how the "
        "errors are distributed.",
        lambda axes, style: _entries(axes, style, exhibit), columns=2,
    )  # fmt: skip
    yield _drawn(
        f"distances-{name}", "png", f"Distances: {what}",
        "Distance of random pairs in the kernel's space, before, and between their features, after.",
        lambda axes, style: _distances(axes, style, exhibit),
    )  # fmt: skip
    lines = [one for one in family if one.line is not None]
    if lines:
        yield _drawn(
            f"line-{name}", "svg", f"The kernel along a line: {exhibit.record['map']}",
            "Between a row and the points on the way to the row that is least like it, exact and approximated.",
            lambda axes, style: _lines(axes, style, lines),
        )  # fmt: skip
    yield _drawn(
        f"spectrum-{name}", "svg", f"Spectra: {what}",
        "Eigenvalues of the kernel matrix, exact and approximate. Where the exact ones fall fast, few landmarks do.",
        lambda axes, style: _spectra(axes, style, exhibit),
    )  # fmt: skip
    if exhibit.curve is not None:
        yield _drawn(
            f"curve-{name}", "svg", f"Closed-form error: {what}",
            "Error of the homogeneous map at the ratio y/x of two entries, per √(xy); the shade is how often the data "
            "have that ratio.",
            lambda axes, style: _curve(axes, style, exhibit),
        )  # fmt: skip
    if exhibit.landmarks is not None:
        yield _drawn(
            f"landmarks-{name}", "png", f"Landmarks: {what}",
            "Rows and landmarks, in the plane that shows most of the rows.",
            lambda axes, style: _landmarks(axes, style, exhibit),
        )  # fmt: skip


def _drawn(
    name: str, kind: str, title: str, caption: str, draw: Callable[[Any, Style], None], columns: int = 1
) -> Picture:
    files = {}
    for style in STYLES:
        figure = Figure(figsize=(4.4 * columns, 3.4), layout="constrained")
        figure.set_facecolor(style.paper)
        axes = np.atleast_1d(figure.subplots(1, columns))
        for one in axes:
            _plain(one, style)
        draw(axes if columns > 1 else axes[0], style)
        out = io.BytesIO()
        nothing = (
            {"Date": None} if kind == "svg" else {"Software": None}
        )  # the same evaluation, the same bytes
        figure.savefig(out, format=kind, dpi=110, metadata=nothing)
        files[style.name] = out.getvalue()
    return Picture(name, kind, title, caption, columns, files)


def _plain(axes: Axes, style: Style) -> None:
    axes.set_facecolor(style.paper)
    axes.tick_params(colors=style.ink, which="both", labelsize=9)
    for edge, spine in axes.spines.items():
        spine.set_color(style.faint)
        spine.set_visible(edge in ("left", "bottom"))
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
        text.set_color(style.ink)
        text.set_fontsize(10)


def _legend(axes: Axes, style: Style) -> None:
    axes.legend(frameon=False, labelcolor=style.ink, fontsize=9)


def _families(summaries: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Settings of a map that differ in the number of columns make a line; other settings make other lines."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in summaries:
        found.setdefault(spell_briefly(entry), []).append(entry)
    return {name: sorted(entries, key=lambda one: one["n_components"]) for name, entries in found.items()}


def _error_over_columns(axes: Axes, style: Style, summaries: Sequence[Mapping[str, Any]]) -> None:
    top: tuple[float, float] | None = None
    for (name, entries), hue in zip(_families(summaries).items(), _cycle(style), strict=False):
        D = [entry["n_components"] for entry in entries]
        _bars(axes, D, [entry["relative_frobenius"] for entry in entries], hue, name)
        first = entries[0]["relative_frobenius"]["mean"]
        if first and (top is None or first > top[1]):
            top = D[0], first
    widths = np.array(sorted({entry["n_components"] for entry in summaries}), dtype=float)
    if top is not None:
        axes.plot(widths, top[1] * np.sqrt(top[0] / widths), ":", color=style.ink, label="slope of 1/√D")
    axes.set(xscale="log", yscale="log", xlabel="columns D", ylabel="relative error")
    _whole_ticks(axes, widths)
    _legend(axes, style)


def _score(axes: Axes, style: Style, summaries: Sequence[Mapping[str, Any]], key: str) -> None:
    for (name, entries), hue in zip(_families(summaries).items(), _cycle(style), strict=False):
        x = [entry[key]["mean"] if isinstance(entry[key], Mapping) else entry[key] for entry in entries]
        _bars(
            axes,
            x,
            [entry["score_map"] for entry in entries],
            hue,
            name,
            "-" if key == "n_components" else "",
        )
    for which, dash, label in (("raw", "--", "raw columns, linear"), ("exact", "-.", "exact kernel")):
        known = [
            entry[f"score_{which}"]["mean"]
            for entry in summaries
            if entry[f"score_{which}"]["mean"] is not None
        ]
        if known:
            axes.axhline(max(known), ls=dash, lw=1.2, color=style.ink, label=label)
    score = "accuracy" if summaries[0].get("task") == "classification" else "R²"
    axes.set(
        xscale="log", xlabel="columns D" if key == "n_components" else "seconds to transform", ylabel=score
    )
    if key == "n_components":
        _whole_ticks(axes, np.array(sorted({entry[key] for entry in summaries}), dtype=float))
    _legend(axes, style)


def _times(axes: Axes, style: Style, summaries: Sequence[Mapping[str, Any]]) -> None:
    for (name, entries), hue in zip(_families(summaries).items(), _cycle(style), strict=False):
        D = [entry["n_components"] for entry in entries]
        for key, dash, label in (("transform_seconds", "-", name), ("learn_seconds_map", "--", None)):
            if key in entries[0]:
                axes.plot(
                    D,
                    [entry[key]["mean"] for entry in entries],
                    dash,
                    marker="o",
                    ms=4,
                    color=hue,
                    label=label,
                )
    axes.set(xscale="log", yscale="log", xlabel="columns D", ylabel="seconds")
    _whole_ticks(axes, np.array(sorted({entry["n_components"] for entry in summaries}), dtype=float))
    _legend(axes, style)


def _bars(
    axes: Axes,
    x: Sequence[float],
    figures: Sequence[Mapping[str, float | None]],
    hue: str,
    label: str,
    line: str = "-",
) -> None:
    means = [np.nan if figure["mean"] is None else figure["mean"] for figure in figures]
    errors = [figure["standard_error"] or 0.0 for figure in figures]
    axes.errorbar(x, means, yerr=errors, marker="o", ms=4, ls=line, lw=1.5, capsize=2, color=hue, label=label)


def _whole_ticks(axes: Axes, widths: Any) -> None:
    some = widths if len(widths) <= 8 else widths[:: len(widths) // 8 + 1]
    axes.set_xticks(some, [f"{int(width):,}" for width in some])
    axes.xaxis.set_minor_locator(NullLocator())


def _cycle(style: Style) -> Iterator[str]:
    while True:
        yield from style.hues


def _gram(axes: Sequence[Axes], style: Style, exhibit: Exhibit) -> None:
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


def _entries(axes: Sequence[Axes], style: Style, exhibit: Exhibit) -> None:
    exact, near = exhibit.pairs
    axes[0].scatter(exact, near, s=2, alpha=0.25, lw=0, color=style.hues[0], rasterized=True)
    ends = [float(min(exact.min(), near.min())), float(max(exact.max(), near.max()))]
    axes[0].plot(ends, ends, color=style.ink, lw=1)
    axes[0].set(xlabel="exact", ylabel="approximate")
    axes[1].hist(near - exact, bins=80, color=style.hues[0])
    axes[1].axvline(0.0, color=style.ink, lw=1)
    axes[1].set(xlabel="error", ylabel="pairs")


def _distances(axes: Axes, style: Style, exhibit: Exhibit) -> None:
    before, after = exhibit.distances
    top = float(max(before.max(), after.max(), 1e-12))
    counts, xs, ys = np.histogram2d(before, after, bins=90, range=[[0.0, top], [0.0, top]])
    shown = axes.pcolormesh(xs, ys, np.ma.masked_equal(counts.T, 0), cmap="viridis", rasterized=True)
    axes.plot([0, top], [0, top], color=style.ink, lw=1)
    axes.set(xlabel="before", ylabel="after")
    bar = axes.figure.colorbar(shown, ax=axes, label="pairs")
    bar.ax.tick_params(colors=style.ink, labelsize=8)
    bar.ax.yaxis.label.set_color(style.ink)
    bar.outline.set_edgecolor(style.faint)


def _lines(axes: Axes, style: Style, family: Sequence[Exhibit]) -> None:
    some = family if len(family) <= 4 else [family[i] for i in np.linspace(0, len(family) - 1, 4).astype(int)]
    for exhibit, hue in zip(some, _cycle(style), strict=False):
        if exhibit.line is not None:
            axes.plot(
                exhibit.line[0],
                exhibit.line[2],
                color=hue,
                lw=1.4,
                label=f"D = {exhibit.record['n_components']:,}",
            )
    if some[-1].line is not None:
        axes.plot(some[-1].line[0], some[-1].line[1], color=style.ink, lw=1.6, ls="--", label="exact")
    axes.set(xlabel="way from a row to another", ylabel="k(x, y)")
    _legend(axes, style)


def _spectra(axes: Axes, style: Style, exhibit: Exhibit) -> None:
    for values, hue, label in zip(exhibit.spectra, style.hues, ("exact", "approximate"), strict=False):
        least = float(values.max(initial=0.0)) * 1e-8
        axes.plot(
            np.arange(1, len(values) + 1), np.where(values > least, values, np.nan), color=hue, label=label
        )
    axes.set(xscale="log", yscale="log", xlabel="number of the eigenvalue", ylabel="eigenvalue")
    _legend(axes, style)


def _curve(axes: Axes, style: Style, exhibit: Exhibit) -> None:
    if exhibit.curve is None:
        return
    ratios, error, weights = exhibit.curve
    shade = axes.twinx()
    shade.fill_between(
        ratios, weights / max(float(weights.max()), 1e-300), color=style.faint, alpha=0.6, lw=0
    )
    shade.set_yticks([])
    for spine in shade.spines.values():
        spine.set_visible(False)
    axes.set_zorder(shade.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(ratios, error, color=style.hues[0])
    axes.axhline(0.0, color=style.ink, lw=0.8)
    axes.set(xlabel="log(y/x)", ylabel="error / √(xy)")


def _landmarks(axes: Axes, style: Style, exhibit: Exhibit) -> None:
    if exhibit.landmarks is None:
        return
    rows, landmarks = exhibit.landmarks
    axes.scatter(rows[:, 0], rows[:, 1], s=3, alpha=0.4, lw=0, color=style.hues[0], label="rows")
    axes.scatter(
        landmarks[:, 0], landmarks[:, 1], s=12, marker="x", lw=0.9, color=style.hues[1], label="landmarks"
    )
    axes.set(xlabel="first direction", ylabel="second direction")
    _legend(axes, style)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "map"
