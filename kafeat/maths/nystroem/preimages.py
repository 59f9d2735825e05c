"""The way back from Nyström features to rows, learned by ridge regression.

A feature vector need not be the image of any row, and the kernel says little about how to find one that is near. But
the rows themselves are targets: the regression of every column on the features is a function of the kernel's own space.

Source: Bakır, Weston & Schölkopf, NIPS 2003 (learning to find pre-images); scikit-learn's KernelPCA does so too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafeat.maths.held_out_ridge import fit_held_out_ridge, hold_out
from kafeat.types import Array, Floats

_MOST_ROWS = 6_000


def learn_preimages(
    X: Floats, features: Callable[[Array], Floats], rng: np.random.Generator
) -> dict[str, Floats]:
    """Fit rows X (n, d), or some of them, by their features, with the penalty that fits held-out rows best."""
    train, held = hold_out(len(X), rng, _MOST_ROWS)
    if not len(held):  # fewer than five rows
        held = train
    ridge = fit_held_out_ridge(features(train), X[train], features(held), X[held])
    return {"preimages": ridge.weights, "preimage_of_0": ridge.intercept}
