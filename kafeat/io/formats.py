"""Which format a name stands for, and the source that reads it. Formats load when they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafeat.errors import UsageError
from kafeat.io.locations import entry_of
from kafeat.io.uri import path_of

if TYPE_CHECKING:
    from kafeat.io.source import Source

SUFFIXES = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".tsv.zst": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    ".npz": "npz",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    **{
        f"{ending}{packed}": "libsvm"
        for ending in (".libsvm", ".svmlight", ".svm")
        for packed in ("", ".gz", ".zst")
    },
    **{f"{ending}{packed}": "jsonl" for ending in (".jsonl", ".ndjson") for packed in ("", ".gz", ".zst")},
}
INPUTS = ("csv", "parquet", "npy", "arrow", "libsvm", "npz")
OUTPUTS = ("csv", "parquet", "npy", "arrow", "jsonl")
FORMATS = tuple(dict.fromkeys((*INPUTS, *OUTPUTS)))
PIPED = ("csv", "arrow", "jsonl", "libsvm")
"""What standard input and output can be."""
COUNTED = ("parquet", "npy", "npz")
"""Formats that always tell their rows."""


def format_of(place: str, given: str | None = None, among: tuple[str, ...] = FORMATS) -> str:
    """The one given, or by the suffix; `-` is CSV. Where nothing tells, the suffixes of `among` are told."""
    if given is not None:
        if given not in FORMATS:
            raise UsageError(f"{place}: expected a format of {', '.join(FORMATS)}, got {given!r}")
        return given
    if place == "-":
        return "csv"
    for suffix, name in SUFFIXES.items():
        if path_of(place).lower().endswith(suffix):
            return name
    options = {INPUTS: "--input-format", OUTPUTS: "--output-format"}
    raise UsageError(
        f"{place}: expected a name that ends in one of {', '.join(_suffixes(among))}; "
        f"else name the format with {options.get(among, ' or '.join(options.values()))}"
    )


def _suffixes(formats: tuple[str, ...]) -> list[str]:
    """Packed ones of CSV only, as they are many."""
    return [
        suffix for suffix, name in SUFFIXES.items()
        if name in formats and (suffix.count(".") == 1 or suffix.startswith((".csv", ".tsv")))
    ]  # fmt: skip


def delimiter_of(place: str, delimiter: str) -> str:
    """A tab for .tsv where nothing else was asked for."""
    tabs = delimiter == "," and path_of(place).lower().endswith((".tsv", ".tsv.gz", ".tsv.zst"))
    return "\t" if tabs else delimiter


def open_source(
    place: str,
    format: str | None = None,
    *,
    delimiter: str = ",",
    header: bool = True,
    stamp: str | None = None,
) -> Source:
    """The source of that name; close it, or use it in a `with`. Arrow on standard input need not be named.

    `stamp` is that of a file that was listed; where there is none, the file must stay as it is from now on.
    """
    if stamp is None and place != "-":
        entry = entry_of(place)
        stamp = None if entry is None else entry.stamp
    source = _source(place, format, delimiter, header)
    source.origin = None if stamp is None else (place, stamp)
    return source


def _source(place: str, format: str | None, delimiter: str, header: bool) -> Source:
    name = format_of(place, format, INPUTS)
    if name not in INPUTS:
        raise UsageError(
            f"{place}: expected an input format of {', '.join(INPUTS)}, got {name}: it is written only"
        )
    if place == "-" and name not in PIPED:
        raise UsageError(
            f"-: expected CSV, Arrow or LIBSVM on standard input, got {name}: it cannot be piped"
        )
    if name == "csv":
        from kafeat.io.bytestream import Tap
        from kafeat.io.csv import CsvSource

        tap = Tap(place) if place == "-" else None
        if tap is not None and format is None and is_arrow(tap.magic):
            from kafeat.io.ipc import open_ipc

            return open_ipc(place, tap)
        return CsvSource(place, delimiter=delimiter_of(place, delimiter), header=header, tap=tap)
    return _opened(place, name)


def is_arrow(head: bytes) -> bool:
    """Whether bytes begin as Arrow IPC does, a stream or a file."""
    return head.startswith((b"\xff\xff\xff\xff", b"ARROW1"[:4]))


def _opened(place: str, name: str) -> Source:
    if name == "parquet":
        from kafeat.io.parquet import ParquetSource

        return ParquetSource(place)
    if name == "arrow":
        from kafeat.io.ipc import open_ipc

        return open_ipc(place)
    if name == "libsvm":
        from kafeat.io.libsvm import LibsvmSource

        return LibsvmSource(place)
    if name == "npz":
        from kafeat.io.csr import NpzSource

        return NpzSource(place)
    from kafeat.io.npy import NpySource

    return NpySource(place)
