"""Seconds and memory of work, and the table of the costs of an evaluation.

Short work is repeated, and memory is traced in a run that is not timed.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import numpy as np

from kafeat.evaluation.records import Estimate, Summary, estimate_of, known_mean
from kafeat.evaluation.summary import spell, spell_briefly

# Short work is run up to five times, for about a tenth of a second.
_RUNS, _ENOUGH = 5, 0.1
# Longer work is run once, as its seconds vary little.
_LONG = 2.0
MOST_TRACED = 5.0
"""Tracing slows down work that makes many small objects, so that work of so many seconds is not traced."""


def repeated(first: Callable[[], float], again: Callable[[], float] | None = None) -> float:
    """Return the median of the seconds of the runs of some work, each of which returns its own seconds.

    The first run, which finds cold caches and may be traced, counts only if it is long.
    """
    started = time.perf_counter()
    seconds = first()
    if time.perf_counter() - started >= _LONG:
        return seconds
    runs: list[float] = []
    started = time.perf_counter()
    while not runs or (len(runs) < _RUNS and time.perf_counter() - started < _ENOUGH):
        runs.append((again or first)())
    return float(np.median(runs))


def cost_of(work: Callable[[], object], again: Callable[[], object]) -> tuple[float, int | None]:
    """Return the seconds and the peak of memory of some work; None for the memory of long work.

    The memory is that of a run of its own, which is not timed.
    """
    seconds = repeated(seconds_of(work), seconds_of(again))
    if seconds >= MOST_TRACED:
        return seconds, None
    with PeakMemory() as memory:
        again()
    return seconds, memory.bytes


def seconds_of(work: Callable[[], object]) -> Callable[[], float]:
    """Return a call that does the work and returns its seconds."""

    def run() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return run


class PeakMemory:
    """The most bytes that NumPy and Python hold at once of what they allocate inside, in `bytes`.

    Memory that a library allocates without them, such as the cache of libsvm, is not seen.
    """

    def __init__(self) -> None:
        self.bytes = 0

    def __enter__(self) -> Self:
        self._starts = not tracemalloc.is_tracing()
        if self._starts:
            tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        return self

    @contextmanager
    def skipping(self) -> Iterator[None]:
        """Do not count the peak of what happens inside."""
        self._note()
        yield
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._note()
        if self._starts:
            tracemalloc.stop()

    def _note(self) -> None:
        if not tracemalloc.is_tracing():
            return
        self.bytes = max(self.bytes, tracemalloc.get_traced_memory()[1] - self._before)


# Two measured times that differ by less than this factor count as equal, and times below these seconds as none.
_SAME_TIME, _NO_TIME = 2.0, 0.01


@dataclass(frozen=True)
class CostRow:
    """One machine: its name, the width of its input, its score, and its costs, of which None is unknown or absent.

    Attributes:
        made: Seconds to make the features, or the kernel matrix, of the training rows.
        total: Seconds to fit, to make and to learn once.
        same_rows: The same with the training rows of the exact machine only; None for the raw columns.
        predict: Seconds to predict the test rows.
    """

    which: str
    name: str
    width: int
    score: Estimate
    fit: float | None
    made: float | None
    learn: float
    search: float
    total: float
    same_rows: float | None
    predict: float
    peak_bytes: float | None
    matrix_bytes: float


def cost_rows(summaries: Sequence[Summary]) -> list[CostRow]:
    """Return the rows of a report with a label: raw columns, maps, exact machines; equal ones once."""
    raws = _distinct([_row(entry, "raw", "raw columns", entry["n_features_in"]) for entry in summaries])
    maps = [_row(entry, "map", spell_briefly(entry), entry["n_components"]) for entry in summaries]
    exacts = _distinct([_row(entry, "exact", _exact_of(entry), entry["rows_exact"]) for entry in summaries])
    if len(exacts) == 1:
        exacts = [replace(exacts[0], name="exact kernel")]
    return [*raws, *maps, *exacts]


def _exact_of(entry: Summary) -> str:
    return f"exact kernel of {spell_briefly(entry)}"


def _row(entry: Summary, which: str, name: str, width: int) -> CostRow:
    same = {"map": "total_seconds_map_exact_rows", "exact": "total_seconds_exact"}.get(which)
    made = {"map": "transform_seconds_map", "exact": "kernel_seconds_exact"}.get(which)
    seconds = {
        key: known_mean(estimate_of(entry, f"{key}_seconds_{which}"))
        for key in ("learn", "search", "total", "predict")
    }
    fit = entry["fit_seconds"]["mean"] if which == "map" else None
    return CostRow(
        which, name, width, estimate_of(entry, f"score_{which}"), fit,
        None if made is None else known_mean(estimate_of(entry, made)), **seconds,
        same_rows=None if same is None else known_mean(estimate_of(entry, same)),
        peak_bytes=estimate_of(entry, f"peak_bytes_{which}")["mean"],
        matrix_bytes=known_mean(estimate_of(entry, f"matrix_bytes_{which}")),
    )  # fmt: skip


def _distinct(rows: Sequence[CostRow]) -> list[CostRow]:
    """Return the first of rows with the same width and score, which are one machine."""
    return list({(row.width, row.score["mean"]): row for row in reversed(rows)}.values())[::-1]


def findings(summaries: Sequence[Summary], entry: Summary) -> Iterator[str]:
    """Yield what the times of a map and its exact machine say: ratios that are no noise.

    Both totals are of the training rows of the exact machine.
    """
    near, exact = (
        known_mean(estimate_of(entry, f"total_seconds_{which}")) for which in ("map_exact_rows", "exact")
    )
    what = f"to fit, transform and learn once from {entry['rows_exact']:,} rows"
    yield from _ratio(what, spell(entry) if len(summaries) > 1 else "", near, exact)
    near, exact = (known_mean(estimate_of(entry, f"predict_seconds_{which}")) for which in ("map", "exact"))
    yield from _ratio("to predict the test rows", spell(entry) if len(summaries) > 1 else "", near, exact)


def _ratio(what: str, name: str, near: float, exact: float) -> Iterator[str]:
    """Say how many times as long the map or the exact machine took, unless that is noise."""
    least, most = sorted((near, exact))
    if most < _NO_TIME or most < _SAME_TIME * least:
        return
    features = f"features of {name}" if name else "features"
    slow, fast = ("exact machine", features) if exact == most else (features, "exact machine")
    times = f"{spell_number(most / least)} times as long as" if least else "longer than"
    yield (
        f"{what}, the {slow} took {times} the {fast} ({spell_seconds(most)} s against {spell_seconds(least)} s)"
    )


def spell_seconds(seconds: float | None) -> str:
    """Return seconds with the two digits that a measurement has, and nothing below a millisecond."""
    if seconds is None:
        return ""
    return "<0.001" if seconds < 0.001 else spell_number(seconds, 3)


def spell_number(value: float, most: int = 1) -> str:
    """Return a number with two digits, and at most so many decimals."""
    digits = next((n for n in range(most) if value * 10**n >= 10.0), most)
    return f"{value:,.{digits}f}"


def spell_megabytes(size: float | None) -> str:
    """Return bytes in MB."""
    return "" if size is None else spell_number(size / 1e6, 2)
