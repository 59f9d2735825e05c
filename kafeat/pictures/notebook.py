"""A feature map in a notebook: a small table, and figures that compare it with its exact kernel.

The functions are the methods of `FeatureMap` of the same names. The figures compare at most `rows` rows, drawn at
random with a fixed seed, and need the extra `evaluate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import Chain
from kafeat.chain.tiles import run_tiles
from kafeat.contract.describe import spell
from kafeat.contract.tile import contiguous
from kafeat.errors import DataError, UsageError
from kafeat.io.columns.fields import shown
from kafeat.maths.kernel_error import relative_frobenius
from kafeat.maths.row_sample import row_hashes
from kafeat.pictures.canvas import STYLES, needed_pyplot, new_axes
from kafeat.pictures.tables import LEFT, TableColumn, html_table
from kafeat.types import TableLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kafeat.pictures.portraits import MapFigures


class Drawable(Protocol):
    """The members of a feature map that the table and the figures read."""

    @property
    def chain(self) -> Chain: ...
    @property
    def dtype(self) -> str: ...
    @property
    def config(self) -> Any: ...
    @property
    def columns(self) -> Any: ...
    @property
    def provenance(self) -> Any: ...
    @property
    def input_dtype(self) -> np.dtype[Any]: ...
    @property
    def chunk_rows(self) -> int: ...
    def source(self, X: TableLike) -> tuple[Any, Any]: ...


_MOST_NAMES = 8


def table(fm: Drawable) -> str:
    """Return an HTML table that describes a map: inputs, steps, features and training data."""
    names = [shown(name) for name, _ in fm.columns.inputs]
    some = names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 2], "…", names[-1]]
    origin = fm.provenance
    rows = [
        ("inputs", f"{len(names):,}: {', '.join(some)}"),
        *((f"step {i}", _step(fitted.step.recipe())) for i, fitted in enumerate(fm.chain.steps)),
        ("features", f"{fm.chain.n_components:,}, {fm.dtype}"),
        *(
            ("fitted on", f"{origin.rows_fitted:,} of {source.rows:,} rows of {source.name}")
            for source in origin.sources
        ),
    ]
    columns = [TableColumn("", cells) for cells in zip(*rows, strict=True)]
    return html_table(columns, "kafeat.FeatureMap", style=LEFT)


def _step(recipe: dict[str, Any]) -> str:
    parameters = ", ".join(f"{name}: {spell(value)}" for name, value in recipe.items() if name != "kind")
    return f"{recipe['kind']} ({parameters})" if parameters else str(recipe["kind"])


def plot_kernel(self: Drawable, X: TableLike, rows: int = 1000) -> tuple[Axes, Axes, Axes]:
    """Plot the exact and the approximate kernel matrix, and their difference, for some rows ordered by similarity.

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
    exact, approximate, difference = _drawn(self, X, rows, "gram", 3)
    return exact, approximate, difference


def plot_distances(self: Drawable, X: TableLike, rows: int = 1000) -> Axes:
    """Plot a 2-D histogram of kernel distances √(k(x, x) + k(y, y) − 2k(x, y)) and of distances between features.

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
    return _drawn(self, X, rows, "distances")[0]


def _drawn(fm: Drawable, X: TableLike, rows: int, portrait: str, columns: int = 1) -> list[Axes]:
    """Draw a plot in a pyplot figure, which notebooks display automatically."""
    from kafeat.pictures import portraits

    needed_pyplot()  # Fail before the work if matplotlib is missing.
    figures = _figures(fm, X, rows)
    axes = new_axes(columns)
    getattr(portraits, portrait)(axes if columns > 1 else axes[0], STYLES[0], figures)
    figure: Any = axes[0].figure
    about = figures.about
    figure.suptitle(f"{about['map']}: relative error {about['relative_frobenius']:.3g}", fontsize=10)
    return axes


def _figures(fm: Drawable, X: TableLike, rows: int) -> MapFigures:
    """Compute the figures from the rows with the largest hashes. The map was fitted on rows with small hashes."""
    from kafeat.pictures.portraits import map_figures

    if rows < 2:
        raise UsageError(f"rows: expected at least 2 to compare, got {rows}")
    source, columns = fm.source(X)
    whole, dtype = source.decoded(columns, fm.input_dtype, fm.chunk_rows), np.dtype(fm.dtype)
    if len(whole) < 2:
        raise DataError(f"X: expected at least 2 rows to compare, got {len(whole)}")
    some = np.sort(np.argsort(row_hashes(fm.config.seed, 0, len(whole)))[-rows:])
    part = contiguous(whole[some])
    with one_blas_thread(linalg=True):
        K = fm.chain.exact(part, part, dtype)
        Z = run_tiles(fm.chain.bind(dtype), part, dtype).astype(np.float64)
        about = {
            "map": " -> ".join(fitted.step.kind for fitted in fm.chain.steps),
            "relative_frobenius": relative_frobenius(K, Z),
        }
        return map_figures(about, K, Z)
