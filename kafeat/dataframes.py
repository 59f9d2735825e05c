"""The output columns of data frames of Dask and Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kafeat.chain.bound_chain import PREDICTION_DTYPE
from kafeat.chain.program import Program
from kafeat.errors import UsageError
from kafeat.io.columns.fields import indices_of, require, unique
from kafeat.io.options import OutputDType, OutputOptions
from kafeat.io.readers.base import Reader
from kafeat.jobs.transform.outputs import outputs_of
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.run import NewArrays

Content = Literal["features", "unit variance", "predictions"]


@dataclass(frozen=True)
class FrameOptions:
    """The arguments of `transform` and `predict` that choose the columns of a frame."""

    keep: Sequence[str] = ()
    layout: Literal["columns", "list"] = "columns"
    prefix: str | None = None
    dtype: OutputDType | None = None
    content: Content = "features"

    def frame(self, source: Reader, fm: FeatureMap, dtypes: Sequence[str]) -> Frame:
        """Return the output columns. Refuse unknown, repeated and clashing columns."""
        kept, predicts = self._kept(source), self.content == "predictions"
        if self.layout not in ("columns", "list"):
            raise UsageError(f"layout: expected columns or list, got {self.layout!r}")
        if self.dtype is not None and self.dtype not in dtypes:
            raise UsageError(f"dtype: expected one of {', '.join(dtypes)}, got {self.dtype!r}")
        if predicts:
            fm.needed_predictor()
        scaled = self.content == "unit variance"
        writing = OutputOptions(
            features=not predicts, unit_variance=scaled, prefix=self.prefix, output_dtype=self.dtype
        )
        outputs = outputs_of(fm, writing)
        names = [outputs.list_name] if self.layout == "list" and not predicts else outputs.names
        class_name = None if outputs.classes is None else outputs.classes.names[0]
        both = [name for name in kept if name in {*names, class_name}]
        if both:
            made = "predictions" if predicts else "features"
            raise UsageError(
                f"keep: expected columns with other names than the {made}, got {', '.join(both)}; "
                f"choose another prefix for the {made}"
            )
        return Frame(
            kept,
            self.keep == "all",
            self.layout,
            tuple(names),
            outputs.dtype,
            self.content,
            class_name,
            writing,
        )

    def _kept(self, source: Reader) -> tuple[str, ...]:
        """Return the passthrough columns. Refuse unknown and repeated ones."""
        if isinstance(self.keep, str) and self.keep != "all":
            raise UsageError(f"keep: expected a list of columns or 'all', got {self.keep!r}")
        kept = tuple(field.name for field in source.fields) if self.keep == "all" else tuple(self.keep)
        require(source, kept, "keep")
        indices_of(source, kept)
        if not unique(kept):
            raise UsageError(f"keep: expected every column once, got {', '.join(kept)}")
        return kept


@dataclass(frozen=True)
class Frame:
    """The output columns: passthrough columns, then the features, as one column each or one column of lists.

    If `content` is predictions, the numbers are those of a predictor, and the column `class_name` holds the classes.
    """

    keep: tuple[str, ...]
    keeps_all: bool
    layout: Literal["columns", "list"]
    names: tuple[str, ...]
    """Names of the feature columns. A list column has a single name."""
    dtype: np.dtype[Any]
    content: Content
    class_name: str | None
    writing: OutputOptions

    def program(self, fm: FeatureMap) -> Program:
        """Return the program that computes the numbers of the frame."""
        return outputs_of(fm, self.writing).program()

    def memory(self, fm: FeatureMap) -> NewArrays:
        """Return a target whose features become columns without a copy, in the order of a file of that layout."""
        width = self.program(fm).width
        if self.content == "predictions":
            return NewArrays(width, PREDICTION_DTYPE)  # rounded later to the dtype of the columns
        return NewArrays(width, self.dtype, "F" if self.layout == "columns" else "C")

    @property
    def not_features(self) -> tuple[str, ...]:
        """Columns that a map without names skips. If all columns are kept, features are among them."""
        return () if self.keeps_all else self.keep
