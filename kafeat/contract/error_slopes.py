"""The slopes at which theorems let the error of a map fall with its number of outputs."""

from __future__ import annotations

from typing import NamedTuple


class ErrorSlopes(NamedTuple):
    """Slopes of log ‖K − K̂‖ over log n_components in two norms; a second one holds where the eigengap of K is large."""

    frobenius: tuple[float, ...] = ()
    spectral: tuple[float, ...] = ()


NO_THEOREM = ErrorSlopes()
MONTE_CARLO = ErrorSlopes((-0.5,), (-0.5,))
"""Of an average over independent random features: 1/√D in every norm."""
