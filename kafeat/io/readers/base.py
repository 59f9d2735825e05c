"""What every reader is: named fields, and chunks of rows that start at fixed row numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kafeat.contract.sparse_rows import Rows, dense
from kafeat.errors import DataError, InvalidValueError, UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.field import Field
from kafeat.io.storage.locations import entry_of
from kafeat.types import Array, Floats

if TYPE_CHECKING:
    import pyarrow as pa


def wrong_count(place: str, promised: int, got: int) -> DataError:
    """The error for a file that holds other rows than it promises."""
    return DataError(
        f"{place}: expected {promised:,} rows, as the file says, got {'more' if got > promised else f'{got:,}'}: "
        "it is damaged, or was cut while it was read"
    )


class Chunk(ABC):
    """Consecutive rows of a source, not yet decoded: `matrix` does the work, in whichever thread calls it."""

    start: int
    """Row number of the first row, from 0."""
    rows: int
    before: int = 0
    """Rows of other parts before the file: they count for `start`, and not for what is told of a row."""

    def __init__(self, place: str, start: int, rows: int, columns: Columns) -> None:
        self.place, self.start, self.rows, self.columns = place, start, rows, columns

    def behind(self, rows: int) -> Self:
        """The same chunk, in a data set whose parts before have so many rows."""
        self.start += rows
        self.before += rows
        return self

    @property
    def first_row(self) -> int:
        """Number of the first row in its file."""
        return self.start - self.before

    def matrix(self, dtype: np.dtype[Any]) -> Floats:
        """The features (rows, n_features) in `dtype`, in any memory order; refuses by place what may not stand."""
        return dense(self.numbers(dtype))

    def numbers(self, dtype: np.dtype[Any], of_missing: str = "") -> Rows:
        """The same; sparse where the source is. `of_missing` says what may be done about a missing value."""
        X, sound = self.decode(dtype)
        if not sound:
            mistake = next(self.mistakes(X))
            advice = of_missing if mistake.missing else ""
            raise DataError(f"{self.located(mistake)}{advice}")
        return X

    @abstractmethod
    def decode(self, dtype: np.dtype[Any]) -> tuple[Rows, bool]:
        """The features as they are, and whether all of them may stand; where not, reading may have stopped there."""

    @abstractmethod
    def mistakes(self, X: Rows) -> Iterator[InvalidValueError]:
        """The first mistake of each row that has one; `X`, from `decode`, is complete after the first."""

    def located(self, refused: InvalidValueError) -> DataError:
        """An error of a row of this chunk, for people."""
        return refused.moved(self.first_row).located(self.place, self.columns.names)

    @abstractmethod
    def head(self, rows: int) -> Self:
        """The first rows of this chunk, as a chunk of their own."""

    @abstractmethod
    def cells(self, row: int) -> list[Any]:
        """What stands in the feature columns of a row, as builtins."""

    def broken_text(self, row: int) -> str | None:
        """The text of a row that is none, where the format can tell; such a row has no cells."""
        del row
        return None

    @property
    @abstractmethod
    def kept(self) -> pa.Table | None:
        """The kept columns, or None when none were asked for."""


class Reader(ABC):
    """A table that can be read in chunks. It is a context manager."""

    place: str
    fields: tuple[Field, ...]
    positional: bool = False
    """Columns have no names of their own: c0, c1, ... say where they stand."""
    seekable: bool = False
    """Rows can be found without reading those before: `only` and `blocks` work."""
    untyped: bool = False
    """The kinds of `fields` are a guess from the first rows."""
    rows: int | None = None
    origin: tuple[str, str] | None = None
    """Name and stamp of the file when it was listed or opened; None for what may be read once only, or is no file."""

    @property
    def row_names(self) -> frozenset[str]:
        """Columns that name the rows, as a pandas index does: features only where they are asked for by name."""
        return frozenset()

    @property
    def notes(self) -> Mapping[str, str]:
        """What kafeat wrote beside the rows, if it did: `map`, the SHA-256 of the map, among others."""
        return {}

    def estimated_rows(self) -> int | None:
        """About how many rows there are, where they are not known; None where nothing tells."""
        return self.rows

    def only(self, first: int, behind: int) -> None:
        """From now on, just the rows from `first` to the one before `behind`, which keep their numbers."""
        raise UsageError(
            f"{self.place}: expected Parquet or NPY, whose rows can be found without reading those before, got another"
        )

    def blocks(self) -> Array:
        """Where blocks of rows begin that can be read by themselves, and the number of all rows."""
        return np.array([0, self.rows or 0])

    def set_aside(self) -> None:
        """From now on, rows that break the format are rows with a mistake, where the format knows where they end."""
        return

    def settle(self) -> None:
        """Learn the widths that only all rows tell; what can be read but once is copied for that."""
        return

    def chunks(
        self, columns: Columns, keep: Sequence[str], height: int, *, typed_keep: bool = True
    ) -> Iterator[Chunk]:
        """Chunks of `height` rows (the last may be shorter), from the first row on: as many rows as `rows` tells.

        `typed_keep` matters to sources of text only: whether kept columns get an inferred type.
        """
        promised, got = self.rows, 0
        for chunk in self._chunks(columns, keep, height, typed_keep=typed_keep):
            got += chunk.rows
            if promised is not None and got > promised:
                break
            yield chunk
        if promised not in (None, got):
            raise wrong_count(self.place, promised, got)

    @abstractmethod
    def _chunks(
        self, columns: Columns, keep: Sequence[str], height: int, *, typed_keep: bool
    ) -> Iterator[Chunk]:
        """The chunks as the format hands them over, before their rows are counted."""

    def locate(self, row: int) -> tuple[str, int]:
        """The file that holds a row, and the number of the row in it."""
        return self.place, row

    @abstractmethod
    def kept_fields(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        """The schema of the kept columns, in the order asked for."""

    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of the bytes of the source, in hex."""

    def check_unchanged(self) -> None:
        """Refuse a file that has been written to since it was listed or opened."""
        if self.origin is None:
            return
        name, stamp = self.origin
        entry = entry_of(name)
        if entry is None or entry.stamp != stamp:
            raise DataError(
                f"{self.place}: expected a file that stays as it is, got one that changed while it was read"
            )

    def close(self) -> None:
        """Let go of files."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
