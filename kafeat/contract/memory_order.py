"""The memory order of a tile: rows first or columns first."""

from __future__ import annotations

from kafeat.types import Array, Floats


def is_feature_major(tile: Floats) -> bool:
    """Return True if the entries of a column lie together."""
    return tile.strides[0] < tile.strides[1]


def shaped(flat: Array, shape: tuple[int, ...], feature_major: bool) -> Array:
    """The beginning of a flat buffer in that shape and memory order."""
    rows, columns = shape
    piece = flat[: rows * columns]
    return piece.reshape(columns, rows).T if feature_major else piece.reshape(rows, columns)
