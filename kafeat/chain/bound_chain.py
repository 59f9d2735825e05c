"""All steps of a chain as one transform, which may end with a predictor, or with a factor that scales the features.

After the leading steps that compute in float64, the transform rounds their output to the dtype of the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kafeat.contract.checks import beyond, round_to
from kafeat.contract.step import DOUBLE, Step, Transform, total_clipped
from kafeat.contract.tile import InputRows, is_feature_major, shaped
from kafeat.errors import InvalidValueError
from kafeat.types import Array, Floats, Scratch

PREDICTION_DTYPE = DOUBLE
"""The dtype in which predictions are computed."""


class BoundChain(Transform):
    """Passes a tile through all steps. Only the last step writes to the output.

    The first `cast_after` transforms compute in float64, all later transforms in `dtype`. Values are rounded before the
    first later transform, but not if that transform reads float64. With a `predictor`, the output consists of its
    predictions, in float64. With `sums`, the features follow the predictions, so that both can be summed over rows.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        transforms: Sequence[Transform],
        dtype: np.dtype[Any],
        cast_after: int = 0,
        *,
        predictor: Transform | None = None,
        factor: float | None = None,
        sums: bool = False,
    ) -> None:
        self._steps = tuple(steps)
        self._transforms = (*transforms, *([] if predictor is None else [predictor]))
        self._dtype, self._factor, self._sums = dtype, factor, sums
        self.n_features_in = transforms[0].n_features_in
        self._n_features = transforms[-1].n_features_out
        self.n_features_out = self._n_features if predictor is None else predictor.n_features_out
        if sums:
            self.n_features_out += self._n_features
        wide = 0 if dtype == DOUBLE else cast_after
        self._reads = DOUBLE if wide else transforms[0].reads(dtype)
        self.takes = transforms[0].takes
        kept_wide = 0 < wide < len(transforms) and transforms[wide].reads(dtype) == DOUBLE
        self._rounded = None if not wide or kept_wide else wide - 1
        """The index of the step whose float64 output is rounded to `dtype`, or None if no output is rounded."""
        self._handed_on = [
            (transform.n_features_out, DOUBLE if i < wide and i != self._rounded else dtype)
            for i, transform in enumerate(self._transforms[:-1])
        ]  # fmt: skip

    def reads(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        del dtype  # May be float64 for predictions, but the input depends only on the map's dtype.
        return self._reads

    @property
    def gives_sparse(self) -> bool:
        return self._transforms[-1].gives_sparse

    @property
    def widest(self) -> int:
        return max(transform.widest for transform in self._transforms)

    def scratch(self, rows: int) -> Scratch:
        """Return buffers: arrays between steps, those of each step, one of values to round, and one of predictions."""
        width = 0 if self._rounded is None else self._transforms[self._rounded].n_features_out
        predicted = self.n_features_out - self._n_features if self._sums else 0
        return (
            [np.empty((rows, width), dtype=dtype) for width, dtype in self._handed_on],
            [transform.scratch(rows) for transform in self._transforms],
            np.empty(rows * width),
            np.empty((rows, predicted), PREDICTION_DTYPE),
        )

    def apply(self, X: InputRows, out: Floats, scratch: Scratch) -> Array | None:
        between, steps, wide, predictions = scratch
        clipped, last = list[Array | None](), predictions if self._sums else out
        for i, (target, own) in enumerate(zip((*between, last), steps, strict=True)):
            made = target
            if i == self._rounded:
                made = shaped(wide, target.shape, is_feature_major(target))
            try:
                clipped.append(self._transforms[i].apply(X, made, own))
            except InvalidValueError as refused:
                raise after(refused, self._steps[:i]) from None
            if made is not target:
                self._round(i, made, target)
            X = target
        if self._factor is not None:
            out *= self._factor
        if self._sums:
            np.concatenate([last, between[-1]], axis=1, out=out)
        return total_clipped(clipped)

    def _round(self, i: int, made: Floats, out: Floats) -> None:
        place = round_to(made, out)
        if place is None:
            return
        (row, column), value = place, float(made[place])
        if i + 1 == len(self._steps):
            raise InvalidValueError(row, None, beyond(value, out.dtype))
        raise after(InvalidValueError(row, column, beyond(value, out.dtype, "a value")), self._steps[: i + 1])


def after(refused: InvalidValueError, steps: Sequence[Step]) -> InvalidValueError:
    """Add the names of `steps` to the error of a later step. If `steps` mix columns, remove the error's column."""
    if not steps:
        return refused
    column = refused.column if all(step.traits.columns.apart for step in steps) else None
    names = ", ".join(step.kind for step in steps)
    return InvalidValueError(refused.row, column, f"after {names}: {refused.problem}")
