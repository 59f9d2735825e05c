"""Fewer columns, with dot products and distances kept on average. Only for the linear kernel."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from kafeat.contract.checks import count_rows, refuse_infinite
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.sparse_product import DenseMatrix, SparseMatrix
from kafeat.contract.step import Sample, Step, Transform, Width, parameter
from kafeat.contract.tile import Rows, SparseRows
from kafeat.contract.traits import ExactTraits, Traits
from kafeat.errors import DataError, counted
from kafeat.maths.hadamard import (
    SampledHadamard,
    count_blocks,
    draw_rows,
    padded_width,
    written_out,
)
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.dot_products import LinearKernel
from kafeat.types import ArrayOf, Floats, Scratch, Shapes, State


class Projection(Step):
    """A random projection: z(x)·z(y) ≈ x·y, and distances kept to a factor 1 ± ε.

    z(x) = A x with independent entries of mean 0 and variance 1/D: gaussian N(0, 1/D), or sparse, √(s/D)·{+1 with
    probability 1/2s, 0, −1 with probability 1/2s}, s = 1/density. For srht, A is √(1/D) P H F with random signs F, a
    Walsh–Hadamard matrix H of entries ±1 and D rows P of it without replacement, in d log d steps per row. If D exceeds
    the padded width, independent blocks are stacked. D ≥ 4 ln m/(ε²/2 − ε³/3) outputs keep all distances among m rows
    (a theorem for gaussian). `auto` uses the smallest such D, where m counts the rows of the whole input.

    Source: Dasgupta & Gupta 2003 (the bound); Achlioptas 2003, Li et al. 2006 (sparse); Ailon & Chazelle 2009, Tropp
    2011 (srht).
    """

    always: ClassVar[Traits] = Traits(exact=ExactTraits(needs_coordinates=False))

    matrix: Literal["gaussian", "sparse", "srht"] = parameter("gaussian", "the law of the matrix")
    n_components: Width | Literal["auto"] = parameter("auto", "D; auto: from eps and the number of rows")
    eps: Annotated[float, Field(gt=0, lt=1)] = parameter(
        0.1, "ε, the distortion of distances that auto allows"
    )
    density: Annotated[float, Field(gt=0, le=1)] | Literal["auto"] = parameter(
        "auto", "share of entries that are not 0 in a sparse matrix; auto is 1/√d"
    )

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        d = sample.X.shape[1]
        D = self._width(sample.n_rows, d)
        if self.matrix == "gaussian":
            return {"matrix": rng.standard_normal((D, d)) / np.sqrt(D)}
        if self.matrix == "srht":
            shape = (count_blocks(D, d), d)
            signs = rng.choice(np.array([-1, 1], dtype=np.int8), size=shape)
            return {"signs": signs, "rows": draw_rows(D, d, rng)}
        density = 1.0 / np.sqrt(d) if self.density == "auto" else self.density
        counts = rng.binomial(d, density, size=D)
        columns = [np.sort(rng.choice(d, size=int(count), replace=False)) for count in counts]
        values = rng.choice(np.array([-1.0, 1.0]), size=int(counts.sum()))
        return {
            "values": values / np.sqrt(D * density),
            "columns": np.concatenate([*columns, np.empty(0, dtype=np.int64)]).astype(np.int64),
            "starts": np.concatenate([[0], np.cumsum(counts)]),
        }

    def _width(self, n_rows: int, d: int) -> int:
        if self.n_components != "auto":
            return self.n_components
        D = jl_width(n_rows, self.eps)
        if d < D:
            raise DataError(
                f"projection: n_components: auto: expected a width below the {d} inputs, got {D} for {n_rows} rows "
                f"and eps {self.eps:g}, which would not reduce anything: raise eps or give n_components"
            )
        return D

    def width_warning(self, n_features_in: int) -> str | None:
        if self.n_components == "auto" or self.n_components <= n_features_in:
            return None
        return (
            f"projection: n_components: {self.n_components:,} outputs are more than {counted(n_features_in, 'input')}, "
            "so nothing is reduced; give fewer, or leave the step out"
        )

    def n_features_out(self, state: State, n_features_in: int) -> int:
        if self.n_components != "auto":
            return self.n_components
        name = {"gaussian": "matrix", "sparse": "starts", "srht": "rows"}[self.matrix]
        return count_rows(state, name) - (self.matrix == "sparse")

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        D = self.n_features_out(state, n_features_in)
        if self.matrix == "gaussian":
            return {"matrix": (D, n_features_in)}
        if self.matrix == "srht":
            signs = ArrayOf((count_blocks(D, n_features_in), n_features_in), "int8")
            return {"signs": signs, "rows": ArrayOf((D,), "int64", below=padded_width(n_features_in))}
        entries = (count_rows(state, "values"),)
        return {
            "values": entries,
            "columns": ArrayOf(entries, "int64", below=n_features_in),
            "starts": ArrayOf((D + 1,), "int64", below=entries[0] + 1),
        }

    def check_state(self, state: State, n_features_in: int) -> None:
        starts, entries = state.get("starts", np.zeros(1)), len(state.get("columns", ()))
        if starts[0] != 0 or starts[-1] != entries or (np.diff(starts) < 0).any():
            raise ValueError("state.starts: expected increasing positions in state.columns")

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        if self.matrix == "gaussian":
            return _MatrixTransform(DenseMatrix(state["matrix"], dtype))
        if self.matrix == "srht":
            return _HadamardTransform(state, dtype)
        matrix = SparseMatrix(state["values"], state["columns"], state["starts"], n_features_in, dtype)
        return _SparseTransform(matrix)

    def written_out(self, state: State, n_features_in: int) -> Floats:
        """Return the projection as a dense matrix A (D, d)."""
        if self.matrix == "gaussian":
            return state["matrix"]
        if self.matrix == "srht":
            return written_out(state["signs"] / np.sqrt(len(state["rows"])), state["rows"])
        D = len(state["starts"]) - 1
        A = np.zeros((D, n_features_in))
        A[np.repeat(np.arange(D), np.diff(state["starts"])), state["columns"]] = state["values"]
        return A

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return LinearKernel().gram(pair, KernelParameters())


def jl_width(n_rows: int, eps: float) -> int:
    """Return the smallest D with D ≥ 4 ln m/(ε²/2 − ε³/3) for m rows."""
    return max(1, int(np.ceil(4.0 * np.log(n_rows) / (eps**2 / 2.0 - eps**3 / 3.0))))


class _MatrixTransform(Transform):
    """A transform by one matrix product."""

    takes = (SparseRows,)

    def __init__(self, matrix: DenseMatrix | SparseMatrix) -> None:
        self._matrix: Any = matrix
        self.n_features_out, self.n_features_in = matrix.shape

    def scratch(self, rows: int) -> Scratch:
        return self._matrix.scratch(rows)

    def apply(self, X: Rows, out: Floats, scratch: Scratch) -> None:
        if not self._matrix.of_rows(X, out, scratch):
            refuse_infinite(out)


class _SparseTransform(_MatrixTransform):
    """A transform by a sparse matrix. The features of sparse rows are also sparse."""

    gives_sparse = True

    def to_sparse(self, X: Rows) -> tuple[SparseRows, None]:
        features = SparseRows.of(X).csr @ self._matrix.csr.T
        features = features.tocsr()
        features.sort_indices()
        if not np.isfinite(features.data).all():
            refuse_infinite(features.toarray())
        return SparseRows.of(features), None


class _HadamardTransform(Transform):
    """A transform by fast Walsh–Hadamard transforms of inputs with random signs. The drawn rows are outputs."""

    def __init__(self, state: State, dtype: np.dtype[Any]) -> None:
        signs, rows = state["signs"], state["rows"]
        self.n_features_in, self.n_features_out = signs.shape[1], len(rows)
        self._project = SampledHadamard(signs / np.sqrt(len(rows)), rows, dtype)
        self._dtype = dtype

    def scratch(self, rows: int) -> Scratch:
        inputs = np.empty((self.n_features_in, rows), dtype=self._dtype)
        outputs = np.empty((self.n_features_out, rows), dtype=self._dtype)
        return inputs, outputs, self._project.scratch(rows)

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        inputs, outputs, inner = scratch
        inputs[...] = X.T
        if out.T.flags.c_contiguous:
            self._project(inputs, out.T, inner)
        else:
            self._project(inputs, outputs, inner)
            out[...] = outputs.T
