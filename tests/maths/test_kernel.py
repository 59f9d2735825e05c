"""Kernels are found by the names of their classes."""

import subprocess
import sys

import numpy as np
import pytest

from kafeat.contract.kernel_inputs import Coordinates
from kafeat.maths.kernel import DifferentiableKernel, KernelParameters, ShiftInvariantKernel
from kafeat.maths.kernels import find_kernel, kernel_names


def test_a_kernel_has_the_name_of_its_class() -> None:
    assert type(find_kernel("additive_chi2")).__name__ == "AdditiveChi2Kernel"
    assert type(find_kernel("rbf")).__name__ == "RbfKernel"
    assert len(kernel_names()) == len({type(find_kernel(name)) for name in kernel_names()})


@pytest.mark.parametrize("name", ["hat", "..kernel", "", "_hidden", "os"])
def test_only_kernels_are_found(name: str) -> None:
    with pytest.raises(KeyError, match=r"^'"):
        find_kernel(name)


@pytest.mark.parametrize("name", kernel_names())
def test_a_kernel_says_what_it_is_of(name: str) -> None:
    kernel, p = find_kernel(name), KernelParameters(gamma=0.3)
    if isinstance(kernel, DifferentiableKernel | ShiftInvariantKernel):
        assert kernel.distance != "none", f"{name}: expected the distance that `gamma: median` reads"
    rows = np.array([[-0.5, 0.25], [-2.0, 1.0], [0.0, 3.0]])
    with np.errstate(invalid="ignore", divide="ignore"):
        sound = np.isfinite(kernel.gram(Coordinates(rows, rows), p).dots).all()
    assert sound or kernel.non_negative or name.startswith("skewed"), f"{name}: expected non_negative = True"


@pytest.mark.parametrize("name", kernel_names(DifferentiableKernel))
def test_a_slope_is_a_difference_quotient(name: str) -> None:
    kernel, p, h = find_kernel(name), KernelParameters(gamma=0.7, alpha=0.4), 1e-5
    squared = np.linspace(0.1, 9.0, 30)
    (before, _), (after, _) = (kernel.with_slope(squared + step, p) for step in (-h, h))
    # third derivatives are below 1: h²/6 of them, and eps/h of values up to 1
    slope = (after - before) / (2 * h)
    np.testing.assert_allclose(kernel.with_slope(squared, p)[1], slope, rtol=0, atol=h * h + 4e-16 / h)


def test_names_of_kernels_need_no_scipy() -> None:
    code = "import sys, kafeat.samplers.nystroem, kafeat.samplers.fourier; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
