"""Reader of LIBSVM (SVMlight), compressed or not, from a file or from standard input: sparse rows with a label.

Lines are `label index:value index:value ...`, with ascending indices from 1. The tokens of all lines are parsed at
once. Only if that fails, each line is checked.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafeat.errors import DataError, InvalidValueError, spell_row
from kafeat.io.columns.fields import Field, indices_of
from kafeat.io.columns.numbers import stored
from kafeat.io.readers.base import Chunk, Wanted
from kafeat.io.readers.sparse_matrix import Entries, SparseChunk, features_field, refuse_to_copy
from kafeat.io.readers.text_stream import (
    LOOK,
    DecompressedStream,
    TextInput,
    TextReader,
    cut_off,
    refuse_binary,
    whole_lines,
)
from kafeat.io.storage.base import Location
from kafeat.io.storage.local_path import LocalPath
from kafeat.types import Array, Mask

MOST_INDEX = 2**31 - 1

_BLANKS = b" \t\r\v\f\n"
_MARKS, _COLON = _BLANKS + b":", ord(":")
_APART = bytes(char in _MARKS for char in range(256))
_POWERS = 10.0 ** np.arange(11)
_NEWLINE = ord("\n")

_COMMENT, _QID = re.compile(rb"#[^\n]*"), re.compile(rb"(?<=[ \t])qid:[^ \t\r\n]*")
_EMPTY = re.compile(rb"^[ \t\r\v\f]*\n", re.MULTILINE)
_TOKEN = re.compile(r"[^ \t\r\v\f\n]+")  # str.split() accepts more blanks than LIBSVM
_INDEX = re.compile(r"(0|[1-9][0-9]{0,17})\Z", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)\Z", re.ASCII | re.IGNORECASE
)

LABEL = "label"
BLOCK = 4 << 20
EXACT = 2.0**53
"""Labels are doubles, which represent all whole numbers below this one, but not all above it."""


def tidied(lines: bytes) -> bytes:
    """Remove comments, `qid:` and empty lines, so that each remaining line is a row."""
    if b"#" in lines:
        lines = _COMMENT.sub(b"", lines)
    if b"qid:" in lines:
        lines = _QID.sub(b"", lines)
    text = np.frombuffer(lines, np.uint8)
    firsts = text[np.append(0, _newlines(text)[:-1] + 1)] if len(text) else text
    return _EMPTY.sub(b"", lines) if np.isin(firsts, list(_BLANKS)).any() else lines


def cut(pieces: Iterable[bytes], height: int) -> Iterator[tuple[bytes, int]]:
    """Regroup pieces of whole lines. Yield `height` lines at a time (the last may be fewer), and their number."""
    waiting: list[bytes] = []
    have = 0
    for piece in pieces:
        ends = _newlines(np.frombuffer(piece, np.uint8)) + 1
        at = row = 0
        while have + len(ends) - row >= height:
            row += height - have
            stop = int(ends[row - 1])
            yield b"".join([*waiting, piece[at:stop]]), height
            waiting, have, at = [], 0, stop
        if at < len(piece):
            waiting.append(piece[at:])
            have += len(ends) - row
    if have:
        yield b"".join(waiting), have


def parsed(lines: bytes) -> Entries:
    """Parse lines from `tidied` to sparse rows. An invalid line becomes an empty row and an entry of `broken`."""
    with suppress(ValueError):  # Arrow's errors are ValueErrors too
        return _plain(lines)
    rows = lines.decode("utf-8", errors="replace").split("\n")[:-1]
    problems = ((row, _problem(line)) for row, line in enumerate(rows))
    broken = {row: (problem, rows[row]) for row, problem in problems if problem is not None}
    valid = _plain("".join("0\n" if row in broken else f"{line}\n" for row, line in enumerate(rows)).encode())
    valid.labels[list(broken)] = np.nan
    return replace(valid, broken=broken)


def _plain(lines: bytes) -> Entries:
    """Parse lines to sparse rows, all at once. Raise ValueError if a line is invalid."""
    text = np.frombuffer(lines, np.uint8)
    marks = np.flatnonzero(np.frombuffer(lines.translate(_APART), bool))
    before_mark = np.append(-1, marks[:-1])
    after_token = marks - before_mark > 1
    begins, ends = before_mark[after_token] + 1, marks[after_token]
    before = np.searchsorted(begins, _newlines(text))
    counts = np.diff(before, prepend=0)
    if not (counts & 1).all():  # a label and pairs make an odd number of tokens
        raise ValueError
    first = before - counts
    in_pair = np.ones(len(begins), bool)
    in_pair[first] = False
    pairs = np.flatnonzero(in_pair)
    indices, values = pairs[0::2], pairs[1::2]
    colons = (text[ends[indices]] == _COLON) & (begins[values] == ends[indices] + 1)
    if not colons.all() or lines.count(b":") != len(indices):
        raise ValueError
    numbers = _numbers(lines.translate(None, _MARKS), ends - begins)
    starts = np.append(0, np.cumsum(counts >> 1))
    columns = _columns(numbers[indices], starts, (ends - begins)[indices], text[ends[indices] - 2])
    return Entries(numbers[values], columns, starts, labels=numbers[first])


def _numbers(tokens: bytes, lengths: Array) -> npt.NDArray[np.float64]:
    """Parse concatenated tokens of these lengths as numbers."""
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    spelled = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(tokens))
    return stored(spelled.cast(pa.float64()))


def _columns(indices: Array, starts: Array, lengths: Array, last_but_one: Array) -> Array:
    """Convert indices, which count from 1, to columns, which count from 0. Raise ValueError for invalid indices.

    Indices must ascend in each row and be written in digits only. `lengths` (n,) are the lengths of
    their texts, and `last_but_one` (n,) has the last but one character of each text.
    """
    if not len(indices):
        return np.empty(0, np.int64)
    ascending = np.diff(indices) > 0
    turns = starts[1:-1]
    ascending[turns[(turns > 0) & (turns < len(indices))] - 1] = True
    # 7.0 and 07 are longer than 7, and 1e3 is shorter than 1000. 1e2 is as long as 100, but its middle is a letter.
    digits = lengths == np.searchsorted(_POWERS, indices, side="right")
    digits &= (lengths < 3) | ((last_but_one >= ord("0")) & (last_but_one <= ord("9")))
    if not (indices.min() >= 1 and indices.max() <= MOST_INDEX and ascending.all() and digits.all()):
        raise ValueError
    return indices.astype(np.int64) - 1


def _newlines(text: Array) -> Array:
    return np.flatnonzero(text == _NEWLINE)


def _problem(line: str) -> str | None:
    """Return the problem of a line, or None for a valid one."""
    label, *pairs = _TOKEN.findall(line) or [""]
    if not _NUMBER.match(label):
        several = "expected one label" if "," in label else "expected a number as the label"
        return f"{several}, got {label[:60]!r}"
    last = 0
    for pair in pairs:
        index, colon, value = pair.partition(":")
        if not colon or not _INDEX.match(index) or not value:
            return f"expected index:value, got {pair[:60]!r}"
        if not _NUMBER.match(value):
            return f"expected a number after the index {index}, got {value[:60]!r}"
        number = int(index)
        if not 1 <= number <= MOST_INDEX:
            return f"expected an index from 1 to {MOST_INDEX:,}, got {index}"
        if number <= last:
            return f"expected ascending indices, got {number} after {last}"
        last = number
    return None


class LibsvmReader(TextReader):
    """A reader of a column `label`, which is not a feature, and a list `features`, whose width depends on all rows."""

    positional = True
    untyped = True
    sparse = True

    def __init__(self, location: Location) -> None:
        self.location, self._text = location.source, TextInput(location)
        self._files = ExitStack()
        self._files.callback(self._text.close)
        self._copy: TextInput | None = None
        with self._text.opened(peek=True) as text:
            self._look(text)
        self.fields = self._fields(None)

    def _look(self, text: DecompressedStream) -> None:
        head = text.look(LOOK)
        if not head:
            raise self.error("expected rows, got an empty file")
        refuse_binary(self.location, head, "LIBSVM")
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
            entries = parsed(lines)
            if entries.broken:
                first = min(entries.broken)
                raise self.error(f"{spell_row(row + first)}: {entries.broken[first][0]}")
            width, row = max(width, int(entries.columns.max(initial=-1)) + 1), row + rows
        if row and not width:
            raise self.error("expected at least one index:value, got labels only")
        view.fields = self._fields(width or None)
        return view

    def _spooled(self) -> TextInput:
        """Copy a stream to a temporary file, to read it twice. Closing the reader deletes the file."""
        with self._text.opened() as text:
            copied = tempfile.NamedTemporaryFile(prefix="kafeat-", suffix=".libsvm")  # noqa: SIM115
            file = self._files.enter_context(copied)
            shutil.copyfileobj(text, file)
            file.flush()
            return TextInput(LocalPath(file.name))

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        indices_of(self, wanted.names)
        passthrough = self.passthrough_schema(wanted.keep)
        start = 0
        for lines, rows in cut(self._pieces(), wanted.height):
            strict = not wanted.set_aside
            yield LibsvmChunk(self.location, start, rows, wanted.columns, lines, passthrough, strict)
            start += rows

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        indices_of(self, keep)
        refuse_to_copy(self.location, list(keep))
        return pa.schema([(name, self._kind) for name in keep])

    def close(self) -> None:
        self._files.close()

    def _pieces(self) -> Iterator[bytes]:
        """Yield blocks of whole lines, without comments and empty lines."""
        with (self._copy or self._text).opened() as text:
            for lines in whole_lines(self.location, text, BLOCK):
                if lines and not lines.endswith(b"\n"):
                    lines += b"\n"
                    last = tidied(lines[lines.rfind(b"\n", 0, -1) + 1 :]).decode(errors="replace")
                    problem = _problem(last) if last else None
                    if problem is not None:
                        raise cut_off(self.location, "last line", problem)
                yield tidied(lines)


@dataclass(eq=False)
class LibsvmChunk(SparseChunk):
    """Some lines of a LIBSVM file. `kept` is the schema of the passthrough columns: the label, or no column."""

    lines: bytes
    kept: pa.Schema
    strict: bool
    """True if an invalid row is an error for passthrough labels. If false, the label of the row is null."""
    first_column = 1

    @cached_property
    def _parsed(self) -> Entries:
        return parsed(self.lines)

    def _filtered(self, rows: Mask) -> Self:
        lines = zip(self.lines.split(b"\n"), rows.tolist(), strict=False)
        return replace(self, lines=b"".join(line + b"\n" for line, kept in lines if kept))

    def read(self) -> Entries:
        return self._parsed

    @cached_property
    def _passthrough(self) -> pa.Table | None:
        if not len(self.kept):
            return None
        labels, problems = self._parsed.labels, self._parsed.broken
        if self.strict and problems:
            first = min(problems)
            raise self.located(InvalidValueError(first, None, problems[first][0]))
        kind = self.kept.field(0).type
        broken = np.zeros(self.rows, bool)
        broken[list(problems)] = True
        self._check_labels(labels, ~broken, pa.types.is_integer(kind))
        numbers = np.where(broken, 0.0, labels)
        return pa.table(
            [pa.array(numbers.astype(kind.to_pandas_dtype()), kind, mask=broken if broken.any() else None)]
            * len(self.kept),
            self.kept,
        )

    def _check_labels(self, labels: Array, sound: Mask, whole: bool) -> None:
        """Raise DataError for whole numbers that a double cannot represent.

        With `whole`, also raise it for labels that are not whole numbers. Check only rows where `sound` (n,) is true.
        """
        odd = ~_whole(labels) if whole else np.abs(labels) >= EXACT
        for row in np.flatnonzero(sound & odd):
            line = self.lines.split(b"\n", row + 1)[row]
            written = _TOKEN.findall(line.decode("utf-8", errors="replace"))[0]
            if whole or _lost(written, labels[row]):
                large = np.isfinite(labels[row]) and abs(labels[row]) >= EXACT
                raise DataError(
                    f"{self.location}: {spell_row(self.first_row + int(row))}, column 'label': expected a whole number "
                    f"{'below 2**53' if large or not whole else 'as in the first rows'}, got {written[:60]}"
                )


def _whole(labels: Array) -> Mask:
    """Return a mask of the labels that are whole numbers below 2**53."""
    return (np.abs(labels) < EXACT) & (labels == np.rint(labels))


def _lost(written: str, label: np.float64) -> bool:
    """Return true if the text is a whole number, such as 9007199254740993, and the double `label` is another number."""
    digits = written.lstrip("+-")
    return digits.isdecimal() and (np.isinf(label) or int(written) != int(label))
