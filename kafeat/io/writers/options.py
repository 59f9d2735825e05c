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
    """Options for writing a file of features: those of `kafeat transform`, and two of a run over parts.

    `keep` is None for all columns. `sweep` removes temporary files that killed writers of the same file have left
    beside it. `guard` is held while the file gets its name; it may refuse by raising an error.
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
