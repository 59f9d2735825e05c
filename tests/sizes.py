"""How large tests are: as small as their property needs in `make test`, and larger in `make test-all`."""

import os
from collections.abc import Callable, Iterable
from datetime import date
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")
LARGE = os.environ.get("TESTS_SIZES") == "large"
SHARE = 5
"""Of what is sampled, `make test` takes one in so many."""
SEED = "TESTS_SEED"


def seed() -> str:
    """Return the seed of what is sampled, the day: workers, which begin later, take that of the first process."""
    return os.environ.setdefault(SEED, str(date.today().toordinal()))


def drawn(case: object) -> bool:
    """Return true if a case is among those of the day."""
    return crc32(f"{seed()} {case}".encode()) % SHARE == 0


def some(cases: Iterable[T]) -> list[T]:
    """Return those of the cases inside of one test that it takes: all of them in `make test-all`."""
    return [case for case in cases if LARGE or drawn(case)]


def size(small: int, large: int) -> int:
    """Return the size for this run."""
    return large if LARGE else small


def sampled(*values: object) -> Iterable[object]:
    """Return values of a parameter, of whose cases `make test` runs a share, beside others that it runs all of."""
    import pytest  # which processes of commands do without

    return (pytest.param(value, marks=pytest.mark.sampled) for value in values)


def shorten_searches(patch: Callable[[object, str, object], None]) -> None:
    """Give a search no more trees, and its screen and its last trials no more rows, than it needs to show its rules."""
    from kafeat.study.tune import rungs, screen, space
    from kafeat.study.tune.tune import Tuner

    trees = size(16, 32)
    patch(space, "_TREES", trees)
    patch(space, "_LEARNED", 0.1 * trees)
    fewer = {name: [{**one, "n_trees": trees} for one in steps] for name, steps in space.GROWTHS.items()}
    patch(space, "GROWTHS", fewer)
    patch(rungs, "_SCORED", size(60, 3000))
    patch(screen, "EXACT_ROWS", size(60, 100))
    patch(space, "SMOOTH", space.SMOOTH if LARGE else ("rbf", "laplacian"))
    patch(screen, "_PARTS", size(2, 3))
    patch(screen, "_PAIRS", size(1, 2))
    patch(Tuner, "_boost", lambda *_: None)  # beside the choice, on which it has no influence
