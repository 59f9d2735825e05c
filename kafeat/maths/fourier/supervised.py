"""Frequencies trained for a label: the kernel itself is learned, not only how well it is approximated.

The frequencies and a linear model of the features are trained together to reduce the squared error of the label. Ridge
regressions on held-out rows choose where to start and how fast to learn. The trained frequencies are kept only if they
predict held-out rows clearly better than the original draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from kafeat.contract.folds import RowKeys
from kafeat.maths.fourier.learning import (
    BATCH,
    Adam,
    FittedFrequencies,
    batches,
    cycle,
    frequency_unit,
    gradients,
    in_units,
    middle_of,
    pull_in,
    waves,
)
from kafeat.maths.held_out_ridge import HeldOutRidge, clearly_better, fit_held_out_ridge, hold_out
from kafeat.maths.task import kind_to_learn, task_of
from kafeat.types import Array, Floats

# If there are fewer rows than this, the drawn frequencies are not trained.
_LEAST_ROWS = 200
_MOST_ROWS = 20_000
# If there are more classes than this, the targets are this many random mixtures of the classes.
_MOST_TARGETS = 128
# A ridge regression on D features takes D³ operations, so a large D gets fewer rows.
_RIDGE_BUDGET, _LEAST_RIDGE_ROWS = 1e13, 1000

# Multiples of γ to start from. Training changes the width of the kernel, so the best start need not be γ itself.
_STARTS = (0.1, 0.3, 1.0, 3.0)
# Learning rates to try for ω, in units of a typical coordinate of ω.
_RATES = (0.15, 0.5)
_MODEL_RATE = 0.03
# The penalty while training, in units of the variance of a wave. With a smaller penalty, coefficients grow and cancel
# each other, and the frequencies learn little.
_PENALTY = 0.1
_WAVE_VARIANCE = 0.5
_TRIAL_STEPS, _STEPS, _LEAST_STEPS = 1000, 4000, 100
# The most floating-point operations for training: about ten seconds of one core.
_BUDGET = 2.5e11


@dataclass(frozen=True)
class _Model:
    """Frequencies (m, d), amplitudes (m,) of their waves, and a linear model of these features."""

    frequencies: Floats
    amplitudes: Floats
    ridge: HeldOutRidge


@dataclass(frozen=True)
class _Data:
    """Training rows X (n, d) with targets Y (n, k), held-out rows, and the phases of offset features."""

    X: Floats
    Y: Floats
    held_rows: Floats
    held_targets: Floats
    phases: Floats | None

    def fit(self, frequencies: Floats, amplitudes: Floats, least_penalty: float = 0.0) -> _Model:
        """Fit a ridge regression on the features of these frequencies."""
        n = self.ridge_rows(len(frequencies))
        ridge = fit_held_out_ridge(
            self._features(self.X[:n], frequencies, amplitudes),
            self.Y[:n],
            self._features(self.held_rows, frequencies, amplitudes),
            self.held_targets,
            least_penalty,
        )
        return _Model(frequencies, amplitudes, ridge)

    def _features(self, X: Floats, frequencies: Floats, amplitudes: Floats) -> Floats:
        Z = waves(X, frequencies, self.phases)
        return Z * np.tile(amplitudes, Z.shape[1] // len(frequencies))

    def ridge_rows(self, m: int) -> int:
        """Return the number of rows for a ridge regression on the features of m frequencies."""
        width = float(2 * m if self.phases is None else m)
        return min(len(self.X), max(_LEAST_RIDGE_ROWS, int(_RIDGE_BUDGET / width**3)))


def fit_for_label(
    drawn: Floats,
    X: Floats,
    labels: Array,
    rng: np.random.Generator,
    *,
    phases: Floats | None,
    weigh: bool,
    keys: RowKeys | None = None,
) -> FittedFrequencies:
    """Train the drawn frequencies (m, d) to predict the labels (n,) of the rows X (n, d).

    Both errors of the result are the unexplained shares of the label's variance on held-out rows. The weight of a
    frequency is proportional to the norm of its coefficients. Weights are None if the drawn frequencies are kept.
    """
    if len(X) < _LEAST_ROWS:
        return FittedFrequencies(drawn, None, None, None)
    of_split, of_targets, of_training = rng.spawn(3)
    train, held = hold_out(len(X), of_split, _MOST_ROWS, keys)
    middle, unit = middle_of(X, train), frequency_unit(drawn)
    Y = _targets(labels, train, of_targets)
    data = _Data(
        in_units(X, train, middle, unit, np.float32),
        Y[train],
        in_units(X, held, middle, unit, np.float32),
        Y[held],
        None if phases is None else phases + drawn @ middle,
    )
    plain = data.fit(drawn / unit, np.ones(len(drawn)))
    trained = _search(data, plain, of_training, weigh)
    variance = float((data.held_targets**2).sum(axis=1).mean()) or 1.0
    before, after = plain.ridge.error / variance, trained.ridge.error / variance
    if not clearly_better(trained.ridge.errors, plain.ridge.errors):
        return FittedFrequencies(drawn, None, before, before)
    frequencies, weights = trained.frequencies * unit, trained.amplitudes**2
    moved = None if data.phases is None else np.mod(data.phases - frequencies @ middle, 2.0 * np.pi)
    return FittedFrequencies(frequencies, weights / weights.sum() if weigh else None, before, after, moved)


def _targets(labels: Array, train: Array, rng: np.random.Generator) -> Floats:
    """Return targets (n, k) with mean 0 and variance 1 on the training rows.

    If there are very many classes, each gets a random direction, which keeps distances (Johnson & Lindenstrauss 1984).
    """
    task = task_of(labels, kind_to_learn(labels))
    if task.classes is None or len(task.classes) <= _MOST_TARGETS:
        Y = task.targets(labels)
    else:
        codes = rng.standard_normal((len(task.classes), _MOST_TARGETS)) / np.sqrt(_MOST_TARGETS)
        Y = codes[task.numbers(labels)]
    Y = Y - Y[train].mean(axis=0)
    spread = float(np.sqrt((Y[train] ** 2).sum(axis=1).mean()))
    return Y / (spread or 1.0)


def _search(data: _Data, plain: _Model, rng: np.random.Generator, weigh: bool) -> _Model:
    """Try starts and learning rates, train longer with the best, and return the model that is best on held-out rows."""
    starts = [data.fit(plain.frequencies * np.sqrt(factor), plain.amplitudes, _PENALTY) for factor in _STARTS]
    start = min(starts, key=attrgetter("ridge.error"))
    share = min(1.0, _BUDGET / ((len(_RATES) * _TRIAL_STEPS + _STEPS) * _step_cost(data, plain)))
    trial_steps, steps = (max(_LEAST_STEPS, int(share * n)) for n in (_TRIAL_STEPS, _STEPS))
    trials = [data.fit(*_train(data, start, rate, trial_steps, rng, weigh)) for rate in _RATES]
    best = int(np.argmin([trial.ridge.error for trial in trials]))
    final = data.fit(*_train(data, start, _RATES[best], steps, rng, weigh))
    return min(trials[best], final, key=attrgetter("ridge.error"))


def _step_cost(data: _Data, plain: _Model) -> float:
    """Return the number of floating-point operations of one training step."""
    (m, d), k = plain.frequencies.shape, data.Y.shape[1]
    return float(BATCH * m * (4 * d + 12 * k + 200) + 10 * m * (d + 2 * k))


def _train(
    data: _Data, start: _Model, rate: float, steps: int, rng: np.random.Generator, weigh: bool
) -> tuple[Floats, Floats]:
    """Train the frequencies of `start` by Adam (Kingma & Ba 2015). Return the frequencies and their amplitudes (m,)."""
    m = len(start.frequencies)
    X, Y = pull_in(data.X), data.Y.astype(np.float32)
    phases = None if data.phases is None else data.phases.astype(np.float32)
    W, V, b = arrays = [
        array.astype(np.float32) for array in (start.frequencies, start.ridge.w, start.ridge.intercept)
    ]
    decay = np.float32(_PENALTY * _WAVE_VARIANCE)
    # A median, because heavy-tailed draws have no finite variance. For normal draws, `unit` is the standard deviation.
    unit = float(np.median(np.abs(start.frequencies))) / 0.6745
    size = max(float(np.abs(V).mean()), 1.0 / float(np.sqrt(V.size)))
    adam = Adam(arrays, [rate * unit, _MODEL_RATE * size, _MODEL_RATE * size])
    for step, rows in enumerate(batches(len(X), steps, rng)):
        by_W, by_V, by_b = gradients(W, V, b, X[rows], Y[rows], phases)
        adam.step([by_W, by_V + decay * V, by_b], cycle(step / steps))
    strength = np.sqrt((V.reshape(-1, m, V.shape[1]).astype(np.float64) ** 2).sum(axis=(0, 2)))
    amplitudes = np.sqrt(strength / strength.mean()) if weigh and strength.any() else start.amplitudes
    return W.astype(np.float64), amplitudes
