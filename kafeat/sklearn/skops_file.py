"""Files of skops: scikit-learn's estimators without pickle."""

from __future__ import annotations

import hashlib
import io
import math
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from kafeat.errors import ArtifactError, DataError, UsageError
from kafeat.io.storage.location import parse_json, parse_location
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import Origin, printable
from kafeat.sklearn.fitted import SPARSE, SUPPORTED, import_fitted
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
    data = parse_location(place).read()
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
        _refuse_bombs(data)
        parts = list(_parts(data))
        _refuse_sharing(parts)
        unknown = set(get_untrusted_types(data=data)) - {
            f"{kind.__module__}.{kind.__name__}" for kind in trusted
        }
        if unknown:
            raise ArtifactError(
                f"expected scikit-learn's maps and scalers only, got {', '.join(map(repr, sorted(unknown)))}"
            )
        for part in parts:
            _check_part(part)
        return loads(data, trusted=trusted)
    except ArtifactError as error:
        raise ArtifactError(f"{place}: {error}") from None
    except MemoryError:
        raise
    except Exception as error:  # the file is untrusted: any exception of skops means a bad file
        raise ArtifactError(
            f"{place}: expected a file of skops, got one that cannot be read ({error!s:.200})"
        ) from None


# Random numbers do not compress: a file that unfolds to much more is not a map.
_MOST_UNFOLDED = 100
_ALWAYS = 1 << 20

# bz2 and lzma unfold whole blocks at a time, and skops writes neither by default.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# The loaders of the parts of maps and scalers. Others compute, or allocate any size the file claims.
_LOADERS = frozenset(
    f"{name}Node"
    for name in (
        "Cached", "Dict", "Json", "List", "NdArray", "Object", "RandomState", "SparseMatrix", "Tuple", "Type",
    )
)  # fmt: skip

_CONTAINERS = ("DictNode", "ListNode", "ObjectNode", "TupleNode")


def _refuse_bombs(data: bytes) -> None:
    """Refuse members that unfold to far more than the file, and arrays larger than their member."""
    most, total = max(_ALWAYS, _MOST_UNFOLDED * len(data)), 0
    for archive in _archives(data):
        for member in archive.infolist():
            if member.compress_type not in _METHODS:
                raise ArtifactError(
                    f"{member.filename!r:.60}: expected a member that is stored or "
                    f"deflated, got method {member.compress_type}"
                )
        total += sum(member.file_size for member in archive.infolist())
        if total > most:
            raise ArtifactError(f"expected a file of numbers, got {len(data)} bytes that unfold to {total}")


def _archives(data: bytes, depth: int = 2) -> Iterator[zipfile.ZipFile]:
    """Yield the file and then each archive in it; a sparse matrix is an archive.

    The members of an archive are read when the next archive is requested, so check their sizes before.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        yield archive
        for member in archive.infolist():
            content = archive.read(member)
            _check_array(member.filename, content)
            if depth > 1 and zipfile.is_zipfile(io.BytesIO(content)):
                yield from _archives(content, depth - 1)


def _check_array(name: str, content: bytes) -> None:
    if not content.startswith(np.lib.format.MAGIC_PREFIX):
        return
    file = io.BytesIO(content)
    major, _ = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    claimed, held = math.prod(shape) * dtype.itemsize, len(content) - file.tell()
    if min(shape, default=0) < 0 or claimed != held:
        raise ArtifactError(
            f"{name!r:.60}: expected an array of {held} bytes, got one that "
            f"claims the shape {shape!s:.60} of {dtype!s:.20}"
        )


def _refuse_sharing(parts: list[dict[str, Any]]) -> None:
    """Refuse containers inside several others: skops follows every path, 2^n paths for n nested containers."""
    met = Counter(str(part.get("__id__")) for part in parts)
    if any(met[str(part.get("__id__"))] > 1 for part in parts if part.get("__loader__") in _CONTAINERS):
        raise ArtifactError("expected each list, dict and estimator once, got one of them twice")


def _parts(data: bytes) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        left = [parse_json(archive.read("schema.json"), "schema.json", "JSON")]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if "__loader__" in one:
                yield one
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)


def _check_part(part: dict[str, Any]) -> None:
    """Refuse a part that no map or scaler contains, and an array of objects with more than one dimension."""
    loader = part.get("__loader__")
    if isinstance(loader, str) and loader not in _LOADERS:
        raise ArtifactError(
            f"expected scikit-learn's maps and scalers only, got a part for {loader!r:.60}; "
            "of a pipeline that ends in a model, dump pipeline[:-1]"
        )
    # NumPy unfolds nested lists that share their entries: small in the file, and huge as an array.
    if loader == "NdArrayNode" and part.get("type") == "json":
        shape = part.get("shape")
        shape = shape if isinstance(shape, dict) else {}
        axes = shape.get("content")
        if not isinstance(axes, list) or shape.get("__loader__") != "TupleNode" or len(axes) != 1:
            raise ArtifactError("expected names in one dimension, got an array of objects of another shape")
