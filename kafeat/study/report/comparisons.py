"""Figures that compare maps: error, score and time over the number of columns or a swept parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

from kafeat.maths.scoring import highest_score, spell_score, stated
from kafeat.pictures.canvas import Style, cycle, legend
from kafeat.study.records import Summary
from kafeat.study.summary import is_number, score_name, scoring_of, spell, spread_of, stated_mean
from kafeat.study.tables import rows_of


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: `n_components`, `total_seconds_map`, or a swept parameter."""

    key: str

    @property
    def label(self) -> str:
        known = {"n_components": "columns D", "total_seconds_map": "seconds to fit, transform and learn"}
        return known.get(self.key, self.key)

    def of(self, entry: Summary) -> float:
        """Return the position of an entry on the axis."""
        value = entry["setting"].get(self.key, entry.get(self.key))
        return float(value["mean"] if isinstance(value, Mapping) else value)

    def lines(self, summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
        """Group the settings of a map that differ only along this axis into lines."""
        lines: dict[str, list[Summary]] = {}
        for entry in summaries:
            rest = {key: value for key, value in entry["setting"].items() if not self._holds(key)}
            lines.setdefault(spell({"map": entry["map"], "setting": rest}), []).append(entry)
        return {name: sorted(entries, key=self.of) for name, entries in lines.items()}

    def _holds(self, key: str) -> bool:
        known = self.key in ("n_components", "total_seconds_map")
        return key.endswith("n_components") if known else key == self.key


COLUMNS, SECONDS = Axis("n_components"), Axis("total_seconds_map")


def swept(summaries: Sequence[Summary]) -> list[Axis]:
    """Return the parameters that were swept over numbers, except the number of columns."""
    keys = dict.fromkeys(key for entry in summaries for key in entry["setting"])
    values = {key: [entry["setting"].get(key) for entry in summaries] for key in keys}
    return [
        Axis(key)
        for key, settings in values.items()
        if not COLUMNS._holds(key) and all(map(is_number, settings)) and len(set(settings)) > 1
    ]


def error_over(axes: Axes, style: Style, summaries: Sequence[Summary], axis: Axis) -> None:
    """Plot relative Frobenius and spectral errors; over columns, add a line of 1/√D."""
    top: tuple[float, float] | None = None
    for (name, entries), hue in zip(axis.lines(summaries).items(), cycle(style), strict=False):
        _bars(axes, axis, entries, "relative_frobenius", hue, name)
        if "relative_spectral" in entries[0]:
            spectral = [_mean(entry, "relative_spectral") for entry in entries]
            axes.plot([axis.of(entry) for entry in entries], spectral, "--", lw=1.2, color=hue)
        first = entries[0]["relative_frobenius"]["mean"]
        if first and (top is None or first > top[1]):
            top = axis.of(entries[0]), first
    axes.set(yscale="log", ylabel="relative error")
    if top is not None and axis == COLUMNS:
        widths = np.unique([axis.of(entry) for entry in summaries])
        axes.plot(widths, top[1] * np.sqrt(top[0] / widths), ls=":", color=style.ink, label="1/√D")
    _along(axes, axis, summaries)
    legend(axes, style)


def score_over(axes: Axes, style: Style, summaries: Sequence[Summary], axis: Axis) -> None:
    """Plot scores with those of the raw columns and of the exact kernel of each line.

    Over columns and seconds, both stand as points at their own width and their own seconds.
    """
    lines = axis.lines(summaries)
    for (name, entries), hue in zip(lines.items(), cycle(style), strict=False):
        _bars(axes, axis, entries, "score_map", hue, name, "" if axis == SECONDS else "-")
    if axis != SECONDS:  # there they are points only
        raw = [entry["score_raw"]["mean"] for entry in summaries if entry["score_raw"]["mean"] is not None]
        if raw:
            axes.axhline(
                stated(scoring_of(summaries[0]), max(raw)),
                ls="--",
                lw=1.2,
                color=style.ink,
                label="raw columns, linear",
            )
        _exact(axes, style, lines, axis, f"exact kernel, {summaries[0]['rows_exact']:,} rows")
    if axis in (COLUMNS, SECONDS):
        _points(axes, style, summaries, axis)
    axes.set(ylabel=score_name(summaries[0]))
    _whole_range(axes, summaries)
    _along(axes, axis, summaries)
    legend(axes, style)


def _whole_range(axes: Axes, summaries: Sequence[Summary]) -> None:
    """Let the axis run from the score of a constant to that of perfect predictions, and as far as points lie beyond."""
    name = scoring_of(summaries[0])
    ends = [stated(name, highest_score(name)), *axes.get_ylim()]
    ends += [_mean(entry, "score_constant") for entry in summaries if "score_constant" in entry]
    known = [end for end in ends if np.isfinite(end)]
    axes.set_ylim(min(known), max(known))


def _points(axes: Axes, style: Style, summaries: Sequence[Summary], axis: Axis) -> None:
    """Plot the machines on raw columns and with exact kernels as points, a row of whose kernel has n columns."""
    rows, exact = rows_of(summaries), f"kernel machine on {summaries[0]['rows_exact']:,} rows"
    for which, mark, label in (("raw", "s", "linear machine on raw columns"), ("exact", "D", exact)):
        points = [row for row in rows if row.which == which]
        x = [
            row.width if axis == COLUMNS else _mean(row.entry, f"total_seconds_{row.which}") for row in points
        ]
        y = [_mean(row.entry, f"score_{row.which}") for row in points]
        axes.scatter(x, y, marker=mark, s=36, color=style.ink, label=label, zorder=3)


def _exact(axes: Axes, style: Style, lines: Mapping[str, Sequence[Summary]], axis: Axis, label: str) -> None:
    """Plot the score of the exact kernel: one line for all maps, or one per map if their kernels differ."""
    points_of: dict[str, list[tuple[float, float]]] = {
        name: [(axis.of(entry), _mean(entry, "score_exact")) for entry in entries]
        for name, entries in lines.items()
    }
    scores = {score for points in points_of.values() for _, score in points}
    only = next(iter(scores)) if len(scores) == 1 else None
    if all(np.isnan(score) for score in scores):
        return
    if only is not None:
        axes.axhline(only, ls="-.", lw=1.2, color=style.ink, label=label)
        return
    if len({tuple(points) for points in points_of.values()}) == 1:
        points_of = dict([*points_of.items()][:1])  # the lines have the same kernel
    hues = [style.ink] if len(points_of) == 1 else cycle(style)
    for points, hue in zip(points_of.values(), hues, strict=False):
        x, y = zip(*points, strict=True)
        mark = "_" if len(x) == 1 else None  # a line of a single point would be invisible
        axes.plot(x, np.array(y, dtype=float), "-.", marker=mark, ms=12, lw=1.2, color=hue)
    beside = "" if len(points_of) == 1 else ", in the colour of the map"
    axes.plot([], [], "-.", lw=1.2, color=style.ink, label=f"{label}{beside}")


def times_over_columns(axes: Axes, style: Style, summaries: Sequence[Summary]) -> None:
    """Plot the seconds to transform the rows compared, and in total."""
    for (name, entries), hue in zip(COLUMNS.lines(summaries).items(), cycle(style), strict=False):
        D = [COLUMNS.of(entry) for entry in entries]
        for key, dash, label in (("transform_seconds", "-", name), ("total_seconds_map", "--", None)):
            if key in entries[0]:
                seconds = [_mean(entry, key) for entry in entries]
                axes.plot(D, seconds, dash, marker="o", ms=4, color=hue, label=label)
    axes.set(yscale="log", ylabel="seconds")
    _along(axes, COLUMNS, summaries)
    legend(axes, style)


def _bars(
    axes: Axes, axis: Axis, entries: Sequence[Summary], key: str, hue: str, label: str, line: str = "-"
) -> None:
    means = [_mean(entry, key) for entry in entries]
    errors = [spread_of(entry, entry[key]) or 0.0 for entry in entries]
    axes.errorbar(
        [axis.of(entry) for entry in entries], means, yerr=errors,
        marker="o", ms=4, ls=line, lw=1.5, capsize=2, color=hue, label=label,
    )  # fmt: skip


def _mean(entry: Summary, key: str) -> float:
    """Return a mean as it is usually stated, NaN if it is undefined."""
    mean = stated_mean(entry, key)
    return float("nan") if mean is None else mean


def _along(axes: Axes, axis: Axis, summaries: Sequence[Summary]) -> None:
    """Label the axis and set its ticks, on a logarithmic scale if all numbers are positive."""
    values = np.unique([axis.of(entry) for entry in summaries])
    axes.set(xlabel=axis.label)
    if values[0] > 0.0:
        axes.set(xscale="log")
        if not np.isfinite(axes.dataLim.intervalx).all():  # no score is defined, so there is no point
            axes.set_xlim(0.9 * values[0], 1.1 * values[-1])
    if axis == SECONDS:
        _few_ticks(axes)
        return
    some = values if len(values) <= 8 else values[:: len(values) // 8 + 1]
    axes.set_xticks(some, [f"{int(x):,}" if axis == COLUMNS else f"{x:g}" for x in some])
    axes.xaxis.set_minor_locator(NullLocator())


def _few_ticks(axes: Axes) -> None:
    """Set ticks of seconds at powers of ten, or at even distances if the range is small."""
    low, high = axes.get_xlim()
    if high < 30.0 * low:
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def score_over_columns(axes: Axes, style: Style, curve: Sequence[Mapping[str, Any]], name: str) -> None:
    """Plot the scores with their standard errors, and mark the chosen number of columns."""
    widths = [row["columns"] for row in curve]
    axes.errorbar(
        widths, [stated(name, row["score"]) for row in curve], yerr=[row["standard_error"] for row in curve],
        marker="o", ms=4, lw=1.5, capsize=2, color=style.hues[0], label="the chosen map",
    )  # fmt: skip
    for row in curve:
        if row["chosen"]:
            axes.plot(
                row["columns"], stated(name, row["score"]), "o", ms=11, mew=1.8, mfc="none", color=style.hues[1],
                label=f"chosen: {row['columns']:,} columns", ls="none",
            )  # fmt: skip
    axes.set(xscale="log", xlabel="columns D", ylabel=spell_score(name))
    axes.set_xticks(widths, [f"{width:,}" for width in widths])
    axes.xaxis.set_minor_locator(NullLocator())
    legend(axes, style)


def score_over_seconds(axes: Axes, style: Style, trials: Sequence[Mapping[str, Any]], name: str) -> None:
    """Plot the score of every trial over its seconds, and mark the first one, which was chosen."""
    seconds, scores = [row["seconds"] for row in trials], [stated(name, row["score"]) for row in trials]
    axes.plot(seconds, scores, "o", ms=4, color=style.hues[0], label="trials")
    axes.plot(
        seconds[0], scores[0], "o", ms=11, mew=1.8, mfc="none", color=style.hues[1], label="the chosen map"
    )
    axes.set(xlabel="seconds of the trial", ylabel=spell_score(name))
    legend(axes, style)
