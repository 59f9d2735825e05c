"""Display a feature map in a notebook: a small table, and figures that compare it with its exact kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.contract.describe import spell
from kafeat.errors import DataError, UsageError
from kafeat.evaluation.records import html_table
from kafeat.evaluation.report.figure_data import MapFigures, map_figures
from kafeat.io.columns.fields import shown
from kafeat.maths.row_sample import row_hashes
from kafeat.model.feature_map import FeatureMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kafeat.evaluation.records import EvaluationRecord


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


_MOST_NAMES = 8


def table(fm: FeatureMap) -> str:
    """Return an HTML table of two columns, with all text escaped."""
    names = [shown(name) for name in fm.columns.names]
    some = names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 2], "…", names[-1]]
    origin = fm.provenance
    rows = [
        ("inputs", f"{fm.n_features_in:,}: {', '.join(some)}"),
        *((f"step {i}", _step(fitted.step.recipe())) for i, fitted in enumerate(fm.chain.steps)),
        ("features", f"{fm.n_components:,}, {fm.dtype}"),
        *(
            ("fitted on", f"{origin.rows_fitted:,} of {source.rows:,} rows of {source.name}")
            for source in origin.sources
        ),
    ]
    return html_table("kafeat.FeatureMap", rows)


def _step(recipe: dict[str, Any]) -> str:
    parameters = ", ".join(f"{name}: {spell(value)}" for name, value in recipe.items() if name != "kind")
    return f"{recipe['kind']} ({parameters})" if parameters else str(recipe["kind"])


def plot_error(fm: FeatureMap, X: Any, rows: int) -> tuple[Axes, Axes]:
    """Plot approximate over exact values, and the histogram of their differences."""
    left, right = _drawn(fm, X, rows, "entries", 2)
    return left, right


def plot_kernel(fm: FeatureMap, X: Any, rows: int) -> tuple[Axes, Axes, Axes]:
    """Plot the exact and approximate kernel matrix and their difference."""
    exact, approximate, difference = _drawn(fm, X, rows, "gram", 3)
    return exact, approximate, difference


def plot_distances(fm: FeatureMap, X: Any, rows: int) -> Axes:
    """Plot distances between features over distances in the kernel space."""
    return _drawn(fm, X, rows, "distances")[0]


def plot_spectrum(fm: FeatureMap, X: Any, rows: int) -> Axes:
    """Plot the eigenvalues of both kernel matrices, largest first."""
    return _drawn(fm, X, rows, "spectra")[0]


def _drawn(fm: FeatureMap, X: Any, rows: int, portrait: str, columns: int = 1) -> list[Axes]:
    """Draw a plot in a pyplot figure, which notebooks display automatically."""
    with needs_matplotlib():
        from kafeat.evaluation.report import portraits
        from kafeat.evaluation.report.canvas import STYLES
    exhibit = _exhibit(fm, X, rows)
    axes = new_axes(columns)
    getattr(portraits, portrait)(axes if columns > 1 else axes[0], STYLES[0], exhibit)
    relative = exhibit.record["relative_frobenius"]
    figure: Any = axes[0].figure
    figure.suptitle(f"{exhibit.record['map']}: relative error {relative:.3g}", fontsize=10)
    return axes


def _exhibit(fm: FeatureMap, X: Any, rows: int) -> MapFigures:
    """Compute the data of the figures on the rows with the largest hashes, the last ones that a fit would use."""
    from kafeat.evaluation.kernel_error import relative_frobenius

    if rows < 2:
        raise UsageError(f"rows: expected at least 2 to compare, got {rows}")
    # categories are codes in this matrix
    read, whole = replace(fm, columns=fm.columns.as_read), fm.matrix(X)
    if len(whole) < 2:
        raise DataError(f"X: expected at least 2 rows to compare, got {len(whole)}")
    some = np.sort(np.argsort(row_hashes(fm.config.seed, 0, len(whole)))[-rows:])
    part = np.ascontiguousarray(whole[some])
    K, Z = read.exact_kernel(part), read.transform(part).astype(np.float64)
    with one_blas_thread(linalg=True):
        record = {
            "map": " -> ".join(fitted.step.kind for fitted in fm.chain.steps),
            "setting": {},
            "n_components": fm.n_components,
            "relative_frobenius": relative_frobenius(K, Z),
        }
        return map_figures(cast("EvaluationRecord", record), read, part, K, Z, between=False)
