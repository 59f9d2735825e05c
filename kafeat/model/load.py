"""Load a feature map from a model file, and check all of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from kafeat._version import __version__
from kafeat.chain.chain import Chain
from kafeat.config import load_config
from kafeat.contract.describe import spell
from kafeat.errors import ArtifactError, ConfigError, DataError, first_line
from kafeat.io.columns.columns import Columns
from kafeat.io.storage.location import Location
from kafeat.model import artifact
from kafeat.model.feature_map import WITH_PREDICTOR, FeatureMap
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import Provenance, printable
from kafeat.model.serialize import read_chain
from kafeat.runtime.column_ranges import ColumnRanges
from kafeat.runtime.feature_mean import FeatureMean

_LONGEST = 600


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
        The file is damaged, hostile, of an unknown version, or no model file.
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
    place = os.fspath(path)
    return loads(artifact_bytes(place), place)


def artifact_bytes(place: str) -> bytes:
    """Read all bytes of a model file."""
    return Location.parse(place).read()


def loads(data: bytes, place: str = "<bytes>") -> FeatureMap:
    """Load a feature map from the bytes of a model file, as `load` does; `place` names them in messages."""
    fm = from_content(artifact.loads(data, place), place)
    # The digest is that of the file as it is, which another version of joblib may write in other bytes.
    vars(fm)["digest"] = hashlib.sha256(data).hexdigest()
    return fm


def from_content(content: Mapping[str, Any], place: str) -> FeatureMap:
    """Build a feature map from the content of a model file, and check all of it."""
    version = content.get("format")
    if type(version) is not int or not 1 <= version <= WITH_PREDICTOR:
        raise ArtifactError(
            f"{place}: format: expected a number from 1 to {WITH_PREDICTOR}, got {spell(version)}: this is kafeat "
            f"{__version__}, the model was written by {spell(content.get('kafeat'))}"
        )
    expected = {"format", "kafeat", "config", "columns", "dtype", "chunk_rows", "steps", "provenance"}
    expected |= {"cast_after"} if version > 1 else set()
    expected |= {"predictor"} if version == WITH_PREDICTOR else set()
    if set(content) - {"outputs", "seen", "feature_mean"} != expected:
        raise ArtifactError(f"{place}: expected the entries {sorted(expected)}, got {sorted(content)!s:.200}")
    try:
        fm = _checked(content)
        # fails if the state has numbers that the dtype cannot hold
        _ = fm.transformer if fm.predictor is None else fm.predicting
        return fm
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ArtifactError(f"{place}: {_cut_short(f'provenance.{where}: ' + first['msg'])}") from None
    except (ValueError, DataError, ConfigError) as error:
        raise ArtifactError(f"{place}: {_cut_short(first_line(error))}") from None


def _cut_short(problem: str) -> str:
    """Return a problem, which may quote an untrusted file, as printable text of limited length."""
    return printable(problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…")


def _checked(content: Mapping[str, Any]) -> FeatureMap:
    dtype, chunk_rows = content["dtype"], content["chunk_rows"]
    if isinstance(dtype, np.ndarray) or dtype not in ("float32", "float64"):
        raise ValueError(f"dtype: expected float32 or float64, got {spell(dtype)}")
    if type(chunk_rows) is not int or not 1 <= chunk_rows <= 1_000_000:
        raise ValueError(f"chunk_rows: expected a whole number from 1 to 1,000,000, got {spell(chunk_rows)}")
    columns = Columns.from_plain(content["columns"])
    chain = read_chain(
        content["steps"], columns.n_features, content.get("outputs"), content.get("cast_after", 0)
    )
    version = content["kafeat"]
    if type(version) is not str or not version.isprintable():
        raise ValueError(f"kafeat: expected a version, got {spell(version)}")
    config = load_config(content["config"] if isinstance(content["config"], dict) else {})
    provenance = Provenance.model_validate(content["provenance"])
    column_ranges = (
        ColumnRanges.from_plain(content["seen"], columns.n_features) if "seen" in content else None
    )
    feature_mean = (
        FeatureMean.from_plain(
            content["feature_mean"], chain.n_outputs if chain.outputs is None else len(chain.outputs)
        )
        if "feature_mean" in content
        else None
    )
    predictor = _predictor(content["predictor"], chain) if "predictor" in content else None
    return FeatureMap(
        chain,
        columns,
        dtype,
        chunk_rows,
        config,
        provenance,
        version,
        column_ranges,
        feature_mean,
        predictor,
        content["format"],
    )


def _predictor(content: object, chain: Chain) -> FittedPredictor:
    width = chain.n_outputs if chain.outputs is None else len(chain.outputs)
    try:
        return FittedPredictor.from_plain(content, width)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"predictor.recipe.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except ValueError as error:
        raise ValueError(f"predictor.{error}") from None
