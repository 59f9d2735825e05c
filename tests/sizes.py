"""How large tests are: as small as their property needs in `make test`, and larger in `make test-all`."""

import os
from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

LARGE = os.environ.get("TESTS_SIZES") == "large"


def size(small: int, large: int) -> int:
    """Return the size for this run."""
    return large if LARGE else small


def sampled(*values: object) -> Iterable[ParameterSet]:
    """Return values of a parameter, of whose cases `make test` runs a share, beside others that it runs all of."""
    return (pytest.param(value, marks=pytest.mark.sampled) for value in values)


SHARE = 5
"""Of the cases that are marked `sampled`, `make test` runs one in so many."""
TREES = size(16, 32)
"""Trees of the candidates of a search."""
SCORED = size(150, 3000)
"""Rows that the last trials of a search score."""
