"""Maps for Dask and Spark: the options of a frame, and the fitted map that travels as bytes, once per process."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kafeat.contract.imports import allowing_imports, imports_allowed
from kafeat.errors import ArtifactError, UsageError
from kafeat.io.columns.fields import indices_of, require, unique
from kafeat.io.readers.base import Reader
from kafeat.io.writers.options import OutputOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import artifact_bytes, loads

# Number of recently used maps that a worker keeps.
_MOST = 4
_loaded: dict[str, FeatureMap] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class SharedMap:
    """A reference to a map: its path, or the bytes of its model file. `digest` is their SHA-256 in hex."""

    digest: str
    path: str | None = None
    data: bytes | None = field(default=None, repr=False)
    allow_import: bool = False
    """True if other processes may import a kernel of the map, as the one that made the reference may."""

    @property
    def map(self) -> FeatureMap:
        """The map, loaded and checked on the first use in a process.

        Raises `ArtifactError` if the file at `path` has another digest.
        """
        with _lock, allowing_imports(self.allow_import):
            fm = _loaded.get(self.digest) or self._read()
            _remember(self.digest, fm)
        return fm

    def _read(self) -> FeatureMap:
        if self.data is not None:
            return loads(self.data, "<map>")
        if self.path is None:
            raise TypeError("a shared map has a path or bytes")
        data = artifact_bytes(self.path)
        digest = _digest(data)
        if digest != self.digest:
            raise ArtifactError(
                f"{self.path}: expected the map with the SHA-256 {self.digest}, got {digest}: "
                "every machine has to see the same file, and it must not change while the job runs"
            )
        return loads(data, self.path)

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "kafeat-map", self.digest


def shared(model: str | os.PathLike[str] | FeatureMap | SharedMap) -> SharedMap:
    """Make a map that can be pickled and sent to other processes.

    A path is sent with its digest, and every process reads the file. A `FeatureMap` is sent as bytes. Raises
    `UsageError` for a map that cannot be saved, as its kernel is a Python function.
    """
    if isinstance(model, SharedMap):
        return model
    if isinstance(model, FeatureMap):
        data = model.dumps()
        made = SharedMap(
            _digest(data), data=data, allow_import=any(s.step.imports for s in model.chain.steps)
        )
    elif isinstance(model, str | os.PathLike):
        place = os.fspath(model)
        # Other processes may run in other folders.
        place = place if "://" in place else os.path.abspath(place)
        data = artifact_bytes(place)
        made = SharedMap(_digest(data), path=place, allow_import=imports_allowed())
        model = loads(data, place)
    else:
        raise UsageError(f"model: expected a path or a FeatureMap, got {type(model).__name__}")
    with _lock:
        _remember(made.digest, model)
    return made


def _remember(digest: str, fm: FeatureMap) -> None:
    """Keep a map as the latest. Its derived arrays are computed here, under the lock: once for all threads."""
    _ = fm.transformer
    _loaded.pop(digest, None)
    _loaded[digest] = fm
    while len(_loaded) > _MOST:
        del _loaded[next(iter(_loaded))]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


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
