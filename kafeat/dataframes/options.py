"""Columns and types of a data frame of features, for Dask and Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kafeat.errors import UsageError
from kafeat.io.columns.fields import indices_of, require, unique
from kafeat.io.readers.base import Reader
from kafeat.io.writers.options import OutputOptions
from kafeat.model.feature_map import FeatureMap


@dataclass(frozen=True)
class Frame:
    """The output columns: passthrough columns, then the features, one column each or one column of lists."""

    keep: tuple[str, ...]
    keeps_all: bool
    layout: Literal["columns", "list"]
    names: tuple[str, ...]
    """Names of the feature columns; a single one for lists."""
    dtype: np.dtype[Any]

    @property
    def order(self) -> Literal["C", "F"]:
        """The memory order in which features become columns without a copy, as for a file of that layout."""
        return "F" if self.layout == "columns" else "C"

    @property
    def not_features(self) -> tuple[str, ...]:
        """Columns that a map without names skips; if all columns are kept, features are among them."""
        return () if self.keeps_all else self.keep

    def empty(self, rows: int, width: int) -> np.ndarray[Any, Any]:
        """Return memory for the features of `rows` rows."""
        return np.empty((rows, width), self.dtype, order=self.order)


def frame_of(
    source: Reader,
    fm: FeatureMap,
    keep: Sequence[str],
    layout: Literal["columns", "list"],
    prefix: str | None,
    dtype: str | None,
    dtypes: Sequence[str],
) -> Frame:
    """Return the output columns for these options; refuse unknown, repeated and clashing columns."""
    if layout not in ("columns", "list"):
        raise UsageError(f"layout: expected columns or list, got {layout!r}")
    if dtype is not None and dtype not in dtypes:
        raise UsageError(f"dtype: expected one of {', '.join(dtypes)}, got {dtype!r}")
    if isinstance(keep, str) and keep != "all":
        raise UsageError(f"keep: expected a list of columns or 'all', got {keep!r}")
    kept = tuple(field.name for field in source.fields) if keep == "all" else tuple(keep)
    require(source, kept, "keep")
    indices_of(source, kept)
    if not unique(kept):
        raise UsageError(f"keep: expected every column once, got {', '.join(kept)}")
    options = OutputOptions(prefix=prefix)
    names = (options.list_name,) if layout == "list" else tuple(options.feature_names(fm.n_components))
    both = [name for name in kept if name in set(names)]
    if both:
        raise UsageError(
            f"keep: expected columns with other names than the features, got {', '.join(both)}; "
            "choose another prefix for the features"
        )
    return Frame(kept, keep == "all", layout, names, np.dtype(dtype or fm.dtype))
