"""Drawing of figures: a light and a dark version, plain axes, and no timestamps in the files.

Matplotlib is imported when a figure is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Style:
    """The colours of one version of a figure, light or dark."""

    name: str
    ink: str
    paper: str
    faint: str
    hues: tuple[str, ...]


# Colours of Okabe and Ito, which colour-blind people can distinguish, adjusted for contrast with the background.
STYLES = (
    Style("light", "#1c1f24", "#ffffff", "#d8dbe0",
          ("#0b62a4", "#c2550a", "#12806a", "#8e3b8a", "#7a6a00", "#444a52")),
    Style("dark", "#e6e8eb", "#16191d", "#3a4048",
          ("#6bb8f0", "#f2a25c", "#4fd1b0", "#e08ad8", "#e3d04a", "#b4bac2")),
)  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A picture in both styles ({style: bytes}, PNG or SVG), with a title and a caption."""

    name: str
    kind: str
    title: str
    caption: str
    panels: int
    files: Mapping[str, bytes]


def drawn(
    name: str, kind: str, title: str, caption: str, draw: Callable[[Any, Style], None], columns: int = 1
) -> Picture:
    """Draw a picture with this many columns of axes, calling `draw(axes, style)` once for each style."""
    from matplotlib.figure import Figure

    files = {}
    for style in STYLES:
        # pages shrink a wide figure to the page width, so several axes get less width each: labels then shrink less
        figure = Figure(figsize=(4.4 if columns == 1 else 3.4 * columns, 3.4), layout="constrained")
        figure.set_facecolor(style.paper)
        axes = np.atleast_1d(figure.subplots(1, columns))
        for one in axes:
            plain(one, style)
        draw(axes if columns > 1 else axes[0], style)
        out = io.BytesIO()
        nothing = (
            {"Date": None} if kind == "svg" else {"Software": None}
        )  # Without a date or a version, equal evaluations give equal bytes.
        figure.savefig(out, format=kind, dpi=110, metadata=nothing)
        files[style.name] = out.getvalue()
    return Picture(name, kind, title, caption, columns, files)


def needed_pyplot() -> Any:
    """Return pyplot. If it cannot be imported, raise an error that names the remedy."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise UsageError(
            f"plot: expected matplotlib, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    return pyplot


def new_axes(columns: int = 1) -> list[Axes]:
    """Return the axes of a new figure of pyplot, side by side. Notebooks display the figure."""
    size = 4.4 * columns, 3.4
    figure, axes = needed_pyplot().subplots(1, columns, figsize=size, layout="constrained", squeeze=False)
    figure.set_facecolor(STYLES[0].paper)
    for one in axes[0]:
        plain(one, STYLES[0])
    return list(axes[0])


def plain(axes: Axes, style: Style) -> None:
    """Remove the box of axes and apply the colours of the style."""
    axes.set_facecolor(style.paper)
    axes.tick_params(colors=style.ink, which="both", labelsize=9)
    for edge, spine in axes.spines.items():
        spine.set_color(style.faint)
        spine.set_visible(edge in ("left", "bottom"))
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
        text.set_color(style.ink)
        text.set_fontsize(10)


# The most characters in a line of a legend above one column of axes, and the height of a line in inches.
_WIDTH, _LINE = 52, 0.19


def legend(axes: Axes, style: Style) -> None:
    """Add a legend without a frame above the axes, and increase the figure's height by that of the legend."""
    handles, names = axes.get_legend_handles_labels()
    names = [fill(name, _WIDTH) for name in names]
    columns = max(1, min(len(names), _WIDTH // (max(map(len, names), default=0) + 4)))
    lines = sum(name.count("\n") for name in names) + -(-len(names) // columns)
    figure: Any = axes.figure
    figure.legend(
        handles,
        names,
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        labelcolor=style.ink,
        fontsize=9,
    )
    figure.set_figheight(figure.get_figheight() + _LINE * lines)


def cycle(style: Style) -> Iterator[str]:
    """Yield the colours of a style repeatedly."""
    while True:
        yield from style.hues
