"""Find integers of more than 64 bits in an Arrow schema. Polars writes them, and Arrow's own reader cannot decode them.

A schema is a message in the FlatBuffers format: tables that point to their entries. An absent entry counts as 0.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from struct import error, unpack_from
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.errors import DataError, quoted
from kafeat.io.storage.base import Location
from kafeat.io.storage.files import read_full

_MARK = b"\xff\xff\xff\xff"
"""The bytes before the length of a message. Files written before Arrow 0.15 lack them."""
_ARROW_SCHEMA = re.compile(rb"ARROW:schema\x18[\x80-\xff]*[\x00-\x7f]([A-Za-z0-9+/]+=*)")
"""The Arrow schema in a Parquet footer: key and value in the Thrift format, the value in base 64."""
_INTEGER, _BITS, _SIGNED = 2, 0, 1
_OF_MESSAGE, _OF_FOOTER, _FIELDS = 2, 1, 1
_NAME, _KIND, _TYPE, _CHILDREN = 0, 2, 3, 5
"""Positions of the needed entries in Arrow's tables Message, Footer, Schema, Field and Int."""


@dataclass(frozen=True)
class WideIntegers:
    """The columns of a schema with integers of more than 64 bits.

    `columns` has the type of each, such as {"a": "int128"}, and `places` the byte positions of the widths.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    places: tuple[int, ...] = ()

    def refuse(self, location: str, requested: Container[str] | None = None) -> None:
        """Raise DataError if a wide column is in `requested`, or for any wide column if `requested` is None."""
        for name, kind in self.columns.items():
            if requested is None or name in requested:
                raise DataError(
                    f"{location}: column {quoted(name)}: expected a type that Arrow can read, got {kind}; "
                    "leave it out, or cast it to 64 bits or to text first"
                )

    def narrowed(self, message: bytes) -> bytes:
        """Return the schema message, changed so that Arrow can read it: these columns have 64 bits."""
        changed = bytearray(message)
        for place in self.places:
            changed[place : place + 4] = (64).to_bytes(4, "little")
        return bytes(changed)


def wide_integers(message: bytes, footer: bool = False) -> WideIntegers:
    """Find the wide integers in a schema message, or in the footer of a file.

    Return no columns for a damaged message, because Arrow then reports the damage.
    """
    columns, places = dict[str, str](), list[int]()
    start = 0 if footer else 8 if message.startswith(_MARK) else 4
    try:
        root = start + _number(message, start, "I")
        schema = _target(message, root, _OF_FOOTER if footer else _OF_MESSAGE)
        for top in _tables(message, schema, _FIELDS):
            for integer in _integers(message, top):
                place = _place(message, integer, _BITS)
                bits = _number(message, place, "i")
                if place is not None and bits > 64:
                    signed = _number(message, _place(message, integer, _SIGNED), "B")
                    name = _target(message, top, _NAME)
                    text = message[name + 4 : name + 4 + _number(message, name, "I")].decode()
                    columns[text] = f"{'' if signed else 'u'}int{bits}"
                    places.append(place)
    except (error, UnicodeDecodeError):
        return WideIntegers()
    return WideIntegers(columns, tuple(places))


def footer_of(file: Any, behind: int) -> bytes:
    """Return the footer of a file. After the footer come `behind` bytes, the first four of which are its length."""
    file.seek(-behind, io.SEEK_END)
    length = int.from_bytes(read_full(file, 4), "little")
    file.seek(-behind - length, io.SEEK_END)
    return read_full(file, length)


def narrowed_footer(location: Location) -> tuple[WideIntegers, pq.FileMetaData]:
    """Return the wide integers of a Parquet file that Arrow cannot open, and metadata that state 64 bits for them.

    With the metadata, Arrow can open the file. Raise ArrowNotImplementedError if Arrow rejects it for another reason.
    """
    with location.open_random() as file:
        footer = footer_of(file, 8)
    length, found = len(footer), _ARROW_SCHEMA.search(footer)
    message = base64.b64decode(found[1]) if found else b""
    wide = wide_integers(message)
    if found:
        footer = footer.replace(found[1], base64.b64encode(wide.narrowed(message)))
    rowless = b"".join([b"PAR1", footer, length.to_bytes(4, "little"), b"PAR1"])
    return wide, pq.read_metadata(pa.BufferReader(rowless))


def _place(message: bytes, table: int, entry: int) -> int | None:
    """Return the byte position of an entry of the table at position `table`, or None if the entry is absent."""
    slots, slot = table - _number(message, table, "i"), 4 + 2 * entry
    size = _number(message, slots, "H")
    offset = _number(message, slots + slot, "H") if slot < size else 0
    return table + offset if offset else None


def _target(message: bytes, table: int, entry: int) -> int:
    """Return the byte position that an entry of the table at position `table` points to."""
    place = _place(message, table, entry)
    if place is None:
        raise error
    return place + _number(message, place, "I")


def _tables(message: bytes, table: int, entry: int) -> Iterator[int]:
    """Yield the byte positions of the tables in a list, to which an entry of the table at `table` points."""
    if _place(message, table, entry) is not None:
        start = _target(message, table, entry)
        for place in range(start + 4, start + 4 + 4 * _number(message, start, "I"), 4):
            yield place + _number(message, place, "I")


def _integers(message: bytes, field: int) -> Iterator[int]:
    """Yield the byte positions of the integer types of a field and its children, each once even in hostile messages."""
    waiting, seen = [field], set[int]()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            if _number(message, _place(message, one, _KIND), "B") == _INTEGER:
                yield _target(message, one, _TYPE)
            waiting += _tables(message, one, _CHILDREN)


def _number(message: bytes, place: int | None, kind: str) -> int:
    """Return the number at a byte position, or 0 for an absent entry."""
    if place is None:
        return 0
    if place < 0:
        raise error
    return int(unpack_from(f"<{kind}", message, place)[0])
