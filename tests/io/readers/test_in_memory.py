"""Rows and labels in memory: whatever the types of the parameters admit is read as the same numbers."""

from array import array
from collections import UserList
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import kafeat
from kafeat.errors import DataError, KafeatError, UsageError
from kafeat.io.readers.memory import reader_of

X = np.random.default_rng(0).normal(size=(30, 3))
Y = X @ [1.0, 2.0, 3.0]
TABLE = pa.table({f"c{j}": X[:, j] for j in range(3)})
STRUCTS = pa.StructArray.from_arrays([pa.array(X[:, j]) for j in range(3)], TABLE.column_names)
LISTS = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
MAP = {"dtype": "float64", "steps": [{"kind": "standardize"}]}


class ArrayOnly:
    """As tensors of other libraries."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._values, dtype)


class ArrowArrayOnly:
    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._values.__arrow_c_array__(requested_schema)


class ArrowStreamOnly:
    def __init__(self, values: Any) -> None:
        self._values = values

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._values.__arrow_c_stream__(requested_schema)


class NeedsGradient:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")


ROWS = {
    "list": lambda: X.tolist(),
    "tuple of arrays": lambda: tuple(X),
    "UserList": lambda: UserList(X.tolist()),
    "memoryview": lambda: memoryview(X),
    "masked, without a masked entry": lambda: np.ma.array(X),
    "__array__": lambda: ArrayOnly(X),
    "list of __array__": lambda: [ArrayOnly(x) for x in X],
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "structs": lambda: STRUCTS,
    "a slice of structs": lambda: pa.concat_arrays([STRUCTS[:2], STRUCTS])[2:],
    "chunks of structs": lambda: pa.chunked_array([STRUCTS[:7], STRUCTS[7:]]),
    "lists": lambda: LISTS,
    "lists of any length": lambda: LISTS.cast(pa.list_(pa.float64())),
    "__arrow_c_array__ of structs": lambda: ArrowArrayOnly(STRUCTS),
    "__arrow_c_array__ of lists": lambda: ArrowArrayOnly(LISTS),
    "__arrow_c_array__ of a batch": lambda: ArrowArrayOnly(TABLE.to_batches()[0]),
    "__arrow_c_stream__ of a table": lambda: ArrowStreamOnly(TABLE),
    "__arrow_c_stream__, read once": lambda: TABLE.to_reader(),
    "tensor of Arrow": lambda: pa.Tensor.from_numpy(X),
    "sparse": lambda: csr_array(X),
    "pandas": lambda: pytest.importorskip("pandas").DataFrame(X, columns=TABLE.column_names),
    "pandas, lists": lambda: pytest.importorskip("pandas").Series(list(X)),
    "polars": lambda: pytest.importorskip("polars").from_arrow(TABLE),
    "polars, arrays": lambda: pytest.importorskip("polars").Series(X),
    "a reader": lambda: reader_of(X),
}


@pytest.fixture(scope="module")
def fm() -> kafeat.FeatureMap:
    return kafeat.fit(MAP, X)


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_the_same_numbers_in_every_type(name, fm):
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(fm.transform(ROWS[name]()), expected, rtol=1e-12)
    np.testing.assert_array_equal(fm.matrix(ROWS[name]()), X)
    np.testing.assert_allclose(kafeat.fit(MAP, ROWS[name]()).transform(TABLE), expected, rtol=1e-12)


SOME = ["__array__", "structs", "__arrow_c_array__ of lists", "__arrow_c_stream__, read once"]


@pytest.mark.parametrize("name", SOME)
def test_studies_read_rows_of_every_type(name):
    tuning = kafeat.tune(ROWS[name](), ArrayOnly(Y), columns=4, trials=1)
    assert tuning.fit().n_features_in == 3
    config = {"steps": [{"kind": "fourier", "n_components": 4, "frequencies": "iid", "weights": "uniform"}]}
    made = kafeat.evaluate(config=config, data=ROWS[name](), sweep="n_components=4,8")
    assert [one["n_components"] for one in made["records"]] == [4, 8]


LABELS = {
    "list": lambda y: y.tolist(), "array.array": lambda y: array("d", y), "memoryview": memoryview,
    "__array__": ArrayOnly, "Arrow": pa.array, "chunks": lambda y: pa.chunked_array([y[:4], y[4:]]),
    "__arrow_c_array__": lambda y: ArrowArrayOnly(pa.array(y)),
    "__arrow_c_stream__": lambda y: ArrowStreamOnly(pa.chunked_array([y])),
    "pandas": lambda y: pytest.importorskip("pandas").Series(y, index=range(5, 35)),
    "polars": lambda y: pytest.importorskip("polars").Series(y),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_the_same_numbers_in_every_type(name):
    config = {"steps": [{"kind": "standardize"}, {"kind": "ridge", "penalty": 1e-9}]}
    fitted = kafeat.fit(config, X, label=LABELS[name](Y))
    np.testing.assert_allclose(fitted.predict(X), Y, atol=1e-3)  # a linear label; the features are float32


def test_text_of_numpy_is_a_label():
    words = np.where(Y > 0.0, "b", "a")
    config = {"steps": [{"kind": "standardize"}, {"kind": "ridge"}]}
    for kind in ("U", "O", np.dtypes.StringDType()):
        assert kafeat.fit(config, X, label=words.astype(kind)).classes.tolist() == ["a", "b"]


def test_masked_numbers_are_missing(fm):
    masked = np.ma.array(X, mask=np.arange(90).reshape(30, 3) == 4)
    with pytest.raises(DataError, match=r"row 2 \(index 1\), column 'c1': expected a finite number, got nan"):
        fm.transform(masked)
    with pytest.raises(DataError, match=r"row 2 \(index 1\), column 'c1': expected a finite number, got nan"):
        kafeat.fit(MAP, np.ma.array(np.arange(90).reshape(30, 3), mask=masked.mask))
    config = {"steps": [{"kind": "standardize"}, {"kind": "ridge"}]}
    with pytest.raises(DataError, match=r"label: row 3 \(index 2\): expected finite numbers, got nan"):
        kafeat.fit(config, X, label=np.ma.array(Y, mask=np.arange(30) == 2))
    with pytest.raises(DataError, match=r"label: row 3 \(index 2\): expected text, got nan"):
        kafeat.fit(config, X, label=np.ma.array(["a", "b"] * 15, mask=np.arange(30) == 2))


def test_a_row_of_structs_without_a_value_is_missing(fm):
    mask = pa.array(np.arange(30) == 1)
    gaps = pa.StructArray.from_arrays(STRUCTS.flatten(), TABLE.column_names, mask=mask)
    with pytest.raises(DataError, match=r"row 2 .*column 'c0': expected a finite number, got null"):
        fm.transform(gaps)


RAGGED = "expected rows of one length, got lists of different"
REFUSED = {
    "a path": ("rows.csv", UsageError, "got str; kafeat.transform and kafeat.predict read files"),
    "None": (None, UsageError, "expected an array or a table, got NoneType"),
    "a generator": ((x for x in X), UsageError, "expected an array or a table, got generator"),
    "a tensor with a gradient": (NeedsGradient(), UsageError, "NumPy cannot read: Can't call numpy"),
    "one dimension": (pa.array([1.0]), DataError, r"two dimensions \(rows, features\), got shape \(1,\)"),
    "an array of one dimension": (np.ones(3), DataError, "expected two dimensions"),
    "objects": (np.ones((2, 2), object), DataError, "got dtype object"),
    "texts": ([["a"]], DataError, "expected an array of numbers, got dtype <U1"),
    "ragged lists": (pa.array([[1.0], [1.0, 2.0]]), DataError, RAGGED),
    "ragged rows": ([[1, 2], [3]], DataError, f"<array>: {RAGGED} lengths"),
    "a list that is null": (pa.array([[1.0], None]), DataError, RAGGED),
    "a column that is no number": (pa.table({"c0": [{"a": 1}]}), DataError, "c0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_is_refused(name, fm):
    data, kind, match = REFUSED[name]
    with pytest.raises(kind, match=match):
        fm.transform(data)


@pytest.mark.parametrize("label", [3.0, {"y": 1}, csr_array(Y[:, None]), NeedsGradient()])
def test_what_is_no_label_is_refused(label):
    with pytest.raises(KafeatError, match="label: expected an array, got "):
        kafeat.fit({"steps": ["standardize", "ridge"]}, X, label=label)
