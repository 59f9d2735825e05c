"""Sample rows of one or several readers, and fit a map on the sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import Chain
from kafeat.config import Config
from kafeat.config.model import SearchOptions
from kafeat.contract.folds import RowKeys
from kafeat.contract.memory import require_memory
from kafeat.contract.step import DOUBLE, RowStream, Sample
from kafeat.contract.tile import InputRows, SparseRows, TextRows, contiguous, dense
from kafeat.errors import DataError, InvalidValueError, UsageError, quoted
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import match
from kafeat.io.options import InputOptions
from kafeat.io.readers.base import Chunk, Reader, Wanted
from kafeat.io.readers.dataset import DatasetReader
from kafeat.io.readers.memory import reader_of
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.labels import (
    LabelArgument,
    LabelNames,
    LabelReader,
    has_label,
    label_names,
    plain_names,
    read_label,
    read_test_rows,
    refusal,
)
from kafeat.jobs.fit.messages import SILENT, Listener
from kafeat.jobs.fit.search import Learn, learn_ridge, settle
from kafeat.jobs.fit.split_by import KeyReader, SplitBy
from kafeat.jobs.fit.spreads import spread_warnings
from kafeat.maths.row_sample import RowSample, smallest
from kafeat.maths.task import TaskKind
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import ChosenParameter, Origin, Provenance, printable
from kafeat.runtime.column_ranges import ColumnRanges, FeatureMean
from kafeat.runtime.ordered_map import prefetch
from kafeat.types import Array, Floats, Mask

_LEAST_ROWS, _MOST_NUMBERS = 256, 1 << 25
# The range of weights, so that sums of products of two weights stay within float64.
_WEIGHTS = (1e-100, 1e100)


RowChoice = Callable[[Array, Floats | None], Mask]
"""Selects rows by their numbers (n,) in the data and their keys (n,), which are None without `split_by`."""


@dataclass(frozen=True)
class TrainingData:
    """A source, and its columns of labels, of train and test (`split`), and of weights. None of them is a feature.

    Test rows, and rows that `chosen` does not select, are read but not fitted on.
    """

    source: Reader
    label: LabelArgument = None
    split: str | None = None
    chosen: RowChoice | None = None
    weight: str | None = None
    tested: bool = False
    """True if the test rows of the split are used instead of the training rows."""

    @property
    def all_count(self) -> bool:
        """True if all rows are used for fitting."""
        return self.chosen is None and self.split is None

    def of_rows(self, chosen: RowChoice) -> Self:
        """Return the same data, of which only the rows that `chosen` selects are used."""
        if self.chosen is not None:
            raise TypeError("rows were already selected")
        return replace(self, chosen=chosen)

    def roles(self, split_by: SplitBy | None, weighted: bool = True) -> list[str]:
        """Return the columns that are read in addition to features, each once: weights only if `weighted`."""
        others = (self.split, split_by and split_by.column, self.weight if weighted else None)
        return list(dict.fromkeys([*label_names(self.label), *(name for name in others if name is not None)]))

    def train_rows(self, chunk: Chunk, keys: Floats | None) -> Mask:
        """Return a mask of the rows of a chunk to fit on. `keys` are the groups or times of all rows."""
        rows = np.ones(chunk.rows, dtype=bool)
        if self.split is not None:
            rows = read_test_rows(chunk, self.split) == self.tested
        if self.chosen is None:
            return rows
        return rows & self.chosen(np.arange(chunk.start, chunk.start + chunk.rows), keys)

    def weights(self, chunk: Chunk, train: Mask) -> Floats | None:
        """Return the weights of a chunk's training rows. Refuse text, and numbers outside `_WEIGHTS`."""
        if self.weight is None:
            return None
        values = read_label(chunk, self.weight, "weight")
        if values.dtype.kind == "O":
            raise refusal(chunk, "weight", self.weight, "expected numbers, got text")
        weights, (least, most) = values[train].astype(np.float64), _WEIGHTS
        outside = ((weights < least) | (weights > most)) & (weights != 0.0)
        if outside.any():
            row, got = int(np.flatnonzero(train)[outside.argmax()]), weights[outside.argmax()]
            problem = f"expected 0 or a number from {least:g} to {most:g}, got {got:g}"
            raise refusal(chunk, "weight", self.weight, problem, row)
        return weights


class KnownRows(NamedTuple):
    """A mask of the n rows of a chunk to use, their weights (n,), and the labels and keys of all rows of the chunk."""

    taken: Mask
    labels: Array | None
    weights: Floats | None
    keys: Floats | None


class RowReader:
    """Reads the columns that are not features, such as labels and weights, chunk by chunk.

    Attributes:
        split_by: The `split_by` of the config.
        names: The columns that it reads, each once. In chunks of `source`, texts in them are dictionary-encoded.
    """

    def __init__(self, data: TrainingData, config: Config | None, weighted: bool = True) -> None:
        self.split_by = None if config is None else SplitBy.of(config)
        self.names = data.roles(self.split_by, weighted)
        self.source = data.source.coding(self.names)
        self._data, self._weighted = data, weighted
        self._labels = LabelReader(data.label) if has_label(data.label) else None
        self._keys = self.split_by and config and KeyReader(self.split_by, self.source, config.seed)

    def read(self, chunk: Chunk) -> KnownRows:
        """Return which rows of a chunk are used, with their labels, weights and keys."""
        keys = self._keys.keys(chunk) if self._keys else None
        taken = self._data.train_rows(chunk, keys)
        labels = None if self._labels is None else self._labels.read(chunk)
        weights = self._data.weights(chunk, taken) if self._weighted else None
        return KnownRows(taken, labels, weights, keys)


@dataclass
class SampledFit:
    """A fit in progress: the sample of all rows read so far, from one reader or several.

    The sample and the map do not depend on how rows are divided among readers.
    """

    config: Config
    columns: Columns
    chosen: RowSample
    column_ranges: ColumnRanges
    summary: LabelSummary | None = None
    """Counts the labels of all rows that are read, for a predictor."""
    place: str = ""
    digest: str = ""
    """`place` is the name of the data for messages, and `digest` their SHA-256 for the provenance."""
    labels: LabelNames = ()
    split: str | None = None
    """`labels` are the names of the label columns, and `split` names the column of train and test, or is None."""
    locate: Callable[[int], tuple[str, int]] | None = None
    """Returns, for a row number in a data set, the file and the row number in this file, for messages."""

    @property
    def n_rows(self) -> int:
        """The number of training rows that were read."""
        return self.chosen.n_rows if self.summary is None else self.summary.rows

    @classmethod
    def empty(cls, config: Config, columns: Columns, summary: LabelSummary | None = None) -> Self:
        """Return a fit that has not read any rows."""
        size = None if config.fit_rows == "all" else config.fit_rows
        return cls(
            config, columns, RowSample(config.seed, size), ColumnRanges.empty(columns.n_features), summary
        )

    def read(self, data: TrainingData, columns: Columns, listener: Listener = SILENT) -> None:
        """Read data and sample the rows to fit on. Every row that is read is checked.

        After an error, the fit has only some of the rows. From a seekable data set, only the blocks with rows of the
        sample are read.
        """
        self.labels, self.split = label_names(data.label), data.split
        if self.chosen.labelled not in (None, has_label(data.label)):
            raise UsageError("label: expected labels for all batches of rows or for none, got both")
        first = self.chosen.n_rows
        # Weights are for the predictor. A search without a predictor counts every row once.
        weighted = self.summary is not None and self.config.predictor is not None
        reader = RowReader(data, self.config, weighted)
        source, most, width = reader.source, self.config.chunk_rows, columns.numbers.n_features
        blocks = self._sampled_blocks(data, source, Wanted(columns, reader.names, most))
        # The height of chunks does not change results. It is limited because sparse chunks may become dense.
        height = min(most, max(_LEAST_ROWS, _MOST_NUMBERS // max(1, width)))
        chunks = source.chunks(columns, reader.names, height) if blocks is None else blocks
        for chunk, X in matrices(chunks, DOUBLE, fitting=True):
            known = reader.read(chunk)
            self._note(data, columns, X, known)
            offsets = self.chosen.choose(first + chunk.start, chunk.rows)
            offsets = offsets[known.taken[offsets]]
            self._require_memory(source.location, width, len(offsets))
            rows = contiguous(X[offsets]) if isinstance(X, TextRows) else dense(X[offsets])
            label, keys = (None if one is None else one[offsets] for one in (known.labels, known.keys))
            self.chosen.add(first + chunk.start, chunk.rows, offsets, rows, label=label, keys=keys)
            columns.forget(self.chosen.parts)
            listener.rows(chunk.rows)
        if blocks is not None and source.rows is not None:
            self.chosen.n_rows = source.rows

    def _note(self, data: TrainingData, columns: Columns, X: InputRows, known: KnownRows) -> None:
        """Record ranges, categories and labels of the rows of a chunk that are fitted on."""
        train = slice(None) if data.all_count else known.taken
        self.column_ranges = self.column_ranges.adding(X[train])
        if not data.all_count and data.chosen is None and not isinstance(X, SparseRows):
            columns.use(X[train])
        if known.labels is not None and self.summary is not None:
            self.summary.add(known.labels[train], known.weights)

    def _require_memory(self, place: str, width: int, more: int) -> None:
        """Raise an error if memory is too short for `more` rows of `width` columns, and for copies that steps make."""
        most = self.config.fit_rows
        require_memory(
            float(len(self.chosen) + 2 * more) * width,
            f"{place}: fit_rows: a sample of {len(self.chosen) + more:,} rows or more of {width:,} columns",
            "lower fit_rows" if most == "all" else f"lower fit_rows, which is {most:,}",
        )

    def _sampled_blocks(self, data: TrainingData, source: Reader, wanted: Wanted) -> Iterator[Chunk] | None:
        """Yield only the blocks that hold rows of the sample. Return None if all rows must be read."""
        if not data.all_count or self.chosen.n_rows or self.summary is not None:
            return None
        size, rows = self.config.fit_rows, source.rows if isinstance(source, DatasetReader) else None
        if not isinstance(source, DatasetReader) or size == "all" or rows is None or size >= rows:
            return None
        return source.chunks_with(smallest(self.config.seed, rows, size), wanted)

    def copy(self) -> Self:
        """Return a copy that can read more rows without changing this one."""
        return replace(self, chosen=self.chosen.copied())

    def of_rows(self, chosen: RowChoice) -> Self:
        """Return a fit on the rows of the sample that `chosen` selects."""
        numbers, _, about = self.chosen.result()
        return replace(self, chosen=self.chosen.where(chosen(numbers, about.get("keys"))))

    def sample(self, final: bool = True) -> tuple[Columns, Sample]:
        """Return the sample so far, and its columns with categories. If `final` is false, more rows may follow."""
        if self.chosen.empty:
            kind = "row to fit on" if self.split is None else "row of train"
            column = "" if self.split is None else f"split {quoted(self.split)}: "
            raise DataError(f"{self.place}: {column}expected at least one {kind}, got none")
        rows, X, about = self.chosen.result()
        # `settled` renumbers categories in place. If more rows follow, the sample must keep the old numbers.
        X = contiguous(X) if final else X.copy()
        columns = self.columns.settled(X)
        return columns, Sample(
            X,
            about.get("label"),
            self.chosen.n_rows,
            names=columns.names,
            n_categories=columns.n_categories,
            times=columns.times,
            dtype=np.dtype(self.config.dtype),
            rows=rows,
            keys=self.keys,
        )

    @property
    def keys(self) -> RowKeys | None:
        """The groups or times of the rows of the sample, or None if rows are held out at random."""
        split_by = SplitBy.of(self.config)
        return None if split_by is None else RowKeys(self.chosen.result()[2]["keys"], split_by.ordered)

    def learn(
        self,
        listener: Listener = SILENT,
        *,
        final: bool = True,
        with_mean: bool = True,
        learner: Learn = learn_ridge,
        task: TaskKind = "auto",
        all_rows: Callable[[Columns, Array], RowStream] | None = None,
        jobs: int = 1,
    ) -> FeatureMap:
        """Fit the map on the sample so far, with `jobs` threads. If `final` is false, more rows may follow.

        `with_mean` records the mean of the features for tests of drift, which costs a transform of the sample.
        `learner` scores values of `validate`. `task` is used if the config has no predictor. `all_rows` reads all rows,
        for steps that learn from all rows. If it is None, these steps learn from the sample.
        """
        config = self.config
        columns, sample = self.sample(final)
        given, origins = read_given_rows(config, columns, self.labels)
        stream = None
        if all_rows is not None and sample.label is not None and self.summary is not None:
            stream = all_rows(columns, self.summary.seen_with(sample.label))
        sample = replace(sample, given=given, stream=stream, jobs=jobs)
        with self._naming_rows(sample, columns), one_blas_thread(linalg=True):
            last = config.predictor
            task = task if last is None else last.task
            task = self.summary.kind if task == "auto" and self.summary and self.summary.rows else task
            chain, searches = self._chain(sample, listener, learner, task)
            mean = _feature_mean(chain, sample.X, config, columns) if with_mean else None
        # Only unknown categories lie outside of the range of a feature of categories.
        n, low, high = np.array(columns.n_categories), self.column_ranges.low, self.column_ranges.high
        ranges = ColumnRanges(np.where(n > 0, 0.0, low), np.where(n > 0, n - 1.0, high))
        return FeatureMap(
            chain, columns, config.dtype, config.chunk_rows, config, self._provenance(sample, origins, searches),
            column_ranges=ranges, feature_mean=mean,
        )  # fmt: skip

    def _provenance(self, sample: Sample, given: list[Origin], searches: list[ChosenParameter]) -> Provenance:
        """Return the provenance of a map that is fitted on the sample."""
        name = printable(parse_location(self.place).name)
        return Provenance(
            sources=[Origin(name=name, rows=sample.n_rows, sha256=self.digest)],
            rows_fitted=len(sample.X),
            label=plain_names(tuple(map(printable, self.labels))),
            config_sha256=self.config.digest(),
            given=given,
            searches=searches,
            split=None if self.split is None else printable(self.split),
        )

    def _chain(
        self, sample: Sample, listener: Listener, learner: Learn, task: TaskKind
    ) -> tuple[Chain, list[ChosenParameter]]:
        """Fit the chain on the sample. Return it with the records of the searches for its parameters."""
        config = self.config

        def on_step(number: int, X: Floats) -> None:
            step, before = config.map_steps[number], config.map_steps[:number]
            listener.phase(f"fitting step {number + 1} of {len(config.steps)}: {step.kind}")
            wide = step.width_warning(X.shape[1])
            if wide is not None:
                listener.warn(f"{self.place}: {wide}")
            if all(one.traits.numbers.spreads == "keeps" for one in before):
                names = sample.names if all(one.traits.columns.apart for one in before) else None
                for message in spread_warnings(step, X, names):
                    listener.warn(f"{self.place}: {message}")

        if any(step.searches for step in config.map_steps):
            listener.phase("choosing parameters from the data")
        options = config.search or SearchOptions()
        steps, searches = settle(config.map_steps, sample, _stream(config.seed, 3), options, learner, task)
        chain = Chain.fit(steps, sample, _stream(config.seed, 1), on_step)
        for fitted in chain.steps:
            for message in fitted.step.fit_warnings(fitted.state):
                listener.warn(f"{self.place}: {message}")
        return chain, searches

    @contextmanager
    def _naming_rows(self, sample: Sample, columns: Columns) -> Iterator[None]:
        """In the block, let errors about the sample name the file, row and column."""
        try:
            yield
        except InvalidValueError as refused:
            row = refused.row if sample.rows is None else int(sample.rows[refused.row])
            file, row = (self.place, row) if self.locate is None else self.locate(row)
            raise refused.at(row).located(file, columns.names) from None
        except DataError as error:
            raise DataError(f"{self.place}: {error}") from None


def _feature_mean(chain: Chain, X: Floats, config: Config, columns: Columns) -> FeatureMean | None:
    """Return the mean of the features. It is None if it overflows, or if some rows have no features."""
    dtype, inputs = np.dtype(config.dtype), np.array([j for _, j in columns.inputs])
    try:
        return FeatureMean.of_sample(chain.bind(dtype), X, dtype, _stream(config.seed, 4), inputs)
    except InvalidValueError:
        return None


def _stream(seed: int, number: int) -> np.random.Generator:
    """Return the random number generator of one purpose. Generators of different numbers are independent."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def matrices(
    chunks: Iterator[Chunk], dtype: np.dtype[Any], fitting: bool = False
) -> Iterator[tuple[Chunk, InputRows]]:
    """Yield chunks, read ahead, with their features (rows, d). `Chunk.numbers` explains `fitting`."""
    for chunk in prefetch(chunks, 2):
        yield chunk, chunk.numbers(dtype, fitting)


def read_given_rows(
    config: Config, columns: Columns, labels: LabelNames
) -> tuple[dict[str, Floats], list[Origin]]:
    """Read the rows that the config gives to steps, such as landmarks. Return the rows by name, and their origins."""
    rows_of: dict[str, Floats] = {}
    origins: list[Origin] = []
    for step in config.steps:
        for name, rows in step.traits.given_rows.items():
            if name in rows_of:
                continue
            with (
                InputOptions().open_file(parse_location(rows))
                if isinstance(rows, str)
                else reader_of(rows) as source
            ):
                names = {field.name for field in source.fields}
                matched = match(source, columns, [label for label in labels if label in names])
                given = dense(source.decoded(matched, DOUBLE, config.chunk_rows))
                rows_of[name] = np.ascontiguousarray(given)
                file = printable(parse_location(name).name)
                origins.append(Origin(name=file, rows=len(rows_of[name]), sha256=source.digest()))
    return rows_of, origins
