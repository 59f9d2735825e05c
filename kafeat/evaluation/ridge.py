"""Ridge regression in closed form: by normal equations that rows are added to, or by a kernel matrix.

min_W ‖Y − 1t − ZW‖² + λ‖W‖², the intercept t without a penalty: with centred columns, W = (ZᵀZ + λ)⁻¹ZᵀY. The penalty
is chosen by cross-validation over folds, whose normal equations are kept apart: the error on a fold follows from its
own sums, so all data are read once, and none of them are held. Penalties are relative to the mean eigenvalue of the
Gram matrix, so that one grid serves all.

Source: Hastie, Tibshirani & Friedman 2009, section 3.4.1 and 7.10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafeat.evaluation.folds import FOLDS
from kafeat.types import Array, Floats

PENALTIES = 10.0 ** np.arange(-7.0, 2.0)


@dataclass(frozen=True)
class Linear:
    """ŷ = Zw + intercept, w (D, k)."""

    w: Floats
    intercept: Floats
    penalty: float
    converged: bool = True

    def __call__(self, Z: Floats) -> Floats:
        predicted: Floats = Z @ self.w + self.intercept
        return predicted

    @property
    def nonzero(self) -> int:
        """Inputs that count."""
        return int((self.w != 0.0).any(axis=1).sum())


@dataclass
class _Sums:
    """Of some rows: their number, Σz, Σy, ZᵀZ, ZᵀY and Σ‖y‖²."""

    n: float
    z: Floats
    y: Floats
    zz: Floats
    zy: Floats
    yy: float

    def centred(self, z: Floats, y: Floats) -> tuple[Floats, Floats, float]:
        """ZᵀZ, ZᵀY and Σ‖y‖² about other means z (D,) and y (k,)."""
        outer = np.outer(self.z, z)
        zz = self.zz - outer - outer.T + self.n * np.outer(z, z)
        zy = self.zy - np.outer(self.z, y) - np.outer(z, self.y) + self.n * np.outer(z, y)
        return zz, zy, self.yy - 2.0 * float(self.y @ y) + self.n * float(y @ y)


class NormalEquations:
    """Sums over rows (n, D) and targets (n, k), fold by fold; memory D² for each, whatever the rows."""

    def __init__(self, width: int, targets: int) -> None:
        self._sums = [
            _Sums(
                0,
                np.zeros(width),
                np.zeros(targets),
                np.zeros((width, width)),
                np.zeros((width, targets)),
                0.0,
            )
            for _ in range(FOLDS)
        ]
        self._pivot: tuple[Floats, Floats] | None = None

    def add(self, Z: Floats, Y: Floats, folds: Array) -> None:
        """Add rows, each to its fold."""
        if not len(Z):
            return
        Z = Z.astype(np.float64)
        if self._pivot is None:
            # Sums about some point near the mean: about 0, a mean far from it would cost all digits.
            self._pivot = Z.mean(axis=0), Y.mean(axis=0)
        Z -= self._pivot[0]
        Y = Y - self._pivot[1]
        for fold, sums in enumerate(self._sums):
            z, y = Z[folds == fold], Y[folds == fold]
            sums.n += len(z)
            sums.z += z.sum(axis=0)
            sums.y += y.sum(axis=0)
            sums.zz += z.T @ z
            sums.zy += z.T @ y
            sums.yy += float((y**2).sum())

    def solve(self, standardize: bool = False) -> Linear:
        """The model with the best penalty; `standardize` divides every column by its standard deviation first."""
        if self._pivot is None:
            raise ValueError("no rows were added")
        total = _total(self._sums)
        scale = np.ones(len(total.z))
        if standardize:
            spread = np.sqrt(np.maximum(total.zz.diagonal() - total.z**2 / total.n, 0.0) / total.n)
            scale = np.where(spread > 1e-12 * np.abs(self._pivot[0]), spread, 1.0)
        relative = PENALTIES[int(np.argmin(self._errors(scale)))]
        z, y = total.z / total.n, total.y / total.n
        zz, zy, _ = total.centred(z, y)
        w, penalties = _path(zz / np.outer(scale, scale), zy / scale[:, None], total.n, np.array([relative]))
        slopes = w[0] / scale[:, None]
        pivot_z, pivot_y = self._pivot
        return Linear(slopes, pivot_y + y - (pivot_z + z) @ slopes, float(penalties[0]))

    def _errors(self, scale: Floats) -> Floats:
        """Σ of squared errors on the folds, each with the model of the others, for every penalty."""
        errors = np.zeros(len(PENALTIES))
        for i, held in enumerate(self._sums):
            rest = _total([sums for j, sums in enumerate(self._sums) if j != i])
            if not (rest.n and held.n):
                continue
            z, y = rest.z / rest.n, rest.y / rest.n
            zz, zy, _ = rest.centred(z, y)
            path, _ = _path(zz / np.outer(scale, scale), zy / scale[:, None], rest.n, PENALTIES)
            zz, zy, yy = held.centred(z, y)
            for p, scaled in enumerate(path):
                w = scaled / scale[:, None]
                errors[p] += yy - 2.0 * float((w * zy).sum()) + float((w * (zz @ w)).sum())
        return errors


def _total(parts: list[_Sums]) -> _Sums:
    first = parts[0]
    total = _Sums(first.n, first.z.copy(), first.y.copy(), first.zz.copy(), first.zy.copy(), first.yy)
    for part in parts[1:]:
        total.n += part.n
        total.z += part.z
        total.y += part.y
        total.zz += part.zz
        total.zy += part.zy
        total.yy += part.yy
    return total


def _path(zz: Floats, zy: Floats, n: float, relative: Floats) -> tuple[list[Floats], Floats]:
    """W for every penalty, which are relative to the mean eigenvalue of the Gram matrix, and the penalties."""
    penalties = relative * _size(float(np.trace(zz)) / n)
    return [_solved(zz, penalty, zy) for penalty in penalties], penalties


def _size(mean_eigenvalue: float, rounding: float = 0.0) -> float:
    """What penalties are relative to: of inputs that are all alike there is nothing, and any size does."""
    return (
        mean_eigenvalue if mean_eigenvalue > max(rounding, float(np.finfo(np.float64).tiny) * 1e30) else 1.0
    )


def _solved(A: Floats, penalty: float, B: Floats) -> Floats:
    """(A + λ)⁻¹B by Cholesky's factor: nine of them take a fifth of the time of one decomposition into eigenvectors."""
    from scipy.linalg import cho_factor, cho_solve

    A = A.copy()
    A.flat[:: len(A) + 1] += penalty
    solved: Floats = cho_solve(cho_factor(A, overwrite_a=True, check_finite=False), B, check_finite=False)
    return solved


@dataclass(frozen=True)
class KernelModel:
    """ŷ = k(x, ·)ᵀα + intercept, α (n, k), for the rows that it was trained on."""

    alpha: Floats
    intercept: Floats
    penalty: float
    converged: bool = True

    def __call__(self, K: Floats) -> Floats:
        """Predictions (t, k) from the kernel K (t, n) of test rows with the training rows."""
        predicted: Floats = K @ self.alpha + self.intercept
        return predicted

    @property
    def nonzero(self) -> int:
        """Training rows that count."""
        return int((self.alpha != 0.0).any(axis=1).sum())


def kernel_ridge(K: Floats, Y: Floats, folds: Array) -> KernelModel:
    """The same model with a kernel matrix K (n, n) in the place of features, and the same penalties."""
    errors = np.zeros(len(PENALTIES))
    for fold in range(FOLDS):
        held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if len(held) and len(rest):
            for p, model in enumerate(_kernel_path(K[np.ix_(rest, rest)], Y[rest], PENALTIES)):
                errors[p] += float(((model(K[np.ix_(held, rest)]) - Y[held]) ** 2).sum())
    return _kernel_path(K, Y, PENALTIES[[int(np.argmin(errors))]])[0]


def _kernel_path(K: Floats, Y: Floats, relative: Floats) -> list[KernelModel]:
    means, y = K.mean(axis=0), Y.mean(axis=0)
    centred = K - means - means[:, None] + means.mean()
    # what is left of a constant kernel is rounding, and no size to go by
    rounding = len(K) * np.finfo(np.float64).eps * float(np.abs(K.diagonal()).max(initial=0.0))
    penalties = relative * _size(float(np.trace(centred)) / len(K), rounding)
    models = []
    for penalty in penalties:
        # Σα = 0, as 1 is an eigenvector of the centred matrix: of centring new rows only a constant is left.
        alpha = _solved(centred, penalty, Y - y)
        models.append(KernelModel(alpha, y - means @ alpha, float(penalty)))
    return models
