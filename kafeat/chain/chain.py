"""Fitted steps and chains of them: fit on a sample, bind to a dtype, and compare with the exact kernel."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.bound_chain import BoundChain, after
from kafeat.chain.precision import agree, demanding_rows
from kafeat.chain.tiles import run_tiles
from kafeat.contract.checks import arrays_of, check_arrays, remedy
from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.contract.name_patterns import expand
from kafeat.contract.step import DOUBLE, MOST_FEATURES, Names, Sample, Scaler, Step, Transform
from kafeat.contract.threads import check
from kafeat.contract.tile import InputRows, TextRows, columns_of, dense
from kafeat.errors import DataError, InvalidValueError, quoted
from kafeat.types import Array, Floats, State


@dataclass(frozen=True, eq=False)
class FittedStep:
    """A step, the state that it has learned, and the number of its inputs."""

    step: Step
    state: State
    n_features_in: int

    @classmethod
    def checked(cls, step: Step, untrusted: object, n_features_in: int) -> FittedStep:
        """Build a step from an untrusted recipe and state. Raise ValueError if they disagree."""
        state = arrays_of(untrusted, "state")
        check_arrays(state, step.state_shapes(state, n_features_in), "state")
        step.check_state(state, n_features_in)
        fitted = cls(step, state, n_features_in)
        fitted.check_width()
        return fitted

    @property
    def n_features_out(self) -> int:
        """The number of outputs."""
        return self.step.n_features_out(self.state, self.n_features_in)

    def check_width(self) -> None:
        """Raise ValueError for too many outputs: the outputs of kinds such as `product` can outgrow any memory."""
        if not 1 <= self.n_features_out <= MOST_FEATURES:
            raise ValueError(
                f"{self.step.kind}: expected from 1 to {MOST_FEATURES:,} outputs, got {self.n_features_out:,}"
            )

    def bind(self, dtype: np.dtype[Any]) -> Transform:
        """Return the transform that computes in `dtype`."""
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return self.step.bind(self.state, self.n_features_in, dtype)
        except FloatingPointError as error:
            raise DataError(
                f"{self.step.kind}: expected a state that {dtype} can hold, got one that cannot be cast ({error}): "
                f"{remedy(dtype)}"
            ) from None


def sources_of(steps: Sequence[FittedStep]) -> Array | None:
    """Return for each output of the steps the number of its input, or None if an output depends on several inputs."""
    sources: Array | None = None
    for one in steps:
        found = one.step.sources(one.state, one.n_features_in)
        if found is None:
            return None
        sources = found if sources is None else sources[found]
    return sources


Fit = tuple[FittedStep, Sample]
"""A fitted step, and the sample for the next step: transformed by the step, or unchanged if the step is the last."""


_MOST_KNOWN = 16


class FitCache:
    """A cache of steps that were fitted on one sample. Its keys are the recipes of a step and all steps before it.

    It holds at most `most` transformed samples, because these need memory. The fit of the last step of a chain has no
    transformed sample.
    """

    def __init__(self, most: int = _MOST_KNOWN) -> None:
        self._most, self._known, self._place = most, dict[str, tuple[Fit, bool]](), ""

    def within(self, steps: Sequence[Step], place: str = "") -> FitCache:
        """Return a view of this cache for a chain in the step after `steps`. `place` names the map, such as maps[0]."""
        inner = copy.copy(self)
        inner._place = self._name(steps) + place
        return inner

    @property
    def inner(self) -> bool:
        """True if the cache is for chains inside a step."""
        return self._place != ""

    def find(self, steps: Sequence[Step]) -> Fit | None:
        """Return the fit of the last of these steps, or None if this fit is not in the cache."""
        name = self._name(steps)
        if name not in self._known:
            return None
        self._known[name] = self._known.pop(name)  # now the most recently used one
        return self._known[name][0]

    def keep(self, steps: Sequence[Step], fit: Fit, large: bool) -> None:
        """Keep the fit of the last of these steps. If there are too many fits, drop the least recently used one.

        A fit is `large` if it holds a sample of its own.
        """
        held = [name for name, (_, with_sample) in self._known.items() if with_sample]
        if large and len(held) >= self._most:
            del self._known[held[0]]
        elif len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[self._name(steps)] = fit, large

    def _name(self, steps: Sequence[Step]) -> str:
        return self._place + json.dumps([step.recipe() for step in steps])


def fit_step(steps: Sequence[Step], i: int, sample: Sample, rng: np.random.Generator) -> Fit:
    """Fit step i of a chain in float64 on the sample after earlier steps. The last step does not transform it."""
    if isinstance(sample.X, TextRows) and not (steps[i].traits.columns.texts or steps[i].inner_chains):
        raise DataError(
            f"{steps[i].kind}: expected plain numbers, got columns of text, which only the step text reads: put it "
            "first, or first in a map of a union that has its own columns"
        )
    step, last = steps[i].settled(sample), i + 1 == len(steps)
    fitted = FittedStep(step, _learned(step, sample, rng), sample.X.shape[1])
    _refuse_width(fitted, i)
    names, n_categories = _handed_on(fitted, sample, last)
    # The last step is also bound, so that fitting reports numbers that float64 cannot hold.
    bound = fitted.bind(DOUBLE)
    if last:
        return fitted, sample
    given = {name: _run_given(bound, name, rows) for name, rows in sample.given.items()}
    X = run_tiles(bound, sample.X, DOUBLE)
    stream = sample.stream and sample.stream.changed(lambda rows: run_tiles(bound, rows, DOUBLE))
    return fitted, replace(sample, X=X, given=given, names=names, n_categories=n_categories, stream=stream)


def _learned(step: Step, sample: Sample, rng: np.random.Generator) -> State:
    """Fit the step. Overflow in intermediate results is ignored, because the state is checked afterwards."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        state = step.fit(sample, rng)
    for name, value in state.items():
        if not np.isfinite(value).all():
            raise DataError(
                f"{step.kind}: expected rows that it can learn from in float64, got {name} = "
                f"{value[~np.isfinite(value)][0]:g}: scale the input, or choose another gamma"
            )
    return state


def _handed_on(fitted: FittedStep, sample: Sample, last: bool) -> tuple[Names | None, tuple[int, ...] | None]:
    """Return the names of the outputs, and the number of categories of each.

    Raise an error if the step would use codes or times as plain numbers: a step that reads codes or times must come
    before it.
    """
    if sample.names is None:
        return None, None
    names = fitted.step.names_out(sample.names, fitted.state)
    coded = dict(zip(sample.names, sample.n_categories or (), strict=False))
    unread = () if fitted.step.inner_chains else sample.names if names is None else names if last else ()
    own = {
        name for _, found in expand(fitted.step.traits.columns.coded, filter(None, coded)) for name in found
    }
    for name in unread:
        if name is not None and name not in own and (coded.get(name) or name in sample.times):
            got, reader = ("categories", "one_hot") if coded.get(name) else ("times", "date_parts")
            raise DataError(
                f"{fitted.step.kind}: column {quoted(name)}: expected plain numbers, got {got}, which only {reader} "
                f"reads: put {reader} first, or leave the column out of the columns of this map; if a step needs it as "
                "its group, give the step its own map in a union, and list the column among the columns of that map"
            )
    if names is None or sample.n_categories is None:
        return names, None
    return names, tuple(coded.get(name, 0) for name in names)


def _run_given(transform: Transform, name: str, rows: Floats) -> Floats:
    try:
        return run_tiles(transform, rows, DOUBLE)
    except InvalidValueError as refused:  # these rows are not in the input, so the error has their `name`
        raise DataError(f"{name}: {refused}") from None


def _refuse_width(fitted: FittedStep, i: int) -> None:
    try:
        fitted.check_width()
    except ValueError as error:
        raise DataError(f"steps[{i}]: {error}: use fewer columns, or fewer outputs of each") from None


@dataclass(frozen=True, eq=False)
class Chain:
    """Fitted steps in their order."""

    steps: tuple[FittedStep, ...]
    cast_after: int = 0
    """The number of leading steps that always compute in float64. Values are cast to the dtype after them."""

    @classmethod
    def fit(
        cls,
        steps: Sequence[Step],
        sample: Sample,
        rng: np.random.Generator,
        begins: Callable[[int, Floats], None] | None = None,
        cache: FitCache | None = None,
    ) -> Chain:
        """Fit each step on the sample after the steps before it. Each has its own stream of random numbers.

        Fitting is in float64. In a float32 chain, the leading scalers transform in float64. If float32 turns out not to
        be precise enough, all steps transform in float64. `begins` is called with the number of each step, from 0, and
        the rows that it is fitted on. Several chains that are fitted on one sample with one `rng` may share a `cache`:
        the first steps that they have in common are fitted once.
        """
        if any(step.searches for step in steps):
            raise TypeError("parameters that are chosen from the data have to be settled first")
        fitted: list[FittedStep] = []
        before = sample
        # One BLAS thread: the result must not depend on the number of cores.
        with one_blas_thread(linalg=True):
            for i, stream in enumerate(rng.spawn(len(steps))):
                check()
                if begins is not None:
                    begins(i, before.X)
                known = None if cache is None else cache.find(steps[: i + 1])
                inside = replace(before, cache=None if cache is None else cache.within(steps[:i]))
                try:
                    one, before = known or fit_step(steps, i, inside, stream)
                except InvalidValueError as refused:
                    raise after(refused, steps[:i]) from None
                fitted.append(one)
                if cache is not None and (cache.inner or i + 1 < len(steps)):
                    cache.keep(steps[: i + 1], (one, before), i + 1 < len(steps))
            scalers = next((i for i, step in enumerate(steps) if not isinstance(step, Scaler)), len(steps))
            return cls(tuple(fitted), cast_after=scalers)._with_enough_precision(sample)

    def _with_enough_precision(self, sample: Sample) -> Chain:
        """Return this chain, or one that computes in float64 if float32 changes features of the sample too much."""
        if sample.dtype == DOUBLE or self.cast_after == len(self.steps):
            return self
        narrow, wide = self.bind(sample.dtype), self.bind(DOUBLE)
        if agree(narrow, wide, sample.X, demanding_rows(sample.X), sample.dtype):
            return self
        return replace(self, cast_after=len(self.steps))

    @classmethod
    def checked(
        cls, steps: Sequence[Step], states: Sequence[State], n_features_in: int, cast_after: int = 0
    ) -> Chain:
        """Build a chain from untrusted recipes and states. Raise ValueError if they disagree."""
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
        """The number of inputs."""
        return self.steps[0].n_features_in

    @property
    def n_bytes(self) -> int:
        """The size in bytes of all that the steps have learned."""
        return sum(value.nbytes for one in self.steps for value in one.state.values())

    @property
    def n_components(self) -> int:
        """The number of outputs."""
        return self.steps[-1].n_features_out

    @property
    def parts(self) -> list[tuple[str, Array]]:
        """The names of the maps of a union at the end of the chain, and the positions of their output columns."""
        last = self.steps[-1]
        members = getattr(last.step, "members", None)  # only unions have them
        parts = [] if members is None else members(last.state, last.n_features_in)
        ends = np.cumsum([width for _, width in parts])
        return [(name, np.arange(end - width, end)) for (name, width), end in zip(parts, ends, strict=True)]

    def bind(self, dtype: np.dtype[Any]) -> Transform:
        """Return all steps as one transform, whose features are of `dtype`."""
        return self.joined(self.transforms(dtype), dtype)

    def transforms(self, dtype: np.dtype[Any]) -> list[Transform]:
        """Return the transform of each step. The steps before the cast compute in float64."""
        return [fitted.bind(DOUBLE if i < self.cast_after else dtype) for i, fitted in enumerate(self.steps)]

    def joined(self, transforms: Sequence[Transform], dtype: np.dtype[Any], **ending: Any) -> BoundChain:
        """Join the transforms of all steps into one. `ending` are keyword arguments of `BoundChain`."""
        steps = [fitted.step for fitted in self.steps]
        return BoundChain(steps, transforms, dtype, self.cast_after, **ending)

    def first(self, n: int) -> Chain:
        """Return the chain of the first n steps."""
        return Chain(self.steps[:n], cast_after=min(n, self.cast_after))

    def before(self, index: int, X: InputRows) -> Floats:
        """Return the input of the step with this index, for rows X (n, d)."""
        return self.first(index).transform(X) if index else dense(X)

    def transform(self, X: InputRows) -> Floats:
        """Return the features (n, D) of rows X (n, d), in their dtype, computed by the calling thread."""
        with one_blas_thread():
            return run_tiles(self.bind(X.dtype), X, X.dtype)

    def exact(self, X: InputRows, Y: InputRows, dtype: np.dtype[Any] = DOUBLE) -> Floats:
        """Return the kernel that the chain approximates, (n, m) float64, of rows X (n, d) and Y (m, d).

        A step that needs coordinates but comes after a sampler gets the computed outputs of the steps before it, in
        `dtype`. `exact_kernel_note` reports such steps.
        """
        with one_blas_thread(), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            K = self.exact_pair(exact_inputs(X, Y), dtype).dots
        if not np.isfinite(K).all():
            raise DataError(
                f"exact kernel: expected values that float64 can hold, got {K[~np.isfinite(K)][0]:g}: scale the input"
            )
        return K

    def exact_pair(self, pair: KernelInputs, dtype: np.dtype[Any] = DOUBLE) -> KernelInputs:
        """Apply the exact kernel of every step to `pair`, and return the result.

        A step that needs coordinates after a sampler uses the features before it as coordinates, computed in `dtype`.
        """
        inputs = pair
        for i, fitted in enumerate(self.steps):
            if isinstance(pair, Gram) and fitted.step.traits.exact.needs_coordinates:
                if not isinstance(inputs, Coordinates):
                    raise TypeError(f"{fitted.step.kind} needs coordinates, and there are none")
                before = self.first(i).bind(dtype)
                pair = Coordinates(
                    *(run_tiles(before, rows, dtype).astype(np.float64) for rows in (inputs.x, inputs.y))
                )
            elif isinstance(pair, Coordinates) and not (
                fitted.step.traits.columns.texts or fitted.step.inner_chains
            ):
                pair = Coordinates(dense(pair.x), dense(pair.y))
            pair = fitted.step.exact(fitted.state, pair)
        return pair

    def numbers(self, X: InputRows) -> Floats:
        """Return rows X (n, d) as plain numbers, after the leading steps that fill gaps or read categories or texts.

        If the last of these steps is a union with samplers, it makes features. Then the plain numbers of its maps are
        joined. A map is skipped if earlier maps have read all of its columns.
        """
        makers = [i + 1 for i, fitted in enumerate(self.steps) if _makes_numbers(fitted.step)]
        leading = [fitted.step.traits for fitted in self.steps[: max(makers, default=0)]]
        if not leading or not all(one.numbers.missing != "refuse" or one.columns.named for one in leading):
            return dense(X)
        last = self.steps[len(leading) - 1]
        # Only unions and products have chains. Their modules import this one, so they cannot be imported here.
        chains = getattr(last.step, "chains", None)
        inner = [step for _, steps in last.step.inner_chains for step in steps]
        if chains is None or all(isinstance(step, Scaler) for step in inner):
            return self.first(len(leading)).transform(X)
        X = X if len(leading) == 1 and isinstance(X, TextRows) else self.before(len(leading) - 1, X)
        seen, parts = set[int](), list[Floats]()
        for indices, chain in chains(last.state, last.n_features_in):
            if not seen.issuperset(indices.tolist()):
                seen.update(indices.tolist())
                parts.append(chain.numbers(columns_of(X, indices)))
        return np.hstack(parts)

    def exact_kernel_note(self) -> str | None:
        """Return a note if the exact kernel is that of computed features, otherwise None."""
        notes, after_sampler, computed = [], False, None
        for i, fitted in enumerate(self.steps):
            if after_sampler and fitted.step.traits.exact.needs_coordinates:
                computed = i
            # A scaler passes coordinates on. After a sampler, only computed features can serve as coordinates.
            coordinates = not after_sampler or fitted.step.traits.exact.needs_coordinates
            after_sampler = not (isinstance(fitted.step, Scaler) and coordinates)
            own = fitted.step.traits.exact.own
            if own is not None:
                notes.append(
                    f"steps[{i}] ({fitted.step.kind}): {own} learns features without a given kernel: "
                    "the exact kernel is that of these features, so their error is only rounding"
                )
        if computed is not None:
            notes.append(
                f"steps[{computed}] ({self.steps[computed].step.kind}) needs coordinates after a sampler: the exact "
                f"kernel is that of the computed outputs of the steps before it"
            )
        return "; ".join(notes) or None


def _makes_numbers(step: Step) -> bool:
    """Return True if a step turns gaps, categories, texts or times into numbers. `trees` makes features instead."""
    traits = step.traits
    reads = traits.numbers.missing == "fill" or traits.columns.named
    return reads and (isinstance(step, Scaler) or bool(step.inner_chains) or bool(traits.columns.texts))


def exact_inputs(X: InputRows, Y: InputRows) -> Coordinates:
    """Return rows (n, d) and (m, d) in float64 for exact kernels. Texts stay texts, because some steps count them."""

    def doubles(rows: InputRows) -> Floats:
        return cast(Floats, (rows if isinstance(rows, TextRows) else dense(rows)).astype(DOUBLE))

    x = doubles(X)
    return Coordinates(x, x if Y is X else doubles(Y))


def own_coordinates(step: Step, state: State, pair: KernelInputs) -> Coordinates:
    """Return the features of both inputs. `exact` returns this for a step whose features define its kernel."""
    if not isinstance(pair, Coordinates):
        raise TypeError(f"{step.kind} needs coordinates")
    chain = Chain((FittedStep(step, state, pair.x.shape[1]),))
    return Coordinates(chain.transform(pair.x), chain.transform(pair.y))
