"""The contract of a kernel: its exact form. Some kernels also have a tile form, frequencies or a derivative.

The kernels themselves are in `kernels/`, with one file for each family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self

import numpy as np

from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.maths.fourier.spectra import FrequencyDistribution
from kafeat.maths.kernel_tiles import KernelTile, Landmarks
from kafeat.types import Floats


@dataclass(frozen=True)
class KernelParameters:
    """The parameters of all kernels. Each kernel reads only the parameters that it uses."""

    gamma: float = 1.0
    degree: int = 2
    coef0: float = 1.0
    nu: float = 1.5
    alpha: float = 1.0
    skewedness: float = 1.0
    homogeneity: float = 1.0
    order: int = 1
    coefficients: tuple[float, ...] = (1.0,)

    @classmethod
    def of(cls, recipe: object, gamma: float = 1.0) -> Self:
        """Return the parameters of a recipe, with the γ that was resolved on the sample."""
        named: dict[str, Any] = {one.name: getattr(recipe, one.name, None) for one in fields(cls)} | {
            "gamma": gamma
        }
        return cls(**{name: value for name, value in named.items() if value is not None})


class Kernel(ABC):
    """A kernel with its exact formula in float64, which is slow and simple. All maps are compared with it."""

    needs_coordinates: ClassVar[bool] = False
    """True if the kernel cannot be computed from dot products of the rows."""

    distance: ClassVar[Literal["euclidean", "matern", "cityblock", "chi2", "none"]] = "none"
    """The distance by which the rule `median` chooses γ."""

    non_negative: ClassVar[bool] = False
    """True if the kernel is defined only for inputs of at least 0."""

    @abstractmethod
    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        """Return the matrix k(x, y) with k(x, x) and k(y, y). This `Gram` can be the input of another kernel."""


class TiledKernel(Kernel):
    """A kernel that Nyström maps can compute between a tile of rows and fixed landmarks, in the map's dtype."""

    centred: ClassVar[bool] = False
    """True if `tile` subtracts a centre from rows and landmarks, which reduces rounding errors."""

    scaled: ClassVar[bool] = False
    """True if `tile` divides by a scale, because the kernel is unbounded."""

    roots: ClassVar[bool] = False
    """True if k-means uses the square roots of the columns, whose distances are closer to those of the kernel."""

    @abstractmethod
    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        """Return an object that computes k(·, landmarks)/scale for tiles of rows."""


class ShiftInvariantKernel(Kernel):
    """A kernel k(x − y) = E_ω[cos ω·(x − y)]: Fourier features draw from its frequency distribution."""

    @abstractmethod
    def frequencies(self, p: KernelParameters) -> FrequencyDistribution:
        """Return the distribution of ω."""


class DifferentiableKernel(Kernel):
    """A kernel that is differentiable in r² = ‖x − y‖², so that landmarks can be learned for it."""

    @abstractmethod
    def with_slope(self, squared: Floats, p: KernelParameters) -> tuple[Floats, Floats]:
        """Return k and dk/dr² at r² = `squared`."""


def spelled_out(name: object) -> object:
    """Return the name `polynomial` for scikit-learn's `poly`, and anything else unchanged."""
    return "polynomial" if name == "poly" else name


def as_coordinates(inputs: KernelInputs) -> Coordinates:
    """Return the inputs as coordinates, or raise an error if they are a Gram matrix."""
    if not isinstance(inputs, Coordinates):
        raise TypeError("this kernel needs coordinates")
    return inputs


def unit_gram(values: Floats) -> Gram:
    """Return the Gram matrix of a kernel with k(x, x) = 1."""
    return Gram(values, (np.ones(values.shape[0]), np.ones(values.shape[1])))
