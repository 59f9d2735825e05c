"""Pictures of maps side by side: error, score and time over the number of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

from kafeat.evaluation.canvas import Style, cycle, legend
from kafeat.evaluation.summary import spell_briefly


def _families(summaries: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Settings of a map that differ in the number of columns make a line; other settings make other lines."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in summaries:
        found.setdefault(spell_briefly(entry), []).append(entry)
    return {name: sorted(entries, key=lambda one: one["n_components"]) for name, entries in found.items()}


def error_over_columns(axes: Axes, style: Style, summaries: Sequence[Mapping[str, Any]]) -> None:
    """Relative Frobenius errors, and the slope that random features have."""
    top: tuple[float, float] | None = None
    for (name, entries), hue in zip(_families(summaries).items(), cycle(style), strict=False):
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
    legend(axes, style)


def score_over(axes: Axes, style: Style, summaries: Sequence[Mapping[str, Any]], key: str) -> None:
    """Scores over columns or seconds, beside the raw columns and the exact kernel."""
    for (name, entries), hue in zip(_families(summaries).items(), cycle(style), strict=False):
        x = [entry[key]["mean"] if isinstance(entry[key], Mapping) else entry[key] for entry in entries]
        _bars(
            axes,
            x,
            [entry["score_map"] for entry in entries],
            hue,
            name,
            "-" if key == "n_components" else "",
        )
    exact = f"exact kernel, {summaries[0]['rows_exact']:,} rows"
    for which, dash, label in (("raw", "--", "raw columns, linear"), ("exact", "-.", exact)):
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
    else:
        _few_ticks(axes)
    legend(axes, style)


def times_over_columns(axes: Axes, style: Style, summaries: Sequence[Mapping[str, Any]]) -> None:
    """Seconds to transform and to learn."""
    for (name, entries), hue in zip(_families(summaries).items(), cycle(style), strict=False):
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
    legend(axes, style)


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


def _few_ticks(axes: Axes) -> None:
    """Seconds: powers of ten, or where there are hardly any, numbers evenly apart."""
    low, high = axes.get_xlim()
    if high < 30.0 * low:
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
