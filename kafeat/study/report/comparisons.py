"""Figures that compare maps: error, score and time over the number of columns D."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.maths import Score
from kafeat.pictures import Style, cycle, legend
from kafeat.study.records import Estimate, Summary
from kafeat.study.summary import is_scored, scoring_of, spell_briefly, spread_of, stated_mean
from kafeat.study.tables import rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def lines(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    """Group summaries into the lines of a plot. The summaries of a line differ only in the number of columns."""
    lines: dict[str, list[Summary]] = {}
    for entry in summaries:
        lines.setdefault(spell_briefly(entry.about), []).append(entry)
    return {name: sorted(entries, key=_columns) for name, entries in lines.items()}


def _columns(entry: Summary) -> int:
    return int(entry.about["n_components"])


def error_over_columns(axes: Axes, style: Style, summaries: Sequence[Summary]) -> None:
    """Plot relative Frobenius and spectral errors over columns, with a line that falls as 1/√D for comparison."""
    _draw(
        axes, style, summaries,
        lambda one: one.kernel["relative_frobenius"], lambda one: one.kernel.get("relative_spectral"),
    )  # fmt: skip
    firsts = [entries[0] for entries in lines(summaries).values()]
    top, first = max((one.kernel["relative_frobenius"]["mean"] or 0.0, _columns(one)) for one in firsts)
    if top:
        widths = np.unique(list(map(_columns, summaries)))
        axes.plot(widths, top * np.sqrt(first / widths), ls=":", color=style.ink, label="1/√D")
    _label(axes, style, summaries, "relative error", yscale="log")


def score_over_columns(axes: Axes, style: Style, summaries: Sequence[Summary]) -> None:
    """Plot scores of maps as lines, and those of raw columns and exact kernels as points at their number of columns.

    An exact kernel counts as n columns if it is trained on n rows.
    """
    score = scoring_of(summaries[0])
    _draw(axes, style, summaries, lambda one: one.scored.tested["map"]["score"], stated=score.stated)
    rows, exact = rows_of(summaries), f"exact kernel, {summaries[0].about['rows_exact']:,} rows"
    for which, mark, label in (("raw", "s", "raw columns, linear"), ("exact", "D", exact)):
        points = [row for row in rows if row.which == which]
        scores = [_mean(row.entry, which) for row in points]
        axes.scatter(
            [row.width for row in points], scores, marker=mark, s=36, color=style.ink, label=label, zorder=3
        )
    _whole_range(axes, summaries)
    _label(axes, style, summaries, str(score))


def time_over_columns(axes: Axes, style: Style, summaries: Sequence[Summary]) -> None:
    """Plot the seconds to transform the compared rows and, dashed, the total seconds of fitting and training."""
    scored = is_scored(summaries[0])
    _draw(
        axes, style, summaries, lambda one: one.kernel["transform_seconds"],
        lambda one: one.scored.tested["map"]["total_seconds"] if scored else None,
    )  # fmt: skip
    _label(axes, style, summaries, "seconds", yscale="log")


def _draw(
    axes: Axes,
    style: Style,
    summaries: Sequence[Summary],
    solid: Callable[[Summary], Estimate],
    dashed: Callable[[Summary], Estimate | None] = lambda _: None,
    stated: Callable[[float], float] = float,
) -> None:
    """Plot a solid line of means with their ± values for each map and, if given, a dashed line of other means."""
    for (name, entries), hue in zip(lines(summaries).items(), cycle(style), strict=False):
        widths, figures = list(map(_columns, entries)), [solid(one) for one in entries]
        means = [np.nan if one["mean"] is None else stated(one["mean"]) for one in figures]
        errors = [spread_of(entry, one) or 0.0 for entry, one in zip(entries, figures, strict=True)]
        axes.errorbar(widths, means, yerr=errors, marker="o", ms=4, lw=1.5, capsize=2, color=hue, label=name)
        others = [np.nan if one["mean"] is None else one["mean"] for one in map(dashed, entries) if one]
        if others:
            axes.plot(widths, others, "--", lw=1.2, color=hue)


def _whole_range(axes: Axes, summaries: Sequence[Summary]) -> None:
    """Let the axis of scores run from a constant prediction to perfect ones, or farther if points lie outside."""
    ends = [abs(scoring_of(summaries[0]).best), *axes.get_ylim()]
    ends += [_mean(entry, "constant") for entry in summaries]
    known = [end for end in ends if np.isfinite(end)]
    axes.set_ylim(min(known), max(known))


def _mean(entry: Summary, which: str) -> float:
    """Return a mean score. Errors are positive numbers, and an undefined score is NaN."""
    mean = stated_mean(entry, which)
    return float("nan") if mean is None else mean


def _label(axes: Axes, style: Style, summaries: Sequence[Summary], title: str, **scale: str) -> None:
    """Label the axes, put the numbers of columns on the x axis, and add the legend."""
    axes.set(ylabel=title, **scale)
    widths = np.unique(list(map(_columns, summaries)))
    axes.set(xscale="log")
    if not np.isfinite(axes.dataLim.intervalx).all():  # no score is defined, so nothing was plotted
        axes.set_xlim(0.9 * widths[0], 1.1 * widths[-1])
    _ticks(axes, widths if len(widths) <= 8 else widths[:: len(widths) // 8 + 1])
    legend(axes, style)


def _ticks(axes: Axes, widths: Iterable[int]) -> None:
    from matplotlib.ticker import NullLocator

    axes.set(xlabel="columns D")
    axes.set_xticks(list(widths), [f"{width:,}" for width in widths])
    axes.xaxis.set_minor_locator(NullLocator())


def score_of_choice(axes: Axes, style: Style, curve: Sequence[Mapping[str, Any]], score: Score) -> None:
    """Plot the scores of a search with their standard errors, and mark the chosen number of columns."""
    widths = [row["columns"] for row in curve]
    axes.errorbar(
        widths, [score.stated(row["score"]) for row in curve], yerr=[row["standard_error"] for row in curve],
        marker="o", ms=4, lw=1.5, capsize=2, color=style.hues[0], label="the chosen map",
    )  # fmt: skip
    for row in curve:
        if row["chosen"]:
            axes.plot(
                row["columns"], score.stated(row["score"]), "o", ms=11, mew=1.8, mfc="none", color=style.hues[1],
                label=f"chosen: {row['columns']:,} columns", ls="none",
            )  # fmt: skip
    axes.set(xscale="log", ylabel=str(score))
    _ticks(axes, widths)
    legend(axes, style)
