"""Divide CSV text into pieces of whole rows for Arrow's reader, and check its quotes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

import numpy as np

from kafeat.errors import DataError
from kafeat.io.readers.text_stream import LONGEST, LOOK, DecompressedStream, whole_lines

_QUOTE, _LF, _CR = b'"\n\r'
# Bytes that are letters or signs in cp1252. In Latin-1 they are control characters, which do not occur in text.
_OF_WINDOWS = re.compile(rb"[\x80-\x9f]")
# Letters of Central Europe in cp1250 that are signs in cp1252.
_OF_CENTRAL_EUROPE = re.compile(rb"[A-Za-z][\xec\xf9][a-z]|[a-z][\x9d\x9f\xb3\xb9\xbc\xbe\xbf][a-z]")
_ABOVE_ASCII = re.compile(rb"[\x80-\xff]+")
# Encodings of other scripts, with their characters.
_SCRIPTS = {
    "cp1251": ("Cyrillic", "[\u0400-\u04ff]"),
    "cp1253": ("Greek", "[\u0370-\u03ff]"),
    "cp932": ("Japanese", "[\u3040-\u30ff\u4e00-\u9fff]"),
    "cp949": ("Korean", "[\uac00-\ud7a3]"),
    "gb18030": ("Chinese", "[\u4e00-\u9fff]"),
}
_NEARLY_ALL = 0.8
BOM = b"\xef\xbb\xbf"
# Python before 3.11.5 has errors in possessive groups. Other groups need memory for each repeat: repeats are limited.
_WITHIN = re.compile(b'[^"]*+(?:""[^"]*+){0,4096}')
"""A quoted value up to the quote that closes it."""


def whole_rows(
    location: str, text: DecompressedStream, delimiter: str, size: int
) -> Iterator[tuple[bytes, int, int]]:
    """Yield whole rows, about `size` bytes at a time or up to a pause, with the line and byte at which they begin."""
    quotes, held, line, at = Quotes(delimiter), list[bytes](), 1, 0
    for lines in whole_lines(location, text, size, returns=True):
        problem = quotes.problem(lines) if lines else None
        if problem is not None:
            raise DataError(f"{location}: {problem}")
        end = quotes.complete if lines else 0
        if end or not quotes.inside:
            rows = b"".join([*held, lines[:end]])
            yield rows, line, at
            held, at = [], at + len(rows)
            line += rows.count(quotes.line_end) if rows else 0
        held.append(lines[end:])
        if sum(map(len, held)) > LONGEST:
            raise DataError(
                f"{location}: line {line}: expected a row of less than {LONGEST} bytes, got a longer one; is a quote "
                "left open?"
            )
    if quotes.inside:
        raise DataError(
            f"{location}: line {quotes.opened}: expected a quote that closes the value opened in this line, got none"
        )


def not_utf8(data: bytes, line: int = 1, at: int = 0, whole: bool = True) -> str | None:
    """Return a message about the first bytes that are not UTF-8, or None. `line` and `at` are where `data` begins.

    Unless the data are `whole`, their last character may be incomplete.
    """
    try:
        codecs.utf_8_decode(data, "strict", whole)
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        return (
            f"line {line}, byte {at + error.start}: expected UTF-8 text, got "
            f"{data[error.start : error.start + 4]!r}; {_encodings(data[max(0, error.start - LOOK) :][: 2 * LOOK])}"
        )
    return None


def _encodings(data: bytes) -> str:
    """Return the options for encodings that may be that of a text, by its characters."""
    runs = _ABOVE_ASCII.findall(data)
    # In other scripts, all letters of a word are above ASCII, not only those with accents.
    if sum(len(run) for run in runs if len(run) > 2) > sum(map(len, runs)) / 2:
        named = _SCRIPTS.items()
        fitting = [f"--encoding {name} ({script})" for name, (script, of) in named if _has(data, name, of)]
        if fitting:
            return f"{' or '.join(fitting)} reads it"
    name = "cp1252" if _OF_WINDOWS.search(data) else "latin-1"
    central = "--encoding cp1250 (Central Europe) or " if _OF_CENTRAL_EUROPE.search(data) else ""
    return f"{central}--encoding {name} reads it, if that is its encoding"


def _has(data: bytes, name: str, chars: str) -> bool:
    """Return True if the text has nearly only these characters besides those of ASCII in an encoding."""
    try:
        text = re.sub(r"[\x00-\x7f]", "", codecs.getincrementaldecoder(name)().decode(data))
    except UnicodeError:
        return False
    return len(re.findall(chars, text)) > _NEARLY_ALL * len(text)


class Quotes:
    """Checks the quotes of a CSV text, piece by piece.

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
            b'(?:[^"]++|(?<=%b)"%b"%b(?=%b)|(?<!%b)"){0,4096}' % (end, _WITHIN.pattern, blanks, end, end)
        )
        self.inside = False
        """True if a quoted value has not ended yet."""
        self.complete = 0
        """Bytes of the last piece up to the end of its last row, or 0 if this is not known."""
        self._line, self.opened = 1, 1
        """The numbers of the lines in which the next piece and the last quoted value begin."""
        self.line_end = b""

    def problem(self, data: bytes) -> str | None:
        """Check the next piece, which ends with a line or the text, and return the problem of its quotes, if any."""
        if not self.line_end:
            self.line_end = b"\n" if b"\n" in data else b"\r"
            if data.startswith(BOM):  # as delimiters, because a quote may follow
                data = self._ends[:1] * len(BOM) + data[len(BOM) :]
        self.complete = len(data)
        problem = None if self._all_in_place(data) else self._follow(b"\n" + data)
        self._line += data.count(self.line_end)
        return problem

    def _all_in_place(self, data: bytes) -> bool:
        """Check with vector operations whether all quotes are next to ends of values or to each other.

        Then every second quote opens a value. Return false if the quotes must be followed one by one.
        """
        if b'"' not in data:
            self.complete = 0 if self.inside else len(data)
            return True
        codes = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(codes == _QUOTE)
        inside = int(self.inside)
        opening, closing = places[inside::2], places[1 - inside :: 2]
        before = np.where(opening > 0, codes[opening - 1], _LF)
        after = codes[closing[closing < len(codes) - 1] + 1]
        if not (self._near[before].all() and self._near[after].all()):
            return False
        self.inside = len(closing) < len(opening) + inside
        if self.inside:
            ends = np.flatnonzero(codes == (_LF if b"\n" in data else _CR))
            outside = ends[(inside + np.searchsorted(places, ends)) % 2 == 0]
            self.complete = int(outside[-1]) + 1 if len(outside) else 0
            first = opening[before != _QUOTE]
            if len(first):
                self.opened = self._line + data.count(self.line_end, 0, first[-1])
        return True

    def _follow(self, data: bytes) -> str | None:
        """Check one quote after the other. `data` begins with a line end before the piece."""
        at = 1
        while at < len(data):
            if not self.inside:
                at = _end(self._sound, data, at) + 1
                if at > len(data):
                    break
                self.inside, self.opened = True, self._line + data.count(self.line_end, 1, at)
            quote = _end(_WITHIN, data, at)
            if quote == len(data):
                self.complete = 0
                break
            self.inside, at = False, _end(self._blanks, data, quote + 1)
            if at < len(data) and data[at] not in self._ends:
                return self._text_after(data, at)
        return None

    def _text_after(self, data: bytes, at: int) -> str:
        text = re.split(b"[\r\n]", data[at : at + 60])[0].decode(errors="replace")
        line = self._line + data.count(self.line_end, 1, at)
        return (
            f"line {line}: expected the end of a value after the quote that closes it, got {text!r}; "
            "a quote within quotes is written twice"
        )


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    """Return the end of consecutive matches, the first of which begins at `at`."""
    while (match := pattern.match(data, at)) is not None and match.end() > at:
        at = match.end()
    return at
