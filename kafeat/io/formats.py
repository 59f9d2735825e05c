"""Which format a name stands for, and the source that reads it. Formats load when they are used."""

from __future__ import annotations

from kafeat.errors import UsageError
from kafeat.io.source import Source
from kafeat.io.uri import path_of

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
}
FORMATS = ("csv", "parquet", "npy")


def format_of(place: str, given: str | None = None) -> str:
    """csv, parquet or npy: the one given, or by the suffix; `-` is CSV."""
    if given is not None:
        if given not in FORMATS:
            raise UsageError(f"{place}: expected a format of {', '.join(FORMATS)}, got {given!r}")
        return given
    if place == "-":
        return "csv"
    for suffix, name in SUFFIXES.items():
        if path_of(place).lower().endswith(suffix):
            return name
    raise UsageError(
        f"{place}: expected a name that ends in one of {', '.join(SUFFIXES)}; "
        "else name the format with --input-format or --output-format"
    )


def delimiter_of(place: str, delimiter: str) -> str:
    """A tab for .tsv where nothing else was asked for."""
    tabs = delimiter == "," and path_of(place).lower().endswith((".tsv", ".tsv.gz", ".tsv.zst"))
    return "\t" if tabs else delimiter


def open_source(
    place: str, format: str | None = None, *, delimiter: str = ",", header: bool = True
) -> Source:
    """The source of that name; close it, or use it in a `with`."""
    name = format_of(place, format)
    if name == "csv":
        from kafeat.io.csv import CsvSource

        return CsvSource(place, delimiter=delimiter_of(place, delimiter), header=header)
    if place == "-":
        raise UsageError(f"-: expected CSV on standard input, got {name}; only CSV can be piped")
    if name == "parquet":
        from kafeat.io.parquet import ParquetSource

        return ParquetSource(place)
    from kafeat.io.npy import NpySource

    return NpySource(place)
