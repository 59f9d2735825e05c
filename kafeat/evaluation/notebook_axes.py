"""Axes of a pyplot figure, which notebooks display automatically, in the style of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafeat.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@contextmanager
def needs_matplotlib() -> Iterator[None]:
    """Name the remedy if a module in the block cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"plot: expected matplotlib, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error


def new_axes(columns: int = 1) -> list[Axes]:
    """Return the axes of a new figure, side by side; matplotlib must be there."""
    from matplotlib import pyplot

    from kafeat.evaluation.report.canvas import STYLES, plain

    figure, axes = pyplot.subplots(
        1, columns, figsize=(4.4 * columns, 3.4), layout="constrained", squeeze=False
    )
    figure.set_facecolor(STYLES[0].paper)
    for one in axes[0]:
        plain(one, STYLES[0])
    return list(axes[0])
