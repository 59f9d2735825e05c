"""Compare two maps: recipe, columns, fitted state and provenance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.model.feature_map import FeatureMap
from kafeat.model.predictor import FittedPredictor
from kafeat.types import Array

_MOST_SHOWN = 8
"""Number of entries of a list or of an array to show."""


@dataclass(frozen=True)
class MapDifference:
    """A difference at a path such as `steps[0].parameters.gamma`, with both values as text (None: missing in a map)."""

    where: str
    a: str | None
    b: str | None

    def __str__(self) -> str:
        return f"{self.where}: {'nothing' if self.a is None else self.a} -> {'nothing' if self.b is None else self.b}"


def differences(a: FeatureMap, b: FeatureMap) -> list[MapDifference]:
    """Return all differences in the order of the file. An empty list means equal features."""
    return list(_between("", _content(a), _content(b)))


def _content(fm: FeatureMap) -> dict[str, Any]:
    return {
        "kafeat": fm.version,
        "dtype": fm.dtype,
        "float64_steps": len(fm.chain.steps) if fm.dtype == "float64" else fm.chain.cast_after,
        "chunk_rows": fm.chunk_rows,
        "columns": [name for name, _ in fm.columns.inputs],
        "categories": fm.columns.categories,
        "dialect": fm.columns.to_plain().get("dialect"),
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
        "seen": None if fm.column_ranges is None else fm.column_ranges.to_plain(),
        "feature_mean": None if fm.feature_mean is None else fm.feature_mean.to_plain(),
        "fitted_from": fm.provenance.to_plain(),
    }


def _predictor(predictor: FittedPredictor) -> dict[str, Any]:
    plain = predictor.to_plain()
    learned = {**plain["state"], **plain.get("intervals", {})}
    return {"parameters": plain["recipe"], "learned": learned, "labels": plain["labels"]}


def _between(where: str, a: Any, b: Any) -> Iterator[MapDifference]:
    # If only one map has a nested value, compare it with an empty dict or list, so that each entry gets a line.
    a, b = _empty_as(b) if a is None else a, _empty_as(a) if b is None else b
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from _between(f"{where}.{key}" if where else key, a.get(key), b.get(key))
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b) and not any(isinstance(item, dict) for item in [*a, *b]):
            yield MapDifference(where, *_between_lists(a, b))
            return
        for i in range(max(len(a), len(b))):
            yield from _between(f"{where}[{i}]", _at(a, i), _at(b, i))
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        yield from _between_arrays(where, a, b)
    elif type(a) is not type(b) or a != b:
        yield MapDifference(where, _spelled(a), _spelled(b))


def _empty_as(value: Any) -> Any:
    """Return an empty dict or list to compare a nested value with, or None for other values."""
    return type(value)() if isinstance(value, dict | list) and not _is_flat(value) else None


def _is_flat(value: dict[str, Any] | list[Any]) -> bool:
    """Return true if a dict or list holds no other dicts and no arrays, so that it is readable on one line."""
    inner = value.values() if isinstance(value, dict) else value
    return all(
        _is_flat(one) if isinstance(one, list) else not isinstance(one, dict | np.ndarray) for one in inner
    )


def _between_lists(a: list[Any], b: list[Any]) -> tuple[str, str]:
    """Return texts for lists of different lengths, such as "3 entries" and "4 entries: without x, with y, z"."""
    of_a, of_b = set(map(_inner, a)), set(map(_inner, b))
    changes = [
        ("without", [one for one in a if _inner(one) not in of_b]),
        ("with", [one for one in b if _inner(one) not in of_a]),
    ]
    told = ", ".join(f"{word} {_spelled(own)}" for word, own in changes if own)
    return _entries(a), f"{_entries(b)}{f': {told}' if told else ''}"


def _entries(values: list[Any]) -> str:
    return f"{len(values):,} {'entry' if len(values) == 1 else 'entries'}"


def _at(values: list[Any], i: int) -> Any:
    return values[i] if i < len(values) else None


def _between_arrays(where: str, a: Array, b: Array) -> Iterator[MapDifference]:
    if a.shape != b.shape or a.dtype != b.dtype:
        yield MapDifference(where, _spelled(a), _spelled(b))
        return
    if np.array_equal(a, b, equal_nan=True):
        return
    if a.ndim < 2 and a.size <= _MOST_SHOWN and _spelled(a) != _spelled(b):
        yield MapDifference(where, _spelled(a), _spelled(b))
        return
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    share = np.count_nonzero(~((a == b) | (np.isnan(a) & np.isnan(b)))) / a.size
    yield MapDifference(where, _spelled(a), f"{share:.1%} of entries differ, by up to {np.nanmax(apart):.3g}")


def _spelled(value: Any) -> str | None:
    """Spell a value on one line, as YAML does, or a large array by its shape."""
    if isinstance(value, np.ndarray):
        if value.ndim < 2 and value.size <= _MOST_SHOWN:
            return _spelled(
                np.vectorize(lambda one: float(f"{one:.6g}"), otypes="O")(value).tolist()
                if value.dtype.kind == "f"
                else value.tolist()
            )
        return f"{' x '.join(map(str, value.shape))} {value.dtype}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_inner(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        more = f", and {len(value) - _MOST_SHOWN:,} more" if len(value) > _MOST_SHOWN else ""
        return f"[{', '.join(map(_inner, value[:_MOST_SHOWN]))}{more}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else repr(value)


def _inner(value: Any) -> str:
    return _spelled(value) or "null"
