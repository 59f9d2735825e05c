"""The maps that are compared: models as they are, and recipes with every setting and seed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.config import Config, load_config
from kafeat.errors import DataError, UsageError, quoted
from kafeat.io.storage.uri import identity, name_of, shown
from kafeat.jobs.evaluate.inputs import Data
from kafeat.jobs.evaluate.sweep import Sweep, settings
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.listener import Listener
from kafeat.jobs.fit.sample import tested
from kafeat.maths.row_sample import row_hashes
from kafeat.model.feature_map import FeatureMap, load
from kafeat.types import Array


@dataclass(frozen=True)
class Candidate:
    """A fitted map, or a config that is yet to be fitted; `setting` is what a sweep made of it."""

    name: str
    setting: dict[str, Any]
    model: FeatureMap | None
    config: Config | None
    base_seed: int
    """Which rows are held out follows from this: the same for all maps that are compared."""

    @property
    def spelled(self) -> str:
        """For progress: the name, the setting and the seed."""
        parts = [f"{key}={value}" for key, value in self.setting.items()]
        parts += [] if self.config is None else [f"seed={self.config.seed}"]
        return f"{self.name} {' '.join(parts)}".strip()

    def refuse_features(self, aside: Sequence[str]) -> None:
        """Labels, and what says which rows are held out, must not be features."""
        if self.model is not None:
            features = {column.name for column in self.model.columns.features}
        else:
            features = set(self.config.columns.include if self.config is not None else ())
        for name in aside:
            if name in features:
                raise DataError(
                    f"{self.name}: label {quoted(name)}: expected a column that is no feature of the map, got one"
                )

    def fit(
        self, data: Data, label: str | None, split: str | None, held_out: Array, listener: Listener
    ) -> FeatureMap:
        """The map; a recipe is fitted on the rows that are not held out."""
        if self.config is None:
            if self.model is None:
                raise TypeError("a contender has a model or a config")
            return self.model
        with data.open() as source:
            return fit_reader(self.config, source, label, split=split, held_out=held_out, listener=listener)

    def seen(self, fm: FeatureMap, data: Data, rows: Array, n: int) -> int | None:
        """How many of these rows the fit has seen; None where the map comes from other data."""
        if self.config is not None:
            return 0
        with data.open() as source:
            if source.digest() not in {origin.sha256 for origin in fm.provenance.sources}:
                return None
        # A fit takes the rows with the smallest hashes, of all or of those to train on.
        hashes = row_hashes(fm.config.seed, 0, n)
        split = fm.provenance.split
        if split is not None:
            test, _ = tested(data.whole({"split": split})[1][split])
            hashes[test] = np.iinfo(hashes.dtype).max
        fitted = min(fm.provenance.rows_fitted, n)
        return int((hashes[rows] <= np.partition(hashes, fitted - 1)[fitted - 1]).sum())


def candidates(
    models: Sequence[Any], configs: Sequence[Any], sweeps: Sequence[Sweep], seeds: int
) -> list[Candidate]:
    """Everything that is to be compared."""
    if not models and not configs:
        raise UsageError("evaluate: expected a model or a config, got neither")
    if not configs and (sweeps or seeds != 1):
        raise UsageError("evaluate: expected a config to sweep or to seed: a model is fitted already")
    if seeds < 1:
        raise UsageError(f"--seeds: expected at least 1, got {seeds}")
    loaded = [one if isinstance(one, FeatureMap) else load(one) for one in models]
    recipes = [load_config(one) for one in configs]
    base = (loaded[0].config if loaded else recipes[0]).seed
    names = _names([*models, *configs])
    found = [Candidate(name, {}, fm, None, base) for name, fm in zip(names, loaded, strict=False)]
    for name, recipe in zip(names[len(models) :], recipes, strict=True):
        for setting, config in settings(recipe, sweeps, name):
            found += [
                Candidate(name, setting, None, config.model_copy(update={"seed": config.seed + i}), base)
                for i in range(seeds)
            ]
    return found


def _names(given: Sequence[Any]) -> list[str]:
    """File names where they tell the maps apart, else whole paths; a map without a file gets a number."""
    whole = [
        shown(os.fspath(one)) if isinstance(one, str | os.PathLike) else f"map {i + 1}"
        for i, one in enumerate(given)
    ]
    short = [name_of(name) for name in whole]
    names = short if len(set(short)) == len(short) else whole
    real = [identity(os.fspath(one)) for one in given if isinstance(one, str | os.PathLike)]
    if len(set(names)) < len(names) or len(set(real)) < len(real):
        raise UsageError(f"evaluate: expected every map once, got {', '.join(names)}")
    return names
