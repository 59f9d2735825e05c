"""Numbers at the ends of what a dtype holds: a map that is right, or an error that says what to do."""

import json
from typing import Any

import numpy as np
import pytest

import kafeat
from kafeat.errors import ConfigError, DataError
from kafeat.jobs.inspect import inspect
from kafeat.model.load import loads
from kafeat.registry import build_step, samplers
from tests.recipes import small, words

N = 104  # enough for frequencies to be fitted


def normal() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N, 3))


def rows(case: str) -> np.ndarray:
    X = normal()
    match case.split(" "):
        case ["scale", size]:
            return X * float(size)
        case ["outlier", size]:
            X[7] = float(size)
            return X
        case ["zeros"]:
            return 0.0 * X
        case ["constant", "column"]:
            X[:, 1] = 5.0
            return X
        case ["one", "row"]:
            return X[:1]
        case ["equal", "rows"]:
            return np.repeat(X[:1], 2, axis=0)
        case ["few", "rows"]:
            return X[:5]
        case _:
            return X[:, :1]


CASES = {
    "float32": ["scale 1e-25", "scale 1e25", "outlier 1e30", "zeros", "one row"],
    "float64": [
        "scale 1e-160", "scale 1e-45", "scale 1e100", "scale 1e160", "outlier 1e200", "constant column", "equal rows",
        "few rows", "one column",
    ],
}  # fmt: skip

FOURIER, NYSTROEM = {"kind": "fourier", "n_components": 8}, {"kind": "nystroem", "n_components": 6}
STEPS: dict[str, dict[str, Any]] = {
    **{kind: small(kind) for kind in samplers()},
    "offset": {**FOURIER, "features": "offset", "frequencies": "qmc"},
    "structured": {**FOURIER, "frequencies": "structured"},
    "laplacian": {**FOURIER, "kernel": "laplacian"},
    "rough matern": {**FOURIER, "kernel": "matern", "nu": 0.01},
    "length scale": {**FOURIER, "length_scale": 1e-30},
    "nystroem": NYSTROEM,
    "fitted": {**NYSTROEM, "weights": "fitted", "n_landmarks": 8},
    **{
        kernel: {**NYSTROEM, "kernel": kernel}
        for kernel in ("matern", "polynomial", "linear", "cosine", "sigmoid")
    },
    **{landmarks: {**NYSTROEM, "landmarks": landmarks} for landmarks in (
        "learned", "rpcholesky", "greedy", "leverage", "farthest", "dual_weighted", "dual_kmeans",
    )},
    "chi2": {**NYSTROEM, "kernel": "chi2", "landmarks": "leverage"},
    "homogeneous": {"kind": "homogeneous", "negative": "signed", "window": "fitted"},
    "all_subsets": {"kind": "random_subsets", "kernel": "all_subsets", "n_components": 8},
    "positive_exponential": {"kind": "positive_exponential", "n_components": 8},
    "projection": {"kind": "projection", "n_components": 2},
}  # fmt: skip


def look(step: dict[str, Any], X: np.ndarray, dtype: str) -> None:
    """Fit, save, load, inspect, transform, compare: warnings of NumPy are errors here as everywhere."""
    labels = np.arange(len(X)) % 2
    X = np.abs(X) if build_step(step).traits.numbers.refuses_negative else X
    advice = ""
    try:
        fm = kafeat.fit({"steps": [step], "dtype": dtype}, X.astype(dtype), labels)
        again = loads(fm.dumps())  # what a fit makes can be read
        json.dumps(inspect(again), allow_nan=False)
        assert np.isfinite(again.transform(X)).all()
        assert np.isfinite(again.exact_kernel(X)).all()
    except (DataError, ConfigError) as error:
        advice = str(error)
    remedies = ("scale the input", "gamma", "n_components", "clip_negative", "two classes")
    assert not advice or any(word in advice for word in remedies)


TELLING = (
    "fourier", "nystroem", "fitted", "matern", "polynomial", "learned", "greedy", "leverage", "dual_weighted", "chi2",
)  # fmt: skip


@pytest.mark.parametrize("name", TELLING)
def test_a_map_or_an_error_that_says_what_to_do(name: str) -> None:
    for case in ("scale 1e25", "one row"):
        look(STEPS[name], rows(case), "float32")
    for case in ("scale 1e-160", "scale 1e160", "outlier 1e200"):
        look(STEPS[name], rows(case), "float64")


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.slow
def test_every_case_of_every_kind(name: str) -> None:
    for dtype, cases in CASES.items():
        for case in cases:
            look(STEPS[name], rows(case), dtype)


FAR = [(1e-300, "float64"), (1e-30, "float32"), (1e30, "float32"), (1e300, "float64")]


@pytest.mark.parametrize(("gamma", "dtype"), FAR)
def test_any_gamma(gamma: float, dtype: str) -> None:
    for name in words("fourier laplacian nystroem leverage polynomial tensor_sketch positive_exponential"):
        look({**STEPS[name], "gamma": gamma}, normal(), dtype)


@pytest.mark.parametrize("exponent", [-400, -80, 80, 400])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_the_scale_of_the_data_does_not_matter_to_learned_frequencies(kernel: str, exponent: int) -> None:
    """A power of two changes no digit, so that the features are the same to the last bit."""
    step = {**FOURIER, "kernel": kernel}
    fitted = [
        kafeat.fit({"steps": [step], "dtype": "float64"}, X).chain.steps[0].state
        for X in (normal(), np.ldexp(normal(), exponent))
    ]
    np.testing.assert_array_equal(
        fitted[1]["frequencies"], np.ldexp(np.asarray(fitted[0]["frequencies"], dtype=float), -exponent)
    )
    np.testing.assert_array_equal(fitted[1]["weights"], fitted[0]["weights"])


def test_a_kernel_value_beyond_float64_is_refused() -> None:
    fm = kafeat.fit({"steps": [{"kind": "projection", "n_components": 2}], "dtype": "float64"}, normal())
    told = "exact kernel: expected values that float64 can hold, got inf: scale the input"
    with pytest.raises(DataError, match=told):
        fm.exact_kernel(np.full((2, 3), 1e160))
