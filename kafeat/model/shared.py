"""Send fitted maps to other processes, as bytes or as the location of their file. Each process reads a map once."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field

from kafeat.errors import ArtifactError, UsageError
from kafeat.io.storage.base import Location
from kafeat.io.storage.location import location_of
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load_from, loads

# Number of recently used maps that a worker keeps in memory.
_MOST = 4
_loaded: dict[str, FeatureMap] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class SharedMap:
    """A reference to a map: the location of its model file, or its bytes. `digest` is the file's SHA-256 in hex."""

    digest: str
    file: Location | bytes = field(repr=False)

    @property
    def map(self) -> FeatureMap:
        """The map, loaded and checked on the first use in a process.

        Raises `ArtifactError` if the file now has another digest.
        """
        with _lock:
            fm = _loaded.get(self.digest) or self._read()
            _remember(self.digest, fm)
        return fm

    def _read(self) -> FeatureMap:
        if isinstance(self.file, bytes):
            return loads(self.file, "<map>")
        fm = load_from(self.file)
        if fm.digest != self.digest:
            raise ArtifactError(
                f"{self.file}: expected the map with the SHA-256 {self.digest}, got {fm.digest}: "
                "every machine has to see the same file, and it must not change while the job runs"
            )
        return fm

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "kafeat-map", self.digest


def shared(model: str | os.PathLike[str] | Location | FeatureMap | SharedMap) -> SharedMap:
    """Return a reference to a map that can be pickled and sent to other processes.

    A path is sent with its digest, and every process reads the file. A `FeatureMap` is sent as bytes. Raises
    `UsageError` for a map that cannot be saved, because its kernel is a Python function.
    """
    if isinstance(model, SharedMap):
        return model
    if isinstance(model, FeatureMap):
        data = model.dumps()
        made = SharedMap(hashlib.sha256(data).hexdigest(), data)
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
    """Store a map as the most recently used. Its derived arrays are computed here, under the lock, only once."""
    fm.program()
    _loaded.pop(digest, None)
    _loaded[digest] = fm
    while len(_loaded) > _MOST:
        del _loaded[next(iter(_loaded))]
