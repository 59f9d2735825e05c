"""Draw frequencies of a distribution, fit them, and turn them into a transform of random cosine features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from kafeat.contract.step import InTwos, Sample, parameter
from kafeat.errors import DataError
from kafeat.maths.fourier.learning import fit_frequencies
from kafeat.maths.fourier.spectra import FrequencyDistribution, IsotropicDistribution
from kafeat.maths.fourier.structured import (
    StructuredAngles,
    draw_structured,
    structured_shapes,
)
from kafeat.maths.fourier.supervised import fit_for_label
from kafeat.maths.fourier.transform import (
    Angles,
    CosineTransform,
    DenseAngles,
    Features,
    Warp,
)
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import RbfKernel
from kafeat.types import Array, ArrayOf, Floats, Shape, Shapes, State

Directions = Literal["iid", "orthogonal"]
DIRECTIONS = parameter("orthogonal", "how the directions are drawn")
Frequencies = Literal["iid", "orthogonal", "structured", "fastfood", "qmc", "learned", "supervised"]
Weights = Literal["uniform", "fitted"]

FREQUENCIES = parameter(
    "learned",
    "how the frequencies are drawn, or learned from the sample (least error; slow to fit on wide inputs)",
)
FEATURES = parameter("paired", "cosine and sine of each frequency, or cosines with random phases")
WEIGHTS = parameter("fitted", "the same weight for every frequency, or weights fitted to the sample")

# If the distribution is not isotropic, learning starts from Sobol points, but only with at most this many inputs.
_MOST_QMC_INPUTS = 2000
# Below this padded width, and with at most this many numbers, a matrix is faster than Hadamard transforms.
_LEAST_STRUCTURED = 128
_MOST_WRITTEN_OUT = 1 << 23


class RandomCosines(InTwos):
    """Base class of recipes with random cosine features. Each subclass declares these parameters in its own order."""

    twos = ("features", "paired", "for paired features")

    if TYPE_CHECKING:
        frequencies: Frequencies
        weights: Weights
        features: Features

    def draw(self, law: FrequencyDistribution, X: Floats, sample: Sample, rng: np.random.Generator) -> State:
        """Return the state: frequencies or their factors, phases of offset features, weights and held-out errors.

        X (n, d) are the rows of the sample, in the coordinates to which the frequencies belong.
        """
        of_draw, of_phases, of_fit = rng.spawn(3)
        m, d, frequencies = self.n_drawn, X.shape[1], self.frequencies
        state: dict[str, Array] = {}
        if self.features == "offset":
            state["phases"] = of_phases.uniform(0.0, 2.0 * np.pi, size=m)
        weigh = self.weights == "fitted"
        if frequencies in ("structured", "fastfood"):
            state |= draw_structured(cast(IsotropicDistribution, law), frequencies, m, d, of_draw)
            drawn = StructuredAngles.matrix(state, d) if weigh else np.empty((0, d))
        else:
            drawn = _draw(law, frequencies, m, d, of_draw)
        if frequencies == "supervised":
            phases, labels = state.get("phases"), sample.needed_label
            fitted = fit_for_label(drawn, X, labels, of_fit, phases=phases, weigh=weigh, keys=sample.keys)
        else:
            fitted = fit_frequencies(drawn, law, X, of_fit, learn=frequencies == "learned", weigh=weigh)
        if frequencies not in ("structured", "fastfood"):
            state["frequencies"] = fitted.frequencies
        if fitted.phases is not None:
            state["phases"] = fitted.phases
        if weigh:
            state["weights"] = np.full(m, 1.0 / m) if fitted.weights is None else fitted.weights
        if fitted.error_drawn is not None:
            state["error_drawn"], state["error_kept"] = map(np.array, (fitted.error_drawn, fitted.error_kept))
        return state

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        m, fitted, frequencies = self.n_drawn, self.weights == "fitted", self.frequencies
        shapes: dict[str, Shape | ArrayOf] = {"phases": (m,)} if self.features == "offset" else {}
        if frequencies == "structured" or frequencies == "fastfood":
            shapes |= structured_shapes(state, frequencies, m, n_features_in)
        else:
            shapes["frequencies"] = (m, n_features_in)
        if fitted:
            shapes["weights"] = ArrayOf((m,), sign="of at least 0")
        if "error_drawn" in state and (fitted or frequencies in ("learned", "supervised")):
            shapes |= {"error_drawn": (), "error_kept": ()}
        return shapes


def _draw(
    law: FrequencyDistribution, frequencies: Frequencies, m: int, d: int, rng: np.random.Generator
) -> Floats:
    if frequencies == "iid":
        return law.iid(m, d, rng)
    if frequencies == "qmc":
        return law.qmc(m, d, rng)
    if isinstance(law, IsotropicDistribution):
        return law.orthogonal(m, d, rng)
    return law.qmc(m, d, rng) if d <= _MOST_QMC_INPUTS else law.iid(m, d, rng)


def bind_random_features(
    state: State, d: int, dtype: np.dtype[Any], warp: Warp | None = None, input_scale: Floats | None = None
) -> CosineTransform:
    """Return the transform of a state for d inputs, each of which is multiplied by its `input_scale` (d,) first."""
    angles: Angles
    padded = 0 if "frequencies" in state else int(state["signs"].shape[-1])
    if padded >= _LEAST_STRUCTURED or padded * len(state.get("radii", ())) > _MOST_WRITTEN_OUT:
        angles = StructuredAngles(state, d, dtype, input_scale)
    else:
        matrix = state.get("frequencies")
        matrix = StructuredAngles.matrix(state, d) if matrix is None else matrix
        angles = DenseAngles(matrix if input_scale is None else matrix * input_scale, dtype)
    return CosineTransform(
        angles, d, dtype, phases=state.get("phases"), weights=state.get("weights"), warp=warp
    )


def draw_directions(how: Directions, m: int, d: int, rng: np.random.Generator) -> Floats:
    """Return m draws of w ~ N(0, I), (m, d). Orthogonal and independent draws have the same distribution of norms."""
    normal = RbfKernel().frequencies(KernelParameters(gamma=0.5))  # rbf has the frequencies N(0, 2γ I)
    return normal.orthogonal(m, d, rng) if how == "orthogonal" else normal.iid(m, d, rng)


def length_scales(length_scale: float | tuple[float, ...], d: int) -> Floats | None:
    """Return 1/ℓ for each of d inputs, (d,), or None if ℓ is 1."""
    if length_scale == 1.0:
        return None
    scales = np.atleast_1d(np.asarray(length_scale, dtype=np.float64))
    if len(scales) not in (1, d):
        raise DataError(f"length_scale: expected one number or {d}, one for each input, got {len(scales)}")
    return 1.0 / np.broadcast_to(scales, (d,))
