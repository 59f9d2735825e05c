"""Figures of the score over the number of columns, and over seconds. Need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from kafeat.pictures.canvas import Style, legend


def score_over_columns(axes: Axes, style: Style, curve: Sequence[Mapping[str, Any]], name: str) -> None:
    """Plot the scores with their standard errors, and mark the chosen number of columns."""
    widths = [row["columns"] for row in curve]
    axes.errorbar(
        widths, [row["score"] for row in curve], yerr=[row["standard_error"] for row in curve],
        marker="o", ms=4, lw=1.5, capsize=2, color=style.hues[0], label="the chosen map",
    )  # fmt: skip
    for row in curve:
        if row["chosen"]:
            axes.plot(
                row["columns"], row["score"], "o", ms=11, mew=1.8, mfc="none", color=style.hues[1],
                label=f"chosen: {row['columns']:,} columns", ls="none",
            )  # fmt: skip
    axes.set(xscale="log", xlabel="columns D", ylabel=name)
    axes.set_xticks(widths, [f"{width:,}" for width in widths])
    axes.xaxis.set_minor_locator(NullLocator())
    legend(axes, style)


def score_over_seconds(axes: Axes, style: Style, trials: Sequence[Mapping[str, Any]], name: str) -> None:
    """Plot the score of every trial over its seconds, and mark the first one, which was chosen."""
    seconds, scores = [row["seconds"] for row in trials], [row["score"] for row in trials]
    axes.plot(seconds, scores, "o", ms=4, color=style.hues[0], label="trials")
    axes.plot(
        seconds[0], scores[0], "o", ms=11, mew=1.8, mfc="none", color=style.hues[1], label="the chosen map"
    )
    axes.set(xlabel="seconds of the trial", ylabel=name)
    legend(axes, style)
