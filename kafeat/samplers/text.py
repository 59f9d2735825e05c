"""Short texts as columns: titles, names, comments, and codes with typing errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from kafeat.chain.chain import own_coordinates
from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.contract.name_patterns import ColumnNames, feature_places, places_of
from kafeat.contract.ngrams import BUCKETS
from kafeat.contract.sparse_product import SparseMatrix, times_dense
from kafeat.contract.step import (
    N_COMPONENTS,
    Names,
    Sample,
    Step,
    Transform,
    Width,
    parameter,
)  # fmt: skip
from kafeat.contract.tile import SparseRows, TextRows
from kafeat.contract.traits import ColumnTraits, ExactTraits, NumberTraits, Traits
from kafeat.errors import DataError
from kafeat.maths.content_folds import FEW, folds_of, folds_to_learn, sparse_hashes
from kafeat.maths.task import task_to_learn
from kafeat.maths.texts import (
    inverse_frequencies,
    label_directions,
    main_directions,
    unit_rows,
    weighted,
)
from kafeat.types import Array, ArrayOf, Floats, Scratch, State

# With `projection: sparse`, each bucket is added to this many outputs. `projection: label` uses this many folds.
_EACH, _FOLDS = 4, 10
# Predictions of `label` get this standard deviation: three times that of one of 512 features in a row of length 1.
_SPREAD = 0.13
_BY_LABEL = "projection: label"


class Text(Step):
    """z(x)·z(y) ≈ u(x)·u(y), the cosine of the n-grams of two texts: u_b = ±(1 + log c_b) log(e(1 + n)/(1 + n_b))/‖·‖.

    The n-grams are the words of a text, and the sequences of 3 to 5 characters of each word with a space at both ends,
    ignoring case. A hash maps each n-gram to one of 2¹⁴ buckets b and a sign. c_b counts the n-grams of the text in
    bucket b, and n_b counts those of n training rows that have one there. `svd` gives the coordinates of u in the D
    directions that explain most of the training rows. `sparse` needs no sample: each bucket is added to four outputs
    with random signs, and the error falls with 1/√D. A missing or empty text has zeros.

    `label` gives the cross-fitted predictions of two ridge models first, one on u and one on rows that are not scaled
    to length 1, for each number or class of the label. `svd` gives the other outputs. A hash of a row's texts gives its
    fold. With fewer than 50 different texts, rows whose text repeats often get folds by row number, and the mean of all
    models.

    The outputs are the columns that are not named, then D for each named one. The step reads texts, so it comes first
    in a chain, or in a map of a union.

    Source: Weinberger et al. 2009, section 2 (hashed features); Deerwester et al. 1990 (svd); Kane & Nelson 2014
    (sparse).
    """

    always: ClassVar[Traits] = Traits(numbers=NumberTraits(missing="pass", spreads="ignores"))

    columns: ColumnNames = parameter((), "the columns of text, by name or pattern")
    n_components: Width = N_COMPONENTS
    projection: Literal["svd", "sparse", "label"] = parameter(
        "svd",
        "main directions of the training rows; random ones, which need more outputs; or label predictions first",
    )

    @property
    def traits(self) -> Traits:
        traits = replace(super().traits, columns=ColumnTraits(texts=self.columns))
        if self.projection != "label":
            return traits
        label = replace(traits.label.needing({_BY_LABEL: "to learn from"}), crossed=True)
        return replace(traits, label=label, exact=ExactTraits(own=_BY_LABEL))

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        starts = _starts(self.columns, sample.names)
        if isinstance(sample.X, TextRows) and len(starts) != len(sample.X.starts):
            raise DataError(
                "text: expected to name every column of text that it sees, got others as well: name all in one step, "
                "or give each a map of a union"
            )
        known: dict[str, Array] = {"columns": starts}
        if self.projection == "label":
            known |= self._models(sample, starts, rng)
        floats = {"weights": "float64", "directions": "float32"}
        state = {
            name: known.get(name, np.zeros(one.shape, one.dtype or floats[name]))
            for name, one in self.state_shapes(known, len(sample.names or ())).items()
        }
        for i, stream in enumerate(rng.spawn(len(starts))):
            counts = _counts(sample.X, starts[i])
            state["weights"][i] = weights = inverse_frequencies(counts)
            if self.projection == "sparse":
                state["outputs"][i], state["signs"][i] = self._signs(stream)
            else:
                found = main_directions(counts, weights, state["directions"].shape[2], stream)
                state["directions"][i, :, : found.shape[1]] = found
        return state

    def _models(self, sample: Sample, starts: Array, rng: np.random.Generator) -> dict[str, Array]:
        """Return the state of `label`: the coefficients for rows of their own length and of length 1, and the folds."""
        labels = sample.needed_label
        seed, Y = int(rng.integers(1 << 63)), task_to_learn(labels).outputs(labels)
        every = [_counts(sample.X, start) for start in starts]
        hashes = sparse_hashes(every, seed) if every else np.zeros(0, np.uint64)
        folds, often = folds_to_learn(hashes, _FOLDS, FEW)
        models = np.zeros((len(every), _FOLDS, BUCKETS, min(2 * Y.shape[1], self.n_components)), np.float32)
        for counts, of_column in zip(every, models, strict=True):
            raw = weighted(counts, inverse_frequencies(counts))
            found = label_directions((raw, unit_rows(raw)), Y, folds, _FOLDS, _SPREAD)
            of_column[...] = found[:, :, : models.shape[3]]
        fold_rows = np.bincount(folds, minlength=_FOLDS)
        own = np.unique(hashes[often].view(np.int64))
        return {"models": models, "seed": np.array(seed), "fold_rows": fold_rows, "own": own}

    def _signs(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Divide the outputs into a few equal ranges. Draw for each bucket one output in each range, and its sign."""
        each = min(_EACH, self.n_components)
        edges = np.linspace(0, self.n_components, each + 1).astype(np.int64)
        return rng.integers(edges[:-1], edges[1:], size=(BUCKETS, each)), rng.choice([-1, 1], (BUCKETS, each))

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, ArrayOf]:
        k, D, each = np.size(state.get("columns", ())), self.n_components, min(_EACH, self.n_components)
        starts = ArrayOf((k,), "int64", below=max(1, n_features_in - BUCKETS + 1))
        shapes = {"columns": starts, "weights": ArrayOf((k, BUCKETS))}
        if self.projection == "svd":
            return {**shapes, "directions": ArrayOf((k, BUCKETS, D))}
        if self.projection == "sparse":
            entries = (k, BUCKETS, each)
            return {
                **shapes,
                "outputs": ArrayOf(entries, "int64", below=D),
                "signs": ArrayOf(entries, "int8"),
            }
        c = min(D, (np.shape(state.get("models", ())) or (0,))[-1])
        return {
            **shapes,
            "models": ArrayOf((k, _FOLDS, BUCKETS, c), "float32"),
            "seed": ArrayOf((), "int64", below=1 << 63),
            "fold_rows": ArrayOf((_FOLDS,), "int64"),
            "own": ArrayOf(np.shape(state.get("own", ())), "int64", optional=True),
            "directions": ArrayOf((k, BUCKETS, D - c)),
        }

    def check_state(self, state: State, n_features_in: int) -> None:
        if (np.diff(np.sort(state["columns"])) < BUCKETS).any():
            raise ValueError("state.columns: expected columns that do not overlap")

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return n_features_in + len(state["columns"]) * (self.n_components - BUCKETS)

    def names_out(self, names: Names, state: State) -> Names:
        others = [names[j] for j in _others(state, len(names))]
        return (*others, *[None] * (len(state["columns"]) * self.n_components))

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _TextTransform(self, state, n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        if self.projection == "label":
            return own_coordinates(self, state, pair)
        if not isinstance(pair, Coordinates):
            raise TypeError("text needs coordinates")
        others = _others(state, pair.x.shape[1])
        rest = Coordinates(_numbers(pair.x, others), _numbers(pair.y, others))
        dots, (x, y) = rest.dots, rest.squared_norms
        for start, weights in zip(state["columns"], state["weights"], strict=True):
            u, v = (unit_rows(weighted(_counts(rows, start), weights)).csr for rows in (pair.x, pair.y))
            dots = dots + (u @ v.T).toarray()
            x, y = x + u.multiply(u).sum(axis=1), y + v.multiply(v).sum(axis=1)
        return Gram(dots, (x, y))


def _starts(columns: Sequence[str], names: Names | None) -> Array:
    """Return the index of the first feature of each named column of text."""
    places_of("text", columns, names)  # raises an error for unknown columns
    starts = dict[int, None]()
    for _, places in feature_places(columns, names or ()):
        starts |= dict.fromkeys(places[::BUCKETS])
    return np.array(list(starts), dtype=np.int64)


def _others(state: State, n_features_in: int) -> Array:
    """Return the indices of the features that do not belong to the named columns."""
    named = (state["columns"][:, None] + np.arange(BUCKETS)).ravel()
    return np.setdiff1d(np.arange(n_features_in), named)


def _numbers(X: Floats | TextRows, others: Array) -> Floats:
    """Return the columns `others` of the rows: the features that do not belong to the named columns."""
    return X.numbers if isinstance(X, TextRows) else X[:, others]


def _counts(X: Floats | TextRows, start: int) -> SparseRows:
    """Return the n-gram counts of the column of text whose first feature is `start`."""
    if isinstance(X, TextRows):
        return X.counts(start)
    part = X[:, start : start + BUCKETS]
    rows, buckets = np.nonzero(part)
    starts = np.searchsorted(rows, np.arange(len(X) + 1))
    return SparseRows(part[rows, buckets].astype(np.float64), buckets, starts, BUCKETS)


class _TextTransform(Transform):
    """A transform that counts the n-grams of each column, weights the counts, and multiplies by a matrix."""

    takes = (TextRows,)

    def __init__(self, step: Text, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in, self.n_features_out = n_features, step.n_features_out(state, n_features)
        self._columns, self._weights = state["columns"], state["weights"].astype(np.float64)
        self._others, self._dtype, self._width = _others(state, n_features), dtype, step.n_components
        self._directions = self._signs = self._models = None
        if step.projection == "sparse":
            pairs = zip(state["outputs"], state["signs"], strict=True)
            self._signs = [_sign_matrix(outputs, signs, self._width, dtype) for outputs, signs in pairs]
        else:
            self._directions = state["directions"].astype(dtype)
        if step.projection == "label":
            k, c = len(self._columns), state["models"].shape[3]
            self._seed, models = int(state["seed"]), state["models"].astype(dtype)
            # The last model is the mean of all models. It is for texts that repeat, if there are few different texts.
            models = np.concatenate([models, models.mean(axis=1, keepdims=True)], axis=1)
            # Models for rows of their own length alternate with those for length 1. All folds share one matrix.
            parts = models.reshape(k, (_FOLDS + 1) * BUCKETS, c)
            self._own = state.get("own", np.zeros(0, np.int64))
            self._models = [np.ascontiguousarray(parts[:, :, i::2]) for i in range(2)]

    def apply(self, X: Floats | TextRows, out: Floats, scratch: Scratch) -> None:
        first = len(self._others)
        out[:, :first] = _numbers(X, self._others)
        every = [_counts(X, start) for start in self._columns]
        folds = None
        if self._models is not None:
            hashes = sparse_hashes(every, self._seed)
            folds = np.where(np.isin(hashes.view(np.int64), self._own), _FOLDS, folds_of(hashes, _FOLDS))
        for i, counts in enumerate(every):
            raw = weighted(counts, self._weights[i])
            u = self._typed(unit_rows(raw))
            part = out[:, first + i * self._width : first + (i + 1) * self._width]
            if self._models is not None and folds is not None:
                for rows, models in zip((self._typed(raw), u), self._models, strict=True):
                    c = models.shape[2]
                    places = rows.columns + BUCKETS * folds[rows.row_of]
                    times_dense(
                        SparseRows(rows.values, places, rows.starts, models.shape[1]), models[i], part[:, :c]
                    )
                    part = part[:, c:]
            if self._directions is not None:
                times_dense(u, self._directions[i], part)
            elif self._signs is not None:
                self._signs[i].of_sparse_rows(u, part)

    def _typed(self, rows: SparseRows) -> SparseRows:
        return SparseRows(rows.values.astype(self._dtype), rows.columns, rows.starts, rows.width)


def _sign_matrix(outputs: Array, signs: Array, width: int, dtype: np.dtype[Any]) -> SparseMatrix:
    """Return the sparse matrix (width, BUCKETS) that adds each bucket to its outputs, with columns of length 1."""
    bucket = np.repeat(np.arange(BUCKETS), outputs.shape[1])
    order = np.lexsort((bucket, outputs.ravel()))
    starts = np.searchsorted(outputs.ravel()[order], np.arange(width + 1))
    values = signs.ravel()[order] / np.sqrt(outputs.shape[1])
    return SparseMatrix(values, bucket[order], starts, BUCKETS, dtype)
