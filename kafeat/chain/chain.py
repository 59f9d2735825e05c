"""A chain of fitted steps: fitted on a sample, bound to a dtype, and compared with its exact kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.bound_chain import BoundChain, after
from kafeat.chain.fit_step import FitCache, fit_step
from kafeat.chain.fitted_step import FittedStep
from kafeat.chain.precision import agree, demanding_rows
from kafeat.chain.tiles import run_tiles
from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.contract.step import DOUBLE, Sample, Scaler, Step, Transform
from kafeat.errors import DataError, InvalidValueError
from kafeat.types import Array, Floats, State


@dataclass(frozen=True)
class Chain:
    """Fitted steps, first to last."""

    steps: tuple[FittedStep, ...]
    outputs: Array | None = None
    """Indices of the outputs of the last step that are kept, ascending; None for all."""
    cast_after: int = 0
    """The number of leading steps that compute in float64 whatever the dtype; values are cast to it after them."""

    @classmethod
    def fit(
        cls,
        steps: Sequence[Step],
        sample: Sample,
        rng: np.random.Generator,
        begins: Callable[[int, Floats], None] | None = None,
        cache: FitCache | None = None,
    ) -> Chain:
        """Fit each step on the sample as the steps before it hand it on; each draws from a stream of its own.

        All of it in float64. How many steps of a float32 chain compute in float64 later is measured: the leading
        scalers, or all where float32 would not do. `begins` is told the number of each step, from 0, and the rows
        that it is fitted on. Several chains that are fitted on one sample with one `rng` may share a `cache`: the
        steps with which they begin alike are fitted once.
        """
        if any(step.searches for step in steps):
            raise TypeError("parameters that are chosen from the data have to be settled first")
        fitted: list[FittedStep] = []
        before = sample
        # One BLAS thread: what is learned must not depend on the number of cores.
        with one_blas_thread(linalg=True):
            for i, stream in enumerate(rng.spawn(len(steps))):
                if begins is not None:
                    begins(i, before.X)
                known = None if cache is None else cache.find(steps[: i + 1])
                try:
                    one, before = known or fit_step(steps, i, before, stream)
                except InvalidValueError as refused:
                    raise after(refused, steps[:i]) from None
                fitted.append(one)
                if cache is not None and i + 1 < len(steps):
                    cache.keep(steps[: i + 1], (one, before))
            return cls(tuple(fitted), cast_after=leading_scalers(steps))._with_enough_precision(sample)

    def _with_enough_precision(self, sample: Sample) -> Chain:
        """Return this chain, or one that computes in float64 if float32 changes features of the sample too much."""
        if sample.dtype == DOUBLE or self.cast_after == len(self.steps):
            return self
        narrow, wide = self.bind(sample.dtype), self.bind(DOUBLE)
        if agree(narrow, wide, sample.X, demanding_rows(sample.X), sample.dtype):
            return self
        return replace(self, cast_after=len(self.steps))

    @classmethod
    def without_widths(cls, steps: Sequence[Step], states: Sequence[State]) -> Chain:
        """Make a chain for `exact_pair` of dot products, which asks for no widths: all of them are 0."""
        return cls(tuple(FittedStep(step, state, 0) for step, state in zip(steps, states, strict=True)))

    @classmethod
    def checked(
        cls, steps: Sequence[Step], states: Sequence[State], n_features_in: int, cast_after: int = 0
    ) -> Chain:
        """Build a chain from untrusted recipes and states; raise ValueError if they disagree."""
        fitted: list[FittedStep] = []
        width = n_features_in
        for i, (step, state) in enumerate(zip(steps, states, strict=True)):
            try:
                fitted.append(FittedStep.checked(step, state, width))
                width = fitted[-1].n_features_out
            except ValueError as error:
                raise ValueError(f"steps[{i}].{error}") from None
        return cls(tuple(fitted), cast_after=cast_after)

    @property
    def n_features_in(self) -> int:
        """Width of the input."""
        return self.steps[0].n_features_in

    @property
    def n_outputs(self) -> int:
        """Width of the last step's output, of which `outputs` may keep some."""
        return self.steps[-1].n_features_out

    def bind(self, dtype: np.dtype[Any]) -> Transform:
        """All steps as one transform, whose features are of `dtype`."""
        transforms = [
            fitted.bind(DOUBLE if i < self.cast_after else dtype) for i, fitted in enumerate(self.steps)
        ]
        steps = [fitted.step for fitted in self.steps]
        return BoundChain(steps, transforms, dtype, self.cast_after, self.outputs)

    def _first(self, n: int) -> Chain:
        """The first n steps."""
        return Chain(self.steps[:n], cast_after=min(n, self.cast_after))

    def transform(self, X: Floats) -> Floats:
        """The features (n, D) of rows X (n, d), in their dtype, by the calling thread."""
        with one_blas_thread():
            return run_tiles(self.bind(X.dtype), X, X.dtype)

    def exact(self, X: Floats, Y: Floats, dtype: np.dtype[Any] = DOUBLE) -> Floats:
        """The kernel that the chain stands for, (n, m) float64, of rows X (n, d) and Y (m, d).

        A step that needs coordinates but stands after a sampler sees the computed outputs of the steps before
        it, in `dtype`: `reference` says where.
        """
        with one_blas_thread(), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            K = self.exact_pair(Coordinates(X.astype(np.float64), Y.astype(np.float64)), dtype).dots
        if not np.isfinite(K).all():
            raise DataError(
                f"exact kernel: expected values that float64 can hold, got {K[~np.isfinite(K)][0]:g}: scale the input"
            )
        return K

    def exact_pair(self, pair: KernelInputs, dtype: np.dtype[Any] = DOUBLE) -> KernelInputs:
        """Apply the exact kernel of every step to `pair`.

        A step that needs coordinates after a sampler gets those of the features, computed in `dtype`.
        """
        inputs = pair
        for i, fitted in enumerate(self.steps):
            if isinstance(pair, Gram) and fitted.step.needs_coordinates:
                if not isinstance(inputs, Coordinates):
                    raise TypeError(f"{fitted.step.kind} needs coordinates, and there are none")
                before = self._first(i).bind(dtype)
                both = (rows.astype(before.reads(dtype)) for rows in (inputs.x, inputs.y))
                x, y = (run_tiles(before, rows, dtype).astype(np.float64) for rows in both)
                pair = Coordinates(x, y)
            pair = fitted.step.exact(fitted.state, pair)
        return pair

    def numbers(self, X: Floats) -> Floats:
        """Rows X (n, d) after the leading steps that read missing numbers or categories: plain numbers."""
        steps = [f.step for f in self.steps]
        most = max((i + 1 for i, s in enumerate(steps) if s.missing == "fill" or s.reads_columns), default=0)
        if not most or not all(s.missing != "refuse" or s.reads_columns for s in steps[:most]):
            return X
        return self._first(most).transform(X)

    def exact_kernel_note(self) -> str | None:
        """Say where the exact kernel is one of computed features; None if it never is."""
        notes, after_sampler, computed = [], False, None
        for i, fitted in enumerate(self.steps):
            if after_sampler and fitted.step.needs_coordinates:
                computed = i
            # A scaler turns coordinates into coordinates, unless it stands after a sampler itself.
            after_sampler = _gives_gram(fitted.step, after_sampler)
            if fitted.step.own_kernel is not None:
                notes.append(
                    f"steps[{i}] ({fitted.step.kind}): {fitted.step.own_kernel} has no given kernel: its exact kernel "
                    "is that of the features themselves, so their error is only rounding"
                )
        if computed is not None:
            notes.append(
                f"steps[{computed}] ({self.steps[computed].step.kind}) needs coordinates after a sampler: the exact "
                f"kernel is that of the computed outputs of the steps before it"
            )
        return "; ".join(notes) or None


def leading_scalers(steps: Sequence[Step]) -> int:
    """The number of scalers that come first."""
    return next((i for i, step in enumerate(steps) if not isinstance(step, Scaler)), len(steps))


def _gives_gram(step: Step, after_sampler: bool) -> bool:
    if isinstance(step, Scaler):
        return after_sampler and not step.needs_coordinates
    return True
