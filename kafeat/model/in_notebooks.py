"""Methods of a feature map for notebooks; `kafeat.evaluation.notebook` draws the figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafeat.types import TableLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class InNotebooks:
    """Methods of a feature map that draw figures; they need the extra `evaluate`.

    Each compares at most `rows` rows of X, drawn at random with a fixed seed, and returns the axes of matplotlib. A map
    without an exact kernel raises `UsageError`, and so does a missing matplotlib.
    """

    def _repr_html_(self) -> str:
        made: str = _notebook_module().table(self)
        return made

    def plot_error(self, X: TableLike, rows: int = 1000) -> tuple[Axes, Axes]:
        """Plot z(x)·z(y) against k(x, y) for random pairs of rows, and a histogram of the differences.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Rows as for `transform`, at least two.
        rows : int, default 1000
            Number of rows to compare at most.

        Returns
        -------
        tuple of two matplotlib.axes.Axes
            Scatter plot and histogram.

        Raises
        ------
        kafeat.errors.UsageError
            The map has no exact kernel, or matplotlib is missing.

        Examples
        --------
        >>> import kafeat, numpy as np, pytest
        >>> _ = pytest.importorskip("matplotlib").use("agg")
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}]}, X)
        >>> len(fm.plot_error(X))
        2
        """
        made: tuple[Axes, Axes] = _notebook_module().plot_error(self, X, rows)
        return made

    def plot_kernel(self, X: TableLike, rows: int = 1000) -> tuple[Axes, Axes, Axes]:
        """Plot the exact and the approximate kernel matrix of some rows, similar rows together, and the difference.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Rows as for `transform`, at least two.
        rows : int, default 1000
            Number of rows to compare at most.

        Returns
        -------
        tuple of three matplotlib.axes.Axes
            Exact matrix, approximate matrix, and difference.

        Raises
        ------
        kafeat.errors.UsageError
            The map has no exact kernel, or matplotlib is missing.

        Examples
        --------
        >>> import kafeat, numpy as np, pytest
        >>> _ = pytest.importorskip("matplotlib").use("agg")
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}]}, X)
        >>> len(fm.plot_kernel(X))
        3
        """
        made: tuple[Axes, Axes, Axes] = _notebook_module().plot_kernel(self, X, rows)
        return made

    def plot_distances(self, X: TableLike, rows: int = 1000) -> Axes:
        """Plot a 2-D histogram of kernel distances √(k(x, x) + k(y, y) − 2k(x, y)) and distances of features.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Rows as for `transform`, at least two.
        rows : int, default 1000
            Number of rows to compare at most.

        Returns
        -------
        matplotlib.axes.Axes
            The histogram.

        Raises
        ------
        kafeat.errors.UsageError
            The map has no exact kernel, or matplotlib is missing.

        Examples
        --------
        >>> import kafeat, numpy as np, pytest
        >>> _ = pytest.importorskip("matplotlib").use("agg")
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}]}, X)
        >>> type(fm.plot_distances(X)).__name__
        'Axes'
        """
        made: Axes = _notebook_module().plot_distances(self, X, rows)
        return made

    def plot_spectrum(self, X: TableLike, rows: int = 1000) -> Axes:
        """Plot the eigenvalues of the exact and of the approximate kernel matrix, largest first.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Rows as for `transform`, at least two.
        rows : int, default 1000
            Number of rows to compare at most.

        Returns
        -------
        matplotlib.axes.Axes
            The plot.

        Raises
        ------
        kafeat.errors.UsageError
            The map has no exact kernel, or matplotlib is missing.

        Examples
        --------
        >>> import kafeat, numpy as np, pytest
        >>> _ = pytest.importorskip("matplotlib").use("agg")
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}]}, X)
        >>> type(fm.plot_spectrum(X)).__name__
        'Axes'
        """
        made: Axes = _notebook_module().plot_spectrum(self, X, rows)
        return made


def _notebook_module() -> Any:
    """Return the module that draws. It is imported by name, as it lies above this one in the layout."""
    return import_module("kafeat.evaluation.notebook")
