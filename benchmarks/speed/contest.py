"""Contests: all sides take turns, round after round."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Sample = Mapping[str, float]
"""The cost of one run of one side: seconds, and peak_mb if it was a process."""
Side = Callable[[], Sample]


@dataclass(frozen=True)
class Setting:
    """The thoroughness of a run, and the folder of its files."""

    folder: Path
    cores: int
    rounds: int
    quick: bool


@dataclass(frozen=True)
class Line:
    """A line of the table: what is compared with what.

    The ratio is theirs/ours, at least `target`; with `share`, ours/theirs, at most `target`. Without `theirs`, ours is
    judged by itself, at most `target`.
    """

    job: str
    against: str
    ours: str
    theirs: str | None
    target: float | None = None
    share: bool = False
    quantity: str = "seconds"


@dataclass(frozen=True)
class Contest:
    """Sides that take turns, and the lines that come of it. `prepare` makes inputs, fits, and checks both results."""

    name: str
    lines: tuple[Line, ...]
    prepare: Callable[[Setting], dict[str, Side]]
    full_only: bool = False


_LEAST_SECONDS = 0.2
"""Calls are repeated for as long: one short call tells little."""


def timed(work: Callable[[], object]) -> Side:
    """Return a side that tells the median seconds of a call; what it returns is freed afterwards."""

    def side() -> Sample:
        taken: list[float] = []
        while sum(taken) < _LEAST_SECONDS:
            started = time.perf_counter()
            result = work()
            taken.append(time.perf_counter() - started)
            del result
        return {"seconds": statistics.median(taken)}

    return side


def take_turns(sides: Mapping[str, Side], rounds: int) -> dict[str, list[Sample]]:
    """One run of every side that is not counted, then `rounds` rounds of all sides."""
    for side in sides.values():
        side()
    runs: dict[str, list[Sample]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            runs[name].append(side())
    return runs


def require(error: float, tolerance: float, what: str) -> None:
    """Stop where a side computed something else than it should."""
    if not error <= tolerance:
        raise AssertionError(f"{what}: expected an error of at most {tolerance:.3g}, got {error:.3g}")
