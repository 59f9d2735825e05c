"""The logarithm of 1 + x: counts of any size become comparable."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kafeat.contract.checks import refuse_where
from kafeat.contract.step import Sample
from kafeat.contract.traits import ColumnTraits, NumberTraits, Traits
from kafeat.scalers._columns import ColumnScaler
from kafeat.types import Floats, State


class Log1p(ColumnScaler):
    """z = log(1 + x), exact also where x is tiny: 0 stays 0, and counts of any size become comparable.

    An entry of −1 or less has no logarithm and is refused.
    """

    always: ClassVar[Traits] = Traits(
        columns=ColumnTraits(apart=True),
        numbers=NumberTraits(missing="pass", refuses_negative=True, spreads="keeps"),
    )

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        refuse_where(sample.X <= -1.0, sample.X, "a value above -1")
        return {}

    def scale(self, state: State, X: Floats) -> Floats:
        refuse_where(X <= -1.0, X, "a value above -1")
        return np.log1p(X)
