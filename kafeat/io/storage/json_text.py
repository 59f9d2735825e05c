"""Read JSON that other programs or damage may have changed. Its size and its depth (some 200 levels) are bounded."""

from __future__ import annotations

from typing import Any

from kafeat.errors import DataError
from kafeat.io.storage.base import Location

# A manifest has some 500 bytes for each part.
MOST_BYTES = 1 << 30


def read_json(place: Location, expected: str) -> Any:
    """Return the content of a JSON file. `expected` says what the file should be."""
    content = place.read(MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise DataError(f"{place}: expected {expected}, got: more than {MOST_BYTES:,} bytes")
    return parse_json(content, place, expected)


def parse_json(content: bytes, place: object, expected: str) -> Any:
    """Return the value of a JSON text. NaN and infinity are refused; of equal keys the last one counts."""
    from pydantic_core import from_json  # it counts levels, and needs no stack for them

    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise DataError(f"{place}: expected {expected}, got: {error}") from None
