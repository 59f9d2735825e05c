"""Boosted trees with cross-fitting: the ensemble of a fold learns from the rows of the other folds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.contract.step import Grouped
from kafeat.contract.threads import check, share_work
from kafeat.errors import DataError, UsageError
from kafeat.maths.content_folds import FEW, NO_GROUP, NO_HASH, folds_to_learn, hashes_of
from kafeat.maths.task import task_to_learn
from kafeat.maths.tree_columns import HIGH, MOST_EDGES, TreeColumns, group_ends
from kafeat.types import Array, Floats

# Bins have the codes 1 to 254, so a threshold of 255 sends no row to the right.
_MOST_BINS, _NEVER = HIGH - 1, HIGH
# Fills the unused places in a column's array of bin edges.
_NO_EDGE = 3e38
_MOST_BYTES = 50_000_000
# Each tree is grown on this share of the rows and of the columns (stochastic gradient boosting, Friedman 2002), but on
# at most about 64 columns. On images of 784 columns, this limit made fitting three times as fast and no less accurate.
_SHARE, _COLUMNS = 0.8, 64
# The most MB of histograms that LightGBM keeps per ensemble. For 2,000 columns or more, all leaves would need more.
_HISTOGRAMS = 256.0
# Mean labels of categories are shrunk towards the mean of all rows, which counts as much as this many rows.
_PRIOR_ROWS = 10.0


# The lists that describe a tree in the text of a LightGBM model. The last has a number per leaf, the others per node.
_OF_TREES = ("left_child", "right_child", "split_feature", "decision_type", "threshold", "leaf_value")
# LightGBM's decision type, shifted right by two bits, is 2 if NaN means missing, 1 if the number 0 means missing, and 0
# if no value means missing.
_NAN_IS_MISSING = 2


class TreeRecipe(Grouped):
    """Base class of recipes with boosted trees. A subclass, such as `Trees`, declares these parameters."""

    if TYPE_CHECKING:
        n_components: int
        n_folds: int
        n_trees: int
        max_leaves: int
        learning_rate: float
        min_leaf_rows: int
        scale: float


@dataclass(frozen=True)
class _Targets:
    """What the trees predict: numbers Y (n, k), or class numbers (n,) with their one-hot indicators as Y."""

    Y: Floats
    classes: Array | None

    @property
    def outputs(self) -> int:
        """The number of outputs, each a sum of trees: one for each number or class, but only one for two classes."""
        return 1 if self.classes is not None and self.Y.shape[1] == 2 else self.Y.shape[1]


def fit_trees(
    X: Floats,
    labels: Array,
    recipe: TreeRecipe,
    categories: Mapping[int, int],
    rng: np.random.Generator,
    group: Array = NO_GROUP,
    jobs: int = 1,
) -> dict[str, Array]:
    """Grow trees on rows X (n, d), and return the state of `TreeColumns`.

    On these rows, its columns have mean 0 and the standard deviation `recipe.scale`. `categories` maps the index of
    each column of category codes to the number of categories. The content of a row decides its fold. If `group` (1,) is
    the index of a column of groups, the group decides, and the column is not a feature. `jobs` threads grow ensembles.
    """
    seed = int(rng.integers(1 << 63))
    hashes = hashes_of(X, seed, group)
    # If all columns are categories, folds by content need two different rows per category of the largest column.
    largest = max(categories.values()) if len(categories) == X.shape[1] else 0
    folds, often = folds_to_learn(hashes, recipe.n_folds, 0 if len(group) else max(FEW, 2 * largest))
    X = X.copy()
    X[:, group] = 0.0  # no tree splits a constant column
    D = recipe.n_components
    trees = _grow(X, labels, folds, recipe, categories, rng, jobs)
    # Every ensemble learns from copies of rows that repeat often. So these rows are not listed in `seen`, and get the
    # mean of all ensembles, like new rows. `NO_HASH`, which no row has, keeps the list from being empty.
    seen = np.array([NO_HASH]) if often.all() else np.unique(hashes[~often].view(np.int64))
    state = {"seed": np.array(seed), "group": group, "means": np.zeros(D), "seen": seen, **trees}
    columns = TreeColumns(state, X.shape[1], np.dtype(np.float64))
    Z = np.empty((len(X), D))
    columns.apply_hashed(X, hashes, Z, columns.scratch(len(X)))
    spread = Z.std(axis=0)
    factors = recipe.scale / np.where(spread > 0.0, spread, 1.0)
    _, outputs, n_trees, _ = state["leaves"].shape
    sizes = np.diff(group_ends(outputs, n_trees, D), prepend=0)
    of_trees = np.repeat(factors, sizes).reshape(outputs, n_trees, 1)
    leaves = (state["leaves"] * of_trees).astype(np.float32)
    own = np.array(np.count_nonzero(often))
    return {**state, "leaves": leaves, "means": Z.mean(axis=0) * factors, "own": own}


def _grow(
    X: Floats,
    labels: Array,
    folds: Array,
    recipe: TreeRecipe,
    categories: Mapping[int, int],
    rng: np.random.Generator,
    jobs: int,
) -> dict[str, Array]:
    """Return the arrays of trees, bin edges and ranks of categories. The leaves are not scaled yet."""
    lightgbm, targets = load_library(), _targets(labels, recipe, rng)
    shape = (recipe.n_folds, targets.outputs, recipe.n_trees, recipe.max_leaves - 1)
    _refuse_size(shape, recipe.n_components)
    with np.errstate(over="ignore", invalid="ignore"):
        X = X.astype(np.float32)
    ranks = [_ranks(X[:, j], size, targets.Y, folds, recipe.n_folds) for j, size in categories.items()]
    columns = [np.arange(categories[j]) if j in categories else X[:, j] for j in range(X.shape[1])]
    edges = np.stack([_edges(column) for column in columns])
    features, masks = np.zeros(shape, np.int32), np.full(shape, -1, np.int32)
    thresholds, leaves = (
        np.full(shape, _NEVER, np.uint8),
        np.zeros((*shape[:3], recipe.max_leaves), np.float32),
    )

    def grow(part: tuple[int, np.random.Generator]) -> None:
        fold, stream = part
        rows = np.flatnonzero(folds != fold)
        codes = _codes(X[rows], edges, {j: r[fold] for j, r in zip(categories, ranks, strict=True)})
        for output, i, tree in _grown(lightgbm, codes, targets, rows, recipe, int(stream.integers(1 << 31))):
            at = fold, output, i
            _lay_out(tree, features[at], thresholds[at], masks[at], leaves[at])

    parts = zip(range(recipe.n_folds), rng.spawn(recipe.n_folds), strict=True)
    share_work(lambda: grow, parts, min(jobs, recipe.n_folds))
    used = np.unique(features // 2)
    return {
        "fold_rows": np.bincount(folds, minlength=recipe.n_folds), "columns": used.astype(np.int64),
        "edges": edges[used], "features": (2 * np.searchsorted(used, features // 2) + features % 2).astype(np.int32),
        "thresholds": thresholds, "masks": masks, "leaves": leaves,
        "categorical": np.array(list(categories), np.int64), "sizes": np.array(list(categories.values()), np.int64),
        "ranks": np.concatenate([*ranks, np.empty((recipe.n_folds, 0), np.int32)], axis=1),
    }  # fmt: skip


def load_library() -> Any:
    """Return the module `lightgbm`. If it is missing, raise an error that explains how to install it."""
    try:
        import lightgbm
    except ImportError as error:
        raise UsageError(f"trees: expected lightgbm, got: {error}; pip install 'kafeat[trees]'") from error
    except OSError as error:
        raise UsageError(
            f"trees: expected the OpenMP library of GCC, which lightgbm needs, got: {error}; apt-get install libgomp1"
        ) from error
    return lightgbm


def _refuse_size(shape: tuple[int, int, int, int], D: int) -> None:
    """Raise an error if arrays (folds, outputs, trees, nodes) would be too large, or folds have fewer than D trees."""
    _, outputs, n_trees, nodes = shape
    if outputs * n_trees < D:
        raise DataError(
            f"trees: n_components: expected at most {outputs * n_trees:,}, as there are {n_trees:,} trees for each of "
            f"{outputs:,} outputs, got {D:,}: raise n_trees"
        )
    size = int(np.prod(shape[:3])) * (13 * nodes + 4)
    if size > _MOST_BYTES:
        raise DataError(
            f"trees: expected at most {_MOST_BYTES / 1e6:.0f} MB of trees, got {size / 1e6:,.0f} MB ({shape[0]} folds "
            f"of {shape[2]:,} trees for each of {shape[1]:,} outputs): lower n_trees, n_folds or max_leaves"
        )


def _targets(labels: Array, recipe: TreeRecipe, rng: np.random.Generator) -> _Targets:
    """Return at most D targets: larger numbers of targets are mixed with random signs into D (Achlioptas 2003)."""
    task, D = task_to_learn(labels), recipe.n_components
    Y = task.targets(labels)
    if task.classes is not None and (len(task.classes) == 2 or len(task.classes) <= D):
        return _Targets(Y, task.numbers(labels))
    if Y.shape[1] > D:
        Y = (Y - Y.mean(axis=0)) @ rng.choice([-1.0, 1.0], (Y.shape[1], D))
        Y /= np.maximum(Y.std(axis=0), np.finfo(float).tiny)
    return _Targets(Y, None)


def _edges(x: Array) -> Array:
    """Return the bin edges of a column: midpoints between all its values or, if there are many, only at quantiles."""
    values, counts = np.unique(x[~np.isnan(x)].astype(np.float32), return_counts=True)
    places = np.arange(len(values) - 1)
    if len(values) > _MOST_BINS:
        shares = np.arange(1, _MOST_BINS) / _MOST_BINS * counts.sum()
        places = np.unique(np.searchsorted(np.cumsum(counts), shares))
        places = places[places < len(values) - 1]
    edges = np.full(MOST_EDGES, _NO_EDGE, np.float32)
    if len(places):
        low, high = values[places], values[places + 1]
        middle = (low.astype(np.float64) / 2 + high.astype(np.float64) / 2).astype(np.float32)
        edges[: len(places)] = np.where(middle < high, middle, low)
    return edges


def _ranks(codes: Array, size: int, Y: Floats, folds: Array, n_folds: int) -> Array:
    """Return the rank of each category by its mean label in the rows of the other folds, (folds, size).

    The best split into two groups keeps this order (Fisher 1958). Several labels are projected on their main direction.
    """
    ranks = np.empty((n_folds, size), np.int32)
    for fold in range(n_folds):
        rows = np.flatnonzero((folds != fold) & (codes >= 0))
        of_row = codes[rows].astype(np.intp)
        counts = np.bincount(of_row, minlength=size)[:, None]
        apart = np.zeros((size, Y.shape[1]))
        np.add.at(apart, of_row, Y[rows] - Y[rows].mean(axis=0))
        apart /= counts + _PRIOR_ROWS
        _, axes = np.linalg.eigh(apart.T @ (counts * apart))
        main = axes[:, -1] * np.sign(axes[np.abs(axes[:, -1]).argmax(), -1])
        ranks[fold, np.argsort(apart @ main, kind="stable")] = np.arange(size)
    return ranks


def _codes(X: Floats, edges: Array, ranks: Mapping[int, Array]) -> Floats:
    """Return the bin code of each entry of X, where categories are replaced by their ranks first. NaN means missing."""
    codes = np.empty_like(X)
    for j, of_column in enumerate(edges):
        x = X[:, j]
        if j in ranks:
            known = (x >= 0) & (x < len(ranks[j]))
            x = np.where(known, ranks[j][np.where(known, x, 0).astype(np.intp)], np.float32(np.nan))
        codes[:, j] = np.where(np.isnan(x), np.nan, 1 + np.searchsorted(of_column, x))
    return codes


def _grown(
    lightgbm: Any, codes: Floats, targets: _Targets, rows: Array, recipe: TreeRecipe, seed: int
) -> Iterator[tuple[int, int, dict[str, list[str]]]]:
    """Yield the trees of one ensemble as (output, index, LightGBM's lists). Constant targets have no trees."""
    parameters = {
        "num_leaves": recipe.max_leaves, "learning_rate": recipe.learning_rate,
        "min_data_in_leaf": recipe.min_leaf_rows, "min_data_in_bin": 1, "max_bin": HIGH,
        "bin_construct_sample_cnt": max(1, len(codes)), "feature_pre_filter": False,
        "feature_fraction": min(_SHARE * codes.shape[1], _COLUMNS) / codes.shape[1],
        "bagging_fraction": _SHARE, "bagging_freq": 1, "histogram_pool_size": _HISTOGRAMS,
        # one thread and a fixed order of summation, so that trees are the same on every machine
        "num_threads": 1, "deterministic": True, "force_col_wise": True, "seed": seed, "verbosity": -1,
    }  # fmt: skip
    for objective, of_outputs, y in _objectives(targets, rows):
        if len(np.unique(y)) < 2:
            continue
        several = {"num_class": len(of_outputs)} if len(of_outputs) > 1 else {}
        chosen = {**parameters, **several, "objective": objective}
        rows_of = lightgbm.Dataset(codes, y, params=chosen)
        booster = lightgbm.train(
            chosen, rows_of, recipe.n_trees, callbacks=[lambda _: check()], keep_training_booster=True
        )
        # Parsing the text of a model is several times as fast as parsing the JSON of `dump_model`.
        trees = booster.model_to_string().split("end of trees")[0].split("\nTree=")[1:]
        for i, tree in enumerate(trees):
            words = dict(line.split("=", 1) for line in tree.splitlines() if "=" in line)
            values = {name: words[name].split() for name in _OF_TREES if name in words}
            yield of_outputs[i % len(of_outputs)], i // len(of_outputs), values


def _objectives(targets: _Targets, rows: Array) -> Iterator[tuple[str, list[int], Array]]:
    """Yield each objective to train, with its outputs and labels. Classes that these rows lack are left out."""
    if targets.classes is None:
        for output in range(targets.outputs):
            yield "regression", [output], targets.Y[rows, output]
        return
    present, y = np.unique(targets.classes[rows], return_inverse=True)
    if len(present) > 2:
        yield "multiclass", present.tolist(), y
    else:
        yield "binary", [0 if targets.outputs == 1 else int(present[-1])], y


def _lay_out(
    tree: Mapping[str, Sequence[str]], features: Array, thresholds: Array, masks: Array, leaves: Array
) -> None:
    """Write a tree of LightGBM into these arrays: its nodes in any order, and its leaves from left to right."""
    count = 0
    left, right, columns, kinds = ([int(word) for word in tree.get(name, ())] for name in _OF_TREES[:4])

    def place(node: int, first: int) -> int:
        """Write the branch at `node`, with its leaves numbered from `first` on. Return the next free leaf number."""
        nonlocal count
        if node < 0:  # a negative node is the leaf −1 − node
            leaves[first] = float(tree["leaf_value"][~node])
            return first + 1
        i, count = count, count + 1
        # if LightGBM saw no missing value in training, a missing value counts as 0 and goes left
        missing_left = kinds[node] & 2 or kinds[node] >> 2 != _NAN_IS_MISSING
        features[i] = 2 * columns[node] + (not missing_left)
        thresholds[i] = min(float(tree["threshold"][node]), _MOST_BINS)
        middle = place(left[node], first)
        masks[i] = ~((1 << middle) - (1 << first))
        return place(right[node], middle)

    place(0 if left else -1, 0)
