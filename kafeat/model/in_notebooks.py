"""What a feature map shows of itself in a notebook; the figures are drawn in `kafeat.evaluation.notebook`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class InNotebooks:
    """Methods of a feature map for whoever looks at it. The pictures need the extra `evaluate`.

    Each takes rows X, of which at most `rows` are compared, drawn at random but always the same, and returns
    matplotlib's axes. A map without an exact kernel raises `UsageError`, as does a missing matplotlib.
    """

    def _repr_html_(self) -> str:
        made: str = _figures().table(self)
        return made

    def plot_error(self, X: Any, rows: int = 1000) -> tuple[Axes, Axes]:
        """z(x)·z(y) over k(x, y) for random pairs of rows, and the histogram of the differences."""
        made: tuple[Axes, Axes] = _figures().plot_error(self, X, rows)
        return made

    def plot_kernel(self, X: Any, rows: int = 1000) -> tuple[Axes, Axes, Axes]:
        """The exact and the approximate kernel matrix of some rows, like beside like, and their difference."""
        made: tuple[Axes, Axes, Axes] = _figures().plot_kernel(self, X, rows)
        return made

    def plot_distances(self, X: Any, rows: int = 1000) -> Axes:
        """How often which distance of the kernel, √(k(x, x) + k(y, y) − 2k(x, y)), becomes which of the features."""
        made: Axes = _figures().plot_distances(self, X, rows)
        return made

    def plot_spectrum(self, X: Any, rows: int = 1000) -> Axes:
        """The eigenvalues of the exact and of the approximate kernel matrix, largest first."""
        made: Axes = _figures().plot_spectrum(self, X, rows)
        return made


def _figures() -> Any:
    """The module that draws. It stands above the map, so that it is found by its name when a person asks for it."""
    return import_module("kafeat.evaluation.notebook")
