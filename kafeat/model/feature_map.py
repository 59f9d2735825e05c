"""A feature map: a chain of fitted steps and everything else that its output depends on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from kafeat._version import __version__
from kafeat.chain.chain import Chain
from kafeat.chain.program import Program, Programs
from kafeat.config import Config
from kafeat.contract.tile import InputRows, dense
from kafeat.errors import KafeatWarning, UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Reader
from kafeat.maths.intervals import Intervals
from kafeat.model import serialize
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import Provenance
from kafeat.model.saved import SavedMap
from kafeat.pictures import notebook
from kafeat.runtime.column_ranges import ColumnRanges, FeatureMean
from kafeat.runtime.run import fill, run
from kafeat.types import Array, DType, Floats, TableLike


@dataclass(frozen=True, repr=False, eq=False)
class FeatureMap(SavedMap):
    """A map z from rows of numbers to rows of features, with z(x)·z(y) ≈ k(x, y).

    `kafeat.fit` and `kafeat.load` return feature maps, which are immutable. Two maps are equal if their files have the
    same bytes; a map that cannot be saved equals only itself. A pickle of a map contains the bytes of its file.

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
        The recipe that was fitted.
    provenance : Provenance
        Names, rows and hashes of the data that the map was fitted on.
    version : str
        Version of the kafeat that fitted the map.
    column_ranges : ColumnRanges or None
        Range of every input feature in the fitted data; None for maps of versions that did not record it.
    feature_mean : FeatureMean or None
        Mean and variance of the features of fitted rows; None for maps of versions that did not record it.
    predictor : FittedPredictor or None
        The fitted predictor, or None if the last step is not a predictor.
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
    format: int = serialize.FORMAT

    _repr_html_ = notebook.table
    plot_kernel = notebook.plot_kernel
    plot_distances = notebook.plot_distances

    def __repr__(self) -> str:
        kinds = " -> ".join(step.kind for step in self.config.steps)
        return f"FeatureMap({kinds}: {len(self.columns.inputs)} inputs, {self.n_components} features, {self.dtype})"

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """The dtype in which input values are read: float64 if the first step computes in float64."""
        return self.program().reads

    @property
    def n_features_in(self) -> int:
        """The number of input features."""
        return self.chain.n_features_in

    @property
    def n_components(self) -> int:
        """The number of output features."""
        return self.chain.n_components

    @property
    def classes(self) -> Array | None:
        """The classes (c,) in the order of the probabilities, or None without a predictor of classes."""
        return None if self.predictor is None else self.predictor.labels.class_array

    @property
    def unit_scale(self) -> float | None:
        """The factor that gives the features a mean variance of about 1, or None if it is unknown."""
        return None if self.feature_mean is None else self.feature_mean.unit_scale(self.dtype)

    @cached_property
    def program(self) -> Programs:
        """Compiles the chain for a kind of result, as in `fm.program("predictions")`, once per kind and process."""
        last = self.predictor
        if last is None:
            return Programs(self.chain, self.dtype)
        intervals = None if last.intervals is None else last.intervals.bound
        return Programs(self.chain, self.dtype, last.fitted, intervals)

    def needed_unit_scale(self) -> float:
        """Return `unit_scale`, or raise an error if the map has none."""
        scale = self.unit_scale
        if scale is None:
            older = self.feature_mean is None
            got = "one of an older version: fit it again" if older else "one whose features are constant"
            raise UsageError(
                f"unit variance: expected a map that stores the variance of its features, got {got}"
            )
        return scale

    def needed_predictor(self, who: str = "predict") -> FittedPredictor:
        """Return the predictor, or raise an error that begins with `who` if the map has none."""
        if self.predictor is None:
            raise UsageError(
                f"{who}: expected a model that ends in a predictor, got a map: add `- kind: ridge` as the last step of "
                "its config (kafeat tune --predictor ridge does so) and fit it again with a label"
            )
        return self.predictor

    def needed_intervals(self) -> Intervals:
        """Return the intervals of the predictor, or raise an error if there are none."""
        intervals = self.needed_predictor().intervals
        if intervals is None:
            raise UsageError(
                "interval: expected a model that stores the errors of held-out rows, got one that does not: "
                "fit it again (without --no-intervals; in Python: intervals=True), on a label other than "
                "probabilities (task: soft)"
            )
        return intervals

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
            Number of threads; None: all cores. The result does not depend on it.
        out : array of floats (n_rows, n_components) or None, default None
            Array for the features, which are rounded to its dtype. Filling the same array again is faster than making a
            new one.
        unit_variance : bool, default False
            True multiplies all features by one factor, `unit_scale`, so that the mean of their variances is about 1,
            which the default penalties of other libraries assume.

        Returns
        -------
        array (n_rows, n_components)
            The features in the map's dtype, or `out`.

        Raises
        ------
        kafeat.errors.DataError
            A column is missing, or a value is not finite or not accepted by a step.
        kafeat.errors.UsageError
            `X` is not an array or table, `out` has a wrong shape or type, or the map has no `unit_scale`.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}]}, X)
        >>> fm.transform(X[:5]).shape
        (5, 64)
        """
        program = self.program(scale=self.needed_unit_scale() if unit_variance else None)
        return self.fill(program, X, jobs, out)

    def transform_sparse(self, X: TableLike | Reader) -> Any:
        """Return the features z(X) as a sparse matrix, without making a dense matrix of all rows.

        The map has to end with a step that keeps zeros: `homogeneous`, `intersection_bins`, `polynomial_features`,
        `one_hot`, `projection` with `matrix: sparse`, a scaler that leaves 0 as it is, or a union of such maps.

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
        kafeat.errors.KafeatError
            As for `transform`; a `UsageError` if the map ends with another step.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> fm = kafeat.fit({"steps": [{"kind": "intersection_bins", "n_bins": 4}]}, np.eye(3))
        >>> Z = fm.transform_sparse(np.eye(3))
        >>> Z.shape, Z.nnz
        ((3, 12), 12)
        """
        from scipy.sparse import csr_array, vstack

        source, columns = self.source(X)
        chunks = source.chunks(columns, (), self.chunk_rows)
        done = run(self.program(sparse=True), chunks, None, 1, in_memory=source.in_memory)
        parts = [csr_array((0, self.n_components), dtype=self.dtype), *(one.sparse.csr for one in done)]
        return vstack(parts, format="csr", dtype=self.dtype)

    def predict(self, X: TableLike | Reader, jobs: int | None = None) -> Array:
        """Return the predicted label of each row.

        Parameters
        ----------
        X, jobs
            As for `transform`.

        Returns
        -------
        array (n_rows,) or (n_rows, k)
            Classes in the type of the label, or numbers in float64, with a column for each of k labels.

        Raises
        ------
        kafeat.errors.KafeatError
            As for `transform`; a `UsageError` if the map does not end in a predictor.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 < 1.0, "in", "out")
        >>> config = {"steps": [{"kind": "fourier", "n_components": 64}, {"kind": "ridge"}]}
        >>> kafeat.fit(config, X, label=y).predict([[0.1, 0.1], [2.0, 0.0]]).tolist()
        ['in', 'out']
        """
        predictor = self.needed_predictor()
        return predictor.predicted(self.fill(self.program("predictions"), X, jobs))

    def predict_proba(self, X: TableLike | Reader, jobs: int | None = None) -> Floats:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X, jobs
            As for `transform`.

        Returns
        -------
        array (n_rows, n_classes) of float64
            Probabilities in the order of `classes`; every row sums to 1.

        Raises
        ------
        kafeat.errors.KafeatError
            As for `transform`; a `UsageError` if the map does not end in a predictor of classes.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> config = {"steps": [{"kind": "fourier", "n_components": 64}, {"kind": "ridge"}]}
        >>> fm = kafeat.fit(config, X, label=X[:, 0] > 0.0)
        >>> fm.classes.tolist(), fm.predict_proba(X).shape
        ([False, True], (200, 2))
        """
        self.needed_predictor()
        if self.classes is None:
            raise UsageError("predict_proba: expected a model of classes, got one of numbers")
        return self.fill(self.program("predictions"), X, jobs)

    def predict_interval(self, X: TableLike | Reader, level: float = 0.9, jobs: int | None = None) -> Array:
        """Return, for each row, an interval or a set of classes that contains the label with a given probability.

        Parameters
        ----------
        X, jobs
            As for `transform`.
        level : float, default 0.9
            The probability, between 0 and 1.

        Returns
        -------
        array (n_rows, 2) or (n_rows, k, 2) of float64, or (n_rows, n_classes) of bool
            Lower and upper end of the interval of each number; or True for each class in the set, ordered as `classes`.

        Warns
        -----
        kafeat.errors.KafeatWarning
            Few rows were held out when fitting, or only the latest, so intervals may miss more labels than promised.

        Raises
        ------
        kafeat.errors.KafeatError
            As for `transform`; a `UsageError` if the map does not end in a predictor, or was fitted without intervals.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 1))
        >>> y = 10.0 * X[:, 0] + rng.normal(size=500)
        >>> config = {"steps": [{"kind": "fourier", "n_components": 64}, {"kind": "ridge"}]}
        >>> kafeat.fit(config, X, label=y).predict_interval([[0.5]], 0.8).round().tolist()
        [[4.0, 6.0]]
        """
        intervals, predictor = self.needed_intervals(), self.needed_predictor()
        if not isinstance(level, Real):
            raise UsageError(f"interval: expected one probability, such as 0.9, got {level!r:.100}")
        for caution in predictor.interval_cautions(self.config.split_by):
            warnings.warn(caution, KafeatWarning, stacklevel=2)
        if self.classes is not None:
            return intervals.sets(self.fill(self.program("predictions"), X, jobs), level)
        made = self.fill(self.program("predictions", levels=(level,)), X, jobs)
        ends: Array = made[:, predictor.n_outputs :].reshape(len(made), -1, 2)
        return ends[:, 0] if predictor.n_outputs == 1 else ends

    def exact_kernel(self, X: TableLike, Y: TableLike | None = None) -> Floats:
        """Return the kernel matrix k(X, Y) that the map approximates.

        It is the kernel of the whole chain, computed in float64 from the values that the map reads.

        Parameters
        ----------
        X : array (n, n_features_in), sparse matrix or table
            Rows as for `transform`.
        Y : array (m, n_features_in), sparse matrix, table or None, default None
            Other rows; None: the rows X.

        Returns
        -------
        array (n, m) of float64
            The kernel matrix.

        Raises
        ------
        kafeat.errors.KafeatError
            As for `transform`; a `UsageError` if the map has no exact kernel.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 256}]}, X)
        >>> Z = fm.transform(X)
        >>> bool(np.abs(Z @ Z.T - fm.exact_kernel(X)).max() < 0.1)
        True
        """
        x = self._decoded(X)
        return self.chain.exact(x, x if Y is None else self._decoded(Y), np.dtype(self.dtype))

    def matrix(self, X: TableLike) -> Floats:
        """Return the input columns that the map reads from X, as an array.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Rows as for `transform`.

        Returns
        -------
        array (n_rows, n_features_in)
            The input features, with categories as codes, in the dtype that the map reads.

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
        return dense(self._decoded(X))

    def _decoded(self, X: TableLike) -> InputRows:
        """Return the input columns that the map reads from X, as numbers and codes; texts stay texts."""
        source, columns = self.source(X)
        return source.decoded(columns, self.input_dtype, self.chunk_rows)

    def source(self, X: TableLike | Reader) -> tuple[Reader, Columns]:
        """Return a reader of the rows X, and the columns that the map reads from it."""
        # Imported here, so that commands that read files start faster.
        from kafeat.io.readers.memory import MemoryReader, reader_of

        source = reader_of(X)
        if not isinstance(source, MemoryReader):
            return source, match(source, self.columns, ())
        width = len(source.fields)
        if width not in self._of_width:
            self._of_width[width] = match(source, self.columns, ())
        return source, self._of_width[width]

    @cached_property
    def _of_width(self) -> dict[int, Columns]:
        """A cache of the matched columns by array width, because matching takes longer than transforming a row."""
        return {}

    def fill(
        self, program: Program, X: TableLike | Reader, jobs: int | None, out: Floats | None = None
    ) -> Floats:
        """Return the results of a program of this map for rows X, written to `out` if `out` is not None."""
        source, columns = self.source(X)
        return fill(program, source, columns, self.chunk_rows, jobs, out)
