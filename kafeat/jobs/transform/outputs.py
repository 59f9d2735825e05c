"""The output of a transform for every row: features, or the predictions of a model with a predictor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kafeat.chain.program import Program, What
from kafeat.contract.checks import round_to
from kafeat.errors import InvalidValueError, UsageError
from kafeat.io.options import OutputOptions
from kafeat.io.readers.base import Chunk
from kafeat.io.writers.arrow_columns import ClassColumn
from kafeat.io.writers.base import Writer
from kafeat.model.feature_map import FeatureMap
from kafeat.model.predictor import PREDICTION, PROBABILITY, FittedPredictor
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.run import Done, NewArrays, RowPolicy, Target, run


@dataclass(frozen=True)
class Outputs:
    """The numbers (n, width) to write for n rows.

    Attributes:
        fm: The model.
        what: "features", which are computed in the writer's memory, or "predictions".
        names: Names of the columns of numbers.
        list_name: Name of the column of lists, if all numbers of a row are written as one list.
        dtype: The dtype in which the numbers are written.
        classes: The column of the likeliest class, and columns of sets of classes; None if only numbers are written.
        scale: The factor that features were multiplied by; None for features as they are, and for predictions.
        sparse: True if features, which are mostly 0, are written as sparse rows.
        levels: The probability of each interval, or of each set of classes, that is written with the predictions.
    """

    fm: FeatureMap
    what: What
    names: list[str]
    list_name: str
    dtype: np.dtype[Any]
    classes: ClassColumn | None = None
    scale: float | None = None
    sparse: bool = False
    levels: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """The number of columns of numbers."""
        return len(self.names)

    @property
    def notes(self) -> dict[str, str]:
        """Metadata for formats that can store them: content, scale, levels of intervals, and the hash of the map."""
        return {
            **({} if self.what == "features" else {"content": self.what}),
            **({} if self.scale is None else {"scale": repr(self.scale)}),
            **({} if not self.levels else {"interval": ",".join(map(repr, self.levels))}),
            **({} if self.fm.digest is None else {"map": self.fm.digest}),
        }

    def program(self, sums: bool = False) -> Program:
        """Return the program that computes the numbers. With `sums`, it appends features to predictions."""
        if self.what == "predictions":
            levels = self.levels if self.fm.classes is None else ()
            return self.fm.program("predictions", sums=sums, levels=levels)
        return (
            self.fm.program(sparse=True, dtype=self.dtype)
            if self.sparse
            else self.fm.program(scale=self.scale)
        )

    def run(
        self, chunks: Iterator[Chunk], writer: Target, jobs: int | None, policy: RowPolicy
    ) -> Iterator[Done]:
        """Compute the numbers of chunks, and yield them in order."""
        program, target = self.program(policy.sums), None if self.sparse else writer
        if self.what == "predictions":
            target = NewArrays(program.width + program.behind, program.dtype)
        return run(program, chunks, target, count_jobs(jobs), policy)

    def write(self, done: Done, writer: Writer) -> None:
        """Write a chunk, or only its good rows if the writer drops bad rows."""
        good = done.good if writer.layout.dropping else None
        if self.what == "features":
            writer.write(done.features, done.chunk.passthrough, good)
            return
        table = done.chunk.passthrough
        if self.classes is not None:
            table = self.classes.table(table, done.floats)
        block = writer.buffer(done.chunk.start, done.chunk.rows)
        place = round_to(done.floats, block)
        if place is not None:
            problem = f"expected predictions that {block.dtype} can hold, got {done.floats[place]:g}"
            raise InvalidValueError(place[0], None, f"{problem}: choose a wider --output-dtype")
        writer.filled(done.chunk.start, block)
        writer.write(block, table, good)


def levels_of(given: float | Sequence[float]) -> tuple[float, ...]:
    """Return one or several probabilities of intervals as a tuple. Refuse invalid ones, and duplicates."""
    levels = tuple(map(float, given)) if isinstance(given, Sequence) else (float(given),)
    for i, level in enumerate(levels):
        if not 0.0 < level < 1.0:
            raise UsageError(f"interval: expected a probability between 0 and 1, such as 0.9, got {level:g}")
        if level in levels[:i]:
            raise UsageError(f"interval: expected each probability once, got {level:g} twice")
    return levels


def outputs_of(
    fm: FeatureMap, writing: OutputOptions, *, sparse: bool = False, only_numbers: bool = False
) -> Outputs:
    """Return features as outputs if they are requested or the model has no predictor. If not, return predictions.

    With `sparse`, features are sparse rows if the map can make sparse rows. Predictions are numbers, or probabilities
    and the likeliest class. With `only_numbers`, the likeliest class is left out.
    """
    if fm.predictor is not None and not writing.features:
        return _predictions(fm, fm.predictor, writing, only_numbers)
    if writing.interval:
        raise UsageError("--interval: expected predictions, got features, which have no intervals")
    # only the loop for dense features can scale them
    sparse = sparse and fm.program.gives_sparse and not writing.unit_variance
    scale = fm.needed_unit_scale() if writing.unit_variance else None
    names, dtype = writing.feature_names(fm.n_components), np.dtype(writing.output_dtype or fm.dtype)
    return Outputs(fm, "features", names, writing.list_name, dtype, scale=scale, sparse=sparse)


def _predictions(
    fm: FeatureMap, predictor: FittedPredictor, writing: OutputOptions, only_numbers: bool
) -> Outputs:
    """Return the columns of predictions: numbers with intervals, or probabilities with sets of classes."""
    if writing.unit_variance:
        raise UsageError("--unit-variance: expected features to scale, got predictions: use --features")
    labels, prefix = predictor.labels, writing.prefix or ""
    names = [prefix + name for name in predictor.output_names]
    dtype = np.dtype(writing.output_dtype or fm.program("predictions").dtype)
    levels, intervals = writing.interval, fm.needed_intervals() if writing.interval else None
    endings = [""] if len(levels) == 1 else [f"_{level!r}" for level in levels]
    if labels.classes is None:
        own = [name.removeprefix(PREDICTION) for name in predictor.output_names]
        names += [
            f"{prefix}{end}{name}{last}" for last in endings for name in own for end in ("lower", "upper")
        ]
        return Outputs(fm, "predictions", names, prefix + PREDICTION, dtype, levels=levels)
    if only_numbers and levels:
        raise UsageError(
            "--interval: expected a format with columns of names for the sets of classes, got one with numbers only: "
            "write Parquet, Arrow, CSV or JSON lines"
        )
    held = [] if intervals is None else [
        ([f"{prefix}set{name.removeprefix(PROBABILITY)}{last}" for name in predictor.output_names],
         partial(intervals.sets, level=level))
        for last, level in zip(endings, levels, strict=True)
    ]  # fmt: skip
    classes = None if only_numbers else ClassColumn(prefix + PREDICTION, labels.classes, held)
    return Outputs(fm, "predictions", names, prefix + PROBABILITY, dtype, classes, levels=levels)
