"""What a feature map shows of itself in a notebook; the pictures are drawn in `kafeat/notebook.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kafeat.feature_map import FeatureMap


class InNotebooks:
    """Methods of a feature map for whoever looks at it. The pictures need the extra `evaluate`.

    Each takes rows X, of which at most `rows` are compared, drawn at random but always the same, and returns
    matplotlib's axes. A map without an exact kernel raises `UsageError`, as does a missing matplotlib.
    """

    def _repr_html_(self) -> str:
        from kafeat.notebook import table

        return table(cast("FeatureMap", self))

    def plot_error(self, X: Any, rows: int = 1000) -> tuple[Axes, Axes]:
        """z(x)·z(y) over k(x, y) for random pairs of rows, and the histogram of the differences."""
        from kafeat.notebook import plot_error

        return plot_error(cast("FeatureMap", self), X, rows)

    def plot_kernel(self, X: Any, rows: int = 1000) -> tuple[Axes, Axes, Axes]:
        """The exact and the approximate kernel matrix of some rows, like beside like, and their difference."""
        from kafeat.notebook import plot_kernel

        return plot_kernel(cast("FeatureMap", self), X, rows)

    def plot_distances(self, X: Any, rows: int = 1000) -> Axes:
        """How often which distance of the kernel, √(k(x, x) + k(y, y) − 2k(x, y)), becomes which of the features."""
        from kafeat.notebook import plot_distances

        return plot_distances(cast("FeatureMap", self), X, rows)

    def plot_spectrum(self, X: Any, rows: int = 1000) -> Axes:
        """The eigenvalues of the exact and of the approximate kernel matrix, largest first."""
        from kafeat.notebook import plot_spectrum

        return plot_spectrum(cast("FeatureMap", self), X, rows)
