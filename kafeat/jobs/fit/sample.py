"""Sample rows of one or several readers, and fit a map on the sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import Chain
from kafeat.config import Config
from kafeat.contract.sparse_rows import Rows, SparseRows, dense
from kafeat.contract.step import DOUBLE, Sample
from kafeat.errors import DataError, InvalidValueError, UsageError, quoted
from kafeat.evaluation.task import task_of
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.readers.dataset import DatasetReader
from kafeat.io.readers.memory import reader_of
from kafeat.io.readers.open import open_reader
from kafeat.io.storage.uri import name_of
from kafeat.jobs.fit.labels import Labels, read_test_rows
from kafeat.jobs.fit.messages import SILENT, Listener
from kafeat.jobs.fit.search import settle
from kafeat.jobs.fit.spreads import spread_warnings
from kafeat.maths.row_sample import RowSample, smallest
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import Origin, Provenance, Search, printable
from kafeat.runtime.column_ranges import ColumnRanges
from kafeat.runtime.ordered_map import prefetch
from kafeat.types import Array, Floats

_LEAST_ROWS, _MOST_NUMBERS = 256, 1 << 25
_OF_MISSING = "; impute as the first step of the config fills in missing values"


@dataclass
class SampledFit:
    """A fit in progress: the sample of all rows read so far, from one reader or several.

    The sample and the map do not depend on how the rows are divided among readers.
    """

    config: Config
    columns: Columns
    chosen: RowSample
    column_ranges: ColumnRanges

    @classmethod
    def empty(cls, config: Config, columns: Columns) -> Self:
        """Return a fit that has read no rows."""
        size = None if config.fit_rows == "all" else config.fit_rows
        return cls(config, columns, RowSample(config.seed, size), ColumnRanges.empty(columns.n_features))

    def read(
        self,
        source: Reader,
        columns: Columns,
        label: str | None = None,
        given_labels: Array | None = None,
        *,
        split: str | None = None,
        held_out: Array | None = None,
        listener: Listener = SILENT,
    ) -> None:
        """Read a source and sample its rows; every row that is read is checked.

        The labels are the column `label` or the array `given_labels` (n_rows,). Rows of the mask `held_out`, or else
        test rows of the column `split`, are not sampled. An error leaves the fit with a part of the source. Of a
        seekable data set only the blocks that hold rows of the sample are read.
        """
        if given_labels is not None and given_labels.shape != (source.rows,):
            raise UsageError(f"label: expected an array of shape ({source.rows},), got {given_labels.shape}")
        config, first = self.config, self.chosen.n_rows
        label_of = None if label is None else Labels(label)
        split_column = split if held_out is None else None
        keep = [name for name in (label, split_column) if name is not None]
        all_count = held_out is None and split is None
        blocks = self._sampled_blocks(source, columns, keep) if all_count and not first else None
        # The height is free, as rows are handled alone. It is bounded, as sparse chunks may become dense.
        height = min(config.chunk_rows, max(_LEAST_ROWS, _MOST_NUMBERS // columns.n_features))
        chunks = source.chunks(columns, keep, height) if blocks is None else blocks
        for chunk, X in matrices(chunks, DOUBLE, _OF_MISSING):
            offsets = self.chosen.choose(first + chunk.start, chunk.rows)
            if all_count:
                self.column_ranges = self.column_ranges.adding(X)
            else:
                train = ~_held_out_rows(chunk, held_out, split)
                self.column_ranges = self.column_ranges.adding(X[train])
                offsets = offsets[train[offsets]]
                if split_column is not None and not isinstance(X, SparseRows):
                    columns.use(X[train])
            labels = None
            if label_of is not None:
                labels = label_of.read(chunk)[offsets]
            elif given_labels is not None:
                labels = given_labels[chunk.start + offsets]
            self.chosen.add(first + chunk.start, chunk.rows, offsets, dense(X[offsets]), labels)
            listener.rows(chunk.rows)
        if blocks is not None and source.rows is not None:
            self.chosen.n_rows = source.rows

    def _sampled_blocks(
        self, source: Reader, columns: Columns, keep: Sequence[str]
    ) -> Iterator[Chunk] | None:
        """Yield only the blocks that hold rows of the sample; None if all rows have to be read."""
        size, rows = self.config.fit_rows, source.rows if isinstance(source, DatasetReader) else None
        if not isinstance(source, DatasetReader) or size == "all" or rows is None or size >= rows:
            return None
        sampled = smallest(self.config.seed, rows, size)
        return source.chunks_with(columns, keep, self.config.chunk_rows, sampled)

    def copy(self) -> Self:
        """Return a copy that can read more rows without a change to this one."""
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
        """Fit the map on the sample so far.

        `place` and `digest` name the data for messages and provenance. If not `final`, more rows may be read later.
        `locate` returns the file and row of a row of the data set, for messages.
        """
        if self.chosen.empty:
            kind = "row to fit on" if split is None else "row of train"
            column = "" if split is None else f"split {quoted(split)}: "
            raise DataError(f"{place}: {column}expected at least one {kind}, got none")
        config = self.config
        rows, X, labels = self.chosen.result()
        # `settled` reorders the codes of categories in place.
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
        given, given_origins = read_given_rows(config, columns, label)
        sample = replace(sample, given=given)
        with _naming_rows(place, rows, columns, locate), one_blas_thread():
            chain, searches = self._chain(place, sample, listener)
        provenance = Provenance(
            sources=[Origin(name=printable(name_of(place)), rows=sample.n_rows, sha256=digest)],
            rows_fitted=len(sample.X),
            label=None if label is None else printable(label),
            config_sha256=config.digest(),
            given=given_origins,
            searches=searches,
            split=None if split is None else printable(split),
        )
        column_ranges = _with_category_ranges(self.column_ranges, columns)
        return FeatureMap(
            chain, columns, config.dtype, config.chunk_rows, config, provenance, column_ranges=column_ranges
        )

    def _chain(self, place: str, sample: Sample, listener: Listener) -> tuple[Chain, list[Search]]:
        """Fit the chain on the sample; return it and the searches for its sizes."""
        config = self.config

        def on_step(number: int, X: Floats) -> None:
            step, before = config.steps[number], config.steps[:number]
            listener.phase(f"fitting step {number + 1} of {len(config.steps)}: {step.kind}")
            if all(one.spreads == "keeps" for one in before):
                names = sample.names if all(one.columnwise for one in before) else None
                for message in spread_warnings(step, X, names):
                    listener.warn(f"{place}: {message}")

        if any(step.searches for step in config.steps):
            listener.phase("choosing sizes from the data")
        steps, searches = settle(config.steps, sample, _stream(config.seed, 3))
        chain = Chain.fit(steps, sample, _stream(config.seed, 1), on_step)
        if config.prune is not None:
            listener.phase("pruning outputs")
            chain = replace(chain, outputs=_pruned(chain, sample, config.prune.keep))
        return chain, searches


@contextmanager
def _naming_rows(
    place: str, rows: Array, columns: Columns, locate: Callable[[int], tuple[str, int]] | None
) -> Iterator[None]:
    """Name the file, row and column of errors about the sample, whose rows have the numbers `rows` in the data."""
    try:
        yield
    except InvalidValueError as refused:
        row = int(rows[refused.row])
        file, row = (place, row) if locate is None else locate(row)
        raise InvalidValueError(row, refused.column, refused.problem).located(file, columns.names) from None
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


def _stream(seed: int, number: int) -> np.random.Generator:
    """Return the random number generator of one purpose."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def _held_out_rows(chunk: Chunk, held_out: Array | None, split: str | None) -> Array:
    """Return true for the rows of a chunk that are not to be fitted on."""
    if held_out is not None:
        return held_out[chunk.start : chunk.start + chunk.rows]
    if split is None:
        return np.zeros(chunk.rows, dtype=bool)
    return read_test_rows(chunk, split)


def _with_category_ranges(column_ranges: ColumnRanges, columns: Columns) -> ColumnRanges:
    """Set the ranges of categorical features to all of their codes, so that only unknown ones lie outside."""
    n = np.array(columns.n_categories)
    return ColumnRanges(np.where(n > 0, 0.0, column_ranges.low), np.where(n > 0, n - 1.0, column_ranges.high))


def _pruned(chain: Chain, sample: Sample, keep: int) -> Array:
    """Return the outputs that a sparse linear model of the label uses."""
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
    """Yield chunks and their features (rows, d), read ahead; these are sparse if the source is.

    `of_missing` is advice for errors about missing values.
    """
    for chunk in prefetch(chunks, 2):
        yield chunk, chunk.numbers(dtype, of_missing)


def read_given_rows(
    config: Config, columns: Columns, label: str | None
) -> tuple[dict[str, Floats], list[Origin]]:
    """Read the rows that the config gives to steps, such as landmarks; return them and their origins."""
    given: dict[str, Floats] = {}
    origins: list[Origin] = []
    for step in config.steps:
        for name, rows in step.given_rows.items():
            if name in given:
                continue
            with open_reader(rows, None) if isinstance(rows, str) else reader_of(rows) as source:
                names = {field.name for field in source.fields}
                matched = match(source, columns, [label] if label is not None and label in names else [])
                given[name] = _all_rows(source, matched, config)
                file = printable(name_of(name))
                origins.append(Origin(name=file, rows=len(given[name]), sha256=source.digest()))
    return given, origins


def _all_rows(source: Reader, columns: Columns, config: Config) -> Floats:
    parts: list[Floats] = [np.empty((0, columns.n_features))]
    parts += [dense(X) for _, X in matrices(source.chunks(columns, (), config.chunk_rows), DOUBLE)]
    return np.ascontiguousarray(np.concatenate(parts))
