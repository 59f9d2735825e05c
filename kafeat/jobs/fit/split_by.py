"""Read the groups or times by which rows are held out wherever fitting chooses by a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from kafeat.config import Config
from kafeat.errors import DataError, UsageError, quoted, spell_row
from kafeat.io.columns.fields import fields_of, require
from kafeat.io.columns.selection import date_form
from kafeat.io.columns.time_forms import spell_time_problem
from kafeat.io.columns.times import column_seconds
from kafeat.io.columns.values import bits_or_text
from kafeat.io.readers.base import Chunk, Reader
from kafeat.maths.row_sample import mixed
from kafeat.types import Array, Floats


class SplitBy(NamedTuple):
    """The column of groups or, if `ordered`, of times, by which rows are held out."""

    ordered: bool
    column: str

    @classmethod
    def of(cls, config: Config) -> SplitBy | None:
        """Return the column that `split_by` of the config names, or None if rows are held out at random."""
        if config.split_by is None:
            return None
        way, _, column = config.split_by.partition(":")
        return cls(way == "time", column)


def with_split_by(config: Config, split_by: str | None) -> Config:
    """Return the config with `split_by`, such as `group:patient`. None leaves the config unchanged."""
    if split_by is None:
        return config
    try:
        return Config.model_validate({**config.to_plain(), "split_by": split_by})
    except ValueError:
        raise UsageError(f"split_by: expected group:COL or time:COL, got {split_by!r}") from None


def with_selection(config: Config, exclude: str | Sequence[str], only: str | Sequence[str]) -> Config:
    """Return the config without the columns in `exclude`, or with only those in `only`: lists, or texts like `a,b`."""
    without, chosen = (
        [str(name).strip() for name in (given.split(",") if isinstance(given, str) else given)]
        for given in (exclude, only)
    )
    if without and chosen:
        raise UsageError("--exclude: expected no --only with it, got both")
    if not (without or chosen):
        return config
    if "" in (*without, *chosen):
        raise UsageError(f"--{'exclude' if without else 'only'}: expected names of columns, got an empty one")
    include = chosen or [name for name in config.columns.include if name not in without]
    columns = {"include": include} if include else {"exclude": [*config.columns.exclude, *without]}
    columns = {key: list(dict.fromkeys(names)) for key, names in columns.items()}
    return Config.model_validate({**config.to_plain(), "columns": columns})


def refuse_shared(option: str, column: str | None, others: Sequence[str | None]) -> None:
    """Refuse a column of weights or groups that is also the label or the split."""
    if column is not None and column in others:
        raise UsageError(
            f"{option}: expected another column than those of the label and the split, got {quoted(column)}"
        )


class KeyReader:
    """Reads a key for each row: its time in seconds or, for groups, a hash from 0 to 1 that is equal in a group."""

    def __init__(self, split_by: SplitBy, source: Reader, seed: int) -> None:
        require(source, [split_by.column], "split_by")
        self._ordered, self._column, self._seed = split_by.ordered, split_by.column, seed
        [field] = fields_of(source, [split_by.column])
        dates = date_form(source, field) if split_by.ordered and field.kind == "text" else ""
        self._dialect = replace(source.asked.dialect, dates=dates)
        self._known: dict[str | None, int] = {}

    def keys(self, chunk: Chunk) -> Floats:
        """Return the keys (rows,) of a chunk's rows."""
        if chunk.passthrough is None:
            raise KeyError(self._column)
        column = chunk.passthrough.column(self._column)
        if not self._ordered:
            bits = bits_or_text(column)
            bits = self._of_text(bits) if bits.dtype.kind == "O" else bits
            return mixed(self._seed, bits) / 2.0**64
        times = column_seconds(column, self._dialect)
        if np.isnan(times).any():
            row = int(np.isnan(times).argmax())
            problem = spell_time_problem(column[row].as_py(), self._dialect)
            raise DataError(
                f"{chunk.location}: {spell_row(chunk.row_number(row))}, column {quoted(self._column)}: {problem}; "
                "split_by needs a time in each row"
            )
        return times

    def _of_text(self, words: Array) -> Array:
        known = self._known
        for word in set(words.tolist()) - known.keys():
            known[word] = int.from_bytes(
                blake2b(
                    b"" if word is None else word.encode("utf-8", "surrogatepass") + b"\0", digest_size=8
                ).digest()
            )
        return np.array([known[word] for word in words.tolist()], dtype=np.uint64)
