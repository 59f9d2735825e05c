"""The output columns of data frames of Dask and Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from kafeat.chain.bound_chain import PREDICTION_DTYPE
from kafeat.errors import UsageError
from kafeat.io.columns.fields import indices_of, require, unique
from kafeat.io.options import OutputDType, OutputOptions
from kafeat.io.readers.base import Reader
from kafeat.jobs.transform.outputs import Outputs, outputs_of
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.run import NewArrays

Content = Literal["features", "unit variance", "predictions"]


@dataclass(frozen=True)
class Frame:
    """The output columns: passthrough columns, then the features, as one column each or one column of lists.

    Its fields are the arguments of `transform` and `predict` that choose the columns. If `content` is predictions, the
    numbers are those of a predictor, with a column of classes before them if it predicts classes.
    """

    keep: Sequence[str] = ()
    layout: Literal["columns", "list"] = "columns"
    prefix: str | None = None
    dtype: OutputDType | None = None
    content: Content = "features"

    def checked(self, source: Reader, fm: FeatureMap, dtypes: Sequence[str]) -> Self:
        """Return a copy whose `keep` lists names. Raise an error for unknown, repeated and clashing names."""
        kept, predicts = self._kept(source), self.content == "predictions"
        if self.layout not in ("columns", "list"):
            raise UsageError(f"layout: expected columns or list, got {self.layout!r}")
        if self.dtype is not None and self.dtype not in dtypes:
            raise UsageError(f"dtype: expected one of {', '.join(dtypes)}, got {self.dtype!r}")
        if predicts:
            fm.needed_predictor()
        outputs = self.outputs(fm)
        made = {*self.names(outputs), *(() if outputs.classes is None else outputs.classes.names)}
        both = [name for name in kept if name in made]
        if both:
            what = "predictions" if predicts else "features"
            raise UsageError(
                f"keep: expected columns with other names than the {what}, got {', '.join(both)}; "
                f"choose another prefix for the {what}"
            )
        return replace(self, keep=kept)

    def _kept(self, source: Reader) -> tuple[str, ...]:
        """Return the names of the passthrough columns. Raise an error for unknown and repeated names."""
        if isinstance(self.keep, str) and self.keep != "all":
            raise UsageError(f"keep: expected a list of columns or 'all', got {self.keep!r}")
        kept = tuple(field.name for field in source.fields) if self.keep == "all" else tuple(self.keep)
        require(source, kept, "keep")
        indices_of(source, kept)
        if not unique(kept):
            raise UsageError(f"keep: expected every column once, got {', '.join(kept)}")
        return kept

    @property
    def not_features(self) -> Sequence[str]:
        """The columns that a map without names does not read: the passthrough columns, or no columns for `all`."""
        return () if self.keep == "all" else self.keep

    def outputs(self, fm: FeatureMap) -> Outputs:
        """Return the outputs of the map, features or predictions, that become columns of the frame."""
        features, scaled = self.content != "predictions", self.content == "unit variance"
        return outputs_of(
            fm,
            OutputOptions(
                features=features, unit_variance=scaled, prefix=self.prefix, output_dtype=self.dtype
            ),
        )

    def names(self, outputs: Outputs) -> list[str]:
        """Return the names of the numeric output columns, or the name of the one column of lists."""
        lists = self.layout == "list" and outputs.what == "features"
        return [outputs.list_name] if lists else outputs.names

    def memory(self, outputs: Outputs) -> NewArrays:
        """Return the arrays to write into, in a memory order that lets features become columns without a copy."""
        width = outputs.program().width
        if outputs.what == "predictions":
            return NewArrays(width, PREDICTION_DTYPE)  # rounded later to the dtype of the columns
        return NewArrays(width, outputs.dtype, "F" if self.layout == "columns" else "C")
