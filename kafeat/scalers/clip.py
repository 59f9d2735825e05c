"""Clip outliers: values outside two quantiles of the training rows become these quantiles."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from kafeat.contract.step import Sample, parameter
from kafeat.contract.traits import ColumnTraits, NumberTraits, Traits
from kafeat.scalers._columns import ColumnScaler
from kafeat.types import Floats, State

Share = Annotated[float, Field(ge=0.0, le=0.5)]


class Clip(ColumnScaler):
    """z = min(max(x, a), b), with the quantiles a and b of each column of the fit sample.

    A share of the sample (`share`) lies below a, and the same share above b. With 0, a and b are the smallest and the
    largest value of the sample.
    """

    always: ClassVar[Traits] = Traits(columns=ColumnTraits(apart=True), numbers=NumberTraits(spreads="keeps"))
    learned: ClassVar[tuple[str, ...]] = ("low", "high")

    share: Share = parameter(0.005, "share of the sample that is clipped at each end")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        low, high = np.quantile(sample.X, (self.share, 1.0 - self.share), axis=0).astype(np.float64)
        return {"low": low, "high": high}

    def scale(self, state: State, X: Floats) -> Floats:
        return np.clip(X, state["low"], state["high"])
