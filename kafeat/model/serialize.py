"""Convert a feature map to the content of its file (builtins and arrays), and back with full validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from kafeat.chain.chain import Chain, FittedStep
from kafeat.config import load_config
from kafeat.contract.describe import spell
from kafeat.errors import ArtifactError, ConfigError, DataError, UsageError, first_line
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.dialect import UTC
from kafeat.model import artifact
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import Provenance, printable
from kafeat.registry import build_step
from kafeat.runtime.column_ranges import ColumnRanges, FeatureMean

FORMAT = 2
"""The format number of new files without a predictor. Format 1 casts to the map's dtype before the first step."""

WITH_PREDICTOR = 3
"""The format number of files with a predictor, but without intervals."""

WITH_INTERVALS = 4
"""The format number of files with a predictor and its intervals."""

_LONGEST = 600

M = TypeVar("M")


@contextmanager
def _refused_content(place: str, version: object) -> Iterator[None]:
    """Convert errors about an untrusted model file to `ArtifactError`s with place, shortened text and version."""
    try:
        yield
        return
    except ValidationError as error:
        problem = f"provenance.{_first(error)}"
    except (ValueError, DataError, ConfigError) as error:
        problem = first_line(error)
    problem = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…"
    raise ArtifactError(f"{place}: {printable(problem)}{artifact.written_by(version)}")


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Put a place, such as `steps[0]`, in front of the messages of errors in the block."""
    try:
        yield
    except ValidationError as error:
        raise ValueError(f"{place}.recipe.{_first(error)}") from None
    except ValueError as error:
        raise ValueError(f"{place}.{error}") from None


def _first(error: ValidationError) -> str:
    """Return the place of the first entry that pydantic rejects, and the reason."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def loads(make: Callable[..., M], data: bytes, place: str) -> M:
    """Return the map that `make` builds from a model file, and check all of it. `place` names the file in messages."""
    return build(make, artifact.loads(data, place), place)


def build(make: Callable[..., M], content: Mapping[str, Any], place: str) -> M:
    """Return the map that `make` builds from the content of a model file."""
    with _refused_content(place, content.get("kafeat")):
        fm: Any = make(**_read_content(content))
        # compiled here, because this fails if the state has numbers that the dtype cannot hold
        fm.program("features" if fm.predictor is None else "predictions")
    made: M = fm
    return made


def content_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the model file for a `FeatureMap` with these fields, as builtins and arrays."""
    chain, version = fields["chain"], fields["format"]
    seen, mean, predictor = (fields[name] for name in ("column_ranges", "feature_mean", "predictor"))
    return {
        "format": version,
        "kafeat": fields["version"],
        "config": fields["config"].to_plain(),
        "columns": fields["columns"].to_plain(),
        "dtype": fields["dtype"],
        "chunk_rows": fields["chunk_rows"],
        "steps": _chain_content(chain),
        **({} if version == 1 else {"cast_after": chain.cast_after}),
        **({} if seen is None else {"seen": seen.to_plain()}),
        **({} if mean is None else {"feature_mean": mean.to_plain()}),
        **({} if predictor is None else {"predictor": predictor.to_plain()}),
        "provenance": fields["provenance"].to_plain(),
    }


def _chain_content(chain: Chain) -> list[dict[str, Any]]:
    """Return recipe, input width and state of each step."""
    for i, fitted in enumerate(chain.steps):
        if fitted.step.traits.unsaved is not None:
            raise UsageError(f"steps[{i}].{fitted.step.traits.unsaved}: such a map cannot be saved")
    return [
        {
            "recipe": fitted.step.recipe(),
            "n_features_in": fitted.n_features_in,
            "state": {name: np.asarray(value) for name, value in fitted.state.items()},
        }
        for fitted in chain.steps
    ]


def _read_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `FeatureMap` from an untrusted model file. Raise `ValueError` or a similar error."""
    _check_plain(content)
    columns = Columns.from_plain(content["columns"])
    _update([content["config"], content["steps"]], "dialect" in content["columns"])
    config = load_config(content["config"] if isinstance(content["config"], dict) else {})
    groups = frozenset(name for name, coding in config.read.coded.items() if coding.group)
    width = columns.n_features
    chain = _read_chain(content["steps"], width, content.get("cast_after", 0))
    fields = {
        "chain": chain,
        "columns": replace(columns, groups=groups),
        "config": config,
        "provenance": Provenance.model_validate(content["provenance"]),
        "version": content["kafeat"],
        **{name: content[name] for name in ("dtype", "chunk_rows", "format")},
    }
    if "seen" in content:
        fields["column_ranges"] = ColumnRanges.from_plain(content["seen"], width)
    if "feature_mean" in content:
        mean = content["feature_mean"]
        fields["feature_mean"] = FeatureMean.from_plain(mean, chain.n_components, len(columns.inputs))
    if "predictor" in content:
        with _at("predictor"):
            intervals = content["format"] == WITH_INTERVALS
            plain, D = content["predictor"], chain.n_components
            fields["predictor"] = FittedPredictor.from_plain(plain, D, intervals)
    return fields


def _check_plain(content: Mapping[str, Any]) -> None:
    """Raise ValueError for missing and unknown entries, and for invalid entries that hold a single value."""
    version = content.get("format")
    if type(version) is not int or not 1 <= version <= WITH_INTERVALS:
        raise ValueError(f"format: expected a number from 1 to {WITH_INTERVALS}, got {spell(version)}")
    expected = {"format", "kafeat", "config", "columns", "dtype", "chunk_rows", "steps", "provenance"}
    expected |= {"cast_after"} if version > 1 else set()
    expected |= {"predictor"} if version >= WITH_PREDICTOR else set()
    if "outputs" in content:
        raise ValueError(
            "outputs: expected all outputs of the map, got a pruned map: fit it again without `prune`"
        )
    if set(content) - {"seen", "feature_mean"} != expected:
        raise ValueError(f"expected the entries {sorted(expected)}, got {sorted(content)!s:.200}")
    dtype, chunk_rows, kafeat = content["dtype"], content["chunk_rows"], content["kafeat"]
    if isinstance(dtype, np.ndarray) or dtype not in ("float32", "float64"):
        raise ValueError(f"dtype: expected float32 or float64, got {spell(dtype)}")
    if type(chunk_rows) is not int or not 1 <= chunk_rows <= 1_000_000:
        raise ValueError(f"chunk_rows: expected a whole number from 1 to 1,000,000, got {spell(chunk_rows)}")
    if type(kafeat) is not str or not kafeat.isprintable():
        raise ValueError(f"kafeat: expected a version, got {spell(kafeat)}")


def _update(content: object, has_timezones: bool) -> None:
    """Update recipes and states of earlier versions, in place.

    Models without a time zone read times in UTC. `preimages` of nystroem are removed: they never changed a feature.
    """
    if isinstance(content, dict):
        if content.get("kind") == "date_parts" and not has_timezones:
            content.setdefault("timezone", UTC)
        if content.get("kind") == "nystroem":
            content.pop("preimages", None)
        gone = [name for name in content if str(name).endswith(("preimages", "preimage_of_0"))]
        for name in (name for name in gone if isinstance(content[name], np.ndarray)):
            del content[name]
        content = list(content.values())
    for inner in content if isinstance(content, list) else ():
        _update(inner, has_timezones)


def _read_chain(content: object, n_features_in: int, cast_after: object) -> Chain:
    """Return the chain of an untrusted model file; raise `ValueError` with the place of an invalid entry."""
    if not isinstance(content, list) or not content:
        raise ValueError("steps: expected a list of at least one step")
    if type(cast_after) is not int or not 0 <= cast_after <= len(content):
        raise ValueError(
            f"cast_after: expected a whole number from 0 to {len(content)}, got {cast_after!r:.40}"
        )
    steps: list[FittedStep] = []
    width = n_features_in
    for i, entry in enumerate(content):
        with _at(f"steps[{i}]"):
            steps.append(_read_step(entry, width))
            width = steps[-1].n_features_out
    return Chain(tuple(steps), cast_after)


def _read_step(entry: object, width: int) -> FittedStep:
    if not isinstance(entry, dict) or set(entry) != {"recipe", "n_features_in", "state"}:
        raise ValueError("recipe: expected recipe, n_features_in and state")
    if type(entry["n_features_in"]) is not int or entry["n_features_in"] != width:
        raise ValueError(f"n_features_in: expected {width}, got {spell(entry['n_features_in'])}")
    if not isinstance(entry["recipe"], dict):  # a config may give only the kind, but a model file may not
        raise ValueError("recipe: expected the parameters of a step")
    return FittedStep.checked(build_step(entry["recipe"]), entry["state"], width)
