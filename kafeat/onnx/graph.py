"""One ONNX graph while it is built: nodes, constants, and the rows that it refuses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from kafeat.errors import UsageError
from kafeat.types import Array

Value: TypeAlias = str
"""The name of a tensor of the graph."""

MOST_BYTES = (1 << 31) - (1 << 20)
"""Of all constants together: protocol buffers end at 2 GiB, and the nodes want some of it."""

_FLOAT32 = np.dtype(np.float32)


class Graph:
    """Operators applied to values; arrays and numbers among their inputs become constants.

    Real constants are written in `dtype`, the type that is computed in; whole numbers and truth values stay what
    they are. Equal constants are written once.
    """

    def __init__(self, opset: int, dtype: np.dtype[Any]) -> None:
        self.opset, self.dtype = opset, dtype
        self._place = ""
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        self._tensors: list[onnx.TensorProto] = []
        self._bytes = 0
        self._refused: list[Value] = []

    def op(self, kind: str, *inputs: Value | Array | float, **attributes: Any) -> Value:
        """The output of one operator."""
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        output = f"{self._place}{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, names, [output], name=output, **attributes))
        return output

    def constant(self, values: Array | float, dtype: np.dtype[Any] | None = None) -> Value:
        """An array as a constant, reals in `dtype` or that of the graph."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            with np.errstate(over="ignore", under="ignore"):
                array = array.astype(dtype or self.dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._check_size(array.nbytes)
            self._bytes += array.nbytes
            self._constants[key] = f"{self._place}constant_{len(self._tensors)}"
            self._tensors.append(numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def reserve(self, *lengths: int) -> None:
        """Refuse a constant of so many reals, before it is made, if the file could not hold it."""
        self._check_size(math.prod(lengths) * self.dtype.itemsize)

    def _check_size(self, size: int) -> None:
        if self._bytes + size > MOST_BYTES:
            raise UsageError(
                f"constants: expected at most {MOST_BYTES:,} bytes, as an ONNX file holds less than 2 GiB, got "
                f"{self._bytes + size:,}: fewer components or landmarks give fewer"
            )

    @contextmanager
    def inside(self, place: str) -> Iterator[None]:
        """Names of values begin with the place of their step."""
        outer = self._place
        self._place = f"{outer}{place}/"
        try:
            yield
        finally:
            self._place = outer

    @contextmanager
    def computing_in(self, dtype: np.dtype[Any]) -> Iterator[None]:
        """Constants of another precision; the values in it are to be cast."""
        outer, self.dtype = self.dtype, dtype
        try:
            yield
        finally:
            self.dtype = outer

    def cast(self, x: Value, dtype: np.dtype[Any]) -> Value:
        """The same numbers in another type."""
        return self.op("Cast", x, to=helper.np_dtype_to_tensor_dtype(dtype))

    def matmul(self, x: Value, matrix: Array) -> Value:
        """x (n, d) times a matrix (d, m).

        As a Gemm: onnxruntime melts a scalar beside a MatMul into it, rounded to float32 in float64 graphs, too.
        """
        return self.op("Gemm", x, matrix)

    def cos(self, x: Value) -> Value:
        """cos x; in float64 as 1 − 2 sin²(x/2): onnxruntime has a Sin of doubles, a Cos of them since lately only."""
        if self.dtype == _FLOAT32:
            return self.op("Cos", x)
        half = self.op("Sin", self.op("Mul", x, 0.5))
        return self.op("Sub", 1.0, self.op("Mul", self.op("Mul", half, half), 2.0))

    def along_rows(self, reduction: str, x: Value) -> Value:
        """ReduceSum or ReduceMax of every row, (n, 1). Axis 1 and not −1, with which onnxruntime errs on no rows."""
        if reduction == "ReduceSum" or self.opset >= 18:
            return self.op(reduction, x, np.array([1]), keepdims=1)
        return self.op(reduction, x, axes=[1], keepdims=1)

    def columns(self, x: Value, indices: Array) -> Value:
        """Some columns of x, in that order."""
        return self.op("Gather", x, indices.astype(np.int64), axis=1)

    def span(self, x: Value, start: int, stop: int) -> Value:
        """The columns of x from `start` to before `stop`."""
        return self.op("Slice", x, np.array([start]), np.array([stop]), np.array([1]))

    def beside(self, parts: list[Value]) -> Value:
        """Matrices side by side."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def refuse(self, bad: Value) -> None:
        """Features of a row become NaN where `bad` (n, k) holds for any of its entries: a graph has no errors."""
        self._refused.append(self.along_rows("ReduceMax", self.cast(bad, _FLOAT32)))

    def features(self, z: Value) -> Value:
        """z (n, D), NaN in the rows that were refused."""
        if not self._refused:
            return z
        bad = self._refused[0] if len(self._refused) == 1 else self.op("Max", *self._refused)
        return self.op("Where", self.op("Greater", bad, self.constant(0.5, _FLOAT32)), np.nan, z)

    def proto(
        self, name: str, inputs: list[onnx.ValueInfoProto], outputs: dict[Value, onnx.ValueInfoProto]
    ) -> onnx.GraphProto:
        """The graph; `outputs` say which values are handed out, and under which names."""
        for value, info in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [info.name], name=info.name))
        return helper.make_graph(self._nodes, name, inputs, list(outputs.values()), self._tensors)
