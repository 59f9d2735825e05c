"""What a fit keeps of the rows that it reads, and the map that is learned from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import Chain
from kafeat.config import Config
from kafeat.contract.sparse_rows import Rows, SparseRows, dense
from kafeat.contract.step import DOUBLE, Sample
from kafeat.errors import DataError, InvalidValueError, UsageError, quoted, spell_row
from kafeat.evaluation.task import task_of
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.numbers import is_number, is_text, to_doubles
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.readers.dataset import DatasetReader
from kafeat.io.readers.memory import reader_of
from kafeat.io.readers.open import open_reader
from kafeat.io.storage.uri import name_of
from kafeat.io.writers.passthrough import decoded
from kafeat.jobs.fit.listener import SILENT, Listener
from kafeat.jobs.fit.search import settle
from kafeat.jobs.fit.spreads import spread_warnings
from kafeat.maths.row_sample import RowSample, smallest
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import Origin, Provenance, Search, printable
from kafeat.runtime.column_ranges import ColumnRanges
from kafeat.runtime.ordered_map import prefetch
from kafeat.types import Array, Floats, Mask

_LEAST_ROWS, _MOST_NUMBERS = 256, 1 << 25
_OF_MISSING = "; impute as the first step of the config fills in missing values"


@dataclass
class SampledFit:
    """What a fit keeps of the rows that it is shown, from one source or several after each other, and learns from.

    However the rows are cut into sources, the sample is the same, and so is the map.
    """

    config: Config
    columns: Columns
    chosen: RowSample
    seen: ColumnRanges

    @classmethod
    def nothing(cls, config: Config, columns: Columns) -> Self:
        """Before the first row."""
        size = None if config.fit_rows == "all" else config.fit_rows
        return cls(config, columns, RowSample(config.seed, size), ColumnRanges.nothing(columns.n_features))

    def read(
        self,
        source: Reader,
        columns: Columns,
        label: str | None = None,
        given: Array | None = None,
        *,
        split: str | None = None,
        held_out: Array | None = None,
        listener: Listener = SILENT,
    ) -> None:
        """Show it the rows of a source, whose columns stand in `columns`; every row that is read is checked.

        The labels are a column, or an array `given` (n_rows,). Rows that `held_out` names are not taken, or else those
        of test in the column `split`. What is refused leaves it with a part of the source. Of a data set whose rows can
        be found, only the blocks that hold rows of the sample are read.
        """
        if given is not None and given.shape != (source.rows,):
            raise UsageError(f"label: expected an array of shape ({source.rows},), got {given.shape}")
        config, first = self.config, self.chosen.n_rows
        label_of = None if label is None else Labels(label)
        chosen_here = split if held_out is None else None
        keep = [name for name in (label, chosen_here) if name is not None]
        all_count = held_out is None and split is None
        few = self._few(source, columns, keep) if all_count and not first else None
        # What becomes of a row does not depend on its chunk here; of sparse ones whole chunks may become dense.
        height = min(config.chunk_rows, max(_LEAST_ROWS, _MOST_NUMBERS // columns.n_features))
        chunks = source.chunks(columns, keep, height) if few is None else few
        for chunk, X in matrices(chunks, DOUBLE, _OF_MISSING):
            offsets = self.chosen.choose(first + chunk.start, chunk.rows)
            if all_count:
                self.seen = self.seen.adding(X)
            else:
                train = ~_left_out(chunk, held_out, split)
                self.seen = self.seen.adding(X[train])
                offsets = offsets[train[offsets]]
                if chosen_here is not None and not isinstance(X, SparseRows):
                    columns.use(X[train])
            labels = None
            if label_of is not None:
                labels = label_of.read(chunk)[offsets]
            elif given is not None:
                labels = given[chunk.start + offsets]
            self.chosen.add(first + chunk.start, chunk.rows, offsets, dense(X[offsets]), labels)
            listener.rows(chunk.rows)
        if few is not None and source.rows is not None:
            self.chosen.n_rows = source.rows

    def _few(self, source: Reader, columns: Columns, keep: Sequence[str]) -> Iterator[Chunk] | None:
        size, rows = self.config.fit_rows, source.rows if isinstance(source, DatasetReader) else None
        if not isinstance(source, DatasetReader) or size == "all" or rows is None or size >= rows:
            return None
        wanted = smallest(self.config.seed, rows, size)
        return source.chunks_with(columns, keep, self.config.chunk_rows, wanted)

    def copied(self) -> Self:
        """One that can be shown more rows without a change to this one."""
        return replace(self, chosen=self.chosen.copied())

    def learn(
        self,
        place: str,
        digest: str,
        label: str | None = None,
        *,
        split: str | None = None,
        final: bool = True,
        locate: Callable[[int], tuple[str, int]] | None = None,
        listener: Listener = SILENT,
    ) -> FeatureMap:
        """The map of the rows so far; `place` and `digest` say what they are. If it is not `final`, more may come.

        `locate` tells the file of a row, where it is not `place`.
        """
        if self.chosen.empty:
            asked = "row to fit on" if split is None else "row of train"
            which = "" if split is None else f"split {quoted(split)}: "
            raise DataError(f"{place}: {which}expected at least one {asked}, got none")
        config = self.config
        rows, X, labels = self.chosen.result()
        # Codes of categories are put in order in place.
        X = np.ascontiguousarray(X) if final else X.copy()
        columns = self.columns.settled(X)
        sample = Sample(
            X,
            labels,
            self.chosen.n_rows,
            names=columns.names,
            n_categories=columns.n_categories,
            dtype=np.dtype(config.dtype),
        )
        given, given_origins = read_given(config, columns, label)
        sample = replace(sample, given=given)
        try:
            with one_blas_thread():
                chain, searches = self._chain(place, sample, listener)
        except InvalidValueError as refused:
            row = int(rows[refused.row])
            file, row = (place, row) if locate is None else locate(row)
            raise InvalidValueError(row, refused.column, refused.problem).located(
                file, columns.names
            ) from None
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        provenance = Provenance(
            sources=[Origin(name=printable(name_of(place)), rows=sample.n_rows, sha256=digest)],
            rows_fitted=len(sample.X),
            label=None if label is None else printable(label),
            config_sha256=config.digest(),
            given=given_origins,
            searches=searches,
            split=None if split is None else printable(split),
        )
        seen = _of_categories(self.seen, columns)
        return FeatureMap(chain, columns, config.dtype, config.chunk_rows, config, provenance, seen=seen)

    def _chain(self, place: str, sample: Sample, listener: Listener) -> tuple[Chain, list[Search]]:
        """The chain that is fitted on the sample, and what was searched for it."""
        config = self.config

        def begins(number: int, X: Floats) -> None:
            step, before = config.steps[number], config.steps[:number]
            listener.phase(f"fitting step {number + 1} of {len(config.steps)}: {step.kind}")
            if all(one.spreads == "keeps" for one in before):
                names = sample.names if all(one.columnwise for one in before) else None
                for doubt in spread_warnings(step, X, names):
                    listener.warn(f"{place}: {doubt}")

        if any(step.searches for step in config.steps):
            listener.phase("choosing sizes from the data")
        steps, searches = settle(config.steps, sample, _stream(config.seed, 3))
        chain = Chain.fit(steps, sample, _stream(config.seed, 1), begins)
        if config.prune is not None:
            listener.phase("pruning outputs")
            chain = replace(chain, outputs=_pruned(chain, sample, config.prune.keep))
        return chain, searches


def _stream(seed: int, number: int) -> np.random.Generator:
    """The random numbers of one purpose."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def _left_out(chunk: Chunk, held_out: Array | None, split: str | None) -> Array:
    """Which rows of a chunk are not to be fitted on."""
    if held_out is not None:
        return held_out[chunk.start : chunk.start + chunk.rows]
    if split is None:
        return np.zeros(chunk.rows, dtype=bool)
    return read_test_rows(chunk, split)


def _of_categories(seen: ColumnRanges, columns: Columns) -> ColumnRanges:
    """Where a feature is a category, all of its codes: only the code of an unknown one lies outside."""
    n = np.array(columns.n_categories)
    return ColumnRanges(np.where(n > 0, 0.0, seen.low), np.where(n > 0, n - 1.0, seen.high))


def _pruned(chain: Chain, sample: Sample, keep: int) -> Array:
    """The outputs that a sparse linear model of the label uses."""
    if sample.label is None:
        raise TypeError("prune: a config without a label has to be refused before the fit")
    try:
        from kafeat.evaluation.prune import MOST_ROWS, sparse_outputs
    except ImportError as error:
        raise UsageError(
            f"prune: expected scikit-learn, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    every = -(-len(sample.X) // MOST_ROWS)
    Z, labels = chain.transform(sample.X[::every]), sample.label[::every]
    return sparse_outputs(Z, task_of(labels).targets(labels), keep)


def matrices(
    chunks: Iterator[Chunk], dtype: np.dtype[Any], of_missing: str = ""
) -> Iterator[tuple[Chunk, Rows]]:
    """Chunks and their features (rows, d), sparse where the source is, read ahead.

    `of_missing` is advice for errors about missing values.
    """
    for chunk in prefetch(chunks, 2):
        yield chunk, chunk.numbers(dtype, of_missing)


def check_label(config: Config, label: object) -> None:
    """Refuse a config that needs a label where there is none: before the data are read."""
    if label is None and config.needs_label:
        place, purpose = next(iter(config.label_needs.items()))
        raise UsageError(f"{place}: expected a label {purpose} (--label COL), got none")


class Labels:
    """Reads the label of one chunk after the other: all of them are numbers, or all are text."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: tuple[str, str] | None = None

    def read(self, chunk: Chunk) -> Array:
        """The labels (rows,) of a chunk: finite numbers or text, none of them empty."""
        values = read_label(chunk, self._name)
        kind = "text" if values.dtype.kind == "O" else "numbers"
        expected, where = self._first = self._first or (kind, chunk.location)
        if kind != expected:
            raise DataError(
                f"{chunk.location}: label {quoted(self._name)}: expected {expected}, as {where} has, got {kind}"
            )
        return values


def read_label(chunk: Chunk, name: str) -> Array:
    """The labels (rows,) of one chunk."""
    values = _values(chunk, name)
    bad = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "O":
        bad = np.array([not value.strip() for value in values], dtype=bool)
    if bad.any():
        row = int(np.argmax(bad))
        got = quoted(values[row]) if values.dtype.kind == "O" else f"{values[row]:g}"
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + row)}, label {quoted(name)}: expected a value, got {got}"
        )
    return values


def _values(chunk: Chunk, name: str) -> Array:
    """Numbers, or an object array of str: what dictionaries and the like stand for."""
    if chunk.passthrough is None:
        raise KeyError(name)
    stored = chunk.passthrough.column(name)
    column = decoded(stored)
    if not (is_number(column.type) or is_text(column.type)):
        raise DataError(
            f"{chunk.location}: label {quoted(name)}: expected numbers or text, got {stored.type}; cast it first"
        )
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + row)}, column {quoted(name)}: expected a value, got null"
        )
    values: Array = column.to_numpy()
    if values.dtype.kind == "O" and is_number(column.type):  # decimals
        return np.concatenate([to_doubles(part) for part in column.chunks])
    return values


def read_test_rows(chunk: Chunk, name: str) -> Mask:
    """Which rows of a chunk the column of train and test says to be test rows."""
    values = read_label(chunk, name)
    test, odd = tested(values)
    if odd is not None:
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + odd)}, split {quoted(name)}: expected train or test, got "
            f"{spell_value(values[odd])}"
        )
    return test


def tested(values: Array) -> tuple[Mask, int | None]:
    """Which of these say test, and the first that says neither test nor train; capitals do not matter."""
    text = np.char.lower(values.astype(str))
    test: Mask = text == "test"
    told = test | (text == "train")
    return test, None if told.all() else int(np.argmin(told))


def spell_value(value: object) -> str:
    """A value of a column of train and test, for messages."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def check_split(split: str | None, label: object) -> None:
    """Refuse a column that is to be both the label and the one of train and test."""
    if split is not None and split == label:
        raise UsageError(f"split: expected another column than the label, got {split}")


def read_given(config: Config, columns: Columns, label: str | None) -> tuple[dict[str, Floats], list[Origin]]:
    """The rows that steps ask for besides the sample, with the columns of the map, and from what they came."""
    found: dict[str, Floats] = {}
    records: list[Origin] = []
    for step in config.steps:
        for name, rows in step.given_rows.items():
            if name in found:
                continue
            with open_reader(rows, None) if isinstance(rows, str) else reader_of(rows) as source:
                names = {field.name for field in source.fields}
                matched = match(source, columns, [label] if label is not None and label in names else [])
                found[name] = _all_rows(source, matched, config)
                file = printable(name_of(name))
                records.append(Origin(name=file, rows=len(found[name]), sha256=source.digest()))
    return found, records


def _all_rows(source: Reader, columns: Columns, config: Config) -> Floats:
    parts: list[Floats] = [np.empty((0, columns.n_features))]
    parts += [dense(X) for _, X in matrices(source.chunks(columns, (), config.chunk_rows), DOUBLE)]
    return np.ascontiguousarray(np.concatenate(parts))
