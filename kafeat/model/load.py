"""Load a feature map from a model file, and check all of it."""

from __future__ import annotations

import hashlib
import os

from kafeat.io.storage.base import Location
from kafeat.io.storage.location import place_of
from kafeat.model import serialize
from kafeat.model.feature_map import FeatureMap


def load(path: str | os.PathLike[str]) -> FeatureMap:
    """Load a feature map from a model file. Loading runs no code of the file.

    Parameters
    ----------
    path : str or path
        Path or URI of the file.

    Returns
    -------
    FeatureMap
        The map.

    Raises
    ------
    kafeat.errors.ArtifactError
        The file is not a model file, or is damaged, hostile or of an unknown version.
    kafeat.errors.SystemRefusedError
        The file does not exist or cannot be read.

    Examples
    --------
    >>> import kafeat, os, tempfile
    >>> fm = kafeat.fit({"steps": [{"kind": "standardize"}]}, [[1.0], [2.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fm.save(os.path.join(folder, "map.joblib"))
    ...     loaded = kafeat.load(os.path.join(folder, "map.joblib"))
    >>> loaded.digest == fm.digest
    True
    """
    return load_from(place_of("load", path))


def load_from(place: Location) -> FeatureMap:
    """Load a feature map from a location."""
    return loads(place.read(), str(place))


def loads(data: bytes, place: str = "<bytes>") -> FeatureMap:
    """Load a feature map from the bytes of a model file, as `load` does; `place` is a name for messages."""
    fm = serialize.loads(FeatureMap, data, place)
    # Hash these bytes, because another version of joblib may write other bytes for the same map.
    vars(fm)["digest"] = hashlib.sha256(data).hexdigest()
    return fm
