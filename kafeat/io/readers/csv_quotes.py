"""The text of a CSV on its way to Arrow's reader: its quotes are looked at, and no line end is cut in two."""

from __future__ import annotations

import io
import re

import numpy as np

from kafeat.errors import DataError
from kafeat.io.storage.files import read_full

_QUOTE, _LF, _CR = b'"\n\r'
_MOST_HELD = 4
_BOM = b"\xef\xbb\xbf"


class CheckedText(io.RawIOBase):
    """A text for Arrow's reader, which ends where it cannot be read on: then `check` says why.

    Nothing is raised while Arrow reads: a thread of its pool that meets an error waits for itself, for ever, and behind
    eight of them no file is read any more (pyarrow 26).
    """

    def __init__(self, place: str, text: io.RawIOBase, delimiter: str) -> None:
        self._place, self._text, self._quotes = place, text, Quotes(delimiter)
        self._held = b""
        self._error: Exception | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            return self._read(size)
        except Exception as error:
            self._error = error
            return b""

    def check(self) -> None:
        """Raise what has ended the text. What has been read by then may end within a row."""
        if self._error is not None:
            raise self._error

    def _read(self, size: int) -> bytes:
        # Whether this is the end is known before the cut: Arrow fails on a last piece that is the end of a line only.
        new = read_full(self._text, size - _MOST_HELD)
        ahead = self._text.read(1) or b"" if len(new) == size - _MOST_HELD else b""
        data = self._held + new
        cut = _cut(data) if ahead else len(data)
        data, self._held = data[:cut], data[cut:] + ahead
        problem = self._quotes.mistake(data)
        if problem is not None:
            raise DataError(f"{self._place}: {problem}")
        return data


def _cut(data: bytes) -> int:
    """Where a piece of a text may end. Arrow drops a line feed at the start of the next one behind a carriage return,
    also within quotes, and prints a traceback where the text ends with a part of a character.
    """
    for held, byte in enumerate(reversed(data[-_MOST_HELD:]), 1):
        if byte < 0x80:
            return len(data) - (held == 1 and byte == _CR)
        if byte >= 0xC0:  # the first byte of a character
            return len(data) - (held if held < 2 + (byte >= 0xE0) + (byte >= 0xF0) else 0)
    return len(data)


class Quotes:
    """Follows the quotes of a text, piece by piece.

    A quote opens a value that begins with it, and the next one closes it, behind which the value ends; two of them
    within it are one that is meant. In a value that does not begin with one, a quote is a character.
    """

    def __init__(self, delimiter: str) -> None:
        self._ends = f"{delimiter}\r\n".encode()
        self._near = np.isin(np.arange(256), [*self._ends, _QUOTE])
        blanks, end = b"[%s]*+" % b" \t".replace(delimiter.encode(), b""), b"[%s]" % re.escape(self._ends)
        self._blanks = re.compile(blanks)
        # Whatever is sound: no quotes, quoted values, quotes that are characters.
        self._sound = re.compile(
            b'(?:[^"]++|(?<=%b)"(?:[^"]++|"")*+"%b(?=%b)|(?<!%b)")*+' % (end, blanks, end, end)
        )
        self._inside = False
        self._closed = False
        """Nothing but blanks has come since a quote that closes."""
        self._last, self._line, self._opened = _LF, 1, 1
        self._line_end = b""

    def mistake(self, data: bytes) -> str | None:
        """What is wrong with the quotes up to the end of the next piece; an empty one is the last."""
        if not data:
            return self._open_quote() if self._inside else None
        if not self._line_end:
            self._line_end = b"\n" if b"\n" in data else b"\r"
            data = data.removeprefix(_BOM)
        problem = None if self._all_in_place(data) else self._follow(bytes([self._last]) + data)
        self._line += data.count(self._line_end)
        self._last = data[-1] if data else _LF
        if self._last == _QUOTE and not (self._inside or self._closed):
            self._last = 0  # a character of a value, beside which none opens another
        return problem

    def _all_in_place(self, data: bytes) -> bool:
        """Whether all quotes stand beside ends of values, or each other: then every other one opens a value."""
        if not self._closed and b'"' not in data:
            return True
        codes = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(codes == _QUOTE)
        inside = int(self._inside)
        opening, closing = places[inside::2], places[1 - inside :: 2]
        before = np.where(opening > 0, codes[opening - 1], self._last)
        behind = codes[closing[closing < len(codes) - 1] + 1]
        sound = self._near[before].all() and self._near[behind].all()
        if not sound or (self._closed and not self._near[codes[0]]):
            return False
        self._inside = len(closing) < len(opening) + inside
        self._closed = not self._inside and codes[-1] == _QUOTE
        first = opening[before != _QUOTE]
        if self._inside and len(first):
            self._opened = self._line + data.count(self._line_end, 0, first[-1])
        return True

    def _follow(self, data: bytes) -> str | None:
        """Look at one quote after the other; the byte before the piece stands in front of it."""
        at, opened = 1, None
        while at < len(data):
            if self._inside:
                at = data.find(b'"', at) + 1
                if not at:
                    break
                self._inside, self._closed = False, True
            elif self._closed:
                end = _end(self._blanks, data, at)
                if end == len(data):
                    break
                self._closed = False
                self._inside = data[at - 1 : end + 1] == b'""'
                if not self._inside and data[end] not in self._ends:
                    return self._text_behind(data, end)
                at = end + 1
            else:
                at = _end(self._sound, data, at)
                if at == len(data):
                    break
                at = opened = at + 1
                self._inside = True
        if opened is not None:
            self._opened = self._line + data.count(self._line_end, 1, opened)
        return None

    def _open_quote(self) -> str:
        return f"line {self._opened}: expected a quote that closes the value which one opens there, got none"

    def _text_behind(self, data: bytes, at: int) -> str:
        text = re.split(b"[\r\n]", data[at : at + 60])[0].decode(errors="replace")
        line = self._line + data.count(self._line_end, 1, at)
        return (
            f"line {line}: expected the end of a value behind the quote that closes it, got {text!r}; "
            "a quote within quotes is written twice"
        )


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    """Where that ends which begins there."""
    found = pattern.match(data, at)
    return at if found is None else found.end()
