"""The features of a map times one factor, so that the mean of their variances is 1."""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from kafeat.chain.bound_chain import ScaledTransform
from kafeat.contract.step import Transform
from kafeat.errors import UsageError
from kafeat.types import DType

if TYPE_CHECKING:
    from kafeat.runtime.column_ranges import FeatureMean


class UnitVariance:
    """The factor of a feature map, and the map times this factor."""

    feature_mean: FeatureMean | None
    dtype: DType
    if TYPE_CHECKING:

        @property
        def transformer(self) -> Transform: ...
        @property
        def n_components(self) -> int: ...

    @cached_property
    def unit_scale(self) -> float | None:
        """√(D / tr Σ), with the covariance Σ of the features of fitted rows.

        Times it, the D features have a mean variance of about 1. None for a map that does not know tr Σ, or whose
        features do not vary.
        """
        trace = 0.0 if self.feature_mean is None else float(self.feature_mean.traces[0])
        if trace == 0.0:
            return None
        scale = sqrt(self.n_components) / sqrt(trace)
        limits = np.finfo(self.dtype)
        return scale if limits.tiny < scale < limits.max else None

    def needed_unit_scale(self) -> float:
        """Return the factor; refuse a map that has none."""
        if self.unit_scale is None:
            older = self.feature_mean is None
            got = "one that does not: fit it again" if older else "one whose features do not vary, or hardly"
            raise UsageError(
                f"unit variance: expected a map that knows how its features vary in the rows of the fit, got {got}"
            )
        return self.unit_scale

    @cached_property
    def scaled(self) -> Transform:
        """The features times the factor as one transform, computed once per process."""
        return ScaledTransform(self.transformer, self.needed_unit_scale())
