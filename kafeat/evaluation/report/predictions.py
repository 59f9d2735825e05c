"""Figures of the predictions of a model: how honest its probabilities are, and where it errs."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from kafeat.evaluation.model_scores import ModelFigures
from kafeat.evaluation.report.canvas import Style

# More classes than this have no room for their names or counts.
_MOST_NAMES, _MOST_COUNTS = 30, 12


def reliability(axes: Axes, style: Style, model: ModelFigures) -> None:
    """Draw the accuracy over the probability of the predicted class."""
    if model.reliability is None:
        raise TypeError("a model of numbers has no probabilities")
    probability, accuracy, share = model.reliability
    axes.bar(probability, share, width=0.02, color=style.faint)
    axes.plot([0, 1], [0, 1], ":", lw=1, color=style.ink)
    axes.plot(probability, accuracy, "o-", lw=1.4, ms=4, color=style.hues[0])
    axes.set(xlabel="probability of the predicted class", ylabel="share of right predictions")


def confusion(axes: Axes, style: Style, model: ModelFigures) -> None:
    """Draw the shares of the rows of each class by predicted class, with the counts if there is room."""
    if model.confusion is None:
        raise TypeError("a model of numbers has no classes")
    counts = model.confusion
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, vmin=0.0, vmax=1.0, cmap="viridis", interpolation="nearest")
    axes.set(xlabel="predicted", ylabel="true")
    if len(counts) <= _MOST_NAMES:
        axes.set_xticks(range(len(counts)), model.classes, rotation=90)
        axes.set_yticks(range(len(counts)), model.classes)
    if len(counts) <= _MOST_COUNTS:
        for (i, j), n in np.ndenumerate(counts):
            ink = "black" if shares[i, j] > 0.6 else "white"
            axes.text(j, i, f"{n:,}", ha="center", va="center", color=ink, fontsize=7)
    del style


def residuals(axes: Axes, style: Style, model: ModelFigures) -> None:
    """Draw y − ŷ over ŷ."""
    if model.residuals is None:
        raise TypeError("a model of classes has no residuals")
    predicted, errors = model.residuals
    axes.scatter(predicted, errors, s=3, alpha=0.3, lw=0, color=style.hues[0], rasterized=True)
    axes.axhline(0.0, color=style.ink, lw=1)
    axes.set(xlabel="predicted", ylabel="true − predicted")
