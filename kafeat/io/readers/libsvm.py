"""Reader of LIBSVM (SVMlight), compressed or not, from a file or from standard input: sparse rows with a label."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from kafeat.errors import DataError, InvalidValueError, spell_row
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.fields import Field, indices_of
from kafeat.io.readers.base import Chunk
from kafeat.io.readers.libsvm_text import LabelledEntries, cut, label_of, parsed, tidied
from kafeat.io.readers.sparse_matrix import Entries, SparseChunk, features_field, refuse_to_copy
from kafeat.io.readers.text_stream import LOOK, DecompressedStream, TextInput, TextReader, whole_lines
from kafeat.io.storage.base import Location
from kafeat.io.storage.local_path import LocalPath
from kafeat.types import Array, Mask

LABEL = "label"
BLOCK = 4 << 20
EXACT = 2.0**53
"""Labels are read as doubles: from this number on, two whole numbers may have the same double."""


class LibsvmReader(TextReader):
    """A reader of two columns: `label`, which is not a feature, and `features`, whose width depends on all rows."""

    positional = True
    untyped = True
    sparse = True

    def __init__(self, location: Location) -> None:
        self.location, self._text = location.source, TextInput(location)
        self._files = ExitStack()
        self._files.callback(self._text.close)
        self._copy: TextInput | None = None
        with self._text.peeked() as text:
            self._look(text)
        self.fields = self._fields(None)

    def _look(self, text: DecompressedStream) -> None:
        head = text.look(LOOK)
        if not head:
            raise DataError(f"{self.location}: expected rows, got an empty file")
        if b"\0" in head:
            raise DataError(
                f"{self.location}: byte {head.index(0)}: expected the text of LIBSVM, got a NUL byte"
            )
        whole = head + b"\n" if text.whole else head[: head.rfind(b"\n") + 1]
        labels = parsed(tidied(whole)).labels
        labels = labels[~np.isnan(labels)]
        self._kind = pa.int64() if _whole(labels).all() else pa.float64()

    def _fields(self, width: int | None) -> tuple[Field, ...]:
        return Field(LABEL, "other", None, "the label"), features_field(width, "sparse rows")

    def settled(self) -> Self:
        view, width, row = copy(self), 0, 0
        if self._text.read_once and self._copy is None:
            view._copy = self._spooled()
        for lines, rows in cut(view._pieces(), 1 << 14):
            entries = parsed(lines).entries
            if entries.broken:
                first = min(entries.broken)
                raise DataError(f"{self.location}: {spell_row(row + first)}: {entries.broken[first][0]}")
            width, row = max(width, int(entries.columns.max(initial=-1)) + 1), row + rows
        if row and not width:
            raise DataError(f"{self.location}: expected at least one index:value, got labels only")
        view.fields = self._fields(width or None)
        return view

    def _spooled(self) -> TextInput:
        """Copy a stream to a temporary file, to read it twice. It is closed with the reader."""
        with self._text.opened() as text:
            copied = tempfile.NamedTemporaryFile(prefix="kafeat-", suffix=".libsvm")  # noqa: SIM115
            file = self._files.enter_context(copied)
            shutil.copyfileobj(text, file)
            file.flush()
            return TextInput(LocalPath(file.name))

    def _chunks(
        self, columns: Columns, keep: Sequence[str], height: int, *, typed_passthrough: bool, set_aside: bool
    ) -> Iterator[Chunk]:
        indices_of(self, (column.name for column in columns.features))
        passthrough = self.passthrough_schema(keep)
        start = 0
        for lines, rows in cut(self._pieces(), height):
            yield LibsvmChunk(self.location, start, rows, columns, lines, passthrough, not set_aside)
            start += rows

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        indices_of(self, keep)
        refuse_to_copy(self.location, list(keep))
        return pa.schema([(name, self._kind) for name in keep])

    def _estimated_rows(self) -> int | None:
        return self._text.estimated_lines(tidied)

    def close(self) -> None:
        self._files.close()

    def _pieces(self) -> Iterator[bytes]:
        """Yield whole lines without comments."""
        with (self._copy or self._text).opened() as text:
            yield from map(tidied, whole_lines(self.location, text, BLOCK))


@dataclass(eq=False)
class LibsvmChunk(SparseChunk):
    """Some lines of a LIBSVM file. `kept` is the schema of the passthrough columns."""

    lines: bytes
    kept: pa.Schema
    strict: bool
    """A row that breaks the format has no label."""
    first_column = 1

    @cached_property
    def _parsed(self) -> LabelledEntries:
        return parsed(self.lines)

    def head(self, rows: int) -> Self:
        lines = b"".join(line + b"\n" for line in self.lines.split(b"\n", rows)[:rows])
        return replace(self, rows=rows, lines=lines)

    def _filtered(self, rows: Mask) -> Self:
        lines = zip(self.lines.split(b"\n"), rows.tolist(), strict=False)
        return replace(self, lines=b"".join(line + b"\n" for line, kept in lines if kept))

    def read(self) -> Entries:
        return self._parsed.entries

    @cached_property
    def passthrough(self) -> pa.Table | None:
        if not len(self.kept):
            return None
        labels, problems = self._parsed.labels, self._parsed.entries.broken
        if self.strict and problems:
            first = min(problems)
            raise self.located(InvalidValueError(first, None, problems[first][0]))
        kind = self.kept.field(0).type
        broken = np.zeros(self.rows, bool)
        broken[list(problems)] = True
        whole = pa.types.is_integer(kind)
        odd = ~_whole(labels) if whole else np.abs(labels) >= EXACT
        for row in np.flatnonzero(~broken & odd):
            written = label_of(self.lines, int(row))
            if whole or _lost(written, labels[row]):
                large = np.isfinite(labels[row]) and abs(labels[row]) >= EXACT
                raise DataError(
                    f"{self.location}: {spell_row(self.first_row + int(row))}, column 'label': expected a whole number "
                    f"{'below 2**53' if large or not whole else 'as in the first rows'}, got {written[:60]}"
                )
        numbers = np.where(broken, 0.0, labels)
        return pa.table(
            [pa.array(numbers.astype(kind.to_pandas_dtype()), kind, mask=broken if broken.any() else None)]
            * len(self.kept),
            self.kept,
        )


def _whole(labels: Array) -> Mask:
    """Return a mask of the labels that are exact whole numbers."""
    return (np.abs(labels) < EXACT) & (labels == np.rint(labels))


def _lost(written: str, label: np.float64) -> bool:
    """Return true if the digits stand for another number than the one read."""
    digits = written.lstrip("+-")
    return digits.isdecimal() and (np.isinf(label) or int(written) != int(label))
