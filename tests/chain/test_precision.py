"""Maps of float32 beside the same maps of float64: what float32 cannot hold is not lost on the way."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.jobs.inspect import inspect
from kafeat.jobs.transform.options import RowOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.registry import samplers, step_class
from tests.jobs.files import transform_file

# What is promised of a row: half of the digits.
HALF = float(np.sqrt(np.finfo(np.float32).eps))
N = 300
FOURIER = {"kind": "fourier", "n_components": 32}
NYSTROEM = {"kind": "nystroem", "n_components": 32}
STANDARDIZE, MINMAX, PCA = {"kind": "standardize"}, {"kind": "minmax"}, {"kind": "pca"}


def normal(d: int = 4) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N, d))


def times() -> np.ndarray:
    """Seconds within an hour, as Unix counts them (float32 knows every 128th of them), and other numbers."""
    rng = np.random.default_rng(1)
    seconds = 1.7e9 + np.floor(3600 * rng.random(N))
    return np.column_stack([seconds, seconds + rng.integers(600, size=N), 100 * rng.random(N)])


def fit(steps: list[dict], X: np.ndarray, dtype: str = "float32", **more: object) -> FeatureMap:
    label = X[:, 0] if any(step["kind"] == "trees" for step in steps) else None
    return kafeat.fit({"seed": 3, "dtype": dtype, "steps": steps, **more}, X, label)


def both(steps: list[dict], X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features in float32 and in float64."""
    narrow, wide = (fit(steps, X, dtype).transform(X) for dtype in ("float32", "float64"))
    assert narrow.dtype == np.float32
    return narrow.astype(np.float64), wide


def assert_near(narrow: np.ndarray, wide: np.ndarray) -> None:
    """As promised: of a row's length, or of a typical one, half of the digits are left."""
    lengths = np.linalg.norm(wide, axis=1)
    off = np.linalg.norm(narrow - wide, axis=1)
    assert (off <= HALF * np.maximum(lengths, np.median(lengths))).all(), (off / lengths).max()


def recipe(kind: str) -> dict:
    if kind in ("product", "union"):
        return {"kind": kind, "maps": [{"steps": [FOURIER]}, {"steps": [PCA]}]}
    width = {"n_components": 32} if "n_components" in step_class(kind).model_fields else {}
    return {"kind": kind, **width, **({"n_trees": 40} if kind == "trees" else {})}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", samplers())
def test_a_leading_scaler_sees_times_as_they_are(kind: str) -> None:
    """Within an hour of times, casting them first left four values in ten, and kernels wrong by 0.95."""
    assert_near(*both([MINMAX, recipe(kind)], times()))


@pytest.mark.parametrize("scaler", [STANDARDIZE, PCA, {"kind": "impute"}])
def test_scalers_alone_compute_in_float64(scaler: dict) -> None:
    X = times()
    narrow, wide = both([scaler, STANDARDIZE], X)
    assert (narrow == wide.astype(np.float32)).all()


def test_scalers_of_a_unions_chains_lead_too() -> None:
    X = times()
    maps = [{"columns": ["c0", "c2"], "steps": [STANDARDIZE, FOURIER]}, {"steps": [MINMAX, NYSTROEM]}]
    union = {"kind": "union", "maps": maps}
    assert_near(*both([union], X))
    assert_near(*both([{"kind": "impute"}, union], X))
    fm = fit([union], X)
    # only what comes before the casts computes in float64
    assert (fm.chain.cast_after, fm.input_dtype) == (0, np.float64)
    assert [int(fm.chain.steps[0].state[f"{i}.cast_after"]) for i in range(2)] == [1, 1]


def test_a_union_behind_float32_features_takes_them_as_they_are() -> None:
    X = normal()
    assert_near(*both([FOURIER, {"kind": "union", "maps": [{"steps": [STANDARDIZE, FOURIER]}]}], X))


@pytest.mark.parametrize("step", [FOURIER, NYSTROEM, {**NYSTROEM, "kernel": "laplacian"}])
def test_times_without_a_scaler_make_the_map_compute_in_float64(step: dict) -> None:
    X = times()
    assert_near(*both([step], X))
    assert fit([step], X).chain.cast_after == 1


def clusters() -> np.ndarray:
    """Eight places, 10,000 times as far from each other as their rows are."""
    rng = np.random.default_rng(2)
    return rng.standard_normal((8, 4))[rng.integers(8, size=N)] + 1e-4 * normal()


def far_row() -> np.ndarray:
    return np.vstack([normal()[:-1], np.full((1, 4), 1e10)])


def thin() -> np.ndarray:
    """Of rank 2, but for a ten-millionth of it."""
    rng = np.random.default_rng(2)
    return normal(2) @ rng.standard_normal((2, 6)) + 1e-7 * normal(6)


@pytest.mark.sampled
@pytest.mark.parametrize(("steps", "X", "wide"), [
    ([NYSTROEM], 1e20 * normal(), True),
    ([{**NYSTROEM, "kernel": "cosine"}], 1e20 * normal(), False),
    ([{**NYSTROEM, "kernel": "cosine"}], 1e-25 * normal(), False),
    # around a median that one row does not move, and with landmarks that are the same in both
    ([NYSTROEM], far_row(), False),
    ([{**NYSTROEM, "landmarks": "rpcholesky"}], far_row(), False),
    ([FOURIER], far_row(), True),
    ([NYSTROEM], clusters(), False),
    ([{**NYSTROEM, "gamma": 1e8}], clusters(), True),
    ([{**NYSTROEM, "kernel": "linear"}], clusters(), False),
    ([{**NYSTROEM, "kernel": "chi2"}], np.abs(times()), True),
    ([FOURIER, PCA, STANDARDIZE], thin(), True),
    ([{"kind": "polynomial_features"}, PCA, {"kind": "pca", "whiten": True}], thin(), True),
    ([{"kind": "projection", "n_components": 8}, STANDARDIZE, FOURIER], normal(2) + 1e6, True),
    ([STANDARDIZE, {"kind": "tensor_sketch", "n_components": 32}, PCA, MINMAX], thin(), True),
])  # fmt: skip
def test_where_float32_would_not_do_the_map_computes_in_float64(steps, X, wide):
    assert_near(*both(steps, X))
    assert (fit(steps, X).chain.cast_after == len(steps)) == wide


@pytest.mark.sampled
@pytest.mark.parametrize("tail", [STANDARDIZE, MINMAX, {"kind": "normalize"}, FOURIER])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_direction_that_is_rounding_alone_is_not_blown_up(rank: int, tail: dict) -> None:
    factors = np.random.default_rng(4).standard_normal((rank, 5))
    X = normal(rank) @ factors + 1.0 if rank else np.full((N, 5), 0.1)
    gamma = {"gamma": 0.1} if tail is FOURIER else {}
    for first in ([], [{"kind": "projection", "n_components": 7}]):
        assert_near(*both([*first, PCA, {**tail, **gamma}], X))


@pytest.mark.sampled
@pytest.mark.parametrize("kind", samplers())
def test_ordinary_rows_stay_in_float32(kind: str) -> None:
    for front in ([], [MINMAX]):
        fm = fit([*front, recipe(kind)], np.abs(normal()))
        assert fm.chain.cast_after == len(front)


def test_the_exact_kernel_and_the_evaluation_see_the_same_rows() -> None:
    X = times()
    steps = [STANDARDIZE, {"kind": "fourier", "gamma": 0.3, "n_components": 64}]
    narrow, wide = (fit(steps, X, dtype) for dtype in ("float32", "float64"))
    np.testing.assert_array_equal(narrow.exact_kernel(X), wide.exact_kernel(X))
    errors = [kafeat.evaluate(fm, X)["relative_frobenius"] for fm in (narrow, wide)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)
    assert errors[0] < 0.3


def test_drift_is_told_to_the_second(tmp_path: Path) -> None:
    X = times()
    fm = fit([STANDARDIZE, FOURIER], X)
    later = X.copy()
    later[:3, 0] = X[:, 0].max() + 1.0  # which float32 rounds to the same
    done = transform_file(fm, later, tmp_path / "z.npy", rules=RowOptions(drift=True))
    assert done.drift == {"c0": 3 / N, "c1": 0.0, "c2": 0.0}


def test_the_file_tells_it(tmp_path: Path) -> None:
    X = times()
    for steps, told in (([STANDARDIZE, FOURIER], 1), ([STANDARDIZE, MINMAX], 2), ([PCA, FOURIER], 1)):
        fm = fit(steps, X)
        fm.save(tmp_path / "m.joblib")
        again = kafeat.load(tmp_path / "m.joblib")
        assert again.dumps() == fm.dumps()
        assert again.transform(X).tobytes() == fm.transform(X).tobytes()
        assert inspect(again)["float64_steps"] == told
    assert inspect(fit([FOURIER], X, "float64"))["float64_steps"] == 1
    assert inspect(fit([FOURIER], normal()))["float64_steps"] == 0


def test_what_float32_cannot_hold_behind_the_scalers_is_refused_with_its_column() -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 2.0]})
    fm = fit([STANDARDIZE, {**FOURIER, "gamma": 0.1}], table)
    told = r"expected a value that float32 can hold, got 1.2\d*e\+60: scale the input, or fit with dtype: float64"
    with pytest.raises(DataError, match=rf"row 2 .*, column 'b': after standardize: {told}"):
        fm.transform(pa.table({"a": [1.0, 2.0], "b": [0.0, 1e60]}))
    alone = fit([STANDARDIZE], table)
    told = r"row 2 \(index 1\): expected features that float32 can hold, got 1.2\d*e\+60"
    with pytest.raises(DataError, match=told):
        alone.transform(pa.table({"a": [1.0, 2.0], "b": [0.0, 1e60]}))
