"""The output of a transform for every row: the features of a map, or the predictions of a model with a predictor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from kafeat.chain.bound_chain import PREDICTION_DTYPE
from kafeat.contract.checks import round_to
from kafeat.errors import InvalidValueError, UsageError
from kafeat.io.formats import Format
from kafeat.io.readers.base import Chunk
from kafeat.io.writers.base import OutputOptions, Writer
from kafeat.io.writers.class_column import ClassColumn
from kafeat.model.feature_map import FeatureMap
from kafeat.model.predictor import PREDICTION, PROBABILITY
from kafeat.model.sparse_features import gives_sparse, run_sparse
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.threads import (
    FeatureTarget,
    RowPolicy,
    SparselyTransformed,
    Transformed,
)

T = TypeVar("T", bound=Transformed | SparselyTransformed)


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


class _Features(Outputs[T]):
    """The features of a map."""

    what = "features"

    def __init__(self, fm: FeatureMap, writing: OutputOptions) -> None:
        self._fm = fm
        self.names, self.list_name = writing.feature_names(fm.n_components), writing.list_name
        self.dtype = np.dtype(writing.dtype or fm.dtype)
        self.scale = fm.needed_unit_scale() if writing.unit_variance else None

    def write(self, done: T, writer: Writer) -> None:
        writer.write(done.features, done.chunk.passthrough, done.good if writer.layout.dropping else None)


class FeatureOutputs(_Features[Transformed]):
    """Features, computed in the memory of the writer."""

    def run(
        self, chunks: Iterator[Chunk], writer: FeatureTarget, jobs: int | None, policy: RowPolicy
    ) -> Iterator[Transformed]:
        return self._fm.run(chunks, writer, jobs, policy, unit_variance=self.scale is not None)


class SparseFeatureOutputs(_Features[SparselyTransformed]):
    """Features that are mostly 0, as sparse rows, for formats that store the others only."""

    def run(
        self, chunks: Iterator[Chunk], writer: FeatureTarget, jobs: int | None, policy: RowPolicy
    ) -> Iterator[SparselyTransformed]:
        del writer
        return run_sparse(self._fm, chunks, self.dtype, count_jobs(jobs), policy)


class PredictionOutputs(Outputs[Transformed]):
    """Predictions, computed in float64: numbers, or the probabilities of classes and the likeliest one.

    A format of numbers alone holds the probabilities, as their columns tell the class.
    """

    what = "predictions"

    def __init__(self, fm: FeatureMap, writing: OutputOptions, format: Format | None) -> None:
        self._fm, labels = fm, fm.needed_predictor().labels
        if writing.unit_variance:
            raise UsageError("--unit-variance: expected features to scale, got predictions: use --features")
        prefix = writing.prefix or ""
        self.dtype = np.dtype(writing.dtype or PREDICTION_DTYPE)
        self.list_name = prefix + (PREDICTION if labels.classes is None else PROBABILITY)
        self.names = [prefix + name for name in fm.needed_predictor().output_names]
        if labels.classes is not None and (format is None or format.passthrough == "columns"):
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


def outputs_of(fm: FeatureMap, writing: OutputOptions, format: Format | None = None) -> Outputs[Any]:
    """Return the predictions of a map that ends in a predictor, unless features are wanted, else the features.

    A format of sparse rows gets sparse features of a map that has them. Of predictions, the column of classes alone
    depends on the format.
    """
    if fm.predictor is None or writing.features:
        # scaled features are made by the loop of dense ones
        sparse = format is not None and format.sparse and gives_sparse(fm) and not writing.unit_variance
        return SparseFeatureOutputs(fm, writing) if sparse else FeatureOutputs(fm, writing)
    return PredictionOutputs(fm, writing, format)
