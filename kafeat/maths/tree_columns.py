"""Columns that are sums of leaf values of boosted trees. A training row goes only through the ensemble of its own fold.

Numbers are compared as codes, 1 + the number of edges of their column that are below them: a node sends a row to the
right if its code is above a threshold. A missing number has two codes, 0 and 255, of which each node uses one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.compiled.library import ARRAY, SIZE, address, aligned, loop, vector_bytes
from kafeat.contract.step import Transform
from kafeat.maths.content_folds import folds_of, hashes_of
from kafeat.maths.row_sample import Hashes
from kafeat.types import Array, ArrayOf, Floats, Shapes, State

MOST_LEAVES = 32
"""The most leaves of a tree, because each leaf is one bit of a 32-bit number."""
MOST_EDGES = 255
LOW, HIGH = 0, 255
"""The two codes of a missing number: below and above all thresholds."""
_LARGEST_LEAF = 1e30
# About how many nodes NumPy compares at a time.
_NODES_AT_ONCE = 1 << 21


def tree_shapes(state: State, d: int, n_folds: int, n_trees: int, max_leaves: int, D: int) -> Shapes:
    """Return the shapes of a state's arrays. Those of trees begin with (folds, outputs, trees, nodes or leaves)."""
    outputs = np.shape(state.get("features", 0))[1:2] or (0,)
    used, coded = np.size(state.get("columns", ())), np.size(state.get("categorical", ()))
    nodes = (n_folds, *outputs, n_trees, max_leaves - 1)
    return {
        "seen": ArrayOf((np.size(state.get("seen", ())),), "int64", optional=True),
        "own": ArrayOf((), "int64", optional=True),
        "seed": ArrayOf((), "int64", below=1 << 63),
        "fold_rows": ArrayOf((n_folds,), "int64"),
        "columns": ArrayOf((used,), "int64", below=d),
        "edges": (used, MOST_EDGES),
        "features": ArrayOf(nodes, "int32", below=2 * used),
        "thresholds": ArrayOf(nodes, "uint8"),
        "masks": ArrayOf(nodes, "int32"),
        "leaves": (*nodes[:3], max_leaves),
        "means": (D,),
        "categorical": ArrayOf((coded,), "int64", below=d),
        "sizes": ArrayOf((coded,), "int64", below=1 << 24),
        "ranks": ArrayOf((n_folds, int(np.sum(state.get("sizes", 0)))), "int32", below=1 << 24),
    }


def check_trees(state: State, D: int) -> None:
    """Raise ValueError for values that fitting never produces, and with which the C loop might read other memory."""
    if "seen" in state and not len(state["seen"]):
        raise ValueError("state.seen: expected the hash of a row, got none")
    outputs, n_trees = state["features"].shape[1:3]
    if not 1 <= outputs <= D <= outputs * n_trees:
        raise ValueError(f"state.features: expected trees for {D} columns, got {outputs} times {n_trees}")
    if (state["masks"] >= 0).any():
        raise ValueError("state.masks: expected the last leaf in each")
    if not (np.abs(state["leaves"]) <= _LARGEST_LEAF).all():
        raise ValueError(f"state.leaves: expected numbers of at most {_LARGEST_LEAF:g}")


def group_ends(outputs: int, n_trees: int, D: int) -> Array:
    """Return for each of D columns the number of the tree (of outputs times n_trees) after which its sum ends.

    Each output has D // outputs columns. If that leaves a remainder, the first outputs have one more.
    """
    sizes = [D // outputs + (c < D % outputs) for c in range(outputs)]
    return np.concatenate([(np.arange(g) + 1) * n_trees // g + c * n_trees for c, g in enumerate(sizes)])


class TreeColumns(Transform):
    """Computes the columns of fitted trees minus their means, by the compiled loop or, with the same result, by NumPy.

    `seen` holds sorted hashes of training rows, or of their groups. Such rows get the columns of their fold's ensemble,
    which has not learned from them, and other rows get the mean of all ensembles. Without `seen`, every row gets the
    columns of its fold's ensemble.
    """

    def __init__(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in, self.n_features_out = n_features_in, len(state["means"])
        n_folds, outputs, n_trees, n_nodes = state["features"].shape
        self._seed, self._dtype, self._n_nodes = int(state["seed"]), dtype, n_nodes
        self._columns, self._group = state["columns"].astype(np.int32), state["group"]
        self._seen = state.get("seen")
        self._edges = np.ascontiguousarray(state["edges"], dtype=np.float32)
        nodes = [state[name].astype(np.int32) for name in ("features", "thresholds", "masks")]
        self._nodes = np.stack(nodes, axis=-1).reshape(n_folds, outputs * n_trees, n_nodes, 3)
        self._leaves = np.zeros((n_folds, outputs * n_trees, MOST_LEAVES), dtype)
        leaves = state["leaves"].astype(np.float32)  # so that float32 and float64 maps have the same leaves
        self._leaves[..., : leaves.shape[-1]] = leaves.reshape(n_folds, outputs * n_trees, -1)
        self._ends = group_ends(outputs, n_trees, self.n_features_out).astype(np.int32)
        self._means = state["means"].astype(dtype)
        starts = np.concatenate([[0], np.cumsum(state["sizes"])])
        self._coded = [
            (int(j), state["ranks"][:, a:b])
            for j, a, b in zip(state["categorical"], starts[:-1], starts[1:], strict=True)
        ]
        size = vector_bytes()
        arguments = [ARRAY, SIZE, ARRAY, SIZE, ARRAY, SIZE, ARRAY, ARRAY, SIZE, *[ARRAY] * 3, SIZE]
        self._run = loop(f"trees_{size}", dtype, *arguments, ARRAY, ARRAY, SIZE, SIZE) if size else None

    def scratch(self, rows: int) -> Array:
        return aligned(2 * vector_bytes() * len(self._columns), np.dtype(np.int32))

    def apply(self, X: Floats, out: Floats, scratch: Array) -> None:
        self.apply_hashed(X, hashes_of(X, self._seed, self._group), out, scratch)

    def apply_hashed(self, X: Floats, hashes: Hashes, out: Floats, scratch: Array) -> None:
        """Write the columns for rows X (n, d) with these hashes (n,) into `out`."""
        n_folds = len(self._nodes)
        folds = folds_of(hashes, n_folds)
        self.apply_folds(X, folds, out, scratch)
        if self._seen is None:
            return
        keys = hashes.view(np.int64)
        places = np.minimum(np.searchsorted(self._seen, keys), len(self._seen) - 1)
        new = np.flatnonzero(self._seen[places] != keys)
        if not len(new):
            return
        X, folds, total = X[new], folds[new], out[new]
        part = np.empty_like(total)
        for k in range(1, n_folds):
            self.apply_folds(X, (folds + k) % n_folds, part, scratch)
            total += part
        out[new] = total / out.dtype.type(n_folds)

    def apply_folds(self, X: Floats, folds: Array, out: Floats, scratch: Array) -> None:
        """Write the columns for rows X (n, d) into `out`, each by the ensemble of its fold (n,)."""
        X = np.ascontiguousarray(self._ranked(X, folds))
        for fold in range(len(self._nodes)):
            rows = np.flatnonzero(folds == fold).astype(np.int32)
            if self._run is None:
                out[rows] = self._sums(X[rows], fold)
            elif len(rows):
                by_row, by_output = (step // out.itemsize for step in out.strides)
                self._run(
                    address(X), X.shape[1], address(rows), len(rows), address(self._columns), len(self._columns),
                    address(self._edges), address(self._nodes[fold]), self._n_nodes, address(self._leaves[fold]),
                    address(self._ends), address(self._means), self.n_features_out, address(scratch),
                    address(out), by_row, by_output,
                )  # fmt: skip

    def _ranked(self, X: Floats, folds: Array) -> Floats:
        """Return rows X with categories replaced by their ranks in the row's fold. Unknown categories become NaN."""
        if not self._coded:
            return X
        X = X.copy()
        for j, ranks in self._coded:
            codes = np.nan_to_num(np.rint(X[:, j]), nan=-1.0)
            known = (codes >= 0.0) & (codes < ranks.shape[1])
            X[:, j] = np.nan
            X[known, j] = ranks[folds[known], codes[known].astype(np.intp)]
        return X

    def _sums(self, X: Floats, fold: int) -> Floats:
        """Return the columns for rows X by the ensemble of one fold, without the compiled loop."""
        codes, sums = self._codes(X), np.zeros((self.n_features_out, len(X)), self._dtype)
        nodes, leaves = self._nodes[fold], self._leaves[fold]
        at_once = max(1, _NODES_AT_ONCE // max(1, len(X) * self._n_nodes))
        column = np.repeat(np.arange(self.n_features_out), np.diff(self._ends, prepend=0))
        for start in range(0, len(nodes), at_once):
            feature, threshold, mask = np.moveaxis(nodes[start : start + at_once], -1, 0)[..., None]
            cleared = np.where(codes[feature[..., 0]] > threshold, mask, -1)
            bits = np.bitwise_and.reduce(cleared, axis=1).view(np.uint32).astype(np.int64)
            leaf = np.frexp((bits & -bits).astype(np.float64))[1] - 1
            for tree, of_rows in enumerate(leaf, start):
                sums[column[tree]] += leaves[tree, of_rows]
        return sums.T - self._means

    def _codes(self, X: Floats) -> Array:
        """Return the codes of each column that the trees use, (2u, n): first LOW, then HIGH for missing numbers."""
        codes = np.empty((2 * len(self._columns), len(X)), np.int32)
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = X.astype(np.float32)
        for j, (column, edges) in enumerate(zip(self._columns, self._edges, strict=True)):
            x = narrow[:, column]
            below = _count_below(edges, x)
            codes[2 * j] = np.where(np.isnan(x), LOW, below + 1)
            codes[2 * j + 1] = np.where(np.isnan(x), HIGH, below + 1)
        return codes


def _count_below(edges: Array, x: Array) -> Array:
    """Return how many edges are below each number, by the compiled loop's steps, even for edges out of order."""
    below, half = np.zeros(len(x), np.int32), (MOST_EDGES + 1) // 2
    while half:
        below += half * (edges[below + half - 1] < x)
        half //= 2
    return below
