"""An ONNX graph under construction: values and their formulas, constants, and the rows that the graph refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from kafeat.errors import UsageError
from kafeat.types import Array

MOST_BYTES = (1 << 31) - (1 << 20)
"""The most bytes of all constants together: protocol buffers are limited to 2 GiB, and nodes need space as well."""

_FLOAT32 = np.dtype(np.float32)


class Graph:
    """A graph to which operators are added. Arrays and numbers among their inputs become constants.

    Real constants are written in `dtype`, the type of the computation. Whole numbers and truth values keep their type.
    Equal constants are written once.
    """

    def __init__(self, opset: int, dtype: np.dtype[Any]) -> None:
        self.opset, self.dtype = opset, dtype
        self._place = ""
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        self._tensors: list[onnx.TensorProto] = []
        self._bytes = 0
        self._refused: list[Value] = []

    def op(self, kind: str, *inputs: Operand, **attributes: Any) -> Value:
        """Add an operator, and return its output."""
        names = [(x if isinstance(x, Value) else self.constant(x)).name for x in inputs]
        output = f"{self._place}{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, names, [output], name=output, **attributes))
        return Value(self, output)

    def constant(self, values: Array | float) -> Value:
        """Return an array as a constant of the graph. Real numbers get the dtype of the graph."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            with np.errstate(over="ignore", under="ignore"):
                array = array.astype(self.dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._check_size(array.nbytes)
            self._bytes += array.nbytes
            name = f"{self._place}constant_{len(self._tensors)}"
            self._constants[key] = Value(self, name)
            self._tensors.append(numpy_helper.from_array(array, name))
        return self._constants[key]

    def reserve(self, *lengths: int) -> None:
        """Raise an error if a real constant of shape `lengths`, not yet computed, would not fit into the file."""
        self._check_size(math.prod(lengths) * self.dtype.itemsize)

    def _check_size(self, size: int) -> None:
        if self._bytes + size > MOST_BYTES:
            raise UsageError(
                f"constants: expected at most {MOST_BYTES:,} bytes, because an ONNX file holds less than 2 GiB, got "
                f"{self._bytes + size:,}: use fewer components or landmarks"
            )

    @contextmanager
    def inside(self, place: str) -> Iterator[None]:
        """Prefix names of values in the block with the place of their step, for example "steps[0]/fourier/"."""
        outer = self._place
        self._place = f"{outer}{place}/"
        try:
            yield
        finally:
            self._place = outer

    @contextmanager
    def computing_in(self, dtype: np.dtype[Any]) -> Iterator[None]:
        """Write real constants of the block in another dtype. Other operands must be cast to that dtype."""
        outer, self.dtype = self.dtype, dtype
        try:
            yield
        finally:
            self.dtype = outer

    def refuse(self, bad: Value) -> None:
        """Make a row's features NaN if one of its entries of `bad` (n, k) is true: a graph cannot raise errors."""
        self._refused.append(bad.cast(_FLOAT32).row_max())

    def features(self, z: Value) -> Value:
        """Return z (n, D) with NaN in the rows that were refused."""
        if not self._refused:
            return z
        with self.computing_in(_FLOAT32):
            bad = (self._refused[0] if len(self._refused) == 1 else self.op("Max", *self._refused)) > 0.5
        return where(bad, np.nan, z)

    def proto(self, given: onnx.ValueInfoProto, outputs: dict[Value, onnx.ValueInfoProto]) -> onnx.GraphProto:
        """Return the finished graph with the input `given`. `outputs` maps each output value to its declaration."""
        for value, info in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value.name], [info.name], name=info.name))
        return helper.make_graph(self._nodes, "kafeat", [given], list(outputs.values()), self._tensors)


def _operator(kind: str, *, reflected: bool = False) -> Callable[[Value, Operand], Value]:
    """Return a method of `Value` for a Python operator. If it is reflected, the value is the right operand."""

    def method(x: Value, other: Operand) -> Value:
        return x.graph.op(kind, other, x) if reflected else x.graph.op(kind, x, other)

    return method


class Value:
    """A tensor of a graph. Python formulas of values, arrays and numbers add their operators to the graph."""

    __array_ufunc__ = None  # NumPy leaves `array * value` to this class

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def op(self, kind: str, *others: Operand, **attributes: Any) -> Value:
        """Add an operator whose first input is this value, and return its output."""
        return self.graph.op(kind, self, *others, **attributes)

    __add__ = _operator("Add")
    __sub__ = _operator("Sub")
    __mul__ = _operator("Mul")
    __truediv__ = _operator("Div")
    __radd__ = _operator("Add", reflected=True)
    __rsub__ = _operator("Sub", reflected=True)
    __rmul__ = _operator("Mul", reflected=True)
    __rtruediv__ = _operator("Div", reflected=True)
    __lt__ = _operator("Less")
    __le__ = _operator("LessOrEqual")
    __gt__ = _operator("Greater")
    __ge__ = _operator("GreaterOrEqual")
    __and__ = _operator("And")
    __or__ = _operator("Or")

    def __neg__(self) -> Value:
        return self.op("Neg")

    def __abs__(self) -> Value:
        return self.op("Abs")

    def __invert__(self) -> Value:
        return self.op("Not")

    def cast(self, dtype: np.dtype[Any]) -> Value:
        """Return the same numbers in another dtype."""
        return self.op("Cast", to=helper.np_dtype_to_tensor_dtype(dtype))

    def matmul(self, matrix: Array) -> Value:
        """Return x (n, d) times a matrix (d, m).

        The operator is Gemm, because onnxruntime merges scalars into a neighbouring MatMul, rounded to float32 even in
        float64.
        """
        return self.op("Gemm", matrix)

    def cos(self) -> Value:
        """Return cos x, in float64 as 1 − 2 sin²(x/2): older versions of onnxruntime have no Cos for doubles."""
        if self.graph.dtype == _FLOAT32:
            return self.op("Cos")
        half = (self * 0.5).op("Sin")
        return 1.0 - half * half * 2.0

    def row_sum(self) -> Value:
        """Return the sum of every row, (n, 1)."""
        return self.sum(1, keepdims=1)

    def row_max(self) -> Value:
        """Return the largest entry of every row, (n, 1). With axis −1 instead of 1, onnxruntime fails for 0 rows."""
        if self.graph.opset >= 18:
            return self.op("ReduceMax", np.array([1]), keepdims=1)
        return self.op("ReduceMax", axes=[1], keepdims=1)

    def sum(self, axis: int, keepdims: int = 0) -> Value:
        """Return the sums along an axis."""
        return self.op("ReduceSum", np.array([axis]), keepdims=keepdims)

    def with_axis(self, axis: int) -> Value:
        """Return the same numbers with a new axis of length 1."""
        return self.op("Unsqueeze", np.array([axis]))

    def columns(self, indices: Array) -> Value:
        """Return the columns of x with these indices, in this order."""
        return self.op("Gather", indices.astype(np.int64), axis=1)

    def span(self, start: int, stop: int, axis: int = 1) -> Value:
        """Return the columns of x from `start` to `stop` − 1."""
        return self.op("Slice", np.array([start]), np.array([stop]), np.array([axis]))


Operand: TypeAlias = Value | Array | float
"""An input of an operator. Arrays and numbers become constants."""


def where(condition: Value, x: Operand, y: Operand) -> Value:
    """Return x where the condition holds, and y elsewhere."""
    return condition.op("Where", x, y)


def beside(parts: Sequence[Value]) -> Value:
    """Return matrices joined along their columns."""
    return parts[0] if len(parts) == 1 else parts[0].op("Concat", *parts[1:], axis=1)
