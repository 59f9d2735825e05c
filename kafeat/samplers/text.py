"""Texts by their words and n-grams of characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from kafeat.contract.checks import check_indices
from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.contract.name_patterns import ColumnNames, feature_places, places_of
from kafeat.contract.ngrams import BUCKETS
from kafeat.contract.sparse_product import SparseMatrix, times_dense
from kafeat.contract.step import (
    MONTE_CARLO,
    N_COMPONENTS,
    NO_THEOREM,
    Names,
    Sample,
    Step,
    Traits,
    Transform,
    Width,
    parameter,
)  # fmt: skip
from kafeat.contract.tile import SparseRows, TextRows
from kafeat.errors import DataError
from kafeat.types import Array, Floats, Scratch, Shape, State

# Outputs that each bucket is added to; rows that an SVD is of, its rounds and its spare directions.
_EACH, _SVD_ROWS, _ROUNDS, _SPARE = 4, 20_000, 2, 16


class Text(Step):
    """z(x)·z(y) ≈ u(x)·u(y), the cosine of the n-grams of two texts: u_b = ±(1 + log c_b) log(e(1 + n)/(1 + n_b))/‖·‖.

    The n-grams are the words of a text, and 3 to 5 characters of each with a space at its ends, in folded case. A hash
    gives each one of 2¹⁴ buckets b and a sign; c_b counts it in the text, n_b the rows of the fit sample that have it,
    out of n. So new words are no special case, and words with typing errors are near the right ones. `svd` gives the
    coordinates of u in the D directions that hold most of the fit sample. `sparse` asks for no sample: each bucket is
    added to four outputs with random signs, and the error falls with 1/√D. A missing or empty text has zeros.

    Outputs: first every column that is not named, unchanged and in the order of the input; then D of each named column.
    It reads texts, so it comes first in a chain, or in a map of a union.

    Source: Weinberger et al. 2009, section 2 (hashed features); Deerwester et al. 1990 (svd); Kane & Nelson 2014
    (sparse).
    """

    always: ClassVar[Traits] = Traits(missing="pass", spreads="ignores")

    columns: ColumnNames = parameter((), "the columns of text, by name or pattern")
    n_components: Width = N_COMPONENTS
    projection: Literal["svd", "sparse"] = parameter(
        "svd", "the directions of the fit sample, or random ones, which need more outputs"
    )

    @property
    def traits(self) -> Traits:
        slopes = MONTE_CARLO if self.projection == "sparse" else NO_THEOREM
        return replace(super().traits, text_columns=self.columns, error_slopes=slopes)

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        starts = _starts(self.columns, sample.names)
        if isinstance(sample.X, TextRows) and len(starts) != len(sample.X.starts):
            raise DataError(
                "text: expected to name every column of text that it sees, got others beside: name all in one step, "
                "or give each a map of a union"
            )
        shapes = self.state_shapes({"columns": starts}, len(sample.names or ()))
        dtypes = {"weights": "float64", "directions": "float32", **self.state_dtypes}
        state = {name: np.zeros(shape, dtypes[name]) for name, shape in shapes.items()}
        state["columns"][:] = starts
        for i, stream in enumerate(rng.spawn(len(starts))):
            counts = _counts(sample.X, starts[i])
            rows = np.bincount(counts.columns, minlength=BUCKETS)
            state["weights"][i] = np.log((1.0 + len(counts)) / (1.0 + rows)) + 1.0
            if self.projection == "sparse":
                state["outputs"][i], state["signs"][i] = self._signs(stream)
            else:
                found = self._directions(_weighted(counts, state["weights"][i]), stream)
                state["directions"][i, :, : found.shape[1]] = found
        return state

    def _signs(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the outputs that each bucket is added to, one in each of a few parts of them, and the signs."""
        each = min(_EACH, self.n_components)
        edges = np.linspace(0, self.n_components, each + 1).astype(np.int64)
        return rng.integers(edges[:-1], edges[1:], size=(BUCKETS, each)), rng.choice([-1, 1], (BUCKETS, each))

    def _directions(self, u: SparseRows, rng: np.random.Generator) -> Floats:
        """Return the first right singular vectors of u, by iterations of a random subspace of the buckets."""
        rows = np.sort(rng.choice(len(u), _SVD_ROWS, replace=False)) if len(u) > _SVD_ROWS else slice(None)
        U = u.csr[rows]
        basis = rng.standard_normal((BUCKETS, min(self.n_components + _SPARE, BUCKETS)))
        for _ in range(_ROUNDS):
            basis, _ = np.linalg.qr(U.T @ (U @ basis))
        image = U @ basis
        _, vectors = np.linalg.eigh(image.T @ image)
        directions: Floats = basis @ vectors[:, ::-1][:, : self.n_components]
        return directions

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        k, each = np.size(state.get("columns", ())), min(_EACH, self.n_components)
        shapes: dict[str, Shape] = {"columns": (k,), "weights": (k, BUCKETS)}
        if self.projection == "svd":
            return {**shapes, "directions": (k, BUCKETS, self.n_components)}
        return {**shapes, "outputs": (k, BUCKETS, each), "signs": (k, BUCKETS, each)}

    @property
    def state_dtypes(self) -> Mapping[str, str]:
        return {"columns": "int64", "outputs": "int64", "signs": "int8"}

    def check_state(self, state: State, n_features_in: int) -> None:
        starts = np.sort(state["columns"])
        check_indices("state.columns", starts, max(1, n_features_in - BUCKETS + 1))
        if (np.diff(starts) < BUCKETS).any():
            raise ValueError("state.columns: expected columns that do not overlap")
        if self.projection == "sparse":
            check_indices("state.outputs", state["outputs"], self.n_components)

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return n_features_in + len(state["columns"]) * (self.n_components - BUCKETS)

    def names_out(self, names: Names, state: State) -> Names:
        others = [names[j] for j in _others(state, len(names))]
        return (*others, *[None] * (len(state["columns"]) * self.n_components))

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _TextTransform(self, state, n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        if not isinstance(pair, Coordinates):
            raise TypeError("text needs coordinates")
        others = _others(state, pair.x.shape[1])
        rest = Coordinates(pair.x[:, others], pair.y[:, others])
        dots, (x, y) = rest.dots, rest.squared_norms
        for start, weights in zip(state["columns"], state["weights"], strict=True):
            u, v = (_weighted(_counts(rows, start), weights).csr for rows in (pair.x, pair.y))
            dots = dots + (u @ v.T).toarray()
            x, y = x + u.multiply(u).sum(axis=1), y + v.multiply(v).sum(axis=1)
        return Gram(dots, (x, y))


def _starts(columns: Sequence[str], names: Names | None) -> Array:
    """Return the first feature of each column of text."""
    places_of("text", columns, names)  # refuses what there is not
    starts = dict[int, None]()
    for _, places in feature_places(columns, names or ()):
        starts |= dict.fromkeys(places[::BUCKETS])
    return np.array(list(starts), dtype=np.int64)


def _others(state: State, n_features_in: int) -> Array:
    """Return the features that are not of the named columns."""
    named = (state["columns"][:, None] + np.arange(BUCKETS)).ravel()
    return np.setdiff1d(np.arange(n_features_in), named)


def _counts(X: Floats | TextRows, start: int) -> SparseRows:
    """Return the counts of a column of text, as sparse rows."""
    if isinstance(X, TextRows):
        return X.counts(start)
    part = X[:, start : start + BUCKETS]
    rows, buckets = np.nonzero(part)
    starts = np.searchsorted(rows, np.arange(len(X) + 1))
    return SparseRows(part[rows, buckets].astype(np.float64), buckets, starts, BUCKETS)


def _weighted(counts: SparseRows, weights: Floats) -> SparseRows:
    """Return rows of unit length: logarithms of counts, times the weights of the buckets."""
    size = np.abs(counts.values)
    # counts of rows that are no texts may lie between 0 and 1
    values = np.sign(counts.values) * np.where(size < 1.0, size, 1.0 + np.log(np.maximum(size, 1.0)))
    values *= weights[counts.columns]
    norms = np.sqrt(np.bincount(counts.row_of, values * values, len(counts)))
    return SparseRows(values / norms[counts.row_of], counts.columns, counts.starts, BUCKETS)


class _TextTransform(Transform):
    """Counts, weights and a product for each column; texts are counted tile by tile."""

    takes_texts = True

    def __init__(self, step: Text, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in, self.n_features_out = n_features, step.n_features_out(state, n_features)
        self._columns, self._weights = state["columns"], state["weights"].astype(np.float64)
        self._others, self._dtype, self._width = _others(state, n_features), dtype, step.n_components
        self._directions = self._signs = None
        if step.projection == "svd":
            self._directions = state["directions"].astype(dtype)
        else:
            pairs = zip(state["outputs"], state["signs"], strict=True)
            self._signs = [_sign_matrix(outputs, signs, self._width, dtype) for outputs, signs in pairs]

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        texts: Any = X
        first = len(self._others)
        out[:, :first] = texts.numbers if isinstance(texts, TextRows) else X[:, self._others]
        for i, start in enumerate(self._columns):
            u = _weighted(_counts(X, start), self._weights[i])
            rows = SparseRows(u.values.astype(self._dtype), u.columns, u.starts, BUCKETS)
            part = out[:, first + i * self._width : first + (i + 1) * self._width]
            if self._directions is not None:
                times_dense(rows, self._directions[i], part)
            elif self._signs is not None:
                self._signs[i].of_sparse_rows(rows, part)


def _sign_matrix(outputs: Array, signs: Array, width: int, dtype: np.dtype[Any]) -> SparseMatrix:
    """Return the matrix (width, BUCKETS) that adds each bucket to its outputs, by the square root of their number."""
    bucket = np.repeat(np.arange(BUCKETS), outputs.shape[1])
    order = np.lexsort((bucket, outputs.ravel()))
    starts = np.searchsorted(outputs.ravel()[order], np.arange(width + 1))
    values = signs.ravel()[order] / np.sqrt(outputs.shape[1])
    return SparseMatrix(values, bucket[order], starts, BUCKETS, dtype)
