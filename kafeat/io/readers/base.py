"""The base classes of readers and chunks: named fields, and chunks of rows that start at fixed row numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from kafeat.contract.tile import InputRows, dense, stacked
from kafeat.errors import DataError, InvalidValueError, KafeatError, UsageError, first_line
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.fields import Table, excluding
from kafeat.io.data_set import Keys
from kafeat.io.formats import FORMATS, Format, spelled
from kafeat.io.storage.base import Location
from kafeat.io.storage.files import refused
from kafeat.io.storage.object_store import is_of_transport, unreachable
from kafeat.types import Array, Floats, Mask

if TYPE_CHECKING:
    import pyarrow as pa


def wrong_count(location: str, promised: int, got: int) -> DataError:
    """Return the error for a file with `got` rows that states `promised`. If `got` is larger, it may have more rows."""
    return DataError(
        f"{location}: expected {promised:,} rows, as the file says, got {'more' if got > promised else f'{got:,}'}: "
        "it is damaged, or was cut while it was read"
    )


_OF_MISSING = "; to fill in missing values, make `impute` the first step of the config"
_MOST_TOLD, _MOST_LOOKED_AT = 8, 1000
"""One error lists at most 8 columns with invalid values, and looks for them in the first 1,000 invalid rows."""


@dataclass(eq=False)
class Chunk(ABC):
    """Consecutive rows of a reader, not yet decoded. `matrix` decodes them, in the thread that calls it."""

    location: str
    start: int
    """Row number of the first row, from 0."""
    rows: int
    columns: Columns
    before: int = field(default=0, kw_only=True)
    """Number of rows in earlier files of a data set. `start` counts them, but row numbers in messages do not."""
    picked: Array | None = field(default=None, kw_only=True)
    """The row numbers (rows,) within the file, or None if the rows are consecutive."""
    above: int = field(default=0, kw_only=True)
    """If a pause of the input has split a chunk, the number of its rows that earlier chunks have passed on."""
    added: pa.Table | None = field(default=None, kw_only=True, repr=False)
    """Passthrough columns that `WiderReader` adds. They come before passthrough columns of the reader."""
    pressing: bool = field(default=False, kw_only=True)
    """True if the input pauses after these rows, so that their results should not wait for more rows."""

    def shift(self, rows: int) -> Self:
        """Return the chunk as part of a data set: `rows` is the number of rows in all earlier files."""
        return replace(self, start=self.start + rows, before=self.before + rows)

    @property
    def first_row(self) -> int:
        """Number of the first row within its file."""
        return self.start - self.before

    def row_number(self, row: int) -> int:
        """Return the number of a row of the chunk within its file."""
        return self.first_row + row if self.picked is None else int(self.picked[row])

    def pieces(self, height: int) -> Iterator[Self]:
        """Yield the rows of this chunk in smaller chunks of `height` rows. The last may have fewer."""
        if self.rows <= height:
            yield self
            return
        for start in range(0, self.rows, height):
            numbers = np.arange(self.rows)
            yield self.selected((numbers >= start) & (numbers < start + height))

    def selected(self, rows: Mask) -> Self:
        """Return a chunk of the rows where a mask is true."""
        picked = self.first_row + np.flatnonzero(rows) if self.picked is None else self.picked[rows]
        added = None if self.added is None else self.added.filter(rows)
        return replace(self._filtered(rows), rows=len(picked), picked=picked, added=added)

    @abstractmethod
    def _filtered(self, rows: Mask) -> Self:
        """Return the chunk with only the data of rows where a mask is true. `selected` sets the other attributes."""

    def matrix(self, dtype: np.dtype[Any]) -> Floats:
        """Return the features (rows, n_features) in `dtype`, in any memory order. Raise DataError if one is invalid."""
        return dense(self.numbers(dtype))

    def numbers(self, dtype: np.dtype[Any], fitting: bool = False) -> InputRows:
        """Return the features (rows, n_features), as sparse rows if the reader is sparse.

        Raise DataError with the first invalid value of each column. With `fitting`, its message has more advice.
        """
        X, sound = self.decode(dtype)
        if not sound:
            first: dict[int | str | None, InvalidValueError] = {}
            for invalid in islice(self.invalid_values(X), _MOST_LOOKED_AT):
                first.setdefault(invalid.column, invalid)
            told = [*first.values()][:_MOST_TOLD]
            lines = [f"{self.located(one)}{_OF_MISSING * (fitting and one.missing)}" for one in told]
            odd = [one.named(self.columns.names) or "" for one in told if one.of_text]
            raise DataError("\n".join(lines) + (excluding(odd) if fitting else ""))
        return X

    @abstractmethod
    def decode(self, dtype: np.dtype[Any]) -> tuple[InputRows, bool]:
        """Return the features, and true if all are valid. If not, some entries of the features may not be filled in."""

    @abstractmethod
    def invalid_values(self, X: InputRows) -> Iterator[InvalidValueError]:
        """Yield the first invalid value of each invalid row. First, fill in what `decode` left out of `X`."""

    def located(self, invalid: InvalidValueError) -> DataError:
        """Return the error for an invalid value of this chunk, with its location."""
        return invalid.at(self.row_number(invalid.row)).located(self.location, self.columns.names)

    @abstractmethod
    def cells(self, row: int) -> list[Any]:
        """Return the values of the feature columns of a row, as builtins."""

    def broken_text(self, row: int) -> str | None:
        """Return the text of a row that breaks the format, such as too few fields. Return None for other rows."""
        return None

    @property
    def passthrough(self) -> pa.Table | None:
        """The passthrough columns, or None if none were requested."""
        own, table = self._passthrough, self.added
        if own is None or table is None:
            return own if table is None else table
        for name in own.column_names:
            table = table.append_column(name, own.column(name))
        return table

    @property
    @abstractmethod
    def _passthrough(self) -> pa.Table | None:
        """The passthrough columns that come from the reader, or None if there are none."""


class Wanted(NamedTuple):
    """A request for chunks: the columns to read, and the number of rows in a chunk.

    `keep` names the passthrough columns. With `typed_passthrough`, readers of text infer the types of these columns;
    if it is false, they stay text. A row that breaks the format is an error. But with `set_aside`, it counts as a row
    with an invalid value, if its end can be found.
    """

    columns: Columns
    keep: Sequence[str]
    height: int
    typed_passthrough: bool = True
    set_aside: bool = False

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns.features]


class Reader(Table, ABC):
    """A table that is read in chunks. It is a context manager."""

    seekable: bool = False
    """True if rows can be found without reading earlier rows. Only then `select_rows` works."""
    in_memory: bool = False
    counts_rows: bool = True
    """True if `chunks_of` checks the number of rows against `rows`."""
    sparse: bool = False
    """True if rows are decoded as sparse rows."""
    first: int = 0
    """Number of the first row to read."""
    limit: int | None = None
    """Largest number of rows to read, or None for all rows."""
    origin: tuple[Location, str] | None = None
    """Location and stamp of the file when it was listed or opened. None for a stream or data in memory."""
    notes: Mapping[str, str] = MappingProxyType({})
    """Metadata that kafeat has written to the file, such as `map`, the SHA-256 of the map."""
    format: Format
    """Format of a file or of the first part of a data set."""
    keys: Mapping[str, pa.Scalar] = MappingProxyType({})
    """Columns from names of folders, with one value each: {"year": 2024} for year=2024. They are the last columns."""
    _place: Location

    def add_keys(self, keys: Keys) -> None:
        """Add columns with one value each, such as year=2024, unless the file has them or has no column names."""
        return

    @property
    def rereadable(self) -> bool:
        """True if `chunks` can be called repeatedly; False for a pipe."""
        return True

    def limited(self, limit: int) -> Self:
        """Return a view of the first rows, for a trial.

        Its chunks are those of all rows, but the last is cut. The output of a row does not depend on later rows, so
        the output is the beginning of the complete one. The digest is that of the complete input.
        """
        view = copy(self)
        view.limit, view.seekable = limit, False
        view.rows = None if self.rows is None else min(self.rows, limit)
        return view

    def select_rows(self, start: int, stop: int) -> Self:
        """Return a view of the rows from `start` to `stop` (exclusive), which keep their numbers.

        It shares the open file with this reader.
        """
        if not self.seekable:
            formats = spelled(one.title for one in FORMATS.values() if one.split)
            raise UsageError(
                f"{self.location}: expected {formats}, whose rows can be found directly, got another"
            )
        view = copy(self)
        view.first, view.rows = start, stop - start
        return view

    def blocks(self) -> Array:
        """Return the number of the first row of each block, such as a row group, and then the number of rows."""
        return np.array([0, self.rows or 0])

    def coding(self, names: Iterable[str]) -> Self:
        """Return a view that reads these text columns as Arrow dictionaries, if the format can.

        This saves memory: a small file may repeat a long text in every row. The view shares the open file.
        """
        return self

    def settled(self) -> Self:
        """Return a view whose lists have known widths. For LIBSVM, which stores no width, this reads all rows.

        The view shares the open file with this reader. A stream is first copied to a file.
        """
        return self

    def chunks(self, columns: Columns, keep: Sequence[str], height: int, **how: bool) -> Iterator[Chunk]:
        """Yield chunks of `height` rows (the last may be shorter), from the first row to the last; see `Wanted`."""
        return self.chunks_of(Wanted(columns, keep, height, **how))

    def chunks_of(self, wanted: Wanted) -> Iterator[Chunk]:
        """Yield the requested chunks, at most `limit` rows. Raise DataError if the reader has not `rows` rows."""
        promised, got = self.rows if self.counts_rows else None, 0
        for chunk in self._chunks(wanted):
            if self.limit is not None and chunk.rows > self.limit - got:
                chunk = chunk.selected(np.arange(chunk.rows) < self.limit - got)
            got += chunk.rows
            if promised is not None and got > promised:
                break
            yield chunk
            if got == self.limit:  # stop before the reader makes another chunk
                return
        if promised not in (None, got):
            raise wrong_count(self.location, promised, got)

    def decoded(self, columns: Columns, dtype: np.dtype[Any], height: int) -> InputRows:
        parts = [chunk.numbers(dtype) for chunk in self.chunks(columns, (), height)]
        return stacked(parts) if parts else np.empty((0, columns.n_features), dtype)

    @abstractmethod
    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        """Yield the requested chunks of the file. `chunks_of` applies `limit` and checks the number of rows."""

    def locate(self, row: int) -> tuple[str, int]:
        """Return the file that holds a row, and the number of the row in it."""
        return self.location, row

    @abstractmethod
    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        """Return the schema of the passthrough columns, in the requested order."""

    def digest(self) -> str:
        """Return the SHA-256 of the bytes, in hex."""
        return self._place.digest()

    def check_unchanged(self) -> None:
        """Raise DataError if the file has changed since it was listed or opened."""
        if self.origin is None:
            return
        place, stamp = self.origin
        entry = place.entry()
        if entry is None or entry.stamp != stamp:
            changed = self.error(
                "expected a file that stays as it is, got one that changed while it was read"
            )
            changed.retry = True
            raise changed

    def close(self) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def damage(location: object, expected: str, kinds: tuple[type[Exception], ...]) -> Iterator[None]:
    """Convert exceptions of these kinds into a DataError that the content of the location is not as `expected`.

    But errors of an object store or of the system become a SystemRefusedError, because the content may be fine.
    """
    try:
        yield
    except (KafeatError, GeneratorExit):
        raise
    except kinds as error:
        # ArrowMemoryError is also an ArrowException.
        if isinstance(error, MemoryError) and MemoryError not in kinds:
            raise
        if isinstance(error, OSError) and "://" in str(location) and is_of_transport(error):
            raise unreachable(location, error) from error
        if isinstance(error, OSError) and error.errno:  # pyarrow's errors about damage have no number
            raise refused(location, error) from error
        raise DataError(f"{location}: expected {expected}, got: {first_line(error)}") from error
