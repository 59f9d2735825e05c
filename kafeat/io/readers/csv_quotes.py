"""The checked stream of CSV text for Arrow's reader. Quotes and UTF-8 are checked, and no line end is split."""

from __future__ import annotations

import atexit
import codecs
import io
import re
import time
from copy import copy
from weakref import WeakSet

import numpy as np

from kafeat.errors import DataError
from kafeat.io.readers.text_stream import DecompressedStream
from kafeat.io.storage.files import read_full

_QUOTE, _LF, _CR = b'"\n\r'
_LINE_END = b"\n"
_MOST_HELD = 4
_PATIENCE = 1.0
# In Latin-1 these are control characters, which do not occur in text.
_OF_WINDOWS = re.compile(rb"[\x80-\x9f]")
_BOM = b"\xef\xbb\xbf"


_READ: WeakSet[CheckedText] = WeakSet()
"""The texts that a thread of Arrow may still hold."""


@atexit.register
def _wait_for_readers() -> None:
    # A thread that lets go of a Python object, or reads ahead, aborts the process if the interpreter has begun to end.
    patience = time.monotonic() + _PATIENCE
    while _READ and time.monotonic() < patience:
        time.sleep(0.01)


class CheckedText(io.RawIOBase):
    """A text for Arrow's reader. It ends at an error, which `check` raises, and at a pause, after a row.

    Nothing is raised while Arrow reads. A thread of its pool that meets an error waits for itself for ever, and after
    eight of them no file can be read (pyarrow 26).
    """

    def __init__(self, location: str, text: DecompressedStream, delimiter: str, utf8: bool = False) -> None:
        _READ.add(self)
        self._location, self._text = location, text
        self._quotes = Quotes(delimiter)
        self._checks: list[Utf8 | Quotes] = [*([Utf8()] if utf8 else []), self._quotes]
        self._held, self._checked, self._next = b"", 0, b""
        """Bytes that were read but are held back, how many of them are checked, and the bytes to return next."""
        self._size, self._begun, self._within = 0, False, False
        self._error: Exception | None = None
        self.paused = False
        """The text has ended at a pause."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data, self._next, self._size = self._next, b"", size
        try:
            data = data or (b"" if self.paused else self._read(size))
            self._begun = True
            return data
        except Exception as error:  # raised by `check`: Arrow, which reads this, would spell it its own way
            self._error = error
            return b""

    def resumed(self) -> bool:
        """Wait for the next rows after a pause. Return false at the end."""
        if self.paused:
            self.paused = self._begun = False
            self._next = self._read(self._size)
        return bool(self._next)

    def check(self) -> None:
        """Raise the error that has ended the text, which may end within a row."""
        if self._error is not None:
            raise self._error

    def _read(self, size: int) -> bytes:
        if self._text.prompt:
            return self._rows(size)
        # Read one byte ahead to know the end: Arrow fails on a last piece that holds only the end of a line.
        new = read_full(self._text, size - _MOST_HELD)
        ahead = self._text.read(1) or b"" if len(new) == size - _MOST_HELD else b""
        data = self._held + new
        cut = _cut(data) if ahead else len(data)
        data, self._held = data[:cut], data[cut:] + ahead
        self._check(data)
        return data

    def _check(self, data: bytes) -> None:
        for check in self._checks:
            problem = check.problem(data)
            if problem is not None:
                raise DataError(f"{self._location}: {problem}")

    def _rows(self, size: int) -> bytes:
        """Return `size` bytes of whole lines, or the whole rows before a pause. Wait if the first row is incomplete."""
        while True:
            data = self._held + read_full(self._text, size - len(self._held))
            paused = len(data) < size and self._text.paused
            if len(data) < size and not paused:
                self._check(data[self._checked :])
                self._held, self._checked = b"", 0
                return data
            cut = self._end_of_rows(data) if paused else self._end_of_lines(data)
            rows, self._held, self._checked = data[:cut], data[cut:], self._checked - cut
            self.paused = paused and not self._within and bool(rows or self._begun)
            if rows or self.paused:
                return rows

    def _end_of_lines(self, data: bytes) -> int:
        """Check full data up to its last line end, or as far as it can be split, and return that position."""
        end = data.rfind(_LINE_END) + 1
        cut = max(end, self._checked) or _cut(data)
        if cut > self._checked:  # an empty piece would mean the end of the text
            self._check(data[self._checked : cut])
        self._checked, self._within = cut, not end or self._quotes.inside
        return cut

    def _end_of_rows(self, data: bytes) -> int:
        """Check data up to its last line end, and return the position after the last complete row."""
        begin, end, quotes = self._checked, data.rfind(_LINE_END) + 1, copy(self._quotes)
        if end <= begin:
            return 0
        self._check(data[begin:end])
        self._checked = cut = end
        if self._quotes.inside:  # the line end is in a value, as earlier ones may be
            cut, at = 0, begin
            for line in data[begin:end].split(_LINE_END)[:-1]:
                quotes.problem(line + _LINE_END)
                at += len(line) + 1
                cut = cut if quotes.inside else at
        self._within = self._within and not cut
        return cut


def _cut(data: bytes) -> int:
    """Return the position at which a piece may end.

    Arrow drops a line feed that begins the next piece after a carriage return, even within quotes. It prints a
    traceback if the text ends within a character.
    """
    for held, byte in enumerate(reversed(data[-_MOST_HELD:]), 1):
        if byte < 0x80:
            return len(data) - (held == 1 and byte == _CR)
        if byte >= 0xC0:  # the first byte of a character
            return len(data) - (held if held < 2 + (byte >= 0xE0) + (byte >= 0xF0) else 0)
    return len(data)


class Utf8:
    """Checks that a text is UTF-8, piece by piece."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line, self._offset, self._rest = 1, 0, b""

    def problem(self, data: bytes) -> str | None:
        """Check the next piece, and describe the first invalid bytes, if any. An empty piece ends the text."""
        whole = self._rest + data
        try:
            self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            name = "cp1252" if _OF_WINDOWS.search(whole, error.start) else "latin-1"
            return (
                f"line {self._line + whole.count(_LINE_END, 0, error.start)}, byte {self._offset + error.start}: "
                f"expected UTF-8 text, got {whole[error.start : error.start + 4]!r}; "
                f"--encoding {name} reads it, if it is that"
            )
        # The decoder holds the bytes of a character that continues in the next piece.
        end = len(whole) - len(self._decoder.getstate()[0])
        self._rest = whole[end:]
        self._line += whole.count(_LINE_END, 0, end)
        self._offset += end
        return None


def first_not_utf8(text: io.RawIOBase) -> str | None:
    """Describe the first bytes of a text that are not UTF-8. Return None if there are none."""
    check = Utf8()
    while True:
        data = read_full(text, 1 << 20)
        problem = check.problem(data)
        if problem is not None or not data:
            return problem


class Quotes:
    """Checks the quotes of a text, piece by piece.

    A quote at the beginning of a value opens it, and the next quote closes it; the value must end there. Two quotes
    within a quoted value stand for one. In a value that does not begin with a quote, quotes are ordinary characters.
    """

    def __init__(self, delimiter: str) -> None:
        self._ends = f"{delimiter}\r\n".encode()
        self._near = np.isin(np.arange(256), [*self._ends, _QUOTE])
        blanks, end = b"[%s]*+" % b" \t".replace(delimiter.encode(), b""), b"[%s]" % re.escape(self._ends)
        self._blanks = re.compile(blanks)
        # Everything valid: text without quotes, quoted values, and quotes that are characters.
        self._sound = re.compile(
            b'(?:[^"]++|(?<=%b)"(?:[^"]++|"")*+"%b(?=%b)|(?<!%b)")*+' % (end, blanks, end, end)
        )
        self.inside = False
        """A quoted value has not ended."""
        self._closed = False
        """Only blanks have come since a closing quote."""
        self._last, self._line, self._opened = _LF, 1, 1
        self._line_end = b""

    def problem(self, data: bytes) -> str | None:
        """Check the next piece, and return the problem of its quotes, if any. An empty piece ends the text."""
        if not data:
            opened = (
                f"line {self._opened}: expected a quote that closes the value opened in this line, got none"
            )
            return opened if self.inside else None
        if not self._line_end:
            self._line_end = b"\n" if b"\n" in data else b"\r"
            data = data.removeprefix(_BOM)
        problem = None if self._all_in_place(data) else self._follow(bytes([self._last]) + data)
        self._line += data.count(self._line_end)
        self._last = data[-1] if data else _LF
        if self._last == _QUOTE and not (self.inside or self._closed):
            self._last = 0  # a character of a value: a quote next to it does not open a value
        return problem

    def _all_in_place(self, data: bytes) -> bool:
        """Check with vector operations whether all quotes are next to ends of values or to each other.

        Then every second quote opens a value. Return false if the quotes must be followed one by one.
        """
        if not self._closed and b'"' not in data:
            return True
        codes = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(codes == _QUOTE)
        inside = int(self.inside)
        opening, closing = places[inside::2], places[1 - inside :: 2]
        before = np.where(opening > 0, codes[opening - 1], self._last)
        after = codes[closing[closing < len(codes) - 1] + 1]
        sound = self._near[before].all() and self._near[after].all()
        if not sound or (self._closed and not self._near[codes[0]]):
            return False
        self.inside = len(closing) < len(opening) + inside
        self._closed = not self.inside and codes[-1] == _QUOTE
        first = opening[before != _QUOTE]
        if self.inside and len(first):
            self._opened = self._line + data.count(self._line_end, 0, first[-1])
        return True

    def _follow(self, data: bytes) -> str | None:
        """Check one quote after the other. `data` begins with the byte before the piece."""
        at, opened = 1, None
        while at < len(data):
            if self.inside:
                at = data.find(b'"', at) + 1
                if not at:
                    break
                self.inside, self._closed = False, True
            elif self._closed:
                end = _end(self._blanks, data, at)
                if end == len(data):
                    break
                self._closed = False
                self.inside = data[at - 1 : end + 1] == b'""'
                if not self.inside and data[end] not in self._ends:
                    return self._text_after(data, end)
                at = end + 1
            else:
                at = _end(self._sound, data, at)
                if at == len(data):
                    break
                at = opened = at + 1
                self.inside = True
        if opened is not None:
            self._opened = self._line + data.count(self._line_end, 1, opened)
        return None

    def _text_after(self, data: bytes, at: int) -> str:
        text = re.split(b"[\r\n]", data[at : at + 60])[0].decode(errors="replace")
        line = self._line + data.count(self._line_end, 1, at)
        return (
            f"line {line}: expected the end of a value after the quote that closes it, got {text!r}; "
            "a quote within quotes is written twice"
        )


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    """Return the end of a match that begins at `at`."""
    match = pattern.match(data, at)
    return at if match is None else match.end()
