"""Fourier features whose frequencies are trained for the label, as a step of a map."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kafeat
from kafeat.errors import ConfigError, UsageError
from kafeat.jobs.inspect import inspect
from kafeat.maths.kernel import ShiftInvariantKernel
from kafeat.maths.kernels import kernel_names

D = 20


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, D))


def label_of(X: np.ndarray) -> np.ndarray:
    """A class that depends on one direction of twenty, and not in a straight line."""
    return np.sin(2.0 * X.sum(axis=1) / np.sqrt(D)) > 0.0


def config(**parameters: Any) -> dict[str, Any]:
    step = {"kind": "fourier", "frequencies": "supervised", "n_components": 32, **parameters}
    return {"dtype": "float64", "steps": [step]}


def fit(n: int = 400, **parameters: Any) -> kafeat.FeatureMap:
    return kafeat.fit(config(**parameters), rows(n), label=label_of(rows(n)))


def test_needs_a_label() -> None:
    expected = r"steps\[0\]\.frequencies: supervised: expected a label to train for"
    with pytest.raises(UsageError, match=expected):
        kafeat.fit(config(), rows(400))


@pytest.mark.parametrize("kernel", kernel_names(ShiftInvariantKernel))
def test_starts_from_the_draw_of_any_kernel(kernel: str) -> None:
    state = fit(kernel=kernel).chain.steps[0].state
    assert state["error_kept"] < 0.9 * state["error_drawn"]


def test_kernel_is_that_of_the_features(tmp_path: Path) -> None:
    fm, X = fit(), rows(30, seed=3)
    Z = fm.transform(X)
    # sums of 32 products of features of norm 1
    np.testing.assert_allclose(fm.exact_kernel(X), Z @ Z.T, rtol=0, atol=32 * np.finfo(float).eps)
    note = (
        "steps[0] (fourier): frequencies: supervised learns features without a given kernel: the exact kernel is that "
        "of these features, so their error is only rounding"
    )
    assert inspect(fm)["reference"] == note
    fm.save(tmp_path / "m.joblib")
    loaded = kafeat.load(tmp_path / "m.joblib")
    assert loaded.transform(X).tobytes() == Z.tobytes()
    assert loaded.exact_kernel(X).tobytes() == fm.exact_kernel(X).tobytes()


def test_stands_in_chains_and_unions() -> None:
    X = rows(400)
    inner = config()["steps"][0]
    drawn = {"kind": "fourier", "frequencies": "orthogonal", "weights": "uniform", "n_components": 256}
    union = {"kind": "union", "maps": [{"steps": [inner]}, {"steps": [drawn]}]}
    for steps in ([inner, {**drawn, "n_components": 512}], [union]):
        fm = kafeat.fit({"dtype": "float64", "steps": steps}, X, label=label_of(X))
        Z, K = fm.transform(X[:50]), fm.exact_kernel(X[:50])
        # an error of about 1/√m with m drawn frequencies, 128 or more
        assert np.linalg.norm(Z @ Z.T - K) < 0.2 * np.linalg.norm(K)
        assert "frequencies: supervised learns features" in (fm.chain.exact_kernel_note() or "")
        with pytest.raises(UsageError, match=r"frequencies: supervised: expected a label"):
            kafeat.fit({"steps": steps}, X)


def test_a_width_by_its_error_is_refused() -> None:
    expected = r"steps\[0\]\.n_components: target_error: expected a map of a given kernel, got frequencies: supervised"
    with pytest.raises(UsageError, match=expected):
        fit(n_components={"target_error": 0.1})


def test_structured_draws_have_no_label() -> None:
    with pytest.raises(ConfigError, match="frequencies: expected 'iid', 'qmc', 'learned' or 'supervised'"):
        kafeat.fit(config(kernel="laplacian", frequencies="orthogonal"), rows(400))
