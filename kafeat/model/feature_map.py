"""A feature map: a chain of fitted steps and everything else that its output depends on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kafeat._version import __version__
from kafeat.chain.chain import Chain
from kafeat.chain.tiles import tile_rows
from kafeat.config import Config
from kafeat.contract.step import Transform
from kafeat.errors import UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.location import parse_location
from kafeat.model import artifact
from kafeat.model.in_notebooks import InNotebooks
from kafeat.model.predictions import Predictions
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import Provenance
from kafeat.model.serialize import chain_content
from kafeat.model.unit_variance import UnitVariance
from kafeat.runtime.column_ranges import ColumnRanges, FeatureMean
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.threads import (
    REFUSE_BAD_ROWS,
    FeatureTarget,
    InMemory,
    RowPolicy,
    Transformed,
    run,
    run_in_memory,
)
from kafeat.types import DType, Floats, TableLike

FORMAT = 2
"""Format of new files of maps. In format 1 all values are cast to the map's dtype before the first step."""

WITH_PREDICTOR = 3
"""Format of files of maps that end in a predictor."""


@dataclass(frozen=True, repr=False)
class FeatureMap(Predictions, UnitVariance, InNotebooks):
    """A map z from rows of numbers to rows of features, with z(x)·z(y) ≈ k(x, y).

    `kafeat.fit` and `kafeat.load` return feature maps. They cannot be changed.

    Attributes
    ----------
    chain : Chain
        The fitted steps.
    columns : Columns
        The input columns.
    dtype : {"float32", "float64"}
        Type of the features.
    chunk_rows : int
        Number of rows that are transformed at once.
    config : Config
        The recipe of the fit.
    provenance : Provenance
        Names, rows and hashes of the data that the map was fitted on.
    version : str
        Version of the kafeat that fitted the map.
    column_ranges : ColumnRanges or None
        Range of every input feature in the fitted data; None for maps of versions that did not record it.
    feature_mean : FeatureMean or None
        Mean and variance of the features of fitted rows; None for maps of versions that did not record it.
    predictor : FittedPredictor or None
        The predictor that the map ends in, if its config does.
    format : int
        Format of the file that the map came from, in which it is saved again.

    Examples
    --------
    >>> import kafeat, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> fm = kafeat.fit({"steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 64}]}, X)
    >>> fm
    FeatureMap(standardize -> fourier: 3 inputs, 64 features, float32)
    """

    chain: Chain
    columns: Columns
    dtype: DType
    chunk_rows: int
    config: Config
    provenance: Provenance
    version: str = __version__
    column_ranges: ColumnRanges | None = None
    feature_mean: FeatureMean | None = None
    predictor: FittedPredictor | None = None
    format: int = FORMAT

    def __repr__(self) -> str:
        steps = [fitted.step for fitted in self.chain.steps]
        if self.predictor is not None:
            steps.append(self.predictor.fitted.step)
        kinds = " -> ".join(step.kind for step in steps)
        return f"FeatureMap({kinds}: {self.n_features_in} inputs, {self.n_components} features, {self.dtype})"

    @cached_property
    def transformer(self) -> Transform:
        """The chain with its derived arrays in the map's dtype, computed once per process."""
        return self.chain.bind(np.dtype(self.dtype))

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """The dtype that input values are read in: float64 if the first step computes in it."""
        return self.transformer.reads(np.dtype(self.dtype))

    @property
    def n_features_in(self) -> int:
        """Width of the input."""
        return self.chain.n_features_in

    @property
    def n_components(self) -> int:
        """Width of the output."""
        return self.transformer.n_features_out

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 of the saved file in hex, as `sha256sum` prints it.

        None for a map that cannot be saved, as its kernel is a Python function.
        """
        if any(fitted.step.unsaved for fitted in self.chain.steps):
            return None
        return hashlib.sha256(self.dumps()).hexdigest()

    def transform(
        self,
        X: TableLike | Reader,
        jobs: int | None = None,
        *,
        out: Floats | None = None,
        unit_variance: bool = False,
    ) -> Floats:
        """Return the features z(X).

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Input rows. Tables of pyarrow, pandas and polars are matched by the names of their columns.
        jobs : int or None, default None
            Number of threads; None takes all cores. The result does not depend on it.
        out : array of floats (n_rows, n_components) or None, default None
            Memory for the features. Memory that is used again is filled faster than new memory. Features are rounded to
            its dtype.
        unit_variance : bool, default False
            True multiplies all features by one factor, `unit_scale`, so that the mean of their variances is about 1, as
            the default penalties of other libraries expect it.

        Returns
        -------
        array (n_rows, n_components)
            The features in the map's dtype, or `out`.

        Raises
        ------
        kafeat.errors.DataError
            A column is missing, or a value is not finite or not accepted by a step.
        kafeat.errors.UsageError
            `X` is no array or table, `out` has a wrong shape or type, or the map knows no `unit_scale`.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}]}, X)
        >>> fm.transform(X[:5]).shape
        (5, 64)
        """
        source, columns = self._source(X)
        if source.rows is None:
            raise TypeError("a source in memory knows its rows")
        shape = (source.rows, self.n_components)
        if out is None:
            out = np.empty(shape, dtype=self.dtype)
        elif out.shape != shape or out.dtype.kind != "f" or not out.flags.writeable:
            raise UsageError(
                f"out: expected a writeable array of floats of shape {shape}, "
                f"got shape {out.shape} and dtype {out.dtype}"
            )
        jobs = count_jobs(jobs)
        chunks = source.chunks(columns, (), self._height(source.rows, jobs))
        if isinstance(X, Reader):
            for _ in self.run(chunks, InMemory(out), jobs, unit_variance=unit_variance):
                pass
        else:
            self._fill(chunks, out, jobs, unit_variance)
        return out

    def transform_sparse(self, X: TableLike | Reader) -> Any:
        """Return the features z(X) as a sparse matrix, without making dense ones first.

        It takes maps that end with `intersection_bins`, or with `projection` and `matrix: sparse`; the latter has few
        features that are not 0 where the rows are sparse too.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Input rows as for `transform`.

        Returns
        -------
        scipy.sparse.csr_array (n_rows, n_components)
            The features in the map's dtype, equal to those of `transform` up to rounding.

        Raises
        ------
        kafeat.errors.DataError
            A column is missing, or a value is not finite or not accepted by a step.
        kafeat.errors.UsageError
            The map ends with another step, or `X` is no array or table.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> fm = kafeat.fit({"steps": [{"kind": "intersection_bins", "n_bins": 4}]}, np.eye(3))
        >>> Z = fm.transform_sparse(np.eye(3))
        >>> Z.shape, Z.nnz
        ((3, 12), 12)
        """
        from kafeat.model.sparse_features import sparse_features

        source, columns = self._source(X)
        return sparse_features(self, source.chunks(columns, (), self.chunk_rows))

    def _fill(self, chunks: Iterator[Chunk], out: Floats, jobs: int, unit_variance: bool) -> None:
        """Write the features of chunks that are in memory."""
        run_in_memory(
            self.scaled if unit_variance else self.transformer, np.dtype(self.dtype), chunks, out, jobs
        )

    def _height(self, rows: int, jobs: int) -> int:
        """Return a height of chunks of which every worker gets about four.

        It is a multiple of the tile height, so that the bytes are those of chunks of full height.
        """
        height = tile_rows(self.transformer)
        if self.chunk_rows % height:
            return self.chunk_rows
        tiles = -(-rows // (4 * jobs * height))
        return min(self.chunk_rows, max(1, tiles) * height)

    def run(
        self,
        chunks: Iterator[Chunk],
        target: FeatureTarget,
        jobs: int | None,
        policy: RowPolicy = REFUSE_BAD_ROWS,
        *,
        unit_variance: bool = False,
    ) -> Iterator[Transformed]:
        """Transform chunks by `jobs` threads, read by a further one, and yield them in order."""
        transform = self.scaled if unit_variance else self.transformer
        return run(transform, np.dtype(self.dtype), chunks, target, count_jobs(jobs), policy)

    def inverse_transform(self, Z: Floats) -> Floats:
        """Return rows with the features Z: those of least norm, where several rows have the same features.

        It is the way back through `standardize`, `robust`, `minmax`, `pca` and `projection`, and approximately through
        `nystroem` with `preimages: true`, where it is learned by ridge regression. Other steps have none.

        Parameters
        ----------
        Z : array (n_rows, n_components)
            Features, as `transform` returns them.

        Returns
        -------
        array (n_rows, n_features_in) of float64
            Rows in the units of the input. If the map has fewer outputs than inputs they are approximations.

        Raises
        ------
        kafeat.errors.UsageError
            A step of the map has no inverse, or `Z` has another width than the map's features.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> fm = kafeat.fit({"dtype": "float64", "steps": [{"kind": "standardize"}, {"kind": "pca"}]}, X)
        >>> bool(np.allclose(fm.inverse_transform(fm.transform(X)), X))
        True
        """
        X: Floats = np.asarray(Z, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_components:
            raise UsageError(f"Z: expected the shape (n, {self.n_components}), got {X.shape}")
        if self.chain.outputs is not None:
            raise UsageError(
                "inverse_transform: expected a map with all of its outputs, got one that is pruned"
            )
        for fitted in reversed(self.chain.steps):
            rows = fitted.step.inverse(fitted.state, X, fitted.n_features_in)
            if rows is None:
                raise UsageError(
                    f"inverse_transform: {fitted.step.kind}: expected steps that have an inverse (standardize, robust, "
                    "minmax without clip, pca, projection, nystroem with preimages: true), got another"
                )
            X = rows
        return X

    def exact_kernel(self, X: TableLike, Y: TableLike | None = None) -> Floats:
        """Return the kernel matrix k(X, Y) that the map approximates.

        It is the kernel of the whole chain, computed in float64 from the values that the map reads.

        Parameters
        ----------
        X : array (n, n_features_in), sparse matrix or table
            Rows as for `transform`.
        Y : array (m, n_features_in), sparse matrix, table or None, default None
            Other rows; None takes X.

        Returns
        -------
        array (n, m) of float64
            The kernel matrix.

        Raises
        ------
        kafeat.errors.DataError
            A column is missing, or a value is not finite or not accepted by a step.
        kafeat.errors.UsageError
            The map has no exact kernel, or `X` is no array or table.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 256}]}, X)
        >>> Z = fm.transform(X)
        >>> bool(np.abs(Z @ Z.T - fm.exact_kernel(X)).max() < 0.1)
        True
        """
        x = self.matrix(X)
        return self.chain.exact(x, x if Y is None else self.matrix(Y), np.dtype(self.dtype))

    def matrix(self, X: TableLike) -> Floats:
        """Return the map's columns of X as an array.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Rows as for `transform`.

        Returns
        -------
        array (n_rows, n_features_in)
            The input features, categories coded, in the dtype that the map reads.

        Raises
        ------
        kafeat.errors.DataError
            A column is missing, or a value is not finite.

        Examples
        --------
        >>> import kafeat, pyarrow as pa
        >>> table = pa.table({"a": [1.0, 2.0, 3.0], "id": [7, 8, 9], "b": [0.0, 1.0, 2.0]})
        >>> fm = kafeat.fit({"columns": {"exclude": ["id"]}, "steps": [{"kind": "standardize"}]}, table)
        >>> fm.matrix(table).tolist()
        [[1.0, 0.0], [2.0, 1.0], [3.0, 2.0]]
        """
        source, columns = self._source(X)
        dtype = self.input_dtype
        parts = [chunk.matrix(dtype) for chunk in source.chunks(columns, (), self.chunk_rows)]
        return np.concatenate([np.empty((0, self.n_features_in), dtype=dtype), *parts])

    def _source(self, X: TableLike | Reader) -> tuple[Reader, Columns]:
        # Imported here: a transform of files does not need it at its start.
        from kafeat.io.readers.memory import reader_of

        source = reader_of(X)
        return source, match(source, self.columns, ())

    def dumps(self) -> bytes:
        """Return the bytes of the model file; the same fit gives the same bytes.

        Returns
        -------
        bytes
            The file that `save` writes.

        Raises
        ------
        kafeat.errors.UsageError
            The map cannot be saved, as its kernel is a Python function.

        Examples
        --------
        >>> import kafeat
        >>> config = {"steps": [{"kind": "standardize"}]}
        >>> kafeat.fit(config, [[1.0], [2.0]]).dumps() == kafeat.fit(config, [[1.0], [2.0]]).dumps()
        True
        """
        return artifact.dumps(self._content())

    def save(self, path: str | os.PathLike[str], overwrite: bool = True, *, fsync: bool = True) -> None:
        """Write the model file, completely or not at all. Loading it runs no code.

        Parameters
        ----------
        path : str or path
            Path or URI of the file.
        overwrite : bool, default True
            True replaces an existing file, False refuses to.
        fsync : bool, default True
            True returns only when the file is on the disk.

        Raises
        ------
        kafeat.errors.ArtifactError
            The map cannot be read back from its bytes. No file is written or replaced.
        kafeat.errors.UsageError
            The file exists and `overwrite` is false, or the map cannot be saved.
        kafeat.errors.SystemRefusedError
            The file cannot be written.

        Examples
        --------
        >>> import kafeat, os, tempfile
        >>> fm = kafeat.fit({"steps": [{"kind": "standardize"}]}, [[1.0], [2.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fm.save(os.path.join(folder, "map.joblib"))
        ...     kafeat.load(os.path.join(folder, "map.joblib"))
        FeatureMap(standardize: 1 inputs, 1 features, float32)
        """
        # Imported here: a model is read without its writer.
        from kafeat.model.load import from_content

        data, place = self.dumps(), f"{os.fspath(path)} (read back before it is put in place)"
        from_content(artifact.loads(data, place), place)
        write_bytes(parse_location(path), data, clobber=overwrite, fsync=fsync)

    def _content(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "kafeat": self.version,
            "config": self.config.to_plain(),
            "columns": self.columns.to_plain(),
            "dtype": self.dtype,
            "chunk_rows": self.chunk_rows,
            "steps": chain_content(self.chain),
            **({} if self.format == 1 else {"cast_after": self.chain.cast_after}),
            **({} if self.chain.outputs is None else {"outputs": self.chain.outputs}),
            **({} if self.column_ranges is None else {"seen": self.column_ranges.to_plain()}),
            **({} if self.feature_mean is None else {"feature_mean": self.feature_mean.to_plain()}),
            **({} if self.predictor is None else {"predictor": self.predictor.to_plain()}),
            "provenance": self.provenance.to_plain(),
        }
