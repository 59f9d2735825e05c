"""Random features of every kind: right on average, with an error that falls as 1/√D."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from kafeat.contract.kernel_inputs import Coordinates
from kafeat.contract.step import Step
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import SkewedChi2Kernel
from kafeat.registry import build_step
from kafeat.samplers.arc_cosine import ArcCosine
from kafeat.samplers.fourier import Fourier
from kafeat.samplers.positive_exponential import PositiveExponential
from kafeat.samplers.random_maclaurin import RandomMaclaurin
from kafeat.samplers.random_subsets import RandomSubsets
from kafeat.samplers.skewed import Skewed
from kafeat.samplers.tensor_sketch import TensorSketch
from kafeat.samplers.tensor_srht import TensorSrht
from tests.recipes import normal_rows
from tests.samplers.test_random_subsets import kernel_over, sets

pytestmark = pytest.mark.one_core
Kernel = Callable[[Step, np.ndarray], np.ndarray]

X = normal_rows(6, 5)
X *= 1.5 / np.linalg.norm(X, axis=1, keepdims=True)
# The standard error of a mean over S seeds of D outputs is that of S·D: wide maps are drawn faster than many.
SEEDS, WIDTH = 40, 512


def polynomial(step: Step, X: np.ndarray) -> np.ndarray:
    return polynomial_kernel(X, degree=step.degree, gamma=step.gamma, coef0=step.coef0)


def exponential(step: Step, X: np.ndarray) -> np.ndarray:
    return np.exp(step.gamma * X @ X.T)


def series(step: Step, X: np.ndarray) -> np.ndarray:
    return sum(a * (step.gamma * X @ X.T) ** n for n, a in enumerate(step.coefficients))


def skewed(step: Step, X: np.ndarray) -> np.ndarray:
    return SkewedChi2Kernel().gram(Coordinates(X, X), KernelParameters(skewedness=step.skewedness)).dots


def arc_cosine(step: Step, X: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(X, axis=1)
    outer = np.outer(lengths, lengths)
    theta = np.arccos(np.clip(X @ X.T / outer, -1, 1))
    if step.order == 0:
        return 1 - theta / np.pi
    return outer * (np.sin(theta) + (np.pi - theta) * np.cos(theta)) / np.pi


def gaussian(step: Step, X: np.ndarray) -> np.ndarray:
    return rbf_kernel(X, gamma=step.gamma)


def subsets(step: Step, X: np.ndarray) -> np.ndarray:
    return kernel_over(sets(2, 2) if step.kernel == "anova" else sets(0), X, step.gamma)


DRAWN = {"frequencies": "iid", "weights": "uniform"}
MAPS = [{"steps": [{"kind": "polynomial_features", "degree": p, "gamma": 0.5}]} for p in (1, 2)]
DRAWS: list[tuple[Step, Kernel]] = [
    *((TensorSketch(degree=p, gamma=0.5, coef0=c), polynomial) for p in (2, 3) for c in (0.0, 1.0)),
    *((TensorSrht(degree=p, gamma=0.5, coef0=c, complex_to_real=real), polynomial)
      for p, c, real in ((2, 0.0, True), (2, 1.0, False), (3, 1.0, True), (4, 0.5, False))),
    (RandomMaclaurin(degree=2, gamma=0.5, coef0=0.0), polynomial),
    (RandomMaclaurin(degree=3, gamma=0.3, coef0=0.5), polynomial),
    (RandomMaclaurin(kernel="exponential", gamma=0.2), exponential),
    (RandomMaclaurin(kernel="series", coefficients=(0.0, 0.5, 0.0, 0.2), gamma=0.3), series),
    *((PositiveExponential(gamma=0.3, directions=d, features=f, tilt=t), exponential)
      for d, f, t in (("iid", "hyperbolic", "fitted"), ("iid", "plain", "none"),
                      ("orthogonal", "hyperbolic", "none"), ("orthogonal", "plain", "fitted"))),
    *((ArcCosine(order=p, directions=d, features=f), arc_cosine)
      for p in (0, 1) for d in ("iid", "orthogonal") for f in ("paired", "plain")),
    *((Fourier(gamma=0.1, frequencies=d, weights="uniform", features=f), gaussian)
      for d in ("iid", "orthogonal") for f in ("paired", "offset")),
    *((Skewed(skewedness=0.3, features=f, **DRAWN), skewed) for f in ("paired", "offset")),
    *((RandomSubsets(kernel=kernel, gamma=0.5), subsets) for kernel in ("anova", "all_subsets")),
    (build_step({"kind": "product", "maps": MAPS, "n_components": WIDTH}), lambda _, X: (0.5 * X @ X.T + 1.0) ** 3),
]  # fmt: skip


NAMES = [f"{step.kind} {i}" for i, (step, _) in enumerate(DRAWS)]


def kernels(features, step: Step, X: np.ndarray, width: int, seeds: int) -> np.ndarray:
    """The kernel of the features of each seed, (seeds, n, n)."""
    step = step.model_copy(update={"n_components": width})
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    return Z @ Z.transpose(0, 2, 1)


def assert_right_on_average(K: np.ndarray, exact: np.ndarray) -> None:
    """5 standard errors of the mean over independent seeds are left once in 10⁶; what does not vary is rounded.

    1e-7 of it: half of the digits of an angle near 0 are lost to the oracle of arc_cosine.
    """
    errors = 5 * K.std(axis=0, ddof=1) / np.sqrt(len(K)) + 1e-7
    assert (np.abs(K.mean(axis=0) - exact) <= errors).all()
    assert errors.max() <= 0.25 * exact.max(), "a wrong constant would not be seen"


@pytest.mark.parametrize(("step", "exact"), DRAWS, ids=NAMES)
def test_the_mean_over_seeds_is_the_kernel(features, step: Step, exact: Kernel) -> None:
    rows = np.abs(X) if exact is skewed else X
    assert_right_on_average(kernels(features, step, rows, WIDTH, SEEDS), exact(step, rows))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "parameters"), [
    (3, {"degree": 3, "gamma": 0.3}),  # fewer than the inputs: nothing linear is exact
    (1, {"degree": 2, "gamma": 0.3}),  # not even the constant
    (2, {"kernel": "exponential", "gamma": 0.2}),
])  # fmt: skip
def test_the_mean_over_seeds_of_few_outputs_is_the_kernel(features, width: int, parameters: dict) -> None:
    step = RandomMaclaurin(**parameters)
    exact = (exponential if step.kernel == "exponential" else polynomial)(step, X)
    assert_right_on_average(kernels(features, step, X, width, 2500), exact)


@pytest.mark.sampled
@pytest.mark.parametrize(("step", "exact"), DRAWS, ids=NAMES)
def test_the_error_halves_when_outputs_quadruple(features, step: Step, exact: Kernel) -> None:
    rows, seeds = np.abs(X) if exact is skewed else X, 100
    found = [kernels(features, step, rows, width, seeds) for width in (128, 512)]
    few, many = (((K - exact(step, rows)) ** 2).mean() for K in found)
    # The outputs, or their blocks, are independent: the variance falls as 1/D, but for those few that carry a part
    # exactly. Entries are nearly normal: a mean square over S seeds has the relative standard error √(2/S) at most
    # (all pairs alike), its root half of that, and the ratio √2 times that, which is 0.1. Four of them.
    assert np.sqrt(few / many) == pytest.approx(2.0, rel=4 * 0.1)
