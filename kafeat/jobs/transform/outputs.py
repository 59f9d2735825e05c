"""The output of a transform: features or predictions for every row, the sums over its chunks, and its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from kafeat.chain.bound_chain import PREDICTION_DTYPE
from kafeat.contract.checks import round_to
from kafeat.errors import DataError, GateError, InvalidValueError, UsageError, counted, quoted
from kafeat.io.readers.base import Chunk
from kafeat.io.storage.atomic import WrittenFile
from kafeat.io.storage.formats import SPARSE_OUTPUTS
from kafeat.io.writers.base import Writer
from kafeat.io.writers.class_column import ClassColumn
from kafeat.io.writers.npz import SparseWriter
from kafeat.io.writers.options import OutputOptions
from kafeat.jobs.transform.options import RowOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.model.predictor import PREDICTION, PROBABILITY
from kafeat.model.sparse_features import gives_sparse, run_sparse
from kafeat.runtime.column_ranges import DriftTest
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.threads import (
    FeatureTarget,
    RowPolicy,
    SparselyTransformed,
    Transformed,
    TransformedChunk,
)

T = TypeVar("T", bound=TransformedChunk)


class Outputs(ABC, Generic[T]):
    """The numbers (n, width) that are written of n rows, their names and dtype, and a column of classes."""

    what: Literal["features", "predictions"]
    names: list[str]
    list_name: str
    dtype: np.dtype[Any]
    classes: ClassColumn | None = None
    scale: float | None = None
    """The factor that features were multiplied by; None for features as they are, and for predictions."""

    @property
    def width(self) -> int:
        """Number of columns of numbers."""
        return len(self.names)

    @abstractmethod
    def run(
        self, chunks: Iterator[Chunk], writer: FeatureTarget, jobs: int | None, policy: RowPolicy
    ) -> Iterator[T]:
        """Compute the numbers of chunks, and yield them in order; those of a map go to the memory of `writer`."""

    @abstractmethod
    def write(self, done: T, writer: Writer) -> None:
        """Write a chunk, or only its good rows if the writer drops the others."""


class FeatureOutputs(Outputs[Transformed]):
    """Features, computed in the memory of the writer."""

    what = "features"

    def __init__(self, fm: FeatureMap, writing: OutputOptions) -> None:
        self._fm = fm
        self.names, self.list_name = writing.feature_names(fm.n_components), writing.list_name
        self.dtype = np.dtype(writing.dtype or fm.dtype)
        self.scale = fm.needed_unit_scale() if writing.unit_variance else None

    def run(
        self, chunks: Iterator[Chunk], writer: FeatureTarget, jobs: int | None, policy: RowPolicy
    ) -> Iterator[Transformed]:
        return self._fm.run(chunks, writer, jobs, policy, unit_variance=self.scale is not None)

    def write(self, done: Transformed, writer: Writer) -> None:
        writer.write(done.features, done.chunk.passthrough, done.good if writer.layout.dropping else None)


class SparseFeatureOutputs(Outputs[SparselyTransformed]):
    """Features that are mostly 0, as sparse rows, for formats that store the others only."""

    what = "features"

    def __init__(self, fm: FeatureMap, writing: OutputOptions) -> None:
        self._fm = fm
        self.names, self.list_name = writing.feature_names(fm.n_components), writing.list_name
        self.dtype = np.dtype(writing.dtype or fm.dtype)

    def run(
        self, chunks: Iterator[Chunk], writer: FeatureTarget, jobs: int | None, policy: RowPolicy
    ) -> Iterator[SparselyTransformed]:
        del writer
        return run_sparse(self._fm, chunks, self.dtype, count_jobs(jobs), policy)

    def write(self, done: SparselyTransformed, writer: Writer) -> None:
        if not isinstance(writer, SparseWriter):
            raise TypeError(f"{type(writer).__name__} takes no sparse rows")
        good = done.good if writer.layout.dropping else None
        writer.write_sparse(done.features, done.chunk.passthrough, good)


class PredictionOutputs(Outputs[Transformed]):
    """Predictions, computed in float64: numbers, or the probabilities of classes and the likeliest one.

    A format of numbers alone holds the probabilities, as their columns tell the class.
    """

    what = "predictions"

    def __init__(self, fm: FeatureMap, writing: OutputOptions, format: str | None) -> None:
        self._fm, labels = fm, fm.needed_predictor().labels
        if writing.unit_variance:
            raise UsageError("--unit-variance: expected features to scale, got predictions: use --features")
        prefix = writing.prefix or ""
        self.dtype = np.dtype(writing.dtype or PREDICTION_DTYPE)
        self.list_name = prefix + (PREDICTION if labels.classes is None else PROBABILITY)
        self.names = [prefix + name for name in fm.needed_predictor().output_names]
        if labels.classes is not None and format not in ("npy", *SPARSE_OUTPUTS):
            self.classes = ClassColumn(prefix + PREDICTION, labels.classes)

    def run(
        self, chunks: Iterator[Chunk], writer: FeatureTarget, jobs: int | None, policy: RowPolicy
    ) -> Iterator[Transformed]:
        return self._fm.run_predictions(chunks, jobs, policy)

    def write(self, done: Transformed, writer: Writer) -> None:
        table = done.chunk.passthrough
        if self.classes is not None:
            table = self.classes.table(table, done.features)
        block = writer.buffer(done.chunk.start, done.chunk.rows)
        place = round_to(done.features, block)
        if place is not None:
            problem = f"expected predictions that {block.dtype} can hold, got {done.features[place]:g}"
            raise InvalidValueError(place[0], None, f"{problem}: choose a wider --output-dtype")
        writer.filled(done.chunk.start, block)
        writer.write(block, table, done.good if writer.layout.dropping else None)


def outputs_of(fm: FeatureMap, writing: OutputOptions, format: str | None = None) -> Outputs[Any]:
    """Return the predictions of a map that ends in a predictor, unless features are wanted, else the features.

    A format of sparse rows gets sparse features of a map that has them. Of predictions, the column of classes alone
    depends on the format.
    """
    if fm.predictor is None or writing.features:
        # scaled features are made by the loop of dense ones
        sparse = format in SPARSE_OUTPUTS and gives_sparse(fm) and not writing.unit_variance
        return SparseFeatureOutputs(fm, writing) if sparse else FeatureOutputs(fm, writing)
    return PredictionOutputs(fm, writing, format)


@dataclass(frozen=True, kw_only=True)
class Done:
    """The result of a transform of one file or of many.

    Attributes:
        rows: Rows of the output.
        rows_read: Rows of the input that were read.
        columns: Number of features, or of predicted numbers.
        what: The content of the output.
        seconds: Duration.
        clipped: Values outside of the range that a step was fitted on, which were replaced by its nearest end.
        bad_rows: Rows that were dropped or have null features.
        first_bad_row: The first of them and its problem; None if there is none.
        scale: The factor that the features were multiplied by; None for features as they are.
    """

    rows: int
    rows_read: int
    columns: int
    what: Literal["features", "predictions"]
    seconds: float
    clipped: int
    bad_rows: int
    first_bad_row: str | None
    scale: float | None


@dataclass(frozen=True, kw_only=True)
class TransformResult(Done):
    """The result of a transform of one file.

    Attributes:
        dtype: Type of the features, or of the predicted numbers.
        drift: Share of values outside of the range of the fit, for each input feature; None if not measured.
        drift_test: The test of the mean of the features; None if not made.
        rows_in_all: Rows of the whole input, estimated if only its `first_chunks` were read; None if unknown.
        input_sha256: Hash of the input, if it was asked for.
        written: The output, if it was asked for.
    """

    dtype: str
    drift: dict[str, float] | None
    drift_test: DriftTest | None
    rows_in_all: int | None
    input_sha256: str | None
    written: WrittenFile


class Counts:
    """Sums over the chunks of one output."""

    def __init__(
        self, fm: FeatureMap, names: Sequence[str], rules: RowOptions, outputs: Outputs[Any]
    ) -> None:
        self._fm, self._names, self._rules, self._outputs = fm, names, rules, outputs
        self._read = self._clipped = self._bad = 0
        self._first_bad: str | None = None
        self.watches_drift = fm.column_ranges is not None and (rules.drift or rules.max_drift is not None)
        self._outside = np.zeros(len(names), dtype=np.int64)
        # Features of predictions leave their tile for the test alone, so it has to be asked for.
        wanted = rules.drift_test is not None or (rules.drift and outputs.what == "features")
        self.tests_mean = fm.feature_mean is not None and wanted
        self._total = np.zeros(fm.n_components if self.tests_mean else 0)
        self.input_sha256: str | None = None

    def add(self, done: TransformedChunk) -> None:
        """Add the counts of a chunk."""
        self._read += done.chunk.rows
        self._clipped += done.clipped
        self._bad += len(done.bad_rows)
        if done.bad_rows and self._first_bad is None:
            located = str(done.chunk.located(done.bad_rows[0]))
            self._first_bad = located.removeprefix(f"{done.chunk.location}: ")
        if done.outside is not None:
            self._outside += done.outside
        if done.total is not None:
            self._total += done.total

    def drift(self) -> dict[str, float] | None:
        """Return the share of values outside of the range of the fit, for each input feature."""
        if not self.watches_drift:
            return None
        good = max(1, self._read - self._bad)
        return {name: int(n) / good for name, n in zip(self._names, self._outside, strict=True)}

    def drift_test(self) -> DriftTest | None:
        """Return the test of the mean of the features; None if it is not made, or there are no rows."""
        if self._fm.feature_mean is None or not self.tests_mean:
            return None
        return self._fm.feature_mean.test(self._total / (self._outputs.scale or 1.0), self._read - self._bad)

    def check(self, place: str, first: int | None) -> None:
        """Raise an error if the rules forbid so many bad rows or such drift; `first` is the first row of a part."""
        if first is not None:
            place = f"{place}: rows {first + 1:,} to {first + self._read:,}"
        self._check_bad_rows(place)
        self._check_ranges(place)
        least, test = self._rules.drift_test, self.drift_test()
        if least is not None and test is not None and test.p_value < least:
            raise GateError(
                f"{place}: expected features with the mean of the fit, at a p-value of at least {least:g} "
                f"(--drift-test), got p = {test.p_value:.2g}: the means are {test.distance:.3g} apart, where "
                f"{test.usual:.3g} is usual"
            )

    def _check_bad_rows(self, place: str) -> None:
        most = self._rules.max_bad_rows
        if most is not None and not most.allows(self._bad, self._read):
            rows = "rows" if most.is_percentage else counted(int(most.number), "row").partition(" ")[2]
            raise DataError(
                f"{place}: expected at most {most.text} bad {rows} (--max-bad-rows), got {self._bad:,} of "
                f"{self._read:,}; the first is {self._first_bad}"
            )

    def _check_ranges(self, place: str) -> None:
        most, drift = self._rules.max_drift, self.drift()
        if most is None or drift is None:
            return
        beyond = sorted(((share, name) for name, share in drift.items() if share > most), reverse=True)
        if beyond:
            worst = ", ".join(f"{quoted(name)} {share:.2%}" for share, name in beyond[:3])
            more = f" and {len(beyond) - 3} more" if len(beyond) > 3 else ""
            raise GateError(
                f"{place}: expected at most {most:.2%} of a column outside of the range of the fit "
                f"(--max-drift), got {worst}{more}"
            )

    def result(self, seconds: float, rows_in_all: int | None, written: WrittenFile) -> TransformResult:
        """Return the result of the transform."""
        outputs = self._outputs
        return TransformResult(
            rows=self._read - (self._bad if self._rules.on_bad_rows == "drop" else 0),
            rows_read=self._read,
            columns=outputs.width,
            what=outputs.what,
            seconds=seconds,
            clipped=self._clipped,
            bad_rows=self._bad,
            first_bad_row=self._first_bad,
            scale=outputs.scale,
            dtype=outputs.dtype.name,
            drift=self.drift(),
            drift_test=self.drift_test(),
            rows_in_all=rows_in_all,
            input_sha256=self.input_sha256,
            written=written,
        )
