"""Features by ONNX Runtime beside those of `transform`, through the same readers, writers and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import kafeat
from kafeat.cli.main import kafeat as command
from kafeat.errors import DataError, KafeatError, SystemRefusedError
from kafeat.io.writers.base import OutputOptions
from kafeat.jobs.transform.options import RowOptions
from kafeat.model.feature_map import FeatureMap
from tests.jobs.files import transform_file

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import kafeat.onnx  # noqa: E402
from kafeat.onnx import saving  # noqa: E402

STEPS = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 64}]


def rows(n: int = 700) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def fm() -> FeatureMap:
    return kafeat.fit({"chunk_rows": 256, "steps": STEPS}, rows())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "steps", [STEPS, [{"kind": "homogeneous", "negative": "signed"}]], ids=["fourier", "homogeneous"]
)
def test_features_differ_by_rounding_only(steps: list, dtype: str) -> None:
    X = rows()
    fm = kafeat.fit({"chunk_rows": 256, "dtype": dtype, "steps": steps}, X)
    device = kafeat.onnx.on_device(fm, "cpu", 1)
    Z, G = fm.transform(X), device.transform(X)
    assert G.dtype == Z.dtype
    # `rounding` is derived from the sensitivity of the map
    assert (np.abs(G.astype(float) - Z).max(axis=1) <= saving.rounding(fm, X.astype(fm.input_dtype))).all()
    assert device.digest == fm.digest
    assert (device.transform(X[:0]).shape, device.transform(X, out=np.empty_like(Z)).shape) == (
        (0, Z.shape[1]),
        Z.shape,
    )


def test_the_session_computes_them(fm: FeatureMap) -> None:
    """The processor would hide a session that is never asked."""
    device, asked = kafeat.onnx.on_device(fm, "CPU"), []

    class Session:
        def run(self, names: list[str], given: dict[str, np.ndarray]) -> list[np.ndarray]:
            asked.append(len(given["X"]))
            return [np.full((len(given["X"]), 64), 0.5, np.float32)]

    object.__setattr__(device.device, "session", Session())
    assert (device.transform(rows()) == 0.5).all()
    assert asked == [256, 256, 188]


def test_bad_rows_are_those_of_the_processor(fm: FeatureMap, tmp_path: Path) -> None:
    X = rows()
    X[300, 2], X[40, 1] = np.nan, np.inf
    np.save(tmp_path / "x.npy", X)
    device = kafeat.onnx.on_device(fm, "cpu")
    for one in (fm, device):
        with pytest.raises(
            DataError, match=r'row 41 \(index 40\), column "?\'?c1\'?"?: expected a finite number'
        ):
            transform_file(one, str(tmp_path / "x.npy"), str(tmp_path / "z.npy"))
    drop = RowOptions("drop", drift=True)
    wide = OutputOptions(dtype="float16")
    results = [
        transform_file(one, str(tmp_path / "x.npy"), str(tmp_path / f"{i}.npy"), writing=wide, rules=drop)
        for i, one in enumerate((fm, device))
    ]
    assert [done.bad_rows for done in results] == [2, 2]
    assert results[0].drift == results[1].drift
    Z, G = (np.load(tmp_path / f"{i}.npy") for i in range(2))
    assert Z.shape == G.shape == (698, 64)
    assert G.dtype == np.float16
    # numbers of at most √(1/32) < 1/4, rounded to 11 bits, perhaps to neighbours
    np.testing.assert_allclose(G.astype(float), Z, rtol=0, atol=2.0**-13)


def test_rows_that_a_step_refuses_are_refused() -> None:
    """The graph has NaN for them, and no message."""
    X = np.abs(rows())
    fm = kafeat.fit({"steps": [{"kind": "homogeneous"}]}, X)
    X[5, 3] = -1.0
    with pytest.raises(DataError, match="row 6 .*expected a value of at least 0, got -1"):
        kafeat.onnx.on_device(fm, "cpu").transform(X)


def test_features_that_float16_cannot_hold_are_refused(tmp_path: Path) -> None:
    fm = kafeat.fit({"steps": [{"kind": "homogeneous"}]}, np.abs(rows()))
    X = np.abs(rows())
    X[5] = 1e12
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(DataError, match=r"row 6 \(index 5\): expected features that float16 can hold"):
        transform_file(
            kafeat.onnx.on_device(fm, "cpu"), str(tmp_path / "x.npy"), str(tmp_path / "z.npy"),
            writing=OutputOptions(dtype="float16"),
        )  # fmt: skip


def test_categories_go_in_as_the_graph_takes_them() -> None:
    table = pa.table({"a": ["x", "y", "w", "z"] * 20, "b": np.arange(80.0)})
    fm = kafeat.fit({"steps": [{"kind": "one_hot", "columns": ["a"]}]}, table)
    np.testing.assert_array_equal(kafeat.onnx.on_device(fm, "cpu").transform(table), fm.transform(table))


def test_a_provider_that_is_not_there_is_told(fm: FeatureMap, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        SystemRefusedError, match=r"--device tpu: expected a provider of this onnxruntime.*: cpu"
    ):
        kafeat.onnx.on_device(fm, "tpu")
    there = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: there)
    # it is built in, and does not start
    start = onnxruntime.InferenceSession
    monkeypatch.setattr(
        onnxruntime,
        "InferenceSession",
        lambda data, options, providers: start(data, options, providers=providers[1:]),
    )
    with pytest.raises(SystemRefusedError, match="--device cuda: expected CUDAExecutionProvider to start"):
        kafeat.onnx.on_device(fm, "cuda")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["tpu"], 5, "--device tpu: expected a provider of this onnxruntime"),
        (["cpu", "--dry-run"], 2, "--device: expected one input file to transform, got --dry-run"),
        (["cpu", "--rows-per-file", "256"], 2, "--device: expected one input file to transform, got many"),
    ],
)
def test_the_command_refuses(
    fm: FeatureMap, tmp_path: Path, options: list[str], code: int, said: str
) -> None:
    fm.save(tmp_path / "map.joblib")
    np.save(tmp_path / "x.npy", rows())
    arguments = ["transform", "--model", str(tmp_path / "map.joblib"), "--device", *options]
    done = CliRunner().invoke(command, [*arguments, str(tmp_path / "x.npy"), str(tmp_path / "z.npy")])
    assert isinstance(done.exception, KafeatError)
    assert done.exception.exit_code == code
    assert said in str(done.exception)
    assert not (tmp_path / "z.npy").exists()


def test_the_command_writes_the_features_of_the_device(fm: FeatureMap, tmp_path: Path) -> None:
    fm.save(tmp_path / "map.joblib")
    np.save(tmp_path / "x.npy", rows())
    names = [str(tmp_path / name) for name in ("map.joblib", "x.npy", "z.npy")]
    done = CliRunner().invoke(command, ["transform", "--device", "cpu", "--quiet", "--model", *names])
    assert done.exit_code == 0, done.output
    want = kafeat.onnx.on_device(fm, "cpu").transform(rows())
    # the threads of a product may share it in another way
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), want, rtol=0, atol=1e-6)
