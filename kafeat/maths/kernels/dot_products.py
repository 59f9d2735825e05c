"""Kernels of dot products and of the angle between rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import Kernel, KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import KernelTile, Landmarks, product_tile
from kafeat.types import Floats


class DotProductKernel(Kernel):
    """A kernel that is a function of x·y."""

    @abstractmethod
    def of_dots(self, dots: Floats, p: KernelParameters) -> Floats:
        """Return the kernel of rows with these dot products."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = inputs.squared_norms
        return Gram(self.of_dots(inputs.dots, p), (self.of_dots(x, p), self.of_dots(y, p)))


class LinearKernel(DotProductKernel, TiledKernel):
    """x·y."""

    scaled = True

    def of_dots(self, dots: Floats, p: KernelParameters) -> Floats:
        return dots

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        # a product of the size of `scale` may overflow although its factors do not, so a factor is divided
        return product_tile(landmarks.doubles / landmarks.scale, landmarks.dtype)


class PolynomialKernel(DotProductKernel, TiledKernel):
    """(γ x·y + c₀)^degree."""

    scaled = True

    def of_dots(self, dots: Floats, p: KernelParameters) -> Floats:
        return (p.gamma * dots + p.coef0) ** p.degree

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        root = landmarks.scale ** (1.0 / p.degree)

        def finish(dots: Floats) -> None:
            dots += dots.dtype.type(p.coef0 / root)
            np.power(dots, p.degree, out=dots)

        return product_tile(landmarks.doubles * (p.gamma / root), landmarks.dtype, finish)


class SigmoidKernel(DotProductKernel, TiledKernel):
    """tanh(γ x·y + c₀): not positive definite."""

    def of_dots(self, dots: Floats, p: KernelParameters) -> Floats:
        return np.tanh(p.gamma * dots + p.coef0)

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        def finish(dots: Floats) -> None:
            dots *= dots.dtype.type(p.gamma)
            dots += dots.dtype.type(p.coef0)
            np.tanh(dots, out=dots)

        return product_tile(landmarks.rows, landmarks.dtype, finish)


class SeriesKernel(DotProductKernel, TiledKernel):
    """Σ_n a_n (γ x·y)^n, a_n ≥ 0: every dot-product kernel on spheres of all dimensions (Schoenberg)."""

    scaled = True

    def of_dots(self, dots: Floats, p: KernelParameters) -> Floats:
        return np.polynomial.polynomial.polyval(p.gamma * dots, np.array(p.coefficients))

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        lower, last, factor = scaled_series(p.coefficients, landmarks.scale)

        def finish(dots: Floats) -> None:
            # Horner's rule
            total = np.full_like(dots, last)
            for coefficient in reversed(lower):
                total *= dots
                total += dots.dtype.type(coefficient)
            dots[...] = total

        return product_tile(landmarks.doubles * (p.gamma * factor), landmarks.dtype, finish)


def scaled_series(coefficients: Sequence[float], scale: float) -> tuple[list[float], float, float]:
    """Return b_0 … b_{N − 1}, b_N and f with Σ b_n (f t)^n = Σ a_n t^n/scale. f keeps powers in range."""
    *lower, last = np.trim_zeros(np.array(coefficients), "b")
    factor = scale ** (-1.0 / max(len(lower), 1))
    # a scale above the range of the dtype is divided out before the multiplication
    rest = [float(a * np.exp(-(np.log(scale) + n * np.log(factor)))) for n, a in enumerate([*lower, last])]
    return rest[:-1], rest[-1], factor


class ExponentialKernel(DotProductKernel):
    """exp(γ x·y)."""

    def of_dots(self, dots: Floats, p: KernelParameters) -> Floats:
        return np.exp(p.gamma * dots)


class CosineKernel(TiledKernel):
    """x·y/(‖x‖‖y‖), and 0 where one of the rows is 0."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = (np.sqrt(norms) for norms in inputs.squared_norms)
        scale = np.where(x > 0, x, np.inf)[:, None] * np.where(y > 0, y, np.inf)[None, :]
        return Gram(inputs.dots / scale, ((x > 0).astype(float), (y > 0).astype(float)))

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        norms = np.linalg.norm(landmarks.doubles, axis=1, keepdims=True)
        units = landmarks.rows / np.where(norms > 0.0, norms, 1.0)
        return KernelTile(units, landmarks.dtype, self._write)

    @staticmethod
    def _write(X: Floats, landmarks: Floats, out: Floats, scratch: Floats) -> None:
        # Divide by powers of two near the largest entries, which is exact, so that squares stay within the dtype.
        exponents = np.frexp(np.abs(X).max(axis=1, initial=0.0))[1]
        most = np.finfo(X.dtype).maxexp - 2
        units = np.ldexp(X.dtype.type(1.0), -exponents.clip(-most, most))
        scaled = np.multiply(X, units[:, None], out=scratch[0])
        norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        np.matmul(scaled, landmarks.T, out=out)
        out /= np.where(norms > 0.0, norms, X.dtype.type(1.0))[:, None]


class ArcCosineKernel(Kernel):
    """Order 0: 1 − θ/π; order 1: ‖x‖‖y‖(sin θ + (π − θ) cos θ)/π. θ is the angle, or π/2 where a row is 0."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = (np.sqrt(norms) for norms in inputs.squared_norms)
        lengths = x[:, None] * y[None, :]
        # sin²(θ/2) from distances: an arc cosine would lose half of the digits of a small angle.
        chords = inputs.squared_distances - (x[:, None] - y[None, :]) ** 2
        half = np.divide(chords, 4.0 * lengths, out=np.full_like(lengths, 0.5), where=lengths > 0)
        half = np.clip(half, 0.0, 1.0)
        angles = 2.0 * np.arctan2(np.sqrt(half), np.sqrt(1.0 - half))
        if p.order == 0:
            diagonals = tuple(np.where(norms > 0, 1.0, 0.5) for norms in (x, y))
            return Gram(1.0 - angles / np.pi, (diagonals[0], diagonals[1]))
        values = lengths * (np.sin(angles) + (np.pi - angles) * np.cos(angles)) / np.pi
        return Gram(values, inputs.squared_norms)
