"""The file formats of tables. Each is a `Format`, found by its name, the suffix of a file, or its first bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from kafeat.errors import UsageError
from kafeat.io.storage.base import Location, StandardStream

PACKINGS = {".gz": "gzip", ".zst": "zstd"}
"""Compressions of text by their suffixes."""


@dataclass(frozen=True)
class Format:
    """A file format, and what it can hold. Its reader and its writer are imported when they are used."""

    name: str
    title: str
    """Name in messages."""
    endings: tuple[str, ...]
    """Suffixes, such as `.csv`. Text formats add .gz and .zst to them: see `suffixes`."""
    writer: str
    """Module and class of the writer, below `kafeat.io`; `reader` has the same form."""
    reader: str
    magic: tuple[bytes, ...] = ()
    """The bytes with which files of this format may begin."""
    compressions: tuple[str, ...] = ("none",)
    text: bool = False
    delimited: bool = False
    """True for text with a delimiter between columns, and with a header unless the user says there is none."""
    piped: bool = False
    """True if the format can be read from standard input and written to standard output."""
    counted: bool = False
    """True if files always store their number of rows."""
    split: bool = False
    """True if a range of rows can be read without the rows before it."""
    typed: bool = True
    """True if files store the types of columns. In other formats, passthrough columns are copied as text."""
    sparse: bool = False
    """True if files store only nonzero numbers. An output has such a format only if the user names it."""
    lists: bool = True
    """True if `--layout list` is allowed: one column of lists has all features. NPY is the same either way."""
    passthrough: Literal["columns", "label", "none"] = "columns"
    parquet_types: bool = False
    """True if the format has the types of Parquet, which include categories of text, but not times in seconds."""

    @property
    def suffixes(self) -> list[str]:
        """All suffixes of files in this format, including those of compressed text."""
        packed = ("", *PACKINGS) if self.text else ("",)
        return [f"{ending}{suffix}" for ending in self.endings for suffix in packed]


_OF_TEXT = ("none", *PACKINGS.values())
FORMATS = {
    format.name: format
    for format in (
        Format(
            "csv", "CSV", (".csv", ".tsv"), "writers.text.CsvWriter", "readers.csv.CsvReader",
            compressions=_OF_TEXT, text=True, delimited=True, piped=True, typed=False, lists=False,
        ),
        Format(
            "parquet", "Parquet", (".parquet", ".pq"), "writers.parquet.ParquetWriter",
            "readers.parquet.ParquetReader", (b"PAR1",), ("none", "snappy", "lz4", "zstd", "gzip"), counted=True,
            split=True, parquet_types=True,
        ),
        Format(
            "npy", "NPY", (".npy",), "writers.npy.NpyWriter", "readers.npy.NpyReader", (b"\x93NUMPY",),
            counted=True, split=True, passthrough="none",
        ),
        Format(
            "arrow", "Arrow", (".arrow", ".arrows", ".feather", ".ipc"), "writers.arrow_ipc.ArrowWriter",
            "readers.arrow_ipc.open_arrow", (b"ARROW1", b"\xff\xff\xff\xff"), ("none", "lz4", "zstd"), piped=True,
        ),
        Format(
            "jsonl", "JSON lines", (".jsonl", ".ndjson"), "writers.text.JsonlWriter",
            "readers.jsonl.JsonlReader", compressions=_OF_TEXT, text=True, piped=True,
        ),
        Format(
            "libsvm", "LIBSVM", (".libsvm", ".svmlight", ".svm"), "writers.libsvm.LibsvmWriter",
            "readers.libsvm.LibsvmReader", compressions=_OF_TEXT, text=True, piped=True, sparse=True, lists=False,
            passthrough="label",
        ),
        Format(
            "npz", "NPZ", (".npz",), "writers.npy.NpzWriter", "readers.sparse_matrix.NpzReader",
            counted=True, sparse=True, lists=False, passthrough="none",
        ),
    )
}  # fmt: skip
NAMES = tuple(FORMATS)
_SUFFIXES = {suffix: format for format in FORMATS.values() for suffix in format.suffixes}


def format_of(location: Location, given: str | None = None, option: str = "--output-format") -> Format:
    """Return the format `given` or, if that is None, the format of the suffix (CSV for `-`). Errors advise `option`."""
    if given is not None:
        if given not in FORMATS:
            raise UsageError(f"{location}: expected a format of {', '.join(FORMATS)}, got {given!r}")
        return FORMATS[given]
    if isinstance(location, StandardStream):
        return FORMATS["csv"]
    suffix = suffix_of(location)
    if suffix:
        return _SUFFIXES[suffix]
    if location.path.lower().endswith((".xlsx", ".xls", ".ods")):
        remedy = "save its sheet as CSV" if option == "--input-format" else "name a .csv file, which it opens"
        raise UsageError(
            f"{location}: expected a table in CSV or Parquet, got the file of a spreadsheet: {remedy}"
        )
    # Suffixes of compressed files are listed only for CSV, because there are many.
    known = [
        suffix for one in FORMATS.values() for suffix in (one.suffixes if one.delimited else one.endings)
    ]
    raise UsageError(
        f"{location}: expected a name that ends in one of {', '.join(known)}; otherwise name the format: {option} csv"
    )


def suffix_of(location: Location) -> str:
    """Return the suffix by which the format is recognised, or an empty text."""
    name = location.path.lower()
    return max((suffix for suffix in _SUFFIXES if name.endswith(suffix)), key=len, default="")


def format_of_bytes(head: bytes) -> Format | None:
    """Return the format of files that begin with these bytes, or None if it is unknown."""
    return next((format for format in FORMATS.values() if head.startswith(format.magic)), None)


def format_of_stream(head: bytes) -> Format:
    """Return the format of standard input by its first bytes: CSV, or another format that can be piped."""
    found = format_of_bytes(head)
    return found if found is not None and found.piped else FORMATS["csv"]


def format_of_part(place: Location, input_format: str | None, output_format: str | None) -> Format:
    """Return the format in which a part is written: that of `output_format`.

    If `output_format` is None, keep the format of the input, but write Parquet for a sparse input.
    """
    own = format_of(place, input_format, "--input-format")
    return FORMATS[output_format or ("parquet" if own.sparse else own.name)]


def delimiter_of(location: Location, delimiter: str) -> str:
    """Return the delimiter, or a tab if the file is .tsv and the delimiter is the default."""
    tabs = delimiter == "," and suffix_of(location).startswith(".tsv")
    return "\t" if tabs else delimiter


def imported(name: str) -> Any:
    """Return a reader or a writer by its module and name."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"kafeat.io.{module}"), attribute)


def spelled(names: Iterable[str], last: str = "or") -> str:
    """Return names as a list in words, such as `CSV, Arrow or LIBSVM`."""
    *first, end = names
    return f"{', '.join(first)} {last} {end}" if first else end


def piped() -> str:
    """Return the formats that can be piped, as a list in words."""
    return spelled(one.title for one in FORMATS.values() if one.piped)
