"""Share a map with other processes: each gets its path or its bytes, and loads it once."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field

from kafeat.errors import ArtifactError, UsageError
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

    @property
    def map(self) -> FeatureMap:
        """The map, loaded and checked on the first use in a process.

        Raises `ArtifactError` if the file at `path` has another digest.
        """
        with _lock:
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
        made = SharedMap(_digest(data), data=data)
    elif isinstance(model, str | os.PathLike):
        place = os.fspath(model)
        # Other processes may run in other folders.
        place = place if "://" in place else os.path.abspath(place)
        data = artifact_bytes(place)
        made, model = SharedMap(_digest(data), path=place), loads(data, place)
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
