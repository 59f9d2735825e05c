"""The candidates of a search: scaler × metric × map × γ, and trees."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from kafeat.config import Config
from kafeat.errors import UsageError
from kafeat.jobs.fit import IMPUTE, Encoding, Recipe, date_parts, one_hot, side_by_side, target, text
from kafeat.maths import TaskKind, kind_to_learn, load_library, task_of
from kafeat.study.tune.input import TunedTable

SCALERS: dict[str, list[Recipe]] = {
    "standardize": [{"kind": "standardize"}],
    "quantile": [{"kind": "quantile"}],
    "power": [{"kind": "power"}],
    "none": [],
    "normalize": [{"kind": "normalize", "norm": "l1"}],
}
DIAGONAL = "metric (diagonal)"
METRICS: dict[str, list[Recipe]] = {
    "none": [],
    DIAGONAL: [{"kind": "metric", "diagonal": True}],
    "metric (α = 0.5)": [{"kind": "metric", "alpha": 0.5}],
    "metric": [{"kind": "metric"}],
}
KERNELS: dict[str, Recipe] = {
    "rbf": {"kernel": "rbf"},
    "matern 1/2": {"kernel": "matern", "nu": 0.5},
    "matern 3/2": {"kernel": "matern", "nu": 1.5},
    "laplacian": {"kernel": "laplacian"},
    "chi2": {"kernel": "chi2"},
    "intersection": {"kernel": "intersection"},
}
ADDITIVE = ("intersection", "homogeneous chi2", "homogeneous intersection")
OF_HISTOGRAMS = ("chi2", *ADDITIVE)
SMOOTH = ("rbf", "matern 1/2", "matern 3/2", "laplacian")

# In wider tables, the scaler `power` and metrics with a full matrix are too slow to be tried.
_MOST_FOR_POWER, _MOST_FOR_ROTATION = 200, 600
_SPELLED = {"fine target": "target in 20 folds", "both": "target and one_hot", "one_hot": "one_hot"}
# Shares of the features that text columns may get. The largest suits text in which single words matter.
_WORDS = 0.5, 0.875, 0.0
_ENCODINGS: tuple[Encoding, ...] = ("target", "fine target", "both", "one_hot")
GROWTHS: dict[str, list[Recipe]] = {
    "6 folds": [{"n_folds": 6}],
    "twice 6 folds": [{"n_folds": 6}, {"n_folds": 6}],
    "with leaves of one row": [{"min_leaf_rows": 1, "n_trees": 600, "learning_rate": 0.05}],
    "of 16 leaves": [{"max_leaves": 16, "min_leaf_rows": 3, "n_trees": 600, "learning_rate": 0.05}],
    "4 folds": [{"n_folds": 4, "n_trees": 60, "learning_rate": 0.2}],
}
"""Ways to grow trees: the parameters of one or two steps, which share the columns of trees equally."""
# Small trees suit small and smooth tables. With several ensembles, few trees with a high rate take a third of the time.
_FOR_ONE_ENSEMBLE = ("6 folds", "with leaves of one row", "twice 6 folds", "of 16 leaves")
_FOR_SEVERAL = ("4 folds", "6 folds")
NO_TREES = "none"
_NAMES = {"base": "the config to start from", "boosting": "gradient boosting"}
# Scales of tree columns, as multiples of the scale of kernel columns. The first is tried first.
_FACTORS = (3.0, 1.0, 10.0)
_TREE_COLUMNS = 16
# Trees of an ensemble. To save time, each of several ensembles has fewer trees, and a higher learning rate.
_TREES, _ALL_TREES, _LEAST_TREES, _LEARNED = 300, 600, 100, 15.0
# With more classes than this, the trees learn random mixtures of them.
_MOST_CLASSES = 32
# Trees are not tried with fewer rows or more columns than this.
_LEAST_ROWS_FOR_TREES, _MOST_FOR_TREES = 100, 1000
_LEAST_GAMMA, _MOST_GAMMA = 0.003, 300.0


@dataclass(frozen=True)
class Candidate:
    """One point of the search space. With `union`, only numbers are scaled, not categories and times.

    `words` is the share of the features for text columns, and `encoding` names a way to code categories with many
    values. `trees` names a way to grow trees, whose leaves give `tree_columns` of the features. These columns are
    scaled to `factor` times the size of the map's columns.
    """

    scaler: str
    metric: str
    map: str
    gamma: float | None = 1.0
    union: bool = False
    words: float = _WORDS[0]
    encoding: Encoding = _ENCODINGS[0]
    trees: str = NO_TREES
    tree_columns: int = _TREE_COLUMNS
    factor: float = _FACTORS[0]

    @property
    def learned(self) -> tuple[bool, bool, str]:
        """The slow parts, which are learned from the label: metric or not, supervised map or not, and which trees."""
        return self.metric != "none", self.map == "supervised", self.trees

    @property
    def without_trees(self) -> Candidate:
        """The candidate without trees."""
        return replace(self, trees=NO_TREES, tree_columns=_TREE_COLUMNS, factor=_FACTORS[0])

    @property
    def complexity(self) -> int:
        """The number of parts in addition to scaler and kernel map: metric, supervised frequencies and trees."""
        return sum([self.metric != "none", self.map == "supervised", self.trees != NO_TREES])

    def __str__(self) -> str:
        if self.map in _NAMES:
            return _NAMES[self.map]
        if self.trees != NO_TREES:
            size = (
                "" if self.factor == _FACTORS[0] or self.map in FIXED else f", {self.factor:g} times as large"
            )
            trees = f"{self.tree_columns} columns of trees ({self.trees}{size})"
            return trees if self.map == "trees" else f"{self.without_trees} + {trees}"
        if self.map == "raw":
            return f"raw columns, {self.scaler}"
        gamma = "" if self.gamma is None else f", γ = {_rule(self.gamma)}"
        metric = "" if self.metric == "none" else f", {self.metric}"
        name = "fourier, supervised" if self.map == "supervised" else self.map
        scaler = f"{self.scaler} (numbers only)" if self.union else self.scaler
        words = "" if self.words == _WORDS[0] else f", {self.words:.3g} of the columns of words"
        many = "" if self.encoding == _ENCODINGS[0] else f", many values by {_SPELLED[self.encoding]}"
        return f"{scaler}{metric}, {name}{gamma}{words}{many}"


BASE = Candidate("none", "none", "base", None)
"""The steps of the config to start from."""
DEFAULT = Candidate("standardize", "none", "rbf")
"""The map with which a person would begin."""
RAW = Candidate("standardize", "none", "raw", None)
"""The standardized columns without a map, which a map has to beat."""
BOOSTING = Candidate("standardize", "none", "boosting", None)
"""Gradient boosting of the raw columns with its defaults, which is compared with the choice."""
FIXED = ("base", "raw", "trees")
"""Maps whose number of columns is not searched, and which have no neighbours."""


def _rule(multiple: float) -> str:
    return "median" if multiple == 1.0 else f"{multiple:g}*median"


@dataclass(frozen=True)
class SearchSpace:
    """The candidates for a table and a number of columns.

    `base` holds the steps of the config to start from, and `width` is the number of columns during the search.
    """

    table: TunedTable
    base: Sequence[Recipe] = ()
    width: int = 512

    def steps(self, candidate: Candidate, width: int, rows: int) -> list[Recipe]:
        """Return the steps of a candidate with this many outputs, to be fitted on this many rows."""
        if candidate.map == "base":
            return [dict(step) for step in self.base]
        candidate = RAW if candidate == BOOSTING else candidate
        if candidate.trees != NO_TREES:
            return self._with_trees(candidate, width, rows)
        texts = self.table.groups.texts
        if not texts:
            return self.chain(candidate, width, rows)
        share = 1.0 - self.table.width / width if candidate.map == "raw" else candidate.words
        each = max(1, int(share * width) // len(texts)) if share else 0
        if not self.table.groups.without_texts:
            chain = [] if candidate.map == "raw" else self.chain(candidate, width, rows)
            return [text(texts, width // len(texts) if candidate.map == "raw" else max(1, each)), *chain]
        chain = self.chain(candidate, max(2, width - each * len(texts)), rows)
        return self.table.groups.beside_texts(chain, each)

    def _with_trees(self, candidate: Candidate, width: int, rows: int) -> list[Recipe]:
        """Return a union of tree columns and the steps of the candidate without trees."""
        growths, groups = GROWTHS[candidate.trees], self.table.groups
        each = max(1, min(candidate.tree_columns, width // 2) // len(growths))
        members = [self._trees({**growth, "n_components": each}, candidate, width) for growth in growths]
        if candidate.map != "trees":
            rest = self.steps(candidate.without_trees, width - each * len(growths), rows)
            named = {"columns": [*groups.without_texts, *groups.texts]} if self._by_group else {}
            whole = [{**named, "steps": rest}]
            parts = rest[0]["maps"] if len(rest) == 1 and rest[0]["kind"] == "union" else whole
            members = [*parts, *members]
        alone = len(members) == 1 and "columns" not in members[0]
        return members[0]["steps"] if alone else [{"kind": "union", "maps": members}]

    def _trees(self, growth: Recipe, candidate: Candidate, width: int) -> dict[str, Any]:
        """Return a member of a union: trees on all columns except text, without a scaler or imputation."""
        groups = self.table.groups
        trees = growth.get("n_trees", min(_TREES, max(_LEAST_TREES, _ALL_TREES // self._ensembles)))
        step = {
            "kind": "trees",
            "n_trees": trees,
            "learning_rate": float(f"{_LEARNED / trees:.2g}"),
            **growth,
            "scale": float(f"{_FACTORS[0] / math.sqrt(self.width):.2g}"),
        }
        if groups.categories or groups.many:
            step["categories"] = [*groups.categories, *groups.many]
        times = [{**date_parts(groups.times), "cyclic": False}] if groups.times else []
        # A weight sets the factor. Another `scale` of the step would need another fit for each factor and width.
        weight = (candidate.factor / _FACTORS[0]) ** 2 * self.width / width
        columns = {"columns": list(groups.without_texts)} if groups.texts or self._by_group else {}
        return {**columns, "steps": [*times, step], **({} if weight == 1.0 else {"weight": weight})}

    @property
    def _by_group(self) -> bool:
        """True if groups decide the folds of trees. The column of groups is then read, but is not a feature."""
        return (self.table.sampled.config.split_by or "").startswith("group:")

    @cached_property
    def without_library(self) -> str | None:
        """The reason why no trees can be grown, or None."""
        try:
            load_library()
        except UsageError as error:
            return str(error)
        return None

    @cached_property
    def _ensembles(self) -> int:
        """The number of ensembles of trees: one for two classes, otherwise one for each class or label."""
        labels = self.table.labels
        classes = task_of(labels, kind_to_learn(labels)).classes
        return labels[:1].size if classes is None else max(1, len(classes) - (len(classes) == 2))

    @property
    def _growths(self) -> tuple[str, ...]:
        """The ways to grow trees that suit the label. The first is tried first."""
        return _FOR_ONE_ENSEMBLE if self._ensembles == 1 else _FOR_SEVERAL

    def with_trees(self, best: Candidate) -> Iterator[Candidate]:
        """Yield three candidates if trees suit the table: the best and raw columns, both with trees, and only trees."""
        few, width = len(self.table.labels) < _LEAST_ROWS_FOR_TREES, self.table.width
        if not few and 0 < width <= _MOST_FOR_TREES and self.without_library is None:
            grown = replace(best, trees=self._growths[0], tree_columns=self._tree_columns)
            yield grown
            yield replace(RAW, trees=grown.trees, tree_columns=grown.tree_columns)
            yield replace(grown, scaler="none", metric="none", map="trees", gamma=None, union=False)

    @property
    def _tree_columns(self) -> int:
        """The number of tree columns to try first, at least two for each ensemble."""
        wanted = _MOST_CLASSES if self._ensembles > _MOST_CLASSES else max(_TREE_COLUMNS, 2 * self._ensembles)
        return max(1, min(wanted, self.width // 2))

    def chain(self, candidate: Candidate, width: int, rows: int) -> list[Recipe]:
        """Return the steps of a candidate for all columns except text."""
        scaler = SCALERS[candidate.scaler]
        before = (
            self._union(scaler, candidate.encoding)
            if candidate.union
            else [*self.table.groups.in_line(self.table.missing, candidate.encoding), *scaler]
        )
        last = [] if candidate.map == "raw" else [self._map(candidate, width, rows)]
        return [*before, *METRICS[candidate.metric], *last]

    def _map(self, candidate: Candidate, width: int, rows: int) -> Recipe:
        if candidate.map == "supervised":
            even = width - width % 2
            return {"kind": "fourier", "frequencies": "supervised", "n_components": even}
        if candidate.map.startswith("homogeneous "):
            kernel = candidate.map.removeprefix("homogeneous ")
            order = max(0, (width // self.table.width - 1) // 2)
            return {"kind": "homogeneous", "kernel": kernel, "order": order}
        gamma = {} if candidate.gamma is None else {"gamma": _rule(candidate.gamma)}
        return {"kind": "nystroem", **KERNELS[candidate.map], **gamma, "n_components": min(width, rows)}

    def _if_missing(self, *steps: Recipe) -> list[Recipe]:
        return list(steps) if self.table.missing else []

    def _union(self, scaler: list[Recipe], encoding: Encoding) -> list[Recipe]:
        """Return a union of chains for numbers, categories and times. Only numbers and mean labels are scaled."""
        groups = self.table.groups
        means = target(groups.many, encoding)
        many = groups.many if means else ()
        codes = (*groups.categories, *(groups.many if encoding in ("both", "one_hot") else ()))
        numbers = [*means, *self._if_missing({"kind": "missing_indicator"}, IMPUTE)]
        return [
            side_by_side(
                ((*groups.numbers, *many), [*numbers, *scaler]),
                (codes, [one_hot(codes)]),
                (groups.times, [date_parts(groups.times), *self._if_missing(IMPUTE)]),
            )
        ]

    @property
    def scalers(self) -> list[str]:
        """The scalers that suit the table."""
        power = ["power"] if self.table.width <= _MOST_FOR_POWER else []
        return ["standardize", "quantile", *power]

    @property
    def metrics(self) -> list[str]:
        """The metrics that suit the table."""
        return list(METRICS) if self.table.width <= _MOST_FOR_ROTATION else ["none", DIAGONAL]

    @property
    def _readings(self) -> dict[str, Sequence[Any]]:
        """The values to try for the fields `words` and `encoding`; none if the table has no columns for a field."""
        groups = self.table.groups
        words = _WORDS if groups.texts and groups.without_texts else _WORDS[: 1 + bool(groups.texts)]
        return {"words": words, "encoding": _ENCODINGS if groups.many else ()}

    def readings(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield the candidate with other shares for text, and with other encodings of categories with many values."""
        return _each(candidate, self._readings)

    def kernels(self, like: Candidate) -> Iterator[Candidate]:
        """Yield pairs of scaler and kernel with the median γ. Text and categories are coded as in `like`."""
        like, groups = replace(like, metric="none", gamma=1.0, union=False), self.table.groups
        # If there are also categories or times, try to scale only the numbers.
        for union in (False, True) if groups.mixed and groups.numbers else (False,):
            for scaler, kernel in itertools.product(self.scalers, SMOOTH):
                yield replace(like, scaler=scaler, map=kernel, union=union)
        for scaler in ("none", "normalize") if self.table.histogram else ():
            yield replace(like, scaler=scaler, map="chi2")
            for kernel in ADDITIVE:
                if not kernel.startswith("homogeneous") or self.width >= 3 * self.table.width:
                    yield replace(like, scaler=scaler, map=kernel, gamma=None)

    def gammas(self, kernel: Candidate) -> Iterator[Candidate]:
        """Yield the kernel with three times its γ, and with a third."""
        return _each(kernel, {"gamma": _gammas(kernel, 3.0)})

    def with_metrics(self, best: Candidate) -> Iterator[Candidate]:
        """Yield the best kernel with each metric.

        A diagonal metric suits the laplacian kernel best, whose distance is a sum over columns. This pair is tried even
        if another kernel is best without a metric.
        """
        if best.map not in OF_HISTOGRAMS:
            for metric in self.metrics[1:]:
                yield replace(best, metric=metric, gamma=1.0)
            if best.map != "laplacian":
                yield replace(best, metric=DIAGONAL, map="laplacian", gamma=1.0)

    def trained(self, like: Candidate) -> Iterator[Candidate]:
        """Yield supervised frequencies, which are trained for the label, with and without a metric before them."""
        scaler = like.scaler if like.scaler in self.scalers else self.scalers[0]
        for metric in (self.metrics[-1], "none"):
            yield replace(like, scaler=scaler, metric=metric, map="supervised", gamma=None)

    def neighbours(self, best: Candidate) -> Iterator[Candidate]:
        """Yield candidates that differ from the best one in one choice that screening has not settled."""
        if best.trees == NO_TREES:
            yield from itertools.islice(self.with_trees(best), 1)
        elif best.map != "trees":
            yield best.without_trees
        yield from _each(best, self._choices(best))

    def _choices(self, best: Candidate) -> dict[str, Sequence[Any]]:
        """Return the fields of a candidate that neighbours may change, with the values to try."""
        choices = dict[str, Sequence[Any]]()
        if best.trees != NO_TREES:
            choices["trees"] = self._growths
            choices["factor"] = _FACTORS if best.map != "trees" else ()
        if best.map not in FIXED:
            choices |= self._readings
            choices["gamma"] = _gammas(best, 3.0**0.5)
            choices["metric"] = self.metrics if best.map not in OF_HISTOGRAMS else ()
            choices["scaler"] = self.scalers if best.map == "supervised" else ()
        return choices


def _each(candidate: Candidate, choices: Mapping[str, Sequence[Any]]) -> Iterator[Candidate]:
    """Yield the candidate with each field set to each of its values, one field at a time."""
    for name, values in choices.items():
        for value in values:
            yield replace(candidate, **{name: value})


def _gammas(kernel: Candidate, factor: float) -> list[float]:
    """Return the γ of a kernel times the factor, and divided by it, without values that are out of bounds."""
    around = [float(f"{(kernel.gamma or 0.0) * times:.2g}") for times in (factor, 1.0 / factor)]
    return [gamma for gamma in around if _LEAST_GAMMA <= gamma <= _MOST_GAMMA]


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(time: float | str | None) -> float | None:
    """Return the seconds of a duration: a number, or text such as `90`, `90s`, `10m` or `1.5h`."""
    if time is None:
        return None
    seconds = math.nan
    with suppress(TypeError, ValueError):
        unit = _UNITS.get(time[-1:]) if isinstance(time, str) else None
        seconds = float(time) if unit is None else float(time[:-1]) * unit  # type: ignore[index]  # text here
    if not 0.0 < seconds < math.inf:
        raise UsageError(
            f"time: expected a duration above 0, such as 90 (seconds), 90s, 10m or 1h, got {time!r}"
        )
    return seconds


PredictorKind = Literal["ridge", "logistic"]


def with_predictor(start: Config, kind: PredictorKind | None, task: TaskKind) -> Config:
    """Return the config with a predictor for this task at its end, or unchanged if it already has a predictor."""
    if kind is None or start.predictor is not None:
        return start
    # "auto" is the default, and logistic only supports classification
    step = {"kind": kind, **({"task": task} if task in ("classification", "soft") or kind == "ridge" else {})}
    plain = start.to_plain()
    return Config.model_validate({**plain, "steps": [*plain["steps"], step]})
