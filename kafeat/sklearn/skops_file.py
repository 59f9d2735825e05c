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
    """Convert a fitted scikit-learn estimator in a skops file to a kafeat map.

    Only types that skops trusts and the supported estimators are constructed from the file.

    Parameters
    ----------
    path : str or os.PathLike
        File written by `skops.io.dump`.
    dtype : {"float64", "float32"}, default "float64"
        Precision of the map.

    Returns
    -------
    kafeat.FeatureMap
        Map with the output columns of the estimator, up to rounding.

    Raises
    ------
    ArtifactError
        If the file is damaged, contains other types, or its estimator cannot be converted.
    UsageError
        If skops is not installed.

    Examples
    --------
    >>> import tempfile, numpy as np, skops.io
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from kafeat.sklearn import import_skops
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skops.io.dump(RBFSampler(n_components=8).fit(np.eye(3)), f"{folder}/rbf.skops")
    ...     import_skops(f"{folder}/rbf.skops").n_components
    8
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
    except Exception as error:  # the file is untrusted: any exception of skops means a bad file
        raise ArtifactError(
            f"{place}: expected a file of skops, got one that cannot be read ({error!s:.200})"
        ) from None
