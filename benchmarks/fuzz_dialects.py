"""Random tables in dialects, as other programs write them: each value read right, or the table refused with the remedy.

    python benchmarks/fuzz_dialects.py [--files 3000] [--seed 0]

Delimiter × quotes × line end × encoding × decimal mark × digits behind it × thousands × unit × minus × word for what is
missing × form of dates × offset × time zone, with and without the options that tell. What each value means is known, as
it is made first; pandas and, where it is installed, DuckDB read its numbers too, with the dialect told. A table that is
refused has to be read right with the options. docs/formats.md says what is guessed.
"""

from __future__ import annotations

import argparse
import importlib
import io
import math
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

import kafeat
from kafeat.config import load_config
from kafeat.errors import KafeatError
from kafeat.io.columns.dialect import NULLS
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit.fit import fit_reader

_DATES = (
    "%Y-%m-%d", "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d %b %Y", "%d-%b-%y",
    "%b %d, %Y", "%b-%Y", "%d.%m.%y", "%m/%d/%y", "%Y%m%d", "%b-%y", "%s",
)  # fmt: skip
_GUESSED = _DATES[:-2]
_UNITS = ("%", " %", "kg", " kg", " months", "$", " $", "\u00a0€", "€ ", "$ ", "USD ")
_BEFORE = ("€ ", "$ ", "USD ", "$")
_CLOCKS = (" %H:%M", "T%H:%M", " %H:%M:%S", "T%H:%M:%S.%f", " %I:%M %p")
_ZONES = ("keep", "keep", "UTC", "America/New_York", "Europe/Berlin")
_OTHER_WORDS = ("n.a.", "missing", "--", "-999", "k.A.")


@dataclass(frozen=True)
class Dialect:
    """The dialect of a random table, and the options that name it."""

    delimiter: str
    decimal: str
    digits: tuple[int, ...]
    thousands: str
    null: str
    date: str
    clock: str
    offset: str
    first_days: bool
    zone: str
    quotes: str
    line_end: str
    encoding: str
    unit: str
    brackets: bool
    minus: str
    behind: bool
    told: bool

    @property
    def options(self) -> dict[str, Any]:
        """The options of reading, which a person would give who knows the dialect."""
        if not self.told:
            return {}
        form = self.date if self.date == "%s" or "p" not in self.clock else self.date + self.clock
        names = {" ": "blank", "\u00a0": "blank", "\u202f": "blank", "'": "apostrophe", "’": "apostrophe"}
        more = {"thousands": names.get(self.thousands, self.thousands)} if self.thousands else {}
        more |= {"unit": [self.unit.strip()]} if self.unit else {}
        encoding = None if self.encoding == "utf-8-sig" else self.encoding
        return more | {
            "null_values": [self.null], "decimal": self.decimal, "date_format": [form], "encoding": encoding,
        }  # fmt: skip

    def unclear(self, values: Table) -> set[str]:
        """Reasons for which the table may be refused."""
        numbers = [text for text in values.numbers if text != self.null]
        marked = [text for text in numbers if self.decimal in text]
        reasons = set()
        if not self.told:
            reasons |= {"look alike"} if marked or self.thousands else set()
            reasons |= (
                {"got " + repr(self.null), "numbers such as"} if self.null not in (*NULLS, "") else set()
            )
            reasons |= (
                {"--date-format"}
                if self.date not in (set(_GUESSED) - {"%Y%m%d"}) or len(set(values.times)) < 3
                else set()
            )
            reasons |= {"--encoding"} if self.encoding in ("cp1252", "latin-1", "utf-16") else set()
            reasons |= {"--unit"} if self.unit or self.brackets else set()
            reasons |= (
                {"no value tells the day from the month"}
                if self.date[-1] in "Yy" and "%m" in self.date
                else set()
            )
        return reasons


@dataclass(frozen=True)
class Table:
    """The fields of a table as text, and what they mean: a number or NaN, and month, day, hour and minute."""

    numbers: list[str]
    times: list[str]
    meant_numbers: list[float]
    meant_times: list[tuple[int, ...] | None]


def dialect(rng: random.Random) -> Dialect:
    """A dialect that some program writes."""
    delimiter = rng.choice(",,;;\t|")
    date = rng.choice(_DATES)
    decimal = rng.choice(".,")
    thousands = (
        "" if rng.random() < 0.6 else rng.choice([mark for mark in ",. '’\u00a0\u202f" if mark != decimal])
    )
    # Without a decimal comma in the file, 1.234 is read as pandas reads it.
    digits = rng.choice(((1,), (2,), (1, 2)) if thousands == "." else ((0,), (1,), (2,), (1, 2), (3,), (3,)))
    encoding = rng.choices(("utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16"), (14, 4, 2, 1, 1))[0]
    null = rng.choice(("", *NULLS)) if rng.random() < 0.85 else rng.choice(_OTHER_WORDS)
    unit = "" if rng.random() < 0.6 else rng.choice(_UNITS)
    plain = encoding in ("cp1252", "latin-1")
    return Dialect(
        delimiter=delimiter,
        decimal=decimal,
        digits=digits,
        thousands="" if plain and thousands in "’\u202f" else thousands,
        null=null,
        date=date,
        clock="" if date == "%s" or rng.random() < 0.2 else rng.choice(_CLOCKS),
        offset=rng.choice(("", "", "Z", "+05:30", "-0400", "local")),
        first_days="%d" in date and date[-3:] == "/%Y" and rng.random() < 0.2,
        zone=rng.choice(_ZONES),
        quotes=rng.choice(("needed", "needed", "all")),
        line_end=rng.choice(("\n", "\r\n")),
        encoding=encoding,
        unit="" if "€" in unit and encoding == "latin-1" else unit,
        brackets=rng.random() < 0.05,
        minus="-" if plain or rng.random() < 0.9 else "\u2212",
        behind=unit == "" and rng.random() < 0.1,
        told=null == "-999" or rng.random() < 0.3,  # which is a number
    )


def table(rng: random.Random, of: Dialect) -> Table:
    """Rows of that dialect."""
    made = Table([], [], [], [])
    for _ in range(rng.randint(3, 40)):
        missing = rng.random() < 0.2 and len(made.numbers) > 3 * made.numbers.count(of.null)
        number = rng.choice((rng.uniform(0.0, 100.0), -rng.uniform(0.0, 5e5), rng.uniform(0.0, 5e6)))
        text = f"{number:{',' if of.thousands else ''}.{rng.choice(of.digits)}f}"
        made.meant_numbers.append(math.nan if missing else float(text.replace(",", "")))
        text = text.translate({ord("."): of.decimal, ord(","): of.thousands})
        made.numbers.append(of.null if missing else _dressed(of, text))
        day = rng.randint(1, 12 if of.first_days else 28)
        instant = datetime(2013, rng.randint(1, 12), day, rng.randint(0, 23), rng.randint(0, 59), tzinfo=UTC)
        missing = rng.random() < 0.2 and len(made.times) > 3 * made.times.count(of.null)
        text, meant = _time(of, instant + timedelta(seconds=rng.randint(0, 59)))
        made.times.append(of.null if missing else text)
        made.meant_times.append(None if missing else meant)
    return made


def _dressed(of: Dialect, text: str) -> str:
    """A number with its sign and unit."""
    digits, below = text.removeprefix("-"), text.startswith("-")
    digits = of.unit + digits if of.unit in _BEFORE else digits + of.unit
    if below and of.behind and not of.brackets:
        return digits + of.minus
    return f"({digits})" if below and of.brackets else of.minus * below + digits


def _time(of: Dialect, instant: datetime) -> tuple[str, tuple[int, ...]]:
    """A time as text, and its month, day, hour and minute in the zone of the map."""
    home = ZoneInfo("America/New_York")
    zones = {
        "": UTC,
        "Z": UTC,
        "local": home,
        "+05:30": ZoneInfo("Asia/Kolkata"),
        "-0400": ZoneInfo("Etc/GMT+4"),
    }
    if of.date == "%s":
        text, local = str(int(instant.timestamp())), instant
    else:
        local = instant if of.first_days else instant.astimezone(zones[of.offset])
        local = local.replace(day=1) if of.date in ("%b-%Y", "%b-%y") else local
        text = local.strftime(of.date + of.clock)
        if of.clock and of.offset and not of.first_days:
            text += (
                "Z"
                if of.offset == "Z"
                else local.strftime("%z")
                if of.offset == "-0400"
                else local.isoformat()[-6:]
            )
    with_offset = of.date == "%s" or (of.clock and of.offset and not of.first_days)
    if with_offset and of.zone != "keep":
        local = local.astimezone(ZoneInfo(of.zone))
    shown = local if of.clock or of.date == "%s" else local.replace(hour=0, minute=0)
    return text, (shown.month, shown.day, shown.hour, shown.minute)


def written(of: Dialect, values: Table) -> bytes:
    """The bytes of the file."""
    rows = [
        ("n", "t", "name"),
        *zip(values.numbers, values.times, ["é" + str(i) for i in range(len(values.times))], strict=True),
    ]
    lines = (of.delimiter.join(_field(of, one) for one in row) for row in rows)
    return (of.line_end.join(lines) + of.line_end).encode(of.encoding)


def _field(of: Dialect, text: str) -> str:
    return f'"{text}"' if of.quotes == "all" or of.delimiter in text else text


def read(of: Dialect, path: Path, jobs: int) -> np.ndarray:
    """Return the numbers, months, days, hours and minutes that a map fitted on the file reads."""
    parts = ("month", "day", "hour", "minute")
    steps = [
        {"kind": "date_parts", "columns": ["t"], "parts": parts, "timezone": of.zone},
        {"kind": "impute", "strategy": "constant", "value": -1.0},
    ]
    config = load_config({"dtype": "float64", "chunk_rows": 7, "steps": steps})
    with InputOptions(**of.options).open(parse_location(path)) as source:
        fm = fit_reader(config, source, None)
    target = path.with_suffix(".npy")
    kafeat.transform(path, target, model=fm, delimiter=of.delimiter, jobs=jobs)
    features: np.ndarray = np.load(target)
    return features


def judge(of: Dialect, values: Table, path: Path, jobs: int) -> str:
    """`right`, or why the table is refused; anything else in capitals."""
    path.write_bytes(written(of, values))
    meant = np.array([
        [-1.0 if math.isnan(number) else number, *(time or (-1.0,) * 4)]
        for number, time in zip(values.meant_numbers, values.meant_times, strict=True)
    ])  # fmt: skip
    reasons = of.unclear(values)
    try:
        got = read(of, path, jobs)
    except KafeatError as error:
        reason = next((reason for reason in reasons if reason in str(error)), None)
        remedied = any(word in str(error) for word in ("--", "write"))
        named = str(path) in str(error)
        return f"refused: {reason}" if reason and remedied and named else f"REFUSED: {error}"
    if got.shape != meant.shape or (got != meant).any():
        return f"WRONG: {got.tolist()}, expected {meant.tolist()}"
    return "right"


def oracle(of: Dialect, values: Table, path: Path) -> str:
    """`same` if other readers, which are told the dialect, read the numbers as they are meant."""
    names = {"sep": of.delimiter, "encoding": of.encoding.replace("-sig", "")}
    dressed = of.thousands or of.unit or of.brackets or of.behind or of.minus != "-"
    more = {"dtype": str} if dressed else {"decimal": of.decimal}
    frame = pd.read_csv(path, na_values=[of.null], keep_default_na=False, **names, **more)
    column = frame[frame.columns[0]]
    if dressed:
        column = (
            column.str.replace(of.unit or "\0", "")
            .str.replace(of.thousands or "\0", "")
            .str.replace(of.minus, "-")
        )
        column = pd.to_numeric(
            column.str.replace(r"\((.*)\)|(.+)-$", r"-\1\2", regex=True).str.replace(of.decimal, ".")
        )
    found = {"pandas": column.to_numpy(float)}
    if importlib.util.find_spec("duckdb") and of.encoding in ("utf-8", "utf-8-sig") and not dressed:
        import duckdb

        rows = duckdb.read_csv(
            io.BytesIO(path.read_bytes()), sep=of.delimiter, decimal=of.decimal, na_values=[of.null, ""], header=True,
            dtype={"n": "DOUBLE", "t": "VARCHAR", "name": "VARCHAR"},
        ).fetchall()  # fmt: skip
        found["DuckDB"] = np.array([math.nan if row[0] is None else row[0] for row in rows])
    for name, numbers in found.items():
        if not np.array_equal(numbers, np.array(values.meant_numbers), equal_nan=True):
            return f"DIFFERENT from {name}: {numbers.tolist()}, expected {values.meant_numbers}"
    return "same"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng, found = random.Random(asked.seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kafeat-fuzz-") as folder:
        for _ in range(asked.files):
            of = dialect(rng)
            values, path = table(rng, of), Path(folder, "in.csv")
            jobs = rng.choice((1, 2))
            verdicts = [judge(of, values, path, jobs), oracle(of, values, path)]
            if verdicts[0].startswith("refused") and not of.told:
                again = judge(replace(of, told=True), values, path, jobs)
                verdicts += ["read with the remedy" if again == "right" else f"NO REMEDY: {again}"]
            for verdict in verdicts:
                found[verdict if verdict.startswith("refused") else verdict.partition(":")[0]] += 1
                if verdict[:2].isupper():
                    print(f"{of}\n{values}\n  {verdict}", flush=True)
    print(", ".join(f"{verdict}: {n:,}" for verdict, n in found.most_common()))
    sys.exit(any(verdict[:2].isupper() for verdict in found))


if __name__ == "__main__":
    main()
