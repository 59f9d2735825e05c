"""Models for Dask and Spark: the options of a frame, and the fitted map that travels as bytes, once per process."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kafeat.chain.bound_chain import PREDICTION_DTYPE
from kafeat.chain.program import Program
from kafeat.errors import ArtifactError, UsageError
from kafeat.io.columns.fields import indices_of, require, unique
from kafeat.io.options import OutputOptions
from kafeat.io.readers.base import Reader
from kafeat.io.storage.base import Location
from kafeat.io.storage.location import location_of
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load_from, loads
from kafeat.model.predictor import PREDICTION
from kafeat.runtime.run import NewArrays

Content = Literal["features", "unit variance", "predictions"]

# Number of recently used maps that a worker keeps.
_MOST = 4
_loaded: dict[str, FeatureMap] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class SharedMap:
    """A reference to a map: the location of its model file, or its bytes. `digest` is their SHA-256 in hex."""

    digest: str
    file: Location | bytes = field(repr=False)

    @property
    def map(self) -> FeatureMap:
        """The map, loaded and checked on the first use in a process.

        Raises `ArtifactError` if the file has another digest by now.
        """
        with _lock:
            fm = _loaded.get(self.digest) or self._read()
            _remember(self.digest, fm)
        return fm

    def _read(self) -> FeatureMap:
        if isinstance(self.file, bytes):
            return loads(self.file, "<map>")
        data = self.file.read()
        digest = _digest(data)
        if digest != self.digest:
            raise ArtifactError(
                f"{self.file}: expected the map with the SHA-256 {self.digest}, got {digest}: "
                "every machine has to see the same file, and it must not change while the job runs"
            )
        return loads(data, str(self.file))

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "kafeat-map", self.digest


def shared(model: str | os.PathLike[str] | Location | FeatureMap | SharedMap) -> SharedMap:
    """Make a map that can be pickled and sent to other processes.

    A path is sent with its digest, and every process reads the file. A `FeatureMap` is sent as bytes. Raises
    `UsageError` for a map that cannot be saved, as its kernel is a Python function.
    """
    if isinstance(model, SharedMap):
        return model
    if isinstance(model, FeatureMap):
        data = model.dumps()
        made = SharedMap(_digest(data), data)
    else:
        place = location_of(model)
        if place is None:
            raise UsageError(f"model: expected a path or a FeatureMap, got {type(model).__name__}")
        model = load_from(place)
        made = SharedMap(str(model.digest), place.absolute())  # other processes may run in other folders
    with _lock:
        _remember(made.digest, model)
    return made


def _remember(digest: str, fm: FeatureMap) -> None:
    """Keep a map as the latest. Its derived arrays are computed here, under the lock: once for all threads."""
    fm.program()
    _loaded.pop(digest, None)
    _loaded[digest] = fm
    while len(_loaded) > _MOST:
        del _loaded[next(iter(_loaded))]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class FrameOptions:
    """The arguments of `transform` and `predict` that say which columns a frame gets."""

    keep: Sequence[str] = ()
    layout: Literal["columns", "list"] = "columns"
    prefix: str | None = None
    dtype: str | None = None
    content: Content = "features"

    def frame(self, source: Reader, fm: FeatureMap, dtypes: Sequence[str]) -> Frame:
        """Return the output columns; refuse unknown, repeated and clashing columns."""
        keep, predicts = self.keep, self.content == "predictions"
        if self.layout not in ("columns", "list"):
            raise UsageError(f"layout: expected columns or list, got {self.layout!r}")
        if self.dtype is not None and self.dtype not in dtypes:
            raise UsageError(f"dtype: expected one of {', '.join(dtypes)}, got {self.dtype!r}")
        if isinstance(keep, str) and keep != "all":
            raise UsageError(f"keep: expected a list of columns or 'all', got {keep!r}")
        kept = tuple(field.name for field in source.fields) if keep == "all" else tuple(keep)
        require(source, kept, "keep")
        indices_of(source, kept)
        if not unique(kept):
            raise UsageError(f"keep: expected every column once, got {', '.join(kept)}")
        if self.content == "unit variance":
            fm.needed_unit_scale()
        names, class_name = self._names(fm)
        both = [name for name in kept if name in {*names, class_name}]
        if both:
            made = "predictions" if predicts else "features"
            raise UsageError(
                f"keep: expected columns with other names than the {made}, got {', '.join(both)}; "
                f"choose another prefix for the {made}"
            )
        dtype = np.dtype(self.dtype or (PREDICTION_DTYPE if predicts else fm.dtype))
        return Frame(kept, keep == "all", self.layout, names, dtype, self.content, class_name)

    def _names(self, fm: FeatureMap) -> tuple[tuple[str, ...], str | None]:
        """Return the names of the columns of numbers, and that of the column of classes if there is one."""
        if self.content != "predictions":
            options = OutputOptions(prefix=self.prefix)
            if self.layout == "list":
                return (options.list_name,), None
            return tuple(options.feature_names(fm.n_components)), None
        predictor, prefix = fm.needed_predictor(), self.prefix or ""
        class_name = None if predictor.labels.classes is None else f"{prefix}{PREDICTION}"
        return tuple(f"{prefix}{name}" for name in predictor.output_names), class_name


@dataclass(frozen=True)
class Frame:
    """The output columns: passthrough columns, then the features, one column each or one column of lists.

    With `content` predictions, the numbers are those of a predictor, and the column `class_name` holds the classes.
    """

    keep: tuple[str, ...]
    keeps_all: bool
    layout: Literal["columns", "list"]
    names: tuple[str, ...]
    """Names of the feature columns; a single one for lists."""
    dtype: np.dtype[Any]
    content: Content = "features"
    class_name: str | None = None

    def program(self, fm: FeatureMap) -> Program:
        """Return what makes the numbers of the frame."""
        if self.content == "predictions":
            return fm.program("predictions")
        return fm.program(scale=fm.needed_unit_scale() if self.content == "unit variance" else None)

    def memory(self, fm: FeatureMap) -> NewArrays:
        """Return a target whose features become columns without a copy, in the order of a file of that layout."""
        width = self.program(fm).width
        if self.content == "predictions":
            return NewArrays(width, PREDICTION_DTYPE)  # rounded to the dtype of the columns later
        return NewArrays(width, self.dtype, "F" if self.layout == "columns" else "C")

    @property
    def not_features(self) -> tuple[str, ...]:
        """Columns that a map without names skips; if all columns are kept, features are among them."""
        return () if self.keeps_all else self.keep
