"""List the maps to compare: models as they are, and recipes with every setting of a sweep and every seed.

For recipes with a precomputed kernel, the data are the square kernel matrix of all rows. Each row is then replaced by
its number, so that any block of the matrix can be looked up. As in scikit-learn's cross-validation, a map only gets the
columns of its training rows.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from kafeat.config import Config, load_config
from kafeat.contract import dense, nearest
from kafeat.errors import ConfigError, DataError, UsageError, quoted
from kafeat.io.storage.location import location_of, parse_location
from kafeat.jobs.fit import (
    KernelMatrix,
    Listener,
    PredictorJob,
    RereadableData,
    TrainingData,
    among,
    columns_of,
    learn_ridge,
    learned_map,
    nested,
    read_job,
    timed,
)
from kafeat.maths import TaskKind, row_hashes
from kafeat.model import FeatureMap, load_from
from kafeat.study.learners import Learner
from kafeat.study.request import EvaluationRequest, NamedRecipe
from kafeat.types import Array, Floats, Mask

_PLACE = re.compile(r"steps\[(\d+)\]\.(\w+)")


@dataclass(frozen=True)
class Sweep:
    """Values to try for a parameter. The key `gamma` means every step with a γ, and `steps[1].gamma` only that step."""

    key: str
    values: tuple[Any, ...]


def read_sweep(text: str) -> Sweep:
    """Parse KEY=a,b,c. A value is a number, true, false, or text."""
    key, equals, values = text.partition("=")
    parsed = tuple(_value(part.strip()) for part in values.split(","))
    if not equals or not key.strip() or "" in parsed:
        raise UsageError(f"--sweep {text}: expected KEY=a,b,c, for example n_components=128,256,512")
    if any(set(part) & set("{}[]") for part in values.split(",")):
        raise UsageError(f"--sweep {text}: expected numbers, true, false or words, got a list or a mapping")
    return Sweep(key.strip(), parsed)


def settings(config: Config, sweeps: Sequence[Sweep], name: str) -> Iterator[tuple[dict[str, Any], Config]]:
    """Yield each combination of swept values, and the config with these values."""
    _refuse_twice(sweeps)
    for values in product(*(sweep.values for sweep in sweeps)):
        plain = {
            **config.to_plain(),
            "steps": copy.deepcopy([step.recipe(live=True) for step in config.steps]),
        }
        setting = dict(zip((sweep.key for sweep in sweeps), values, strict=True))
        for key, value in setting.items():
            _set(plain, key, value, name)
        try:
            yield setting, load_config(plain)
        except ConfigError as error:
            spelled = ", ".join(f"{key}={value}" for key, value in setting.items())
            raise ConfigError([f"{name} with {spelled}: {problem}" for problem in error.problems]) from None


def _refuse_twice(sweeps: Sequence[Sweep]) -> None:
    """Refuse a sweep that repeats a parameter or a value, or that sweeps `kind`, which is not a parameter."""
    keys = [sweep.key for sweep in sweeps]
    for sweep in sweeps:
        if len(set(map(repr, sweep.values))) < len(sweep.values):
            raise UsageError(
                f"--sweep {sweep.key}: expected every value once, got {', '.join(map(str, sweep.values))}"
            )
        place = _PLACE.fullmatch(sweep.key)
        if keys.count(sweep.key) > 1 or (place and place[2] in keys):
            raise UsageError(f"--sweep {sweep.key}: expected a parameter to be swept once, got it twice")
        if (place[2] if place else sweep.key) == "kind":
            raise UsageError(
                f"--sweep {sweep.key}: expected a parameter, got the kind: give a --config for each kind"
            )


def _set(plain: dict[str, Any], key: str, value: Any, name: str) -> None:
    place = _PLACE.fullmatch(key)
    steps = plain["steps"]
    if place:
        index, key = int(place[1]), place[2]
        if index >= len(steps):
            raise UsageError(f"--sweep steps[{index}].{key}: expected an index below {len(steps)} in {name}")
        steps = [steps[index]]
    every = list(nested(steps)) if place is None else steps
    holders = [step for step in every if key in step]
    if not holders:
        known = sorted({known for step in every for known in step if known != "kind"})
        where = f"steps[{place[1]}] ({steps[0]['kind']})" if place else "a step"
        which = f"one of {', '.join(known)}" if known else "which has none"
        raise UsageError(
            f"--sweep {key}: expected a parameter of {where} of {name}, {which}, got {quoted(key)}"
            f"{nearest(key, known)}"
        )
    for holder in holders:
        holder[key] = value


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class Fit(NamedTuple):
    """A fitted map, the seconds of fitting it (None for a saved model), and the job to fit its predictor, or None."""

    map: FeatureMap
    seconds: float | None = None
    job: PredictorJob | None = None


@dataclass(frozen=True)
class ComparedMap:
    """A fitted map with its config, or a config to fit. `setting` holds the values of its swept parameters."""

    name: str
    setting: dict[str, Any]
    config: Config
    fitted: FeatureMap | None = None

    @property
    def spelled(self) -> str:
        """The name, the setting and the seed, for messages about progress."""
        parts = [f"{key}={value}" for key, value in self.setting.items()]
        parts += [f"seed={self.config.seed}"] if self.fitted is None else []
        return f"{self.name} {' '.join(parts)}".strip()

    def task(self, names: tuple[str, ...]) -> TaskKind:
        """Return the task of a model for these labels, or of a recipe's predictor, or `auto` if there is neither."""
        own = None if self.fitted is None else self.fitted.predictor
        if own is not None and own.labels.soft and set(own.labels.names) == set(names):
            return "soft"
        if own is not None and own.labels.names == names and own.labels.type != "text":
            return "regression" if own.labels.classes is None else "classification"
        last = self.config.predictor if self.fitted is None else None
        return "auto" if last is None else last.task

    def check(self, reserved: Sequence[str]) -> None:
        """Refuse a recipe that has a `reserved` column as a feature, and a map without an exact kernel."""
        named = [name for name in reserved if name in self.config.columns.include and self.fitted is None]
        if named:
            raise DataError(
                f"{self.name}: label {quoted(named[0])}: expected a column that is not a feature of the map, got one"
            )
        chain = () if self.fitted is None else self.fitted.chain.steps
        for step in self.config.map_steps if self.fitted is None else [one.step for one in chain]:
            if step.traits.exact.none:
                raise UsageError(f"evaluate: {step.traits.exact.none}")

    def fit(
        self,
        data: RereadableData,
        request: EvaluationRequest,
        learner: Learner | None,
        held_out: Mask,
        listener: Listener,
    ) -> Fit:
        """Return the fitted map. A recipe is fitted here, on the rows that are not held out.

        If `validate` in a recipe lists values to try, the learner scores these values; ridge if `learner` is None.
        """
        if self.fitted is not None:
            return Fit(self.fitted)
        with data.open() as source:
            every = TrainingData(source, request.labels, request.split, weight=request.weight)
            rows = every.of_rows(among(~held_out))
            sampled, job = read_job(self.config, rows, request.jobs, listener)
            scorer = partial(learner.learn, penalty=request.penalty) if learner else learn_ridge
            learn = partial(learned_map, sampled, job, final=False, learner=scorer, task=request.task)
            (fm, job), seconds = timed(learn)
            return Fit(fm, seconds, None if self.config.predictor is None else job)

    def rows_seen(self, fm: FeatureMap, data: RereadableData, rows: Mask) -> int | None:
        """Return how many of these rows the map was fitted on, or None if it was fitted on other data."""
        if self.fitted is None:
            return 0
        learned = data.learned_from(fm, len(rows))
        if learned is None:
            return None
        # The training sample consists of the rows with the smallest hashes.
        hashes = row_hashes(fm.config.seed, 0, len(rows))
        hashes[~learned] = np.iinfo(hashes.dtype).max
        fitted = min(fm.provenance.rows_fitted, len(rows))
        return int((hashes[rows] <= np.partition(hashes, fitted - 1)[fitted - 1]).sum())


def list_candidates(
    models: Sequence[Any], configs: Sequence[Any], sweeps: Sequence[Sweep], seeds: int
) -> list[ComparedMap]:
    """Return the loaded models, and each config with every combination of swept values and with every seed."""
    if not models and not configs:
        raise UsageError("evaluate: expected a model or a config, got neither")
    if not configs and (sweeps or seeds != 1):
        raise UsageError(
            "evaluate: expected a config (--config) with --sweep or --seeds, got a model, which is fitted already"
        )
    for one in models:
        if not isinstance(one, FeatureMap | str | os.PathLike):
            raise UsageError(
                f"evaluate: expected a fitted map or its path, got {type(one).__name__}; a recipe is given as config=…"
            )
    loaded = [one if isinstance(one, FeatureMap) else load_from(parse_location(one)) for one in models]
    recipes = [load_config(one.config if isinstance(one, NamedRecipe) else one) for one in configs]
    names = _names([*models, *configs])
    listed = [ComparedMap(name, {}, fm.config, fm) for name, fm in zip(names, loaded, strict=False)]
    for name, recipe in zip(names[len(models) :], recipes, strict=True):
        for setting, config in settings(recipe, sweeps, name):
            seeded = [config.model_copy(update={"seed": config.seed + i}) for i in range(seeds)]
            listed += [ComparedMap(name, setting, one) for one in seeded]
    return listed


def _names(maps: Sequence[Any]) -> list[str]:
    """Return a name for each map: the file name, or the whole path if names repeat. A map without file has a number."""
    places = [location_of(one) for one in maps]
    own = [one.name if isinstance(one, NamedRecipe) else f"map {i + 1}" for i, one in enumerate(maps)]
    whole = [name if place is None else str(place) for name, place in zip(own, places, strict=True)]
    short = [name if place is None else place.name for name, place in zip(own, places, strict=True)]
    names = short if len(set(short)) == len(short) else whole
    real = [place.identity for place in places if place is not None]
    if len(set(names)) < len(names) or len(set(real)) < len(real):
        raise UsageError(f"evaluate: expected every map once, got {', '.join(names)}")
    return names


_ROW = "row of the kernel matrix"


def by_row_numbers(
    data: RereadableData, request: EvaluationRequest, candidates: list[ComparedMap]
) -> tuple[RereadableData, list[ComparedMap]]:
    """If recipes have a precomputed kernel, replace rows by their numbers and the kernel by a look-up in the matrix."""
    precomputed = [
        one for one in candidates
        if one.fitted is None and getattr(one.config.steps[0], "kernel", None) == "precomputed"
    ]  # fmt: skip
    if not precomputed:
        return data, candidates
    other = next((one for one in candidates if one not in precomputed), None)
    if other is not None:
        raise UsageError(
            f"evaluate: {other.name}: expected a recipe whose first step has `kernel: precomputed`, as "
            f"{precomputed[0].name} has, got another: evaluate them separately, because their columns differ"
        )
    by_columns = {repr(one.config.columns): one.config for one in precomputed}
    if len(by_columns) > 1:
        raise UsageError("evaluate: kernel precomputed: expected recipes with the same columns, got others")
    matrix = KernelMatrix(_read(data, request, *by_columns.values()))
    return _numbered(data, request, len(matrix.values)), [_of_rows(one, matrix) for one in precomputed]


def _read(data: RereadableData, request: EvaluationRequest, config: Config) -> Floats:
    """Read the square kernel matrix (n, n) of all rows."""
    split = {} if request.split is None else {request.split: "--split"}
    with data.open() as source:
        source = source.settled()
        columns = columns_of(config, source, request.labels, split)
        values = dense(source.decoded(columns, np.dtype(np.float64), config.chunk_rows))
    if values.shape[0] != values.shape[1]:
        raise DataError(
            f"{data.name}: kernel precomputed: expected the square kernel matrix of all rows, from which the training "
            f"rows and their columns are selected, got {values.shape[0]} rows and {values.shape[1]} columns"
        )
    return values


def _numbered(data: RereadableData, request: EvaluationRequest, n: int) -> RereadableData:
    """Return data with the row numbers as the only feature, next to the labels and the split."""
    known, columns = data.rows_known(request.labels, request.split), dict[str, Array]()
    if known.labels is not None:
        columns |= zip(request.labels, known.labels.reshape(n, -1).T, strict=True)
    if request.split is not None:
        columns[request.split] = np.where(known.test, "test", "train").astype(object)
    return data.of_columns({_ROW: np.arange(n, dtype=np.float64), **columns})


def _of_rows(candidate: ComparedMap, matrix: KernelMatrix) -> ComparedMap:
    config = candidate.config
    first = config.steps[0].model_copy(update={"kernel": matrix})
    columns = config.columns.model_copy(update={"include": (_ROW,), "exclude": ()})
    recipe = config.model_copy(update={"steps": (first, *config.steps[1:]), "columns": columns})
    return replace(candidate, config=recipe)
