"""Seconds and memory of work, and the table of the costs of an evaluation.

Short work is repeated, and memory is traced in a run that is not timed.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from kafeat.study.records import Summary
from kafeat.study.summary import score_name, spell, spell_briefly, stated_mean

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


def cost_of(
    first: Callable[[], float], again: Callable[[], float], memory: PeakMemory, traced: bool = False
) -> tuple[float, int | None]:
    """Return the seconds and the peak of memory of some work, each run of which returns its own seconds.

    The memory is that of the first run if this may be `traced`. Else it is that of a run of its own, which is not
    timed, and None for long work.
    """

    def first_run() -> float:
        with memory if traced else nullcontext():
            return first()

    seconds = repeated(first_run, again)
    if not traced and seconds >= MOST_TRACED:
        return seconds, None
    if not traced:
        with memory:
            again()
    return seconds, memory.bytes


def timed(work: Callable[[], object]) -> Callable[[], float]:
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


class TableColumn(NamedTuple):
    """A head and its cells. Columns with the largest `idle` are dropped first, those with 0 never."""

    head: str
    cells: Sequence[str]
    idle: int = 0


# The keys of a summary, where they are not those of the machine.
_KEYS = {
    "fit": {"map": "fit_seconds"},
    "made": {"map": "transform_seconds_map", "exact": "kernel_seconds_exact"},
    "same_rows": {"map": "total_seconds_map_exact_rows", "exact": "total_seconds_exact"},
}


@dataclass(frozen=True)
class CostRow:
    """One machine: raw, map or exact, its name, the width of its input, and the summary that has its costs."""

    which: str
    name: str
    width: int
    entry: Summary

    def of(self, cost: str) -> float | None:
        """Return the mean of a cost; None if it is unknown or absent.

        Beside the costs of the records there are `fit`, `made`, the seconds to make the features or the kernel matrix,
        and `same_rows`, the total with the training rows of the exact machine only.
        """
        key = _KEYS[cost].get(self.which) if cost in _KEYS else f"{cost}_{self.which}"
        return None if key is None else self.entry[key]["mean"]


def cost_rows(summaries: Sequence[Summary]) -> list[CostRow]:
    """Return the rows of a report with a label: raw columns, maps, exact machines; equal ones once."""
    raws = _distinct([CostRow("raw", "raw columns", one["n_features_in"], one) for one in summaries])
    maps = [CostRow("map", spell_briefly(one), one["n_components"], one) for one in summaries]
    exacts = _distinct([
        CostRow("exact", f"exact kernel of {spell_briefly(one)}", one["rows_exact"], one) for one in summaries
    ])  # fmt: skip
    if len(exacts) == 1:
        exacts = [replace(exacts[0], name="exact kernel")]
    return [*raws, *maps, *exacts]


def cost_table(summaries: Sequence[Summary], same_rows: str | None) -> list[TableColumn]:
    """Return what each machine costs. `same_rows` is the head of the total on the rows of the exact machine."""
    rows = cost_rows(summaries)

    def column(head: str, spell: Callable[[float | None], str], cost: str, idle: int = 0) -> TableColumn:
        return TableColumn(head, [spell(row.of(cost)) for row in rows], idle)

    return [
        TableColumn("on", [row.name for row in rows]),
        TableColumn("columns", [f"{row.width:,}" for row in rows], 3),
        TableColumn(score_name(summaries[0]), [spell_score_of(row.entry, f"score_{row.which}") for row in rows], 4),
        column("fit s", spell_seconds, "fit", 2),
        column("Z or K s", spell_seconds, "made", 2),
        column("learn s", spell_seconds, "learn_seconds", 2),
        column("total s", spell_seconds, "total_seconds"),
        *([] if same_rows is None else [column(same_rows, spell_seconds, "same_rows")]),
        column("search s", lambda seconds: spell_seconds(seconds or None), "search_seconds", 5),
        column("predict s", spell_seconds, "predict_seconds"),
        column("peak MB", spell_megabytes, "peak_bytes", 1),
        column("Z or K MB", spell_megabytes, "matrix_bytes", 6),
    ]  # fmt: skip


def spell_score_of(summary: Summary, key: str) -> str:
    """Return a score as it is usually stated; empty if it is undefined."""
    mean = stated_mean(summary, key)
    return "" if mean is None else f"{mean:.4f}"


def _distinct(rows: Sequence[CostRow]) -> list[CostRow]:
    """Return the first of rows with the same width and score, which are one machine."""
    return list({(row.width, row.of("score")): row for row in reversed(rows)}.values())[::-1]


def findings(summaries: Sequence[Summary], entry: Summary) -> Iterator[str]:
    """Yield what the times of a map and its exact machine say: ratios that are no noise.

    Both totals are of the training rows of the exact machine.
    """
    name = spell(entry) if len(summaries) > 1 else ""
    learned = f"to fit, transform and learn once from {entry['rows_exact']:,} rows"
    for what, near, exact in (
        (learned, "total_seconds_map_exact_rows", "total_seconds_exact"),
        ("to predict the test rows", "predict_seconds_map", "predict_seconds_exact"),
    ):
        seconds = (entry[key]["mean"] for key in (near, exact))
        yield from _ratio(what, name, *seconds)


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
