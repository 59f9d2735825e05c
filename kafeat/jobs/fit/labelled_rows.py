"""All chunks of a source with their features, labels and weights, for the fit of a predictor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kafeat.errors import DataError, quoted, spell_row
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.jobs.fit.labels import LabelArgument, LabelColumns, label_names, label_values, read_label
from kafeat.jobs.fit.sample import held_out_rows
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.threads import RowPolicy, Transformed
from kafeat.types import Array, Floats, Mask

# Products of two sums of weights stay within float64.
_WEIGHTS = (1e-100, 1e100)


@dataclass(frozen=True)
class LabelledRows:
    """A chunk with its features, the rows to learn from, and the labels and weights of all of its rows."""

    done: Transformed
    train: Mask
    labels: Array
    weights: Floats | None = None


@dataclass(frozen=True)
class TrainingSource:
    """The data of a predictor: a source that can be read again, and its columns of labels, parts and weights.

    `held_out` (n_rows,) decides in the place of the column `split` which rows are not learned from.
    """

    source: Reader
    label: LabelArgument
    split: str | None = None
    held_out: Array | None = None
    weight: str | None = None

    def rows(self, fm: FeatureMap, jobs: int) -> Iterator[LabelledRows]:
        """Yield all chunks in order, transformed by `jobs` threads."""
        given, columns = label_values(self.label), LabelColumns(label_names(self.label))
        split = None if self.held_out is not None else self.split
        keep = [*label_names(self.label), *(name for name in (split, self.weight) if name is not None)]
        # The column of parts is no feature, even where it is not read.
        not_features = [*keep, *([self.split] if self.split is not None and self.split not in keep else [])]
        chunks = self.source.coding(keep).chunks(
            match(self.source, fm.columns, not_features), keep, fm.chunk_rows
        )
        # A test row that the map refuses is not learned from, so it does no harm.
        for done in fm.run(chunks, _NewArrays(fm), jobs, RowPolicy(set_aside=True)):
            chunk = done.chunk
            train = ~held_out_rows(chunk, self.held_out, self.split)
            bad = next((refused for refused in done.bad_rows if train[refused.row]), None)
            if bad is not None:
                raise chunk.located(bad)
            labels = columns.read(chunk) if given is None else given[chunk.start : chunk.start + chunk.rows]
            weights = None if self.weight is None else _weights(chunk, self.weight, train)
            yield LabelledRows(done, train, labels, weights)


def _weights(chunk: Chunk, name: str, train: Mask) -> Floats:
    """Return the weights of a chunk; refuse text, and for a row to learn from a number outside `_WEIGHTS`."""
    weights = read_label(chunk, name, "weight")
    if weights.dtype.kind == "O":
        raise DataError(f"{chunk.location}: weight {quoted(name)}: expected numbers, got text")
    weights = weights.astype(np.float64)
    least, most = _WEIGHTS
    outside = ((weights < least) | (weights > most)) & (weights != 0.0) & train
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + row)}, weight {quoted(name)}: expected 0 or a number from "
            f"{least:g} to {most:g}, got {weights[row]:g}"
        )
    return weights


@dataclass(frozen=True)
class _NewArrays:
    """A target of features: new memory for every chunk."""

    fm: FeatureMap

    def buffer(self, start: int, rows: int) -> Floats:
        del start
        return np.empty((rows, self.fm.n_components), self.fm.dtype)

    def filled(self, start: int, block: Floats) -> None:
        return
