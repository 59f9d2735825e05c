"""Figures of a homogeneous map: its signature, its spectrum, and its error over the ratio of two entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from kafeat.evaluation.closed_form import SignatureCurves
from kafeat.evaluation.report.canvas import Style, legend
from kafeat.types import Floats


def signature(axes: Sequence[Axes], style: Style, curves: SignatureCurves) -> None:
    """Draw the signature, the spectrum and the distortion, each in axes of its own."""
    _signature(axes[0], style, curves)
    _spectrum(axes[1], style, curves)
    _distortion(axes[2], style, curves)
    legend(axes[0], style)


def _signature(axes: Axes, style: Style, curves: SignatureCurves) -> None:
    ratios = _mirrored(curves.ratios, -1.0)
    axes.plot(ratios, _mirrored(curves.exact), color=style.ink, lw=3, alpha=0.3, label="exact")
    axes.plot(ratios, _mirrored(curves.near), color=style.hues[0], lw=1.4, label="map")
    axes.set(xlabel="ω = log(y/x)", ylabel="signature K(ω)")


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
    both: Floats = np.concatenate([sign * values[:0:-1], values])
    return both
