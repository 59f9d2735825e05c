"""Options for writing a file of features."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import Literal

from kafeat.io.storage.atomic import Guard

_NOT_CONTENT = ("overwrite", "fsync", "sweep", "guard")


@dataclass(frozen=True)
class OutputOptions:
    """Options for writing a file of features.

    Attributes:
        format: Format of the output; None takes it from the suffix.
        keep: Passthrough columns, which are copied unchanged; None copies all columns.
        layout: One column for each feature, or one column of lists.
        prefix: Prefix of the feature columns, or the name of the list column; None gives f0, f1, … or features.
        compression: Compression; None leaves it to the format and the suffix.
        overwrite: True replaces an existing file, False refuses to.
        fsync: True returns only when the file is on the disk.
        dtype: Type of the features; None takes that of the map.
        sweep: True removes temporary files that killed writers of the same file have left beside it.
        features: True writes the features of a model that ends in a predictor, and not its predictions.
        unit_variance: True multiplies the features by one factor, so that the mean of their variances is about 1.
        guard: Context manager held while the file gets its name; it may refuse by raising an error.
    """

    format: str | None = None
    keep: Sequence[str] | None = ()
    layout: Literal["columns", "list"] = "columns"
    prefix: str | None = None
    compression: str | None = None
    overwrite: bool = True
    fsync: bool = True
    dtype: Literal["float16", "float32", "float64"] | None = None
    sweep: bool = True
    guard: Guard = nullcontext
    features: bool = False
    unit_variance: bool = False

    @property
    def content(self) -> dict[str, object]:
        """The options that the bytes of an output depend on, as builtins."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _NOT_CONTENT}
        for later in ("features", "unit_variance"):  # manifests of earlier versions have no such entries
            if not values[later]:
                del values[later]
        return values | {"keep": None if self.keep is None else list(self.keep)}

    @property
    def list_name(self) -> str:
        """Name of the column of lists."""
        return "features" if self.prefix is None else self.prefix

    def feature_names(self, width: int) -> list[str]:
        """Return the names of the feature columns."""
        prefix = "f" if self.prefix is None else self.prefix
        return [f"{prefix}{i}" for i in range(width)]
