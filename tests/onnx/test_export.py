"""Maps as ONNX graphs, run by onnxruntime against `transform`."""

import importlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.config import load_config
from kafeat.errors import GateError, UsageError
from kafeat.maths.kernel import TiledKernel
from kafeat.maths.kernels import kernel_names
from kafeat.model.feature_map import FeatureMap
from kafeat.onnx.steps import nystroem
from kafeat.registry import map_kinds
from kafeat.scalers.date_parts import LATEST
from tests.zygote import ROOT

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("one_limit")

import kafeat.onnx  # noqa: E402
from kafeat.onnx import saving  # noqa: E402
from kafeat.onnx.model import convertible  # noqa: E402

CANNOT = frozenset({"target", "text", "trees"})
"""Kinds without an ONNX form. A new kind gets a function in kafeat/onnx/steps, or its name here."""
Fit = Callable[[str, str], FeatureMap]

SIGNED = np.random.default_rng(7).normal(size=(120, 6)).astype(np.float32)
POSITIVE = np.abs(SIGNED)


@pytest.fixture(scope="module")
def fit(configs: Path, digits_table: pa.Table) -> Fit:
    @cache
    def fitted(kind: str) -> FeatureMap:
        config = load_config(configs / f"{kind}.yaml")
        return kafeat.fit(config, digits_table, label="label" if config.needs_label else None)

    def fit(kind: str, dtype: str) -> FeatureMap:
        return replace(fitted(kind), dtype=dtype)

    return fit


def run(model, X):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
    return session.run(["Z"], {"X": X.astype(dtype)})[0]


def agree(fm: FeatureMap, X: np.ndarray, codes: np.ndarray | None = None) -> None:
    """Rows X through both; the tolerance is `rounding`, derived from the map's sensitivity (see its docstring)."""
    model = kafeat.onnx.to_model(fm)
    onnx.checker.check_model(model, full_check=True)
    codes = X if codes is None else codes
    Z, G = saving.features(fm, codes), run(model, X)
    assert G.dtype == Z.dtype == fm.dtype
    assert G.shape == Z.shape
    refused = np.isnan(Z).any(axis=1)
    assert np.isnan(G[refused]).all()
    difference = np.abs(G[~refused].astype(np.float64) - Z[~refused]).max(axis=1, initial=0.0)
    assert (difference <= saving.rounding(fm, codes[~refused])).all(), difference.max()


def chain(*steps, X=SIGNED, dtype="float32", **rest) -> FeatureMap:
    return kafeat.fit({"steps": list(steps), "dtype": dtype, **rest}, X)


def test_every_kind_has_a_form_or_is_listed() -> None:
    assert set(convertible()) | CANNOT == set(map_kinds())
    assert not set(convertible()) & CANNOT


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", map_kinds())
def test_every_config_agrees_with_transform(fit: Fit, kind: str, dtype: str, digits, tmp_path) -> None:
    fm = fit(kind, dtype)
    if kind in CANNOT:
        with pytest.raises(UsageError, match="expected a step that ONNX has operators for"):
            kafeat.onnx.export(fm, tmp_path / "m.onnx")
        return
    done = kafeat.onnx.export(fm, tmp_path / "m.onnx")
    assert done.agreement is not None
    assert done.agreement.rows >= 200
    # real rows too; pixels are whole numbers, so that categories and float32 inputs are exact
    agree_on_digits(fm, digits[:100].astype(np.float32))


def agree_on_digits(fm: FeatureMap, X: np.ndarray) -> None:
    G, rows = run(kafeat.onnx.to_model(fm), X), X.astype(np.int64) if fm.columns.n_categories else X
    Z = fm.transform(rows)
    codes = fm.matrix(X)
    assert np.abs(G - Z).max() <= saving.rounding(fm, codes.astype(np.float32)).max()


@pytest.mark.parametrize("kind", ["fourier", "homogeneous", "tensor_sketch"])
def test_no_rows_give_no_rows_and_one_row_gives_one(fit: Fit, kind: str, digits) -> None:
    fm = fit(kind, "float32")
    model = kafeat.onnx.to_model(fm)
    for rows in (0, 1, 3):
        assert run(model, digits[:rows].astype(np.float32)).shape == (rows, fm.n_components)


def test_a_metric_of_weights_of_columns(digits) -> None:
    labels = pa.table({**{f"x{i}": SIGNED[:, i] for i in range(6)}, "y": SIGNED[:, 0] > 0.0})
    fm = kafeat.fit({"steps": [{"kind": "metric", "diagonal": True}]}, labels, label="y")
    assert fm.chain.steps[0].state["root"].ndim == 1
    agree(fm, SIGNED)


def test_every_kernel_of_a_nystroem_map() -> None:
    for name in kernel_names(TiledKernel):
        assert hasattr(nystroem, name), f"{name}: expected a function of this name in {nystroem.__file__}"
        for dtype in ("float32", "float64"):
            fm = chain(
                {"kind": "nystroem", "kernel": name, "n_components": 20, "landmarks": "uniform",
                 "clip_negative": True, **({"coefficients": [0.5, 0.0, 1.0, 0.2]} if name == "series" else {})},
                X=POSITIVE, dtype=dtype,
            )  # fmt: skip
            agree(fm, np.vstack([POSITIVE[:60], np.zeros((1, 6)), -POSITIVE[:2]]).astype(np.float32))


def test_a_precomputed_kernel_of_float64_is_not_rounded_to_float32() -> None:
    """onnxruntime melts a scalar before a MatMul into it, as a float32: 1e-7 in place of 1e-14."""
    fm = chain(
        {"kind": "nystroem", "kernel": "precomputed", "n_components": 6},
        X=(SIGNED @ SIGNED.T), dtype="float64", fit_rows="all",
    )  # fmt: skip
    agree(fm, SIGNED @ SIGNED.T)


def test_landmarks_of_float32_are_multiplied_in_float64() -> None:
    """A model file may hold them: a product rounded to float32 would be wrong by 1e-7 in place of 1e-15."""
    fm = chain({"kind": "nystroem", "kernel": "polynomial", "n_components": 6}, dtype="float64")
    (fitted,) = fm.chain.steps
    state = {**fitted.state, "landmarks": fitted.state["landmarks"].astype(np.float32)}
    agree(replace(fm, chain=replace(fm.chain, steps=(replace(fitted, state=state),))), SIGNED)


def test_small_features_are_computed_in_float64() -> None:
    fm = chain({"kind": "nystroem", "gamma": 1e-4, "n_components": 40})
    inside = {tensor.data_type for tensor in kafeat.onnx.to_model(fm).graph.initializer}
    assert onnx.TensorProto.DOUBLE in inside
    agree(fm, SIGNED)


@pytest.mark.parametrize("step", [
    {"kind": "fourier", "frequencies": "structured", "n_components": 20, "weights": "uniform"},
    {"kind": "fourier", "frequencies": "fastfood", "n_components": 20, "features": "offset"},
    {"kind": "fourier", "length_scale": [1.0, 2.0, 3.0, 0.5, 1.0, 4.0], "n_components": 20},
    {"kind": "homogeneous", "negative": "signed", "order": 3, "homogeneity": 1.5},
    {"kind": "homogeneous", "kernel": "hellinger", "negative": "signed"},
    {"kind": "tensor_sketch", "domain": "time", "n_components": 7, "degree": 2},
    {"kind": "tensor_sketch", "n_components": 8, "coef0": 0.0},
    {"kind": "tensor_srht", "complex_to_real": False, "n_components": 20, "coef0": 0.0},
    {"kind": "random_maclaurin", "kernel": "exponential", "n_components": 40},
    {"kind": "random_maclaurin", "kernel": "series", "coefficients": [0.5, 0.0, 1.0], "n_components": 30},
    {"kind": "product", "maps": [{"steps": [{"kind": "standardize"}]}] * 3},
    {"kind": "product", "maps": [{"steps": [{"kind": "standardize"}]}] * 3, "n_components": 7},
    {"kind": "random_subsets", "degree": 6, "n_components": 5},
    {"kind": "random_subsets", "kernel": "all_subsets", "n_components": 1},
    {"kind": "random_subsets", "kernel": "all_subsets", "n_components": 5},
    {"kind": "nystroem", "kernel": "anova", "degree": 6, "landmarks": "uniform", "n_components": 1},
    {"kind": "tensor_sketch", "n_components": 68, "degree": 3, "gamma": 0.01},
    {"kind": "tensor_srht", "n_components": 68, "degree": 3, "gamma": 0.01},
    {"kind": "polynomial_features", "degree": 4, "coef0": 0.0},
    {"kind": "positive_exponential", "features": "plain", "n_components": 9},
    {"kind": "projection", "matrix": "srht", "n_components": 5},
    {"kind": "projection", "matrix": "gaussian", "n_components": 5},
    {"kind": "arc_cosine", "order": 0, "n_components": 20},
    {"kind": "normalize", "norm": "homogeneous", "homogeneity": 1.7},
    {"kind": "normalize", "norm": "max"},
    {"kind": "pca", "whiten": True},
], ids=lambda step: step["kind"])  # fmt: skip
def test_variants_of_a_kind(step) -> None:
    for dtype in ("float32", "float64"):
        agree(chain(step, dtype=dtype), np.vstack([SIGNED, np.zeros((1, 6))]).astype(np.float32))


@pytest.mark.parametrize("features", ["paired", "offset"])
def test_frequencies_trained_for_a_label(features: str) -> None:
    X = np.random.default_rng(0).standard_normal((300, 6)).astype(np.float32)
    step = {"kind": "fourier", "frequencies": "supervised", "n_components": 20, "features": features}
    agree(kafeat.fit({"steps": [step]}, X, label=X[:, 0] > 0.0), X)


def test_log1p_is_exact_where_x_is_tiny() -> None:
    fm = chain({"kind": "log1p"}, X=POSITIVE)
    X = (POSITIVE * np.float32(1e-9)).astype(np.float32)
    # the same formula in the same precision: a relative error of some roundings, where log(1 + x) would give 0
    G, near = run(kafeat.onnx.to_model(fm), X), 4 * np.finfo(np.float32).eps
    np.testing.assert_allclose(G, np.log1p(X), rtol=near)


def test_refused_rows_are_nan_in_every_feature_and_others_are_not() -> None:
    # steps of order 0 hide a NaN: what is refused must not depend on what becomes of it
    steps = {"kind": "minmax"}, {"kind": "log1p"}, {"kind": "arc_cosine", "order": 0, "n_components": 4}
    fm = chain(*steps, X=POSITIVE)
    X = np.vstack([POSITIVE, -100 * POSITIVE[:5], np.full((1, 6), np.nan), np.full((1, 6), np.inf)])
    Z = run(kafeat.onnx.to_model(fm), X.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(Z).any(axis=1), np.arange(len(X)) >= len(POSITIVE))
    agree(fm, X.astype(np.float32))


def test_missing_numbers_are_filled() -> None:
    median = {"kind": "impute", "strategy": "median"}
    fm = chain({"kind": "log1p"}, median, {"kind": "standardize"}, X=POSITIVE)
    X = POSITIVE.copy()
    X[::3, 2] = np.nan
    X[1, 1] = np.inf
    X[2, 0] = -2.0  # refused by log1p, and not filled
    agree(fm, X)
    Z = run(kafeat.onnx.to_model(fm), X)
    assert np.isnan(Z[[1, 2]]).all()
    assert np.isfinite(np.delete(Z, [1, 2], axis=0)).all()


def table_of_categories():
    n = 90
    town, size = np.tile(["Bern", "Ulm", "Aix"], n // 3).tolist(), np.tile([10, -3, 40], n // 3)
    return pa.table([SIGNED[:n, 0], size, town, SIGNED[:n, 1]], names=["a", "size", "town", "b"])


def test_the_page_describes_the_metadata() -> None:
    """Its table of keys, and its example: the metadata of a map that has all of them."""
    page = (ROOT / "docs/onnx.md").read_text()
    [example] = re.findall(r"```json\n(.*?)```", page, flags=re.S)
    times = np.datetime64("2024-01-01", "s") + np.arange(60).astype("timedelta64[s]")
    table = {"city": ["Basel", "Bern"] * 30, "rooms": [1, 2, 4] * 20, "when": times}
    steps = [
        {"kind": "one_hot", "columns": ["city"], "unknown": "ignore"},
        {"kind": "one_hot", "columns": ["rooms"]},
        {"kind": "date_parts", "columns": ["when"]},
        {"kind": "ridge", "penalty": 0.1},
    ]
    fm = kafeat.fit({"steps": steps}, pa.table(table), label=["no", "yes"] * 30)
    metadata = {p.key: p.value for p in kafeat.onnx.to_model(fm).metadata_props}
    assert json.loads(metadata["kafeat.categories"]) == json.loads(example)
    assert list(metadata) == re.findall(r"^\| `(kafeat\.\w+)` \|", page, flags=re.M)
    assert metadata["kafeat.map_sha256"] == fm.digest
    assert json.loads(metadata["kafeat.columns"]) == ["city", "rooms", "when"]
    assert json.loads(metadata["kafeat.labels"]) == {"names": [], "type": "text", "classes": ["no", "yes"]}
    assert json.loads(metadata["kafeat.times"]) == ["when"]


@pytest.mark.parametrize("unknown", ["error", "ignore"])
def test_categories_are_numbers_or_codes(unknown: str) -> None:
    table = table_of_categories()
    fm = kafeat.fit({"steps": [{"kind": "one_hot", "columns": ["town", "size"], "unknown": unknown}]}, table)
    model = kafeat.onnx.to_model(fm)
    told = json.loads({p.key: p.value for p in model.metadata_props}["kafeat.categories"])
    assert told["town"] == {
        "categories": ["Aix", "Bern", "Ulm"], "input": "code",
        "unknown": "zeros" if unknown == "ignore" else "refused",
    }  # fmt: skip
    assert told["size"]["input"] == "number"
    assert told["size"]["categories"] == ["-3", "10", "40"]
    codes = [told["town"]["categories"].index(town) for town in table["town"].to_pylist()]
    X = np.column_stack([table["a"], table["size"], codes, table["b"]]).astype(np.float32)
    np.testing.assert_array_equal(run(model, X), fm.transform(table))
    strange = np.repeat(X[:1], 4, axis=0)
    strange[0, 1], strange[1, 2], strange[2, 1], strange[3, 1] = 7.0, np.nan, 2.5, np.inf
    Z = run(model, strange)
    if unknown == "error":
        assert np.isnan(Z).all()
        return
    assert (Z[0, 5:] == 0.0).all()
    assert (Z[1, 2:5] == 0.0).all()
    assert np.isnan(Z[2:]).all()  # no category at all
    kafeat.onnx.export(fm, "/dev/null")


def test_any_number_that_is_not_frequent_is_rare() -> None:
    rng = np.random.default_rng(3)
    n = np.concatenate([rng.integers(0, 5, 8_000), rng.integers(10, 10**6, 12_000)])
    step = {"kind": "one_hot", "columns": ["n"], "min_frequency": 100, "unknown": "ignore"}
    fm = kafeat.fit({"steps": [step]}, pa.table({"n": n}))
    X = np.array([[0.0], [4.0], [11.0], [7e5], [-3.0], [np.nan]], dtype=np.float32)
    want = np.eye(6)[[0, 4, 5, 5, 5, 5]]
    want[5] = 0.0
    np.testing.assert_array_equal(run(kafeat.onnx.to_model(fm), X), want)
    np.testing.assert_array_equal(fm.transform(pa.table({"n": [0, 4, 11, 700_000, -3, None]})), want)


def test_indicators_of_missing_numbers() -> None:
    X = SIGNED.copy()
    X[::3, 2] = X[::5, 4] = np.nan
    fm = chain({"kind": "missing_indicator"}, {"kind": "impute"}, {"kind": "standardize"}, X=X)
    assert fm.n_components == 8
    agree(fm, X)
    agree(chain({"kind": "missing_indicator"}, {"kind": "impute"}, X=SIGNED), X)  # none to add


@pytest.mark.parametrize("cyclic", [False, True])
def test_parts_of_times_are_those_of_the_calendar(cyclic: bool) -> None:
    """Days of a whole cycle of leap years, their first and last moments, and the first years.

    The first moments are of every day where parts are not cyclic. Otherwise every seventh day is enough.
    """
    parts = ["year", "month", "day", "day_of_year", "weekday", "hour", "minute", "second", "days"]
    step = {"kind": "date_parts", "columns": ["c1"], "parts": parts, "cyclic": cyclic}
    for offset in (0.0, 86_399.999, 43_199.5):
        days = np.arange(-75_000, 75_000, 7 if cyclic or offset else 1)
        day = 86_400.0 * np.concatenate([days, [-719_162, 2_932_896]])
        X = np.column_stack([np.zeros(len(day)), day + offset])
        fm = kafeat.fit({"steps": [step], "dtype": "float64"}, X[:1000])
        G, Z = run(kafeat.onnx.to_model(fm), X), fm.transform(X)
        # Whole numbers agree to the bit, and so does the one quotient. Angles are below 2π: their two roundings, and
        # those of a cosine as 1 − 2 sin², are a few units of 2π.
        np.testing.assert_allclose(G, Z, rtol=0, atol=4 * np.pi * np.finfo(float).eps if cyclic else 0.0)
    X = np.array([[0.0, np.nan], [0.0, 1e300], [0.0, -1e12], [0.0, 0.0]])
    assert np.isnan(run(kafeat.onnx.to_model(fm), X)[:3]).all()
    kafeat.onnx.export(replace(fm, dtype="float32"), "/dev/null")
    metadata = {p.key: p.value for p in kafeat.onnx.to_model(fm).metadata_props}
    assert json.loads(metadata["kafeat.times"]) == ["c1"]


def test_the_first_moment_of_the_year_10000_is_no_time() -> None:
    X = np.array([[LATEST - 1.0], [LATEST]])
    fm = kafeat.fit({"steps": [{"kind": "date_parts", "columns": ["c0"], "parts": ["year"]}]}, X[:1])
    np.testing.assert_array_equal(run(kafeat.onnx.to_model(fm), X), [[9999.0], [np.nan]])


def test_missing_times_are_filled() -> None:
    times = np.random.default_rng(0).integers(0, 2**31, len(SIGNED))
    X = np.column_stack([SIGNED[:, 0], times]).astype(np.float64)
    X[::4, 1] = np.nan
    step = {"kind": "date_parts", "columns": ["c1"], "cyclic": True}
    agree(chain(step, {"kind": "impute"}, X=X, dtype="float64"), X)
    agree(chain({"kind": "missing_indicator"}, {"kind": "impute"}, step, X=X), X)


def test_unions_in_chains_in_unions() -> None:
    maps = [{"steps": [{"kind": "pca"}]}, {"weight": 3.0, "steps": [{"kind": "log1p"}]}]
    inner = {"kind": "union", "maps": maps}
    sketched = [inner, {"kind": "tensor_sketch", "n_components": 8}]
    named = {"columns": ["c4", "c1"], "weight": 0.5, "steps": sketched}
    outer = {"kind": "union", "maps": [named, {"steps": [{"kind": "homogeneous"}]}]}
    fm = chain(outer, {"kind": "standardize"}, X=POSITIVE)
    agree(fm, np.vstack([POSITIVE, -POSITIVE[:1]]))


def test_the_same_map_gives_the_same_bytes(tmp_path) -> None:
    for name in "ab":
        fm = chain({"kind": "fourier", "n_components": 20}, {"kind": "pca", "n_components": 3})
        kafeat.onnx.export(fm, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    fm.save(tmp_path / "m.joblib")
    kafeat.onnx.export(tmp_path / "m.joblib", tmp_path / "c", check=False)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_other_opsets(opset: int, fit: Fit, tmp_path) -> None:
    kafeat.onnx.export(fit("normalize", "float32"), tmp_path / "m.onnx", opset=opset)
    model = onnx.load(tmp_path / "m.onnx")
    assert [o.version for o in model.opset_import] == [opset]


@pytest.mark.parametrize("opset", [12, 1000])
def test_unknown_opsets_are_refused(opset: int) -> None:
    with pytest.raises(UsageError, match=rf"opset: expected 13 to \d+, got {opset}"):
        kafeat.onnx.to_model(chain({"kind": "standardize"}), opset)


def test_what_no_operator_computes_is_refused_with_its_place(monkeypatch, tmp_path) -> None:
    bessel = {"kind": "nystroem", "kernel": "matern", "nu": 2.0, "n_components": 4}
    fm = chain({"kind": "union", "maps": [{"steps": [{"kind": "standardize"}, bessel]}]})
    told = r"^steps\[0\]\.maps\[0\]\.steps\[1\]\.nu: expected 0\.5, 1\.5 or 2\.5, got 2"
    with pytest.raises(UsageError, match=told):
        kafeat.onnx.export(fm, tmp_path / "m.onnx")
    fm = chain({"kind": "nystroem", "kernel": lambda X, Y: X @ Y.T, "n_components": 4})
    told = r"steps\[0\]\.kernel: expected a kernel by name, got a Python function"
    with pytest.raises(UsageError, match=told):
        kafeat.onnx.to_model(fm)
    monkeypatch.delitem(importlib.import_module("kafeat.onnx.model")._emitters(), "standardize")
    told = r"steps\[0\]\.kind: expected a step that ONNX has .* got standardize"
    with pytest.raises(UsageError, match=told):
        kafeat.onnx.to_model(chain({"kind": "standardize"}))
    assert not list(tmp_path.iterdir())


def test_a_graph_that_is_too_large_is_refused_before_it_is_made(monkeypatch) -> None:
    fm = chain({"kind": "projection", "matrix": "srht", "n_components": 50})
    monkeypatch.setattr("kafeat.onnx.graph.MOST_BYTES", 1000)
    with pytest.raises(UsageError, match=r"steps\[0\]\.constants: expected at most 1,000 bytes"):
        kafeat.onnx.to_model(fm)


def test_a_graph_that_errs_is_not_written(monkeypatch, tmp_path) -> None:
    emitters = importlib.import_module("kafeat.onnx.model")._emitters()
    emit = emitters["arc_cosine"]
    monkeypatch.setitem(emitters, "arc_cosine", lambda fitted, x: emit(fitted, x) * 1.0001)
    fm = chain({"kind": "arc_cosine", "n_components": 40})
    told = "expected features that differ from kafeat's by at most .*: nothing was written"
    with pytest.raises(GateError, match=told):
        kafeat.onnx.export(fm, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
    kafeat.onnx.export(fm, tmp_path / "m.onnx", check=False)
    assert (tmp_path / "m.onnx").exists()


def test_the_python_of_the_page_runs(monkeypatch, tmp_path, configs) -> None:
    page = (configs.parent / "docs" / "onnx.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "configs").symlink_to(configs)
    (tmp_path / "sample_data").symlink_to(configs.parent / "sample_data")
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    exec(code, scope)
    assert scope["Z"].shape == (1797, 512)


def test_without_onnx_the_remedy_is_said(monkeypatch, in_process, tmp_path) -> None:
    for name in [name for name in sys.modules if name.startswith("kafeat.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = in_process("export", "m.joblib", "o.onnx", cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'kafeat[onnx]'" in done.stderr
    assert "Traceback" not in done.stderr
