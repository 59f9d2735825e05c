"""Scale and rotate rows so that distances depend most on the directions in which the label changes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kafeat.contract.memory import require_memory
from kafeat.contract.step import Sample, Scaler, Width, parameter, refuse_parameter
from kafeat.contract.traits import LabelTraits, Traits
from kafeat.errors import DataError
from kafeat.maths.metric import LEAST_ROWS, apply_root, learn_metric
from kafeat.maths.task import targets_to_learn
from kafeat.types import Array, Floats, Shape, Shapes, State

# The most columns for a full matrix, since more would take minutes, and how many such matrices must fit into memory.
_MOST_COLUMNS = 4096
_MATRICES = 16.0


class Metric(Scaler):
    """xL, with L = M^{α/2}, where M is the average gradient outer product of a predictor of the label.

    Directions in which the label changes much are stretched, and the others shrink. M is the mean of ∇f∇fᵀ over rows,
    where f is ridge regression on Fourier features of xL. Each iteration estimates M again. With `rank`, L holds only
    the leading eigenvectors of M, times the roots of their eigenvalues. Without `rank`, L is the identity unless ridge
    on rbf landmarks predicts held-out rows better with M^{α/2}, by more than noise. Source: Radhakrishnan et al. 2024
    (Science); Beaglehole et al. 2025 (xRFM).
    """

    always: ClassVar[Traits] = Traits(label=LabelTraits({"kind: metric": "to learn from"}))

    alpha: float = parameter(1.0, "α, the power of M; 0.5 is milder", gt=0.0, le=2.0)
    iterations: int = parameter(5, "maximum number of estimates of M", ge=1, le=20)
    rank: Width | None = parameter(None, "number of directions to keep; null: all")
    diagonal: bool = parameter(False, "one weight for each column and no rotation, for many columns")
    fit_rows: int = parameter(6000, "maximum number of rows to learn from", ge=LEAST_ROWS)

    def check_parameters(self) -> None:
        if self.diagonal and self.rank is not None:
            refuse_parameter("rank", "null with diagonal", self.rank)

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        d = sample.X.shape[1]
        if self.rank is not None and self.rank > d:
            raise DataError(f"metric: rank: expected at most the number of columns, {d}, got {self.rank}")
        if d > _MOST_COLUMNS and not self.diagonal:
            raise DataError(
                f"metric: expected at most {_MOST_COLUMNS:,} columns, got {d:,}; set diagonal: true, or put pca first"
            )
        if not self.diagonal:
            require_memory(
                _MATRICES * d * d, f"metric: {d:,} columns", "set diagonal: true, or put pca first"
            )
        return learn_metric(
            sample.X,
            targets_to_learn(sample.needed_label),
            rng,
            alpha=self.alpha,
            iterations=self.iterations,
            rank=self.rank,
            diagonal=self.diagonal,
            most_rows=self.fit_rows,
            keys=sample.keys,
        )

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        d = n_features_in
        errors: dict[str, Shape] = {"error_identity": (), "error_kept": ()}
        return {
            "root": (d,) if self.diagonal else (d, self.rank or d),
            "spectrum": (d,),
            "importance": (d,),
            **(errors if "error_kept" in state else {}),
        }

    def sources(self, state: State, n_features_in: int) -> Array | None:
        return np.arange(n_features_in) if self.diagonal else None

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return self.rank or n_features_in

    def scale(self, state: State, X: Floats) -> Floats:
        return apply_root(X, state["root"])
