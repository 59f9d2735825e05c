"""Compare two maps: recipe, columns, fitted state and provenance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.model.feature_map import FeatureMap
from kafeat.model.predictor import FittedPredictor
from kafeat.types import Array


@dataclass(frozen=True)
class MapDifference:
    """A difference at `where`. `a` and `b` are the values as text, None where a map has none."""

    where: str
    a: str | None
    b: str | None

    def __str__(self) -> str:
        return f"{self.where}: {'nothing' if self.a is None else self.a} -> {'nothing' if self.b is None else self.b}"


def differences(a: FeatureMap, b: FeatureMap) -> list[MapDifference]:
    """Return all differences in the order of the file; an empty list means equal features."""
    return list(_between("", _content(a), _content(b)))


def _content(fm: FeatureMap) -> dict[str, Any]:
    return {
        "kafeat": fm.version,
        "dtype": fm.dtype,
        "float64_steps": len(fm.chain.steps) if fm.dtype == "float64" else fm.chain.cast_after,
        "chunk_rows": fm.chunk_rows,
        "columns": [name for name, _ in fm.columns.inputs],
        "config": fm.config.to_plain(),
        "steps": [
            {
                "parameters": one.step.recipe(),
                "n_features_in": one.n_features_in,
                "learned": dict(one.state),
            }
            for one in fm.chain.steps
        ],
        "predictor": None if fm.predictor is None else _predictor(fm.predictor),
        "outputs": fm.chain.outputs,
        "seen": None if fm.column_ranges is None else fm.column_ranges.to_plain(),
        "feature_mean": None if fm.feature_mean is None else fm.feature_mean.to_plain(),
        "fitted_from": fm.provenance.to_plain(),
    }


def _predictor(predictor: FittedPredictor) -> dict[str, Any]:
    plain = predictor.to_plain()
    learned = {**plain["state"], **plain.get("intervals", {})}
    return {"parameters": plain["recipe"], "learned": learned, "labels": plain["labels"]}


def _between(where: str, a: Any, b: Any) -> Iterator[MapDifference]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from _between(f"{where}.{key}" if where else key, a.get(key), b.get(key))
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b) and not any(isinstance(item, dict) for item in [*a, *b]):
            yield MapDifference(where, f"{len(a)} entries", f"{len(b)} entries")
            return
        for i in range(max(len(a), len(b))):
            yield from _between(f"{where}[{i}]", _at(a, i), _at(b, i))
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        yield from _between_arrays(where, a, b)
    elif type(a) is not type(b) or a != b:
        yield MapDifference(where, _spelled(a), _spelled(b))


def _at(values: list[Any], i: int) -> Any:
    return values[i] if i < len(values) else None


def _between_arrays(where: str, a: Array, b: Array) -> Iterator[MapDifference]:
    if a.shape != b.shape or a.dtype != b.dtype:
        yield MapDifference(where, _spelled(a), _spelled(b))
        return
    if np.array_equal(a, b, equal_nan=True):
        return
    if not a.ndim:
        yield MapDifference(where, f"{a.item():.10g}", f"{b.item():.10g}")
        return
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    share = np.count_nonzero(~((a == b) | (np.isnan(a) & np.isnan(b)))) / a.size
    yield MapDifference(where, _spelled(a), f"{share:.1%} of entries differ, by up to {np.nanmax(apart):.3g}")


def _spelled(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return f"{' x '.join(map(str, value.shape)) or 'one'} {value.dtype}"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
