"""The methods of a feature map that ends in a predictor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kafeat.chain.bound_chain import PREDICTION_DTYPE, PredictingTransform, PredictingWithFeatures
from kafeat.contract.step import Transform
from kafeat.errors import UsageError
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.threads import REFUSE_BAD_ROWS, NewArrays, RowPolicy, Transformed, run, run_in_memory
from kafeat.types import Array, DType, Floats, TableLike

if TYPE_CHECKING:
    from kafeat.io.columns.columns import Columns
    from kafeat.io.readers.base import Chunk, Reader
    from kafeat.model.predictor import FittedPredictor


class Predictions:
    """`predict` and `predict_proba` of a feature map."""

    predictor: FittedPredictor | None
    dtype: DType
    if TYPE_CHECKING:

        @property
        def transformer(self) -> Transform: ...
        def _height(self, rows: int, jobs: int) -> int: ...
        def _source(self, X: TableLike | Reader) -> tuple[Reader, Columns]: ...

    @cached_property
    def predicting(self) -> PredictingTransform:
        """The map and its predictor as one transform, computed once per process."""
        dtype = np.dtype(self.dtype)
        return PredictingTransform(self.transformer, self.needed_predictor().fitted.bind(dtype), dtype)

    def run_predictions(
        self, chunks: Iterator[Chunk], jobs: int | None, policy: RowPolicy = REFUSE_BAD_ROWS
    ) -> Iterator[Transformed]:
        """Predict chunks by `jobs` threads, read by a further one, and yield them in order.

        Where the policy asks for sums, they are those of the features.
        """
        transform: Transform = PredictingWithFeatures(self.predicting) if policy.sums else self.predicting
        target, k = NewArrays(transform.n_features_out, PREDICTION_DTYPE), self.predicting.n_features_out
        for done in run(transform, PREDICTION_DTYPE, chunks, target, count_jobs(jobs), policy):
            if done.total is None:
                yield done
            else:
                yield replace(done, features=done.features[:, :k], total=done.total[k:])

    def needed_predictor(self) -> FittedPredictor:
        """Return the predictor; refuse a map without one."""
        if self.predictor is None:
            raise UsageError(
                "predict: expected a model that ends in a predictor, got a map: add `- kind: ridge` as the last step "
                "of its config (kafeat tune --predictor ridge does so) and fit it again with a label"
            )
        return self.predictor

    @property
    def classes(self) -> Array | None:
        """The classes (c,) in the order of the probabilities; None if numbers are predicted, or nothing is."""
        labels = None if self.predictor is None else self.predictor.labels
        return None if labels is None or labels.classes is None else labels.class_array

    def predict(self, X: TableLike | Reader, jobs: int | None = None) -> Array:
        """Return the predicted label of each row.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Rows as for `transform`.
        jobs : int or None, default None
            Number of threads; None takes all cores. The result does not depend on it.

        Returns
        -------
        array (n_rows,) or (n_rows, k)
            Classes in their own type, or numbers in float64: of k labels, a column for each.

        Raises
        ------
        kafeat.errors.DataError
            A column is missing, or a value is not finite or not accepted by a step.
        kafeat.errors.UsageError
            The map does not end in a predictor.

        Examples
        --------
        >>> import kafeat, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 < 1.0, "in", "out")
        >>> config = {"steps": [{"kind": "fourier", "n_components": 64}, {"kind": "ridge"}]}
        >>> kafeat.fit(config, X, label=y).predict([[0.1, 0.1], [2.0, 0.0]]).tolist()
        ['in', 'out']
        """
        outputs = self._outputs(X, jobs)
        if self.classes is not None:
            chosen: Array = self.classes[outputs.argmax(axis=1)]
            return chosen
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict_proba(self, X: TableLike | Reader, jobs: int | None = None) -> Floats:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X : array (n_rows, n_features_in), sparse matrix or table
            Rows as for `transform`.
        jobs : int or None, default None
            Number of threads; None takes all cores. The result does not depend on it.

        Returns
        -------
        array (n_rows, n_classes) of float64
            Probabilities in the order of `classes`; every row sums to 1.

        Raises
        ------
        kafeat.errors.DataError
            A column is missing, or a value is not finite or not accepted by a step.
        kafeat.errors.UsageError
            The map does not end in a predictor of classes.

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
        return self._outputs(X, jobs)

    def _outputs(self, X: TableLike | Reader, jobs: int | None) -> Floats:
        width = self.needed_predictor().n_outputs
        source, columns = self._source(X)
        if source.rows is None:
            raise TypeError("a source in memory knows its rows")
        out: Floats = np.empty((source.rows, width), PREDICTION_DTYPE)
        jobs = count_jobs(jobs)
        chunks = source.chunks(columns, (), self._height(source.rows, jobs))
        run_in_memory(self.predicting, PREDICTION_DTYPE, chunks, out, jobs)
        return out
