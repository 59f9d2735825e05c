"""Formats, and their recognition by the suffix of a name."""

from __future__ import annotations

from kafeat.errors import UsageError
from kafeat.io.storage.base import Location, StandardStream

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
DENSE_OUTPUTS = ("csv", "parquet", "npy", "arrow", "jsonl")
SPARSE_OUTPUTS = ("libsvm", "npz")
"""Formats that hold what is not 0. Features are mostly dense, so that an output is sparse only if it is asked for."""
OUTPUTS = (*DENSE_OUTPUTS, *SPARSE_OUTPUTS)
FORMATS = tuple(dict.fromkeys((*INPUTS, *OUTPUTS)))
PIPED = ("csv", "arrow", "jsonl", "libsvm")
"""Formats of standard input and output."""
COUNTED = ("parquet", "npy", "npz")
"""Formats that always store their number of rows."""


def format_of(location: Location, given: str | None = None, among: tuple[str, ...] = FORMATS) -> str:
    """Return the given format, or the one of the suffix. `-` is CSV. Errors list the suffixes of `among`."""
    if given is not None:
        if given not in FORMATS:
            raise UsageError(f"{location}: expected a format of {', '.join(FORMATS)}, got {given!r}")
        return given
    if isinstance(location, StandardStream):
        return "csv"
    suffix = suffix_of(location)
    if suffix:
        return SUFFIXES[suffix]
    options = {INPUTS: "--input-format", OUTPUTS: "--output-format"}
    raise UsageError(
        f"{location}: expected a name that ends in one of {', '.join(_suffixes(among))}; "
        f"else name the format with {options.get(among, ' or '.join(options.values()))}"
    )


def suffix_of(location: Location) -> str:
    """Return the suffix by which the format is recognised, or an empty text."""
    name = location.path.lower()
    return max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len, default="")


def _suffixes(formats: tuple[str, ...]) -> list[str]:
    """Return the suffixes of the formats. Compressed ones are listed for CSV only, as they are many."""
    return [
        suffix for suffix, name in SUFFIXES.items()
        if name in formats and (suffix.count(".") == 1 or suffix.startswith((".csv", ".tsv")))
    ]  # fmt: skip


def delimiter_of(location: Location, delimiter: str) -> str:
    """Return a tab for .tsv if the delimiter is the default."""
    tabs = delimiter == "," and suffix_of(location).startswith(".tsv")
    return "\t" if tabs else delimiter
