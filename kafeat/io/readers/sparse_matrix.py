"""Readers of sparse matrices (CSR), in SciPy's `.npz` files and in memory, and the chunks of sparse rows."""

from __future__ import annotations

import hashlib
import zipfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafeat.contract.tile import InputRows, SparseRows
from kafeat.errors import DataError, InvalidValueError, KafeatError, UsageError
from kafeat.io.columns.fields import Field, indices_of
from kafeat.io.columns.numbers import spell_problem
from kafeat.io.readers.base import Chunk, Reader, Wanted, damage
from kafeat.io.readers.npy import read_header
from kafeat.io.storage.base import Location
from kafeat.io.storage.files import read_full
from kafeat.types import Array, Mask

FEATURES = "features"


@dataclass(frozen=True, eq=False)
class Entries:
    """Sparse rows (CSR): the entries of row i are those from `starts[i]` to `starts[i + 1]`, in ascending columns.

    `columns` count from 0. `broken` maps the number of an invalid row to its problem and its text. `labels` are (n,)
    with NaN for invalid rows, or empty for formats without labels.
    """

    values: npt.NDArray[np.float64]
    columns: Array
    starts: Array
    broken: dict[int, tuple[str, str]] = field(default_factory=dict)
    labels: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


def features_field(width: int | None, spelled: str) -> Field:
    """Return the field of the one column that contains all features as a list."""
    return Field(FEATURES, "list", width, spelled)


class SparseChunk(Chunk):
    """A chunk of sparse rows. A row with an entry beyond the width of the map is invalid."""

    first_column: ClassVar[int]
    """The number that the format gives to the first column: 0 or 1."""

    @abstractmethod
    def read(self) -> Entries:
        """Return the entries of the chunk. It is called only once."""

    @cached_property
    def entries(self) -> Entries:
        """The entries of all rows. A row with a column beyond the width of the map is `broken`, and has no entries."""
        entries, width = self.read(), self.columns.n_features
        beyond = entries.columns >= width
        if not self.columns.features or not beyond.any():
            return entries
        row_of = np.repeat(np.arange(self.rows), np.diff(entries.starts))
        broken = dict(entries.broken)
        for row in np.unique(row_of[beyond]).tolist():
            last = int(entries.columns[entries.starts[row + 1] - 1]) + self.first_column
            problem = (
                f"expected no index above {width - 1 + self.first_column}, the width of the map, got {last}"
            )
            broken[row] = problem, self._spelled(entries, row)
        keep = ~np.isin(row_of, list(broken))
        counts = np.bincount(row_of[keep], minlength=self.rows)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return Entries(entries.values[keep], entries.columns[keep], starts, broken)

    def decode(self, dtype: np.dtype[Any]) -> tuple[InputRows, bool]:
        entries = self.entries
        with np.errstate(over="ignore", invalid="ignore"):
            values = entries.values.astype(dtype)
        X = SparseRows(values, entries.columns, entries.starts, self.columns.n_features)
        return X, not entries.broken and not self._bad(X).any()

    def _bad(self, X: SparseRows) -> Array:
        return np.isinf(X.values) if self.columns.missing else ~np.isfinite(X.values)

    def invalid_values(self, X: InputRows) -> Iterator[InvalidValueError]:
        entries = self.entries
        if not isinstance(X, SparseRows):
            raise TypeError("expected sparse rows from decode")
        bad = np.flatnonzero(self._bad(X))
        rows, first = np.unique(X.row_of[bad], return_index=True)
        entry_of = dict(zip(rows.tolist(), bad[first].tolist(), strict=True))
        for row in sorted({*entry_of, *entries.broken}):
            if row in entries.broken:
                yield InvalidValueError(row, None, entries.broken[row][0])
                continue
            entry = entry_of[row]
            problem = spell_problem(float(entries.values[entry]), None, 0, X.dtype)
            yield InvalidValueError(row, int(X.columns[entry]), problem)

    def cells(self, row: int) -> list[Any]:
        return [self._spelled(self.entries, row)] if self.columns.features else []

    def broken_text(self, row: int) -> str | None:
        broken = self.entries.broken.get(row)
        return None if broken is None else broken[1]

    def _spelled(self, entries: Entries, row: int) -> str:
        part = slice(entries.starts[row], entries.starts[row + 1])
        pairs = zip(entries.columns[part].tolist(), entries.values[part].tolist(), strict=True)
        return " ".join(f"{column + self.first_column}:{value!r}" for column, value in pairs)


def refuse_to_copy(location: str, names: list[str]) -> None:
    """Raise UsageError if the column of sparse features is one of the passthrough columns."""
    if FEATURES in names:
        raise UsageError(f"{location}: --keep: expected columns besides the sparse features, got {FEATURES}")


_MOST = 2**31 - 1
# NumPy and zipfile raise many kinds of exceptions for an invalid file.
_damage = partial(damage, expected="a sparse matrix of scipy.sparse.save_npz", kinds=(Exception,))


class CsrReader(Reader):
    """A reader of the rows of a sparse matrix."""

    positional = True
    sparse = True

    def __init__(self, location: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        if dtype.kind not in "fiub" or dtype.shape:
            raise DataError(f"{location}: expected a sparse matrix of numbers, got dtype {dtype}")
        rows, width = shape
        if not (0 <= rows <= 2**62 and 1 <= width <= _MOST):
            raise DataError(f"{location}: expected from 1 to {_MOST:,} columns, got the shape {shape}")
        self.location, self.rows, self._n_rows, self._width = location, rows, rows, width
        self.fields = (features_field(width, f"sparse rows of {dtype}"),)

    @abstractmethod
    def _blocks(self, height: int) -> Iterator[tuple[Array, Array, Array]]:
        """Yield values, columns and starts (CSR) of `height` rows at a time."""

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        indices_of(self, wanted.names)
        self.passthrough_schema(wanted.keep)
        for number, (values, places, starts) in enumerate(self._blocks(wanted.height)):
            start, rows = number * wanted.height, len(starts) - 1
            yield CsrChunk(self.location, start, rows, wanted.columns, values, places, starts, self._width)

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        indices_of(self, keep)
        refuse_to_copy(self.location, list(keep))
        return pa.schema([])


@dataclass(eq=False)
class CsrChunk(SparseChunk):
    """Some rows of `width` columns. Entries at the same position are added, as SciPy does."""

    values: Array
    places: Array
    starts: Array
    width: int
    first_column = 0

    _passthrough = None

    def _filtered(self, rows: Mask) -> Self:
        lengths = np.diff(self.starts)
        entries = np.repeat(rows, lengths)
        starts = np.concatenate([[0], np.cumsum(lengths[rows])])
        return replace(self, values=self.values[entries], places=self.places[entries], starts=starts)

    def read(self) -> Entries:
        from scipy.sparse import csr_array

        with np.errstate(invalid="ignore"):  # NaNs are rejected later
            values = self.values.astype(np.float64)
        rows = csr_array((values, self.places, self.starts), shape=(self.rows, self.width))
        if not rows.has_canonical_format:
            rows = rows.copy()  # sum_duplicates works in place, and the indices belong to the reader
            rows.sum_duplicates()
        return Entries(rows.data, rows.indices, rows.indptr)


class MemoryCsr(CsrReader):
    """A reader of a sparse matrix of SciPy, which must not change while it is read."""

    in_memory = True

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix.tocsr()
        super().__init__("<array>", self._matrix.shape, self._matrix.dtype)

    def _blocks(self, height: int) -> Iterator[tuple[Array, Array, Array]]:
        m = self._matrix
        for first in range(0, self._n_rows, height):
            starts = m.indptr[first : min(first + height, self._n_rows) + 1]
            entries = slice(starts[0], starts[-1])
            yield m.data[entries], m.indices[entries], starts - starts[0]

    def digest(self) -> str:
        m = self._matrix
        seen = hashlib.sha256(f"csr {m.data.dtype.str} {m.shape} ".encode())
        for part in (m.indptr.astype(np.int64), m.indices.astype(np.int64), m.data):
            seen.update(np.ascontiguousarray(part).data)
        return seen.hexdigest()


class NpzReader(CsrReader):
    """A reader of a file of `scipy.sparse.save_npz`. It reads the three arrays in step, some rows at a time."""

    def __init__(self, location: Location) -> None:
        self._place, self.location = location, location.source
        self._file = location.open_random()
        try:
            with _damage(self.location):
                self._open()
        except KafeatError:
            self._file.close()
            raise

    def _open(self) -> None:
        location = self.location
        self._zip = zipfile.ZipFile(self._file)
        names = set(self._zip.namelist())
        if not {"format.npy", "shape.npy", "data.npy"} <= names:
            raise DataError(
                f"{location}: expected a sparse matrix of scipy.sparse.save_npz, got a zip without one; "
                "dense arrays are read from .npy"
            )
        kind = _Member(location, self._zip, "format").small()
        if kind.dtype.kind not in "SU" or kind.item() not in (b"csr", "csr"):
            raise DataError(f"{location}: expected a CSR matrix, got {kind.item()!r}; save its .tocsr()")
        shape = _Member(location, self._zip, "shape").small()
        if shape.dtype.kind not in "iu" or shape.shape != (2,):
            raise DataError(f"{location}: expected a shape of two whole numbers, got {shape!r}")
        super().__init__(location, (int(shape[0]), int(shape[1])), _Member(location, self._zip, "data").dtype)
        self._check(*self._members())

    def _members(self) -> tuple[_Member, _Member, _Member]:
        starts, places, values = (
            _Member(self.location, self._zip, name) for name in ("indptr", "indices", "data")
        )
        return starts, places, values

    def _blocks(self, height: int) -> Iterator[tuple[Array, Array, Array]]:
        with _damage(self.location):
            starts, places, values = self._members()
            last = starts.take(1).astype(np.int64)
            if last[0] != 0:
                raise self.error(f"indptr: expected to begin with 0, got {last[0]}")
            for first in range(0, self._n_rows, height):
                more = starts.take(min(height, self._n_rows - first)).astype(np.int64)
                ends = np.append(last, more)
                # Not np.diff: numbers from 2**63 on are negative as int64, and their differences could overflow.
                if (ends[1:] < ends[:-1]).any() or ends[-1] > values.size:
                    raise self.error(
                        f"indptr: expected ascending numbers up to {values.size:,}, got others "
                        f"in rows {first + 1} to {first + len(ends) - 1}"
                    )
                n = int(ends[-1] - ends[0])
                block = places.take(n).astype(np.int64)
                if n and not 0 <= block.min() <= block.max() < self._width:
                    raise self.error(
                        f"indices: expected columns from 0 to {self._width - 1}, got others "
                        f"in rows {first + 1} to {first + len(ends) - 1}"
                    )
                yield values.take(n), block, ends - ends[0]
                last = ends[-1:]

    def _check(self, starts: _Member, places: _Member, values: _Member) -> None:
        if starts.dtype.kind not in "iu" or places.dtype.kind not in "iu":
            raise self.error(
                f"expected whole numbers in indptr and indices, got {starts.dtype} and {places.dtype}"
            )
        if starts.size != self._n_rows + 1 or places.size != values.size:
            raise self.error(
                f"expected {self._n_rows + 1:,} numbers in indptr and as many in indices as in data, "
                f"got {starts.size:,}, {places.size:,} and {values.size:,}"
            )

    def close(self) -> None:
        self._file.close()


class _Member:
    """An array in the zip, read from its beginning. The length in its header is not trusted."""

    def __init__(self, location: str, archive: zipfile.ZipFile, name: str) -> None:
        self._location, self._name = location, name
        self._file = archive.open(f"{name}.npy")
        self.shape, _, self.dtype = read_header(self._file)
        if len(self.shape) > 1:
            raise DataError(
                f"{location}: {name}: expected a vector of numbers, got {self.dtype} of shape {self.shape}"
            )
        self.size = int(self.shape[0]) if self.shape else 1

    def small(self) -> Array:
        """Return the whole array. Raise DataError if it has more than 256 bytes."""
        if self.size * self.dtype.itemsize > 256:
            raise DataError(f"{self._location}: {self._name}: expected a few bytes, got {self.size:,} values")
        return self.take(self.size).reshape(self.shape)

    def take(self, n: int) -> Array:
        """Return the next `n` numbers."""
        data = read_full(self._file, n * self.dtype.itemsize)  # type: ignore[arg-type]  # it only has to read
        if len(data) < n * self.dtype.itemsize:
            raise DataError(
                f"{self._location}: {self._name}: expected {n:,} more values, got the end of the array"
            )
        return np.frombuffer(data, self.dtype)
