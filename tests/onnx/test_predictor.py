"""Graphs of models that end in a predictor."""

import json

import numpy as np
import pytest

import kafeat

onnxruntime = pytest.importorskip("onnxruntime")
kafeat_onnx = pytest.importorskip("kafeat.onnx")

FOURIER = {"kind": "fourier", "n_components": 64, "frequencies": "orthogonal", "weights": "uniform"}
MAP = [{"kind": "standardize"}, FOURIER]


def run(fm, X):
    session = onnxruntime.InferenceSession(kafeat_onnx.to_model(fm).SerializeToString())
    labels = json.loads(session.get_modelmeta().custom_metadata_map["kafeat.labels"])
    return session.run(["Z", "P"], {"X": X}), labels


@pytest.fixture(scope="module")
def X():  # noqa: N802  # as in formulas
    return np.random.default_rng(0).standard_normal((500, 3)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_probabilities(X, kind, dtype, tmp_path):
    y = np.array(["in", "out"])[(X[:, 0] ** 2 > X[:, 1]).astype(int)]
    config = {"dtype": dtype, "steps": [*MAP, {"kind": kind, "penalty": 0.01}]}
    fm = kafeat.fit(config, X, y)
    done = kafeat_onnx.export(fm, tmp_path / "m.onnx")  # compares both outputs with rounding
    assert done.agreement.agrees
    rows = X if dtype == "float32" else X.astype(fm.input_dtype)
    (Z, P), labels = run(fm, rows.astype(fm.input_dtype))
    assert labels == {"names": [], "type": "text", "classes": ["in", "out"]}
    assert P.dtype == np.float64
    np.testing.assert_allclose(P, fm.predict_proba(X), rtol=0, atol=1e-4 if dtype == "float32" else 1e-10)
    np.testing.assert_allclose(Z, fm.transform(X), rtol=0, atol=1e-5)
    assert run(fm, rows[:0].astype(fm.input_dtype))[0][1].shape == (0, 2)


def test_numbers_and_a_wide_product(X, tmp_path):
    Y = np.column_stack([X[:, 0] * 1e6, X[:, 1]])
    fm = kafeat.fit({"steps": [*MAP, {"kind": "ridge", "penalty": 0.01}]}, X, Y)
    assert kafeat_onnx.export(fm, tmp_path / "m.onnx").agreement.agrees
    twins = np.column_stack([X[:, 0], X[:, 0] + np.float32(1e-3) * X[:, 1]])
    config = {"steps": [{"kind": "standardize"}, {"kind": "ridge", "penalty": 0.0}]}
    wide = kafeat.fit(config, twins, (twins[:, 1] - twins[:, 0]) * 1e3)
    assert wide.predictor.fitted.state["wide"]
    assert kafeat_onnx.export(wide, tmp_path / "w.onnx").agreement.agrees


def test_other_weights_do_not_agree(X, monkeypatch, tmp_path):
    fm = kafeat.fit({"steps": [*MAP, {"kind": "ridge", "penalty": 0.01}]}, X, X[:, 0])
    data = kafeat_onnx.to_model(fm).SerializeToString()
    fm.predictor.fitted.state["intercept"][:] += 1e-2
    assert not kafeat_onnx.saving.compare(fm, data).agrees
