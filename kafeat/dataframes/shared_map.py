"""A map that other processes use: each finds it by its path or gets its bytes, and loads it once."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field

from kafeat.errors import ArtifactError, UsageError
from kafeat.model.feature_map import FeatureMap, artifact_bytes, loads

# A worker that serves many jobs keeps the maps that it used last.
_MOST = 4
_loaded: dict[str, FeatureMap] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class SharedMap:
    """A map as it travels: a path, or the artifact's bytes. `digest` is the SHA-256 of the bytes, in hex."""

    digest: str
    path: str | None = None
    data: bytes | None = field(default=None, repr=False)

    @property
    def map(self) -> FeatureMap:
        """The map, read through the guard the first time that a process asks.

        Raises `ArtifactError` where the file at `path` has another digest.
        """
        with _lock:
            found = _loaded.get(self.digest) or self._read()
            _remember(self.digest, found)
        return found

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
    """A map that can be pickled and sent to other processes.

    Of a path, path and digest are sent, and every process reads the file; of a `FeatureMap` its bytes. Raises
    `UsageError` for a map that no file can hold, as its kernel is a Python function.
    """
    if isinstance(model, SharedMap):
        return model
    if isinstance(model, FeatureMap):
        data = model.dumps()
        made = SharedMap(_digest(data), data=data)
    elif isinstance(model, str | os.PathLike):
        place = os.fspath(model)
        # Other processes may stand in other folders.
        place = place if "://" in place else os.path.abspath(place)
        data = artifact_bytes(place)
        made, model = SharedMap(_digest(data), path=place), loads(data, place)
    else:
        raise UsageError(f"model: expected a path or a FeatureMap, got {type(model).__name__}")
    with _lock:
        _remember(made.digest, model)
    return made


def _remember(digest: str, fm: FeatureMap) -> None:
    """The latest stands last. Derived arrays are made here, under the lock: once for all threads."""
    _ = fm.transformer
    _loaded.pop(digest, None)
    _loaded[digest] = fm
    while len(_loaded) > _MOST:
        del _loaded[next(iter(_loaded))]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
