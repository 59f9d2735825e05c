"""Random CSV files beside Python's csv module: the same rows, or an error where RFC 4180 is broken.

    python benchmarks/fuzz_csv.py [--files 20000] [--seed 0]

Quotes of every kind, rows of other widths, line ends of three kinds, blank lines, delimiters, a mark of the byte order,
with and without a header, and pieces so small that rows and line ends lie across them. docs/reliability.md says how
such files are read.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kafeat.errors import KafeatError
from kafeat.io.columns.columns import Columns
from kafeat.io.options import InputOptions
from kafeat.io.readers import csv_sniff
from kafeat.io.storage.location import parse_location

Rows = list[list[str] | None]
"""None for a row of another width, where such rows are set aside."""

_LINE_ENDS = ("\n", "\r\n", "\r")
_LOOKS = (64, 1 << 20)
"""Bytes of the first look at a file, and of a piece."""


@dataclass(frozen=True)
class Example:
    """A file, and how it is read."""

    data: bytes
    delimiter: str
    header: bool
    aside: bool
    look: int


def example(rng: random.Random) -> Example:
    """A file of rows that are mostly sound, or of characters at random."""
    delimiter = rng.choice(",,,,;\t| :.x1\x01")
    header = rng.random() < 0.5
    lines = _rows(rng, delimiter) if rng.random() < 0.85 else [_soup(rng, 14, delimiter)]
    if header:
        lines.insert(
            0, delimiter.join(rng.choice(("{}", '"{}"')).format(name) for name in "hiij"[: rng.randint(1, 3)])
        )
    end = rng.choice(_LINE_ENDS)
    text = "".join(line + (end if rng.random() < 0.9 else rng.choice(_LINE_ENDS)) for line in lines)
    text = text.rstrip("\r\n") if rng.random() < 0.3 else text
    mark = b"\xef\xbb\xbf" if rng.random() < 0.1 else b""
    return Example(mark + text.encode(), delimiter, header, rng.random() < 0.5, rng.choice(_LOOKS))


def _rows(rng: random.Random, delimiter: str) -> list[str]:
    width, lines = rng.choice((1, 2, 2, 3)), []
    for _ in range(rng.randint(1, 12)):
        n = width if rng.random() < 0.85 else rng.randint(1, 4)
        lines.append(delimiter.join(_value(rng, delimiter) for _ in range(n)))
        lines += [""] * (rng.random() < 0.1)
    return lines


def _value(rng: random.Random, delimiter: str) -> str:
    if rng.random() < 0.5:
        plain = rng.choice(("1", "ab", "2.5", "", "", " ", "é", 'a"b', '5"', ' "q"', 'a""', "#", "-"))
        return plain.replace(delimiter, "")
    return f'"{_soup(rng, 5, delimiter).replace(chr(34), chr(34) * 2)}"' + (
        "x" if rng.random() < 0.02 else rng.choice(("", "", " "))
    )


def _soup(rng: random.Random, most: int, delimiter: str) -> str:
    atoms = ("a", "1", '"', '"', delimiter, delimiter, *_LINE_ENDS, " ", '""', "é")
    return "".join(rng.choices(atoms, k=rng.randint(0, most)))


def expected(given: Example, strict: bool) -> Rows:
    """The rows as Python's csv module reads them, which raises where it is strict; blank lines are no rows of several
    columns, and an empty value of one.
    """
    text = io.StringIO(given.data.decode("utf-8-sig"), newline="")
    rows = list(csv.reader(text, delimiter=given.delimiter, strict=strict))
    first = next((number for number, row in enumerate(rows) if row), None)
    if first is None:
        return []
    width = len(rows[first])
    rows = [row or [""] for row in rows] if width == 1 else [row for row in rows if row]
    if given.header:
        rows = rows[first + 1 :] if width == 1 else rows[1:]
    return [row if len(row) == width or not given.aside else None for row in rows]


def read(given: Example, path: Path) -> Rows:
    """The rows as kafeat reads them."""
    path.write_bytes(given.data)
    with InputOptions(delimiter=given.delimiter, no_header=not given.header).open_file(
        parse_location(path)
    ) as source:
        # by their places, as names may come twice
        names = [f"c{i}" for i in range(len(source.fields))]
        source.fields = tuple(csv_sniff.Field(name, "text") for name in names)
        rows: Rows = []
        for chunk in source.chunks(
            Columns((), False, None), names, 3, typed_passthrough=False, set_aside=given.aside
        ):
            kept = chunk.passthrough.to_pylist() if chunk.passthrough is not None else []
            rows += [
                None if chunk.broken_text(i) is not None else list(row.values()) for i, row in enumerate(kept)
            ]
        return rows


def judge(given: Example, path: Path) -> str:
    """`same`, or why the file is refused; anything else in capitals."""
    csv_sniff.LOOK = given.look
    wanted = expected(given, strict=False)
    try:
        got = read(given, path)
    except KafeatError as error:
        return _refused(given, wanted, str(error))
    finally:
        csv_sniff.LOOK = _LOOKS[-1]
    return "same" if got == wanted else f"DIFFERENT: {got}, expected {wanted}"


def _refused(given: Example, wanted: Rows, error: str) -> str:
    widths = {len(row) for row in wanted if row is not None}
    try:
        expected(given, strict=True)
    except csv.Error:
        return "quotes"
    if len(widths) > 1 or ("fields, got" in error and not given.aside):
        return "widths"
    wider = not given.aside or 2 * wanted.count(None) >= len(
        wanted
    )  # most rows have more fields than the first
    if "the names may be in line" in error and given.header and wider:
        return "title"
    if "got a delimiter at the end of each" in error and given.header and wider:
        return "ends"
    if "empty file" in error and not wanted:
        return "empty"
    if "was cut off" in error and wanted[-1] is None and not given.data.endswith((b"\n", b"\r")):
        return "cut"
    return f"REFUSED: {error}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng, found = random.Random(asked.seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kafeat-fuzz-") as folder:
        for _ in range(asked.files):
            given = example(rng)
            verdict = judge(given, Path(folder, "in.csv"))
            found[verdict.partition(":")[0]] += 1
            if verdict[:2].isupper():
                print(f"{given}\n  {verdict}", flush=True)
    print(", ".join(f"{verdict}: {n:,}" for verdict, n in found.most_common()))
    sys.exit(any(verdict.isupper() for verdict in found))


if __name__ == "__main__":
    main()
