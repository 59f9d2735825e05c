"""What a fit keeps of the rows that it reads, and the map that is learned from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kafeat.blas import one_blas_thread
from kafeat.chain import Chain
from kafeat.config import Config
from kafeat.errors import DataError, UsageError, ValueRefused, quoted
from kafeat.evaluation.task import task_of
from kafeat.feature_map import FeatureMap
from kafeat.io.columns import Columns
from kafeat.io.dataset import PartsSource
from kafeat.io.source import Chunk, Source
from kafeat.io.uri import name_of
from kafeat.jobs.given_rows import read_given
from kafeat.jobs.labels import Labels, read_test_rows
from kafeat.jobs.listener import SILENT, Listener
from kafeat.jobs.rows import matrices
from kafeat.jobs.search import settle
from kafeat.jobs.spreads import spread_doubts
from kafeat.provenance import Origin, Provenance, Search, printable
from kafeat.sampling import RowSample, smallest
from kafeat.seen import Seen
from kafeat.sparse import SparseRows, dense
from kafeat.step import DOUBLE, Sample
from kafeat.types import Array, Floats

_LEAST_ROWS, _MOST_NUMBERS = 256, 1 << 25
_OF_MISSING = "; impute as the first step of the config fills in missing values"


@dataclass
class Sampled:
    """What a fit keeps of the rows that it is shown, from one source or several after each other, and learns from.

    However the rows are cut into sources, the sample is the same, and so is the map.
    """

    config: Config
    columns: Columns
    chosen: RowSample
    seen: Seen

    @classmethod
    def nothing(cls, config: Config, columns: Columns) -> Self:
        """Before the first row."""
        size = None if config.fit_rows == "all" else config.fit_rows
        return cls(config, columns, RowSample(config.seed, size), Seen.nothing(columns.n_features))

    def read(
        self,
        source: Source,
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

    def _few(self, source: Source, columns: Columns, keep: Sequence[str]) -> Iterator[Chunk] | None:
        size, rows = self.config.fit_rows, source.rows if isinstance(source, PartsSource) else None
        if not isinstance(source, PartsSource) or size == "all" or rows is None or size >= rows:
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
        except ValueRefused as refused:
            row = int(rows[refused.row])
            file, row = (place, row) if locate is None else locate(row)
            raise ValueRefused(row, refused.column, refused.problem).located(file, columns.names) from None
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
                for doubt in spread_doubts(step, X, names):
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


def _of_categories(seen: Seen, columns: Columns) -> Seen:
    """Where a feature is a category, all of its codes: only the code of an unknown one lies outside."""
    n = np.array(columns.n_categories)
    return Seen(np.where(n > 0, 0.0, seen.low), np.where(n > 0, n - 1.0, seen.high))


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
