"""Streams of bytes that are hashed while they are read, decompressed, and can be inspected at their start."""

from __future__ import annotations

import codecs
import hashlib
import io
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa

from kafeat.errors import DataError, UsageError, shell_word
from kafeat.io.columns.dialect import UTF8
from kafeat.io.formats import format_of_bytes
from kafeat.io.readers.base import Reader
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.files import read_full, read_until_pause
from kafeat.io.storage.local_path import LocalPath

LOOK = 1 << 20
"""Number of bytes at the beginning of a text from which its columns are found."""
LONGEST = 1 << 28
"""Largest size of a row in bytes."""
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
"""A zstd file may begin with a frame to skip: a byte from 0x50 to 0x5f, then these bytes."""
PAUSE = 0.05
"""Seconds for which a `prompt` stream waits for more bytes, from the first byte of a read on."""
_MAGIC = 6


class HashingStream(io.RawIOBase):
    """The raw bytes of a file or of standard input. With `hashed`, their SHA-256 is computed while they are read.

    With `prompt`, a read returns fewer bytes if the input pauses, and sets `paused`.
    """

    _file: io.RawIOBase | None = None  # for `close`, which Python also calls if opening fails

    def __init__(self, location: Location, prompt: bool = False, hashed: bool = True) -> None:
        self._location, self.prompt, self.paused = location, prompt, False
        self._file = location.open()
        self._hash = hashlib.sha256() if hashed else None
        # With a limit of rows, `digest` reads the remaining bytes while another thread may still read ahead.
        self._lock = threading.Lock()
        self.ended = False
        self._ahead = b""
        while len(self._ahead) < _MAGIC and b"\n" not in self._ahead and not self.ended:
            self._ahead += self._take(_MAGIC - len(self._ahead))
        self.magic = self._ahead
        """The first bytes, which show the format and the compression."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            size = 1 << 20
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        return ahead or self._take(size)

    def _take(self, size: int) -> bytes:
        with self._lock:
            if self.ended or self._file is None:
                return b""
            try:
                if self.prompt:
                    data, self.paused = read_until_pause(self._file, size, PAUSE)
                else:
                    data = read_full(self._file, size)
            except OSError as error:
                raise self._location.refusal(error) from error
            self.ended = len(data) < size and not self.paused
            if self._hash is not None:
                self._hash.update(data)
            return data

    def digest(self) -> str:
        """Return the SHA-256 of all bytes. Read the rest if necessary."""
        while not self.ended:
            self._take(1 << 20)
        return "" if self._hash is None else self._hash.hexdigest()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def is_utf8(head: bytes, encoding: str) -> bool:
    """Return True if UTF-8 text was decoded from another `encoding`, so that `head` has characters such as Ã¼."""
    text = head.decode(UTF8, "ignore")
    raw = text.encode(encoding, "ignore")
    return encoding_of(raw) == UTF8 and not text.startswith(raw.decode(UTF8, "ignore"))


def encoding_of(head: bytes) -> str:
    """Guess the encoding of a text from its first bytes: by a byte order mark, by NUL bytes, or by trying to decode."""
    for mark, name in _MARKED:
        if head.startswith(mark):
            return name
    if b"\0" in head:
        return "utf-16-le" if head.index(0) % 2 else "utf-16-be"
    for name in (UTF8, "cp1252"):
        with suppress(UnicodeError):
            codecs.getincrementaldecoder(name)().decode(head)
            return name
    return "latin-1"


class DecompressedStream(io.RawIOBase):
    """The bytes of a hashing stream, decompressed if it is compressed. Text in another encoding is converted to UTF-8.

    `look` returns the first bytes, and a later `read` returns them again. NUL bytes are an error unless `binary`.
    """

    def __init__(self, location: str, raw: HashingStream, binary: bool = False, encoding: str = UTF8) -> None:
        self.location, self.raw, self._binary, self._done = location, raw, binary, 0
        packing = _packing(raw.magic)
        arrow_file = pa.PythonFile(raw, mode="r")
        self._stream = arrow_file if packing is None else pa.CompressedInputStream(arrow_file, packing)
        self._packing = packing
        raw.prompt &= packing is None
        self.head = b""
        self._at = 0
        self.whole = False
        self._decoder = None if encoding == UTF8 else codecs.getincrementaldecoder(encoding)()
        self._encoding, self._decoded, self._last = encoding, b"", b""
        self.dropped = 0
        """Number of lines that `drop` has removed, such as the line sep=; of Excel."""

    def error(self, problem: str) -> DataError:
        """Return the error about a problem of the text."""
        return DataError(f"{self.location}: {problem}")

    def drop(self, size: int) -> None:
        """Drop the first `size` bytes, which `look` has returned, so that `read` does not return them."""
        self.dropped = self.head.count(b"\n", 0, size)
        self.head = self.head[size:]

    def through(self, program: str) -> str:
        """Return a shell command that filters this file to NAME.clean.csv. For pipes and objects, return `program`."""
        if self.location == "-" or "://" in self.location:
            return program
        new = Path(Path(self.location).name.removesuffix(".gz").removesuffix(".zst"))
        while not new.stem.endswith(".clean") or new.exists():
            new = new.with_stem(f"{new.stem}.clean")
        wide = not "\n\n".encode(self._encoding).endswith(b"\n\n")
        programs = [
            *([f"{self._packing} -dc"] if self._packing else []),
            *([f"iconv -f {self._encoding.replace('6-', '6')} -t utf-8"] if wide else []), program,
        ]  # fmt: skip
        programs[0] += f" {shell_word(self.location)}"
        return f"{' | '.join(programs)} > {shell_word(str(new))}"

    def look(self, size: int, beyond: int = 0) -> bytes:
        """Return the first `size` bytes. If the text has fewer, return all, and set `whole`.

        If the input pauses, return fewer bytes, but more than `beyond`.
        """
        while len(self.head) < size and not self.whole and not (self.raw.paused and len(self.head) > beyond):
            data = self._take(size - len(self.head))
            self.whole = not data
            self.head += data
        return self.head

    @property
    def paused(self) -> bool:
        """True if the input pauses, and all bytes before the pause were read."""
        return self.raw.paused and self._at >= len(self.head) and not self._decoded

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._at < len(self.head):
            stop = len(self.head) if size < 0 else self._at + size
            data, self._at = self.head[self._at : stop], min(stop, len(self.head))
        else:
            self.head, self._at = b"", 0
            data = self._take(size if size >= 0 else 1 << 20)
        if not self._binary and b"\0" in data:
            raise self.error(
                f"byte {self._done + data.index(0)}: expected UTF-8 text, got a NUL byte: the file "
                "is damaged, or was padded (tr -d '\\000' removes such bytes)"
            )
        self._done += len(data)
        return data

    def _take(self, size: int) -> bytes:
        while not self._decoded:
            try:
                data: bytes = self._stream.read(size)
            except OSError as error:
                raise self.error(f"expected sound {self._packing} data, got: {error}") from error
            if self._decoder is None:
                return data
            try:
                self._decoded = self._decoder.decode(data, final=not data).encode()
            except UnicodeError as error:
                name = encoding_of(self._last + data + self._stream.read(LOOK))
                raise self.error(
                    f"expected text in {self._encoding}, got: {error}; --encoding {name} reads it"
                ) from error
            self._last = data
            if not data:
                break
        data, self._decoded = self._decoded[:size], self._decoded[size:]
        return data

    def __del__(self) -> None:
        """Do nothing. Python's `__del__` would close the hashing stream, whose `digest` may still be needed."""

    def close(self) -> None:
        self.raw.close()
        super().close()


class TextInput:
    """The source of a text: a file or an object, which can be opened repeatedly, or a pipe, which is read once."""

    def __init__(
        self,
        location: Location,
        raw: HashingStream | None = None,
        prompt: bool = False,
        binary: bool = False,
        encoding: str = UTF8,
    ) -> None:
        self._place = location
        self._text = partial(DecompressedStream, location.source, binary=binary, encoding=encoding)
        self.skipped = 0
        """Number of bytes to skip at the beginning, such as the line sep=; of Excel."""
        local = isinstance(location, LocalPath)
        self.read_once = location.kind() != "file" if local else isinstance(location, StandardStream)
        # The stream of a pipe stays open, because only it can return the inspected bytes again.
        self._pipe = self._text(raw or HashingStream(location, prompt)) if self.read_once else None
        self._raw = None if self._pipe is None else self._pipe.raw

    @contextmanager
    def opened(self, peek: bool = False) -> Iterator[DecompressedStream]:
        """Open the text at its first byte. A pipe can be opened once, not counting calls with `peek`."""
        if not self.read_once:
            with closing(self._text(HashingStream(self._place, hashed=False))) as text:
                text.look(self.skipped)
                text.drop(self.skipped)
                yield text
            return
        pipe, self._pipe = self._pipe, self._pipe if peek else None
        if pipe is None:
            expected = f"{self._place.source}: expected a file, which can be read again, got a pipe"
            raise UsageError(f"{expected}; save it to a file first")
        with ExitStack() as failing:
            if peek:
                failing.callback(self.close)
            yield pipe
            failing.pop_all()

    def digest(self) -> str:
        return self._place.digest() if self._raw is None else self._raw.digest()

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()


class TextReader(Reader):
    """Base class of readers of a `TextInput`: of text, and of binary formats that can be piped."""

    _text: TextInput

    @property
    def rereadable(self) -> bool:
        return not self._text.read_once

    def digest(self) -> str:
        return self._text.digest()

    def close(self) -> None:
        self._text.close()


def _packing(magic: bytes) -> str | None:
    if magic.startswith(GZIP):
        return "gzip"
    skippable = len(magic) > 3 and magic[0] & 0xF0 == 0x50 and magic[1:4] == ZSTD_SKIPPABLE
    return "zstd" if magic.startswith(ZSTD) or skippable else None


# UTF-32 comes first, because its mark begins with that of UTF-16.
_MARKED = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def whole_lines(location: str, text: DecompressedStream, size: int, returns: bool = False) -> Iterator[bytes]:
    """Yield whole lines in pieces of about `size` bytes. At a pause, yield the lines so far, or no bytes.

    The last line may lack its line end. With `returns`, a carriage return alone also ends a line.
    """
    begun: list[bytes] = []
    while data := text.read(size):
        end = data.rfind(b"\n") + 1
        if returns and not end:  # the last byte may be half of a CRLF
            end = data.rfind(b"\r", 0, -1) + 1
        if not end and text.paused:
            yield b""
        elif end:
            yield b"".join([*begun, data[:end]])
            begun = []
        begun.append(data[end:])
        if sum(map(len, begun)) > LONGEST:
            raise DataError(f"{location}: expected lines of less than {LONGEST} bytes, got a longer one")
    if any(begun):
        yield b"".join(begun)


CUT = "in a last line without a line end: the file was cut off; copy it again, or end that line if the file is whole"


def cut_off(location: str, where: str, problem: str) -> DataError:
    """Return the error for an invalid last line without a line end. Rules for bad rows, such as drop, do not apply."""
    return DataError(f"{location}: {where}: {problem}, {CUT}")


def growing(text: DecompressedStream, expected: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the first bytes, and true if they end at a pause. Each time there are more of them, up to `LONGEST`."""
    size, before = LOOK, 0
    while size <= LONGEST:
        head = text.look(size, before)
        refuse_binary(text.location, head, expected)
        paused = len(head) < size and not text.whole
        yield head, paused
        size, before = (size, len(head)) if paused else (4 * size, 0)


def refuse_binary(location: str, head: bytes, expected: str) -> None:
    """Raise DataError if the first bytes look like another format or are not text."""
    other = format_of_bytes(head)
    if other is not None:
        remedy = f"--input-format {other.name}"
        if location == "<stdin>" and not other.piped:
            remedy = "it cannot be piped; name the file"
        raise DataError(f"{location}: expected {expected}, but this looks like {other.title}: {remedy}")
    if head.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{location}: expected {expected}, but this looks like a zip archive, such as a spreadsheet: save "
            "the sheet as CSV"
        )
    if b"\0" in head[:LOOK]:
        raise DataError(
            f"{location}: byte {head.index(0)}: expected UTF-8 text, got a NUL byte: this looks like a binary "
            f"file, or like UTF-16 (--encoding {encoding_of(head)} reads it)"
        )
