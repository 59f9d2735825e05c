"""A chain of fitted steps: fitted on a sample, bound to a dtype, and compared with its exact kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.bound_chain import BoundChain, after
from kafeat.chain.precision import agree, demanding_rows
from kafeat.chain.tiles import TileLoop
from kafeat.contract.checks import remedy
from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.contract.step import DOUBLE, MOST_FEATURES, Sample, Scaler, Step, Transform
from kafeat.errors import DataError, InvalidValueError
from kafeat.types import Array, Floats, Shape, State

_FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class FittedStep:
    """A recipe, what it learned, and the width that it learned it on."""

    step: Step
    state: State
    n_features_in: int

    @classmethod
    def checked(cls, step: Step, state: State, n_features_in: int) -> FittedStep:
        """Build a step from an untrusted recipe and state; raise ValueError if they disagree."""
        _check_arrays(state, step.state_shapes(state, n_features_in), step.state_dtypes)
        step.check_state(state, n_features_in)
        fitted = cls(step, state, n_features_in)
        fitted.check_width()
        return fitted

    @property
    def n_features_out(self) -> int:
        """The width of the output."""
        return self.step.n_features_out(self.state, self.n_features_in)

    def check_width(self) -> None:
        """ValueError for an output that nobody could hold: some kinds multiply their inputs."""
        if not 1 <= self.n_features_out <= MOST_FEATURES:
            raise ValueError(
                f"{self.step.kind}: expected from 1 to {MOST_FEATURES:,} outputs, got {self.n_features_out:,}"
            )

    def bind(self, dtype: np.dtype[Any]) -> Transform:
        """The transform in `dtype`."""
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return self.step.bind(self.state, self.n_features_in, dtype)
        except FloatingPointError as error:
            raise DataError(
                f"{self.step.kind}: expected a state that {dtype} can hold, got one that cannot be cast ({error}): "
                f"{remedy(dtype)}"
            ) from None


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
    ) -> Chain:
        """Fit each step on the sample as the steps before it hand it on; each draws from a stream of its own.

        All of it in float64. How many steps of a float32 chain compute in float64 later is measured: the leading
        scalers, or all where float32 would not do. `begins` is told the number of each step, from 0, and the rows
        that it is fitted on.
        """
        if any(step.searches for step in steps):
            raise TypeError("parameters that are chosen from the data have to be settled first")
        fitted: list[FittedStep] = []
        X, given = sample.X, dict(sample.given)
        # One BLAS thread: what is learned must not depend on the number of cores.
        with one_blas_thread():
            for i, (step, stream) in enumerate(zip(steps, rng.spawn(len(steps)), strict=True)):
                try:
                    here = replace(sample, X=X, given=given)
                    if not all(before.keeps_categories for before in steps[:i]):
                        here = replace(here, names=None, n_categories=None)
                    if begins is not None:
                        begins(i, X)
                    fitted.append(FittedStep(step, _learned(step, here, stream), X.shape[1]))
                    _refuse_width(fitted[-1], i)
                    # The last step is bound as well, so that the fit reports what float64 cannot hold.
                    bound = fitted[-1].bind(DOUBLE)
                    if i + 1 < len(steps):
                        given = {name: _run_given(bound, name, rows) for name, rows in given.items()}
                        X = _run(bound, X, DOUBLE)
                except InvalidValueError as refused:
                    raise after(refused, steps[:i]) from None
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
            return _run(self.bind(X.dtype), X, X.dtype)

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
                x, y = (_run(before, rows, dtype).astype(np.float64) for rows in both)
                pair = Coordinates(x, y)
            pair = fitted.step.exact(fitted.state, pair)
        return pair

    def numbers(self, X: Floats) -> Floats:
        """Rows X (n, d) after the leading steps that read missing numbers or categories: plain numbers."""
        steps = [f.step for f in self.steps]
        most = max((i + 1 for i, s in enumerate(steps) if s.missing == "fill" or s.coded_columns), default=0)
        if not most or not all(s.missing != "refuse" or s.coded_columns for s in steps[:most]):
            return X
        return self._first(most).transform(X)

    def exact_kernel_note(self) -> str | None:
        """Say from which step on the exact kernel is one of computed features; None if it never is."""
        after_sampler, computed = False, None
        for i, fitted in enumerate(self.steps):
            if after_sampler and fitted.step.needs_coordinates:
                computed = i
            # A scaler turns coordinates into coordinates, unless it stands after a sampler itself.
            after_sampler = _gives_gram(fitted.step, after_sampler)
        if computed is None:
            return None
        return (
            f"steps[{computed}] ({self.steps[computed].step.kind}) needs coordinates after a sampler: the exact "
            f"kernel is that of the computed outputs of the steps before it"
        )


def leading_scalers(steps: Sequence[Step]) -> int:
    """The number of scalers that come first."""
    return next((i for i, step in enumerate(steps) if not isinstance(step, Scaler)), len(steps))


def _gives_gram(step: Step, after_sampler: bool) -> bool:
    if isinstance(step, Scaler):
        return after_sampler and not step.needs_coordinates
    return True


def _learned(step: Step, sample: Sample, rng: np.random.Generator) -> State:
    """Fit the step. Overflow on the way is ignored, as the state is checked afterwards."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        state = step.fit(sample, rng)
    for name, value in state.items():
        if not np.isfinite(value).all():
            raise DataError(
                f"{step.kind}: expected rows that it can learn from in float64, got {name} = "
                f"{value[~np.isfinite(value)][0]:g}: scale the input, or choose another gamma"
            )
    return state


def _run_given(transform: Transform, name: str, rows: Floats) -> Floats:
    try:
        return _run(transform, rows, DOUBLE)
    except InvalidValueError as refused:  # the row is in an extra file of the step, which the message names
        raise DataError(f"{name}: {refused}") from None


def _run(transform: Transform, X: Floats, dtype: np.dtype[Any]) -> Floats:
    out = np.empty((len(X), transform.n_features_out), dtype=dtype)
    TileLoop(transform, dtype)(X, out)
    return out


def _refuse_width(fitted: FittedStep, i: int) -> None:
    try:
        fitted.check_width()
    except ValueError as error:
        raise DataError(f"steps[{i}]: {error}: take fewer columns, or fewer outputs of each") from None


def _check_arrays(state: State, shapes: Mapping[str, Shape], dtypes: Mapping[str, str]) -> None:
    if set(state) != set(shapes):
        raise ValueError(f"state: expected {sorted(shapes)}, got {sorted(state)!s:.200}")
    for name, shape in shapes.items():
        allowed = (dtypes[name],) if name in dtypes else _FLOATS
        if state[name].dtype not in allowed:
            raise ValueError(
                f"state.{name}: expected numbers of {' or '.join(allowed)}, got {state[name].dtype}"
            )
        if state[name].shape != tuple(shape):
            raise ValueError(f"state.{name}: expected the shape {tuple(shape)}, got {state[name].shape}")
        if not np.isfinite(state[name]).all():
            raise ValueError(f"state.{name}: expected finite numbers")
