"""Parallel chains, each on its own columns: the common part of unions and products."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from kafeat.chain.chain import Chain, FittedStep
from kafeat.contract.checks import check_indices
from kafeat.contract.coding import joined_codings
from kafeat.contract.kernel_inputs import Coordinates, KernelInputs
from kafeat.contract.name_patterns import feature_places
from kafeat.contract.step import AS_TUPLE, DOUBLE, Grouped, NestedStep, Sample, Step, Transform, total_clipped
from kafeat.contract.tile import InputRows, TextRows, columns_of, contiguous, dense
from kafeat.contract.traits import Traits
from kafeat.errors import DataError, InvalidValueError, quoted
from kafeat.types import Array, ArrayOf, Floats, Scratch, Shape, Shapes, State


class ChainOnColumns(BaseModel):
    """A chain of steps, on all columns or on some of them."""

    model_config = ConfigDict(defer_build=True, frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    columns: Annotated[tuple[str, ...], Field(min_length=1), AS_TUPLE] | None = Field(
        default=None, description="the columns that the map sees, by name or pattern; null: all"
    )
    steps: Annotated[tuple[NestedStep, ...], Field(min_length=1), AS_TUPLE] = Field(description="the chain")


class ParallelChains(Step):
    """A step that combines the outputs of several chains, the `maps`."""

    maps: tuple[ChainOnColumns, ...]

    @property
    def _steps(self) -> list[Step]:
        return [step for part in self.maps for step in part.steps]

    @property
    def searches(self) -> bool:
        return any(step.searches for step in self._steps)

    def settled(self, sample: Sample) -> Self:
        maps = [
            part.model_copy(update={"steps": tuple(step.settled(sample) for step in part.steps)})
            for part in self.maps
        ]
        return self.model_copy(update={"maps": tuple(maps)})

    @property
    def traits(self) -> Traits:
        return Traits.merged([(part.columns, [step.traits for step in part.steps]) for part in self.maps])

    @property
    def inner_chains(self) -> Sequence[tuple[Sequence[str] | None, Sequence[Step]]]:
        return [(part.columns, part.steps) for part in self.maps]

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        state: dict[str, Array] = {}
        for i, (part, stream) in enumerate(zip(self.maps, rng.spawn(len(self.maps)), strict=True)):
            indices = np.arange(sample.X.shape[1])
            if part.columns is not None:
                indices = _indices(self.kind, part.columns, sample.names, i)
                state[f"{i}.columns"] = indices
            cache = sample.cache and sample.cache.within((), f"maps[{i}] of {part.columns}")
            try:
                chain = Chain.fit(part.steps, _subset(sample, indices), stream, cache=cache)
            except InvalidValueError as refused:
                raise of_whole(refused, indices) from None
            state[f"{i}.cast_after"] = np.array(chain.cast_after)
            for j, fitted in enumerate(chain.steps):
                state |= {f"{i}.{j}.{name}": value for name, value in fitted.state.items()}
        return state

    def _parts(self, state: State) -> Iterator[tuple[ChainOnColumns, list[State]]]:
        """Yield each map with the states of its steps."""
        of_steps: dict[str, dict[str, Array]] = {}
        for key, value in state.items():
            of_map, _, rest = key.partition(".")
            of_step, _, name = rest.partition(".")
            of_steps.setdefault(f"{of_map}.{of_step}", {})[name] = value
        for i, part in enumerate(self.maps):
            yield part, [of_steps.get(f"{i}.{j}", {}) for j in range(len(part.steps))]

    def chains(self, state: State, n_features_in: int) -> list[tuple[Array, Chain]]:
        """Return the columns and the fitted chain of each map. Raise ValueError if state and recipe disagree."""
        chains = []
        for i, (part, states) in enumerate(self._parts(state)):
            indices = np.arange(n_features_in)
            if part.columns is not None:
                indices = state.get(f"{i}.columns", np.empty(0, dtype=np.int64))
                if indices.ndim != 1 or not len(indices):
                    raise ValueError(f"state.{i}.columns: expected the positions of columns")
                check_indices(f"state.{i}.columns", indices, n_features_in)
            # missing in files of format 1
            cast_after = state.get(f"{i}.cast_after", np.array(0))
            if cast_after.ndim:
                raise ValueError(f"state.{i}.cast_after: expected one number")
            check_indices(f"state.{i}.cast_after", cast_after, len(part.steps) + 1)
            chains.append((indices, Chain.checked(part.steps, states, len(indices), int(cast_after))))
        return chains

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        shapes: dict[str, Shape | ArrayOf] = {}
        for i, (indices, chain) in enumerate(self.chains(state, n_features_in)):
            if self.maps[i].columns is not None:
                shapes[f"{i}.columns"] = ArrayOf(indices.shape, "int64")
            shapes[f"{i}.cast_after"] = ArrayOf((), "int64", optional=True)  # missing in files of format 1
            for j, fitted in enumerate(chain.steps):
                of_step = fitted.step.state_shapes(fitted.state, fitted.n_features_in)
                shapes |= {f"{i}.{j}.{name}": shape for name, shape in of_step.items()}
        return shapes

    def fit_warnings(self, state: State) -> Iterator[str]:
        for part, states in self._parts(state):
            for step, of_step in zip(part.steps, states, strict=True):
                yield from step.fit_warnings(of_step)

    def widths(self, state: State, n_features_in: int) -> list[int]:
        """Return the number of outputs of each map."""
        widths = []
        for i, (part, states) in enumerate(self._parts(state)):
            width = n_features_in if part.columns is None else len(state[f"{i}.columns"])
            for step, of_step in zip(part.steps, states, strict=True):
                width = step.n_features_out(of_step, width)
            widths.append(width)
        return widths

    def grams(self, state: State, pair: KernelInputs) -> list[KernelInputs]:
        """Return the exact kernel of each map for these inputs."""
        if isinstance(pair, Coordinates):
            chains = self.chains(state, pair.x.shape[1])
            parts = ((chain, columns_of(pair.x, i), columns_of(pair.y, i)) for i, chain in chains)
            return [chain.exact_pair(Coordinates(x, y)) for chain, x, y in parts]
        # With dot products in place of coordinates, no step uses the number of its inputs, so it may be 0.
        fitted = ((map(FittedStep, part.steps, states, repeat(0))) for part, states in self._parts(state))
        return [Chain(tuple(steps)).exact_pair(pair) for steps in fitted]


def grouped(step: Step, column: str) -> Step:
    """Return the step. If the step has folds but no group column yet, `column` becomes its group column."""
    if not isinstance(step, ParallelChains):
        named = not isinstance(step, Grouped) or step.group is not None
        return step if named else step.model_copy(update={"group": column})
    maps = []
    for part in step.maps:
        changes: dict[str, Any] = {"steps": tuple(grouped(inner, column) for inner in part.steps)}
        coded = joined_codings(inner.traits.columns.coded for inner in changes["steps"])
        if part.columns is not None and column in coded and column not in part.columns:
            changes["columns"] = (*part.columns, column)
        maps.append(part.model_copy(update=changes))
    return step.model_copy(update={"maps": tuple(maps)})


def _indices(kind: str, columns: Sequence[str], names: Sequence[str | None] | None, i: int) -> Array:
    if names is None:
        raise DataError(
            f"{kind}: maps[{i}].columns: expected no columns after a step that does not keep columns"
        )
    found: dict[int, None] = {}
    for column, places in feature_places(columns, names):
        if not places:
            raise DataError(f"{kind}: maps[{i}].columns: expected columns of the input, got {quoted(column)}")
        found |= dict.fromkeys(places)
    return np.array(list(found))


def _subset(sample: Sample, indices: Array) -> Sample:
    def pick(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
        return None if values is None else tuple(values[j] for j in indices)

    return replace(
        sample,
        X=contiguous(columns_of(sample.X, indices)),
        given={name: np.ascontiguousarray(rows[:, indices]) for name, rows in sample.given.items()},
        names=pick(sample.names),
        n_categories=pick(sample.n_categories),
        stream=sample.stream and sample.stream.changed(lambda X: contiguous(columns_of(X, indices))),
    )


def of_whole(refused: InvalidValueError, indices: Array) -> InvalidValueError:
    """Return a map's error with the error's column numbered in the whole row. `indices` are the map's columns."""
    column = None if refused.column is None else int(indices[refused.column])
    return InvalidValueError(refused.row, column, refused.problem)


class ParallelTransform(Transform):
    """Applies the chain of each map to its own columns. A subclass combines the outputs."""

    takes = (TextRows,)

    def __init__(
        self, maps: Sequence[tuple[Array, Transform]], n_features: int, n_out: int, dtype: np.dtype[Any]
    ) -> None:
        self.n_features_in, self.n_features_out = n_features, n_out
        self._maps, self._dtype = tuple(maps), dtype

    def reads(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        wide = any(transform.reads(dtype) == DOUBLE for _, transform in self._maps)
        return DOUBLE if wide else dtype

    @property
    def gives_sparse(self) -> bool:
        return all(transform.gives_sparse for _, transform in self._maps)

    @property
    def widest(self) -> int:
        return max(super().widest, *(transform.widest for _, transform in self._maps))

    def scratch(self, rows: int) -> Scratch:
        return [
            (np.empty((rows, len(indices)), transform.reads(self._dtype)), transform.scratch(rows))
            for indices, transform in self._maps
        ]

    def apply_maps(self, X: InputRows, outs: Iterable[Floats], scratch: Scratch) -> Array | None:
        """Write the outputs of each map into its array of `outs`. Return how many values of each row were clipped."""
        clipped = list[Array | None]()
        for (indices, transform), out, (own, inner) in zip(self._maps, outs, scratch, strict=True):
            inputs = columns_of(X, indices)
            if not (isinstance(inputs, transform.takes)):
                own[...] = dense(inputs)
                inputs = own
            try:
                clipped.append(transform.apply(inputs, out, inner))
            except InvalidValueError as refused:
                raise of_whole(refused, indices) from None
        return total_clipped(clipped)
