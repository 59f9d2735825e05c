"""Divide CSV text into pieces of whole rows for Arrow's reader, and check its quotes."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator

import numpy as np

from kafeat.io.readers.text_stream import LONGEST, LOOK, DecompressedStream, whole_lines

_QUOTE, _LF, _CR = b'"\n\r'
# Bytes that are control characters in Latin-1, and letters or signs in cp1252. So a text with them is not Latin-1.
_OF_WINDOWS = re.compile(rb"[\x80-\x9f]")
# Words with letters of Central Europe in cp1250, whose bytes would be signs or rare letters in cp1252.
_OF_CENTRAL_EUROPE = re.compile(rb"[A-Za-z][\xec\xf9][a-z]|[a-z][\x9d\x9f\xb3\xb9\xbc\xbe\xbf][a-z]")
_ABOVE_ASCII = re.compile(rb"[\x80-\xff]+")
# A character outside ASCII within a word, such as the ö of Nördlich. Dashes and apostrophes do not count.
_WITHIN_WORD = re.compile(r"(?<=[^\W\d_])([^\x00-\x7f‘’–—…\xa0])(?=[a-z])")
_HAN = "[\u3000-\u30ff\u3300-\u33ff\u4e00-\u9fff\uff01-\uff5e]"
# Encodings of scripts other than Latin: the name of the script, and the pattern of its characters. The encodings
# in `_DOUBLE` have two bytes for most characters.
_DOUBLE = ("cp932", "cp949", "gb18030", "cp950")
_SCRIPTS = {
    "cp932": ("Japanese", _HAN), "cp949": ("Korean", "[\uac00-\ud7a3]"), "gb18030": ("Chinese", _HAN),
    "cp950": ("Chinese of Taiwan", _HAN), "cp1251": ("Cyrillic", "[\u0400-\u04ff]"),
    "koi8-r": ("Cyrillic of Unix", "[\u0410-\u044f]"), "cp866": ("Cyrillic of DOS", "[\u0410-\u044f]"),
    "cp1253": ("Greek", "[\u0370-\u03ff]"), "cp1255": ("Hebrew", "[\u05d0-\u05ea]"),
    "cp1256": ("Arabic", "[\u0600-\u06ff]"), "cp874": ("Thai", "[\u0e00-\u0e7f]"),
}  # fmt: skip
_CAPITAL_WITHIN = re.compile("[а-яά-ώ][А-ЯΆ-Ώ]")
_NEARLY_ALL = 0.8
BOM = b"\xef\xbb\xbf"
# Possessive groups have errors before Python 3.11.5. Other groups need memory for each repeat, hence the limit.
_WITHIN = re.compile(b'[^"]*+(?:""[^"]*+){0,4096}')
"""The text after an opening quote, up to the quote that closes the value."""


def whole_rows(text: DecompressedStream, delimiter: str, size: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield (rows, line, byte): about `size` bytes of whole rows, fewer at a pause, and where these rows begin."""
    quotes, held, line, at = Quotes(delimiter), list[bytes](), 1, 0
    for lines in whole_lines(text.location, text, size, returns=True):
        problem = quotes.problem(lines) if lines else None
        if problem is not None:
            doubled = text.through(r"""sed 's/\\"/""/g'""") if rb"\"" in lines else ""
            raise text.error(f"{problem}{doubled and f': {doubled} does so'}")
        end = quotes.complete if lines else 0
        if end or not quotes.inside:
            rows = b"".join([*held, lines[:end]])
            yield rows, line, at
            held, at = [], at + len(rows)
            line += rows.count(quotes.line_end) if rows else 0
        held.append(lines[end:])
        if sum(map(len, held)) > LONGEST:
            raise text.error(
                f"line {line}: expected a row of less than {LONGEST} bytes, got a longer one; is a quote "
                "left open?"
            )
    if quotes.inside:
        raise text.error(
            f"line {quotes.opened}: expected a quote that closes the value opened in this line, got none"
        )


def not_utf8(data: bytes, line: int = 1, at: int = 0, whole: bool = True) -> str | None:
    """Return a message about the first bytes that are not UTF-8, or None if all are.

    `data` begins in line `line`, at byte `at` of the file. If `whole` is false, its last character may be incomplete.
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
    """Return advice with --encoding and the encodings that fit the characters of a text best."""
    runs = _ABOVE_ASCII.findall(data)
    # In Cyrillic or Greek words, all letters are above ASCII. In Latin words, only letters with accents are.
    words = sum(len(run) for run in runs if len(run) > 2) > sum(map(len, runs)) / 2
    fitting = [
        name for name, (_, of) in _SCRIPTS.items() if (words or name in _DOUBLE) and _has(data, name, of)
    ]
    fitting.sort(key=lambda name: len(_CAPITAL_WITHIN.findall(_decoded(data, name) or "")))
    if fitting:
        return f"{' or '.join(f'--encoding {name} ({_SCRIPTS[name][0]})' for name in fitting[:4])} reads it"
    usual = "cp1252" if _OF_WINDOWS.search(data) else "latin-1"
    name = min([usual, "cp850", "cp1250", "mac-roman"], key=lambda name: _odd_letters(data, name))
    if name in (usual, "cp1250") and _OF_CENTRAL_EUROPE.search(data):
        name = f"cp1250 (Central Europe) or --encoding {usual}"
    return f"--encoding {name} reads it, if that is its encoding"


def _decoded(data: bytes, name: str) -> str | None:
    try:
        return codecs.getincrementaldecoder(name)().decode(data)
    except UnicodeError:
        return None


def _odd_letters(data: bytes, name: str) -> float:
    """Return how many signs and capital letters an encoding puts between the letters of words."""
    text = _decoded(data, name)
    return math.inf if text is None else sum(c in "ªº" or not c.islower() for c in _WITHIN_WORD.findall(text))


def _has(data: bytes, name: str, chars: str) -> bool:
    """Return true if the characters outside ASCII are nearly all `chars` that are not next to small ASCII letters.

    Letters with accents, read in pairs with the next letter, would become Chinese characters.
    """
    text = _decoded(data, name) or ""
    others = len(re.sub(r"[\x00-\x7f]", "", text))
    if name == "gb18030":  # it decodes most pairs of bytes, so count only the usual characters, of GB 2312
        text = text.encode("gb2312", "replace").decode("gb2312")
    return len(re.findall(f"(?<![a-z]){chars}(?![a-z])", text)) > _NEARLY_ALL * others


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
        # Valid: text without quotes, a quoted value, and a quote inside a value whose first character is not a quote.
        self._sound = re.compile(
            b'(?:[^"]++|(?<=%b)"%b"%b(?=%b)|(?<!%b)"){0,4096}' % (end, _WITHIN.pattern, blanks, end, end)
        )
        self.inside = False
        """True if a quoted value has not ended yet."""
        self.complete = 0
        """Length in bytes of the whole rows in the last piece, or 0 if it contains no certain end of a row."""
        self._line, self.opened = 1, 1
        """The numbers of the lines in which the next piece begins, and in which the last quoted value was opened."""
        self.line_end = b""

    def problem(self, data: bytes) -> str | None:
        """Check the next piece, which consists of whole lines. Return the message about a wrong quote, or None."""
        if not self.line_end:
            self.line_end = b"\n" if b"\n" in data else b"\r"
            if data.startswith(BOM):  # replace it by delimiters, after which a quote may open a value
                data = self._ends[:1] * len(BOM) + data[len(BOM) :]
        self.complete = len(data)
        problem = None if self._all_in_place(data) else self._follow(b"\n" + data)
        self._line += data.count(self.line_end)
        return problem

    def _all_in_place(self, data: bytes) -> bool:
        """Return true if every quote is next to a delimiter, a line end or another quote. This uses NumPy, for speed.

        If true, every second quote opens a value. If false, `_follow` must look at each quote.
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
        """Check one quote after the other, as `problem` does. `data` is a line end and then the piece."""
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
    """Match the pattern at `at` as often as possible. Return the position after the last match."""
    while (match := pattern.match(data, at)) is not None and match.end() > at:
        at = match.end()
    return at
