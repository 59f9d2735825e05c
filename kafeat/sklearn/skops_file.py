"""Files of skops: scikit-learn's estimators without pickle."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from kafeat.errors import ArtifactError, DataError, UsageError
from kafeat.io.storage.files import opened
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import Origin, printable
from kafeat.sklearn.fitted import SPARSE, SUPPORTED, import_fitted
from kafeat.sklearn.skops_guard import refuse_bombs, refuse_other_parts, refuse_sharing
from kafeat.types import DType


def import_skops(path: str | os.PathLike[str], dtype: DType = "float64") -> FeatureMap:
    """The kafeat map of a fitted estimator that `skops.io.dump` has written.

    Of the file nothing is made but what skops trusts by itself and the estimators that can be imported; anything else
    raises `ArtifactError`, which names it.
    """
    place = os.fspath(path)
    with opened(place) as file:
        data = file.readall()
    estimator = _load(data, place)
    digest = hashlib.sha256(data).hexdigest()
    source = Origin(name=printable(os.path.basename(place)), rows=0, sha256=digest)
    try:
        return import_fitted(estimator, dtype, source=source)
    except DataError as error:
        raise ArtifactError(f"{place}: {error}") from None


def _load(data: bytes, place: str) -> Any:
    try:
        from skops.io import get_untrusted_types, loads
    except ImportError as error:
        raise UsageError(f"{place}: expected skops, got: {error}; pip install 'kafeat[sklearn]'") from error
    trusted = [*SUPPORTED, *SPARSE]
    try:
        refuse_bombs(data)
        refuse_sharing(data)
        unknown = set(get_untrusted_types(data=data)) - {
            f"{kind.__module__}.{kind.__name__}" for kind in trusted
        }
        if unknown:
            raise ArtifactError(
                f"expected scikit-learn's maps and scalers only, got {', '.join(map(repr, sorted(unknown)))}"
            )
        refuse_other_parts(data)
        return loads(data, trusted=trusted)
    except ArtifactError as error:
        raise ArtifactError(f"{place}: {error}") from None
    except Exception as error:  # the bytes are a stranger's: whatever skops stumbles over is a bad file
        raise ArtifactError(
            f"{place}: expected a file of skops, got one that cannot be read ({error!s:.200})"
        ) from None
