"""Progress of a search: a live table of the best maps so far on a terminal, and lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from kafeat.cli import log
from kafeat.cli.main import check

if TYPE_CHECKING:
    from rich.table import Table

    from kafeat.jobs.tune.search import Search, Trial

Show = Callable[["Search", "Trial"], None]

_SHOWN = 5


@contextmanager
def watching(quiet: bool, seconds: float | None, trials: int | None) -> Iterator[Show]:
    """Yield a function that shows the search after each trial."""
    if quiet:
        yield lambda _search, _trial: check()
    elif log.as_json() or not sys.stderr.isatty():
        yield partial(_line, seconds)
    else:
        from rich.live import Live

        with Live(console=log.console(stderr=True), transient=True, auto_refresh=False) as live:

            def show(search: Search, trial: Trial) -> None:
                check()
                live.update(_table(search, trial, seconds, trials), refresh=True)

            yield show


def _line(seconds: float | None, search: Search, trial: Trial) -> None:
    """Write a trial as a line of text, or as a JSON object."""
    check()
    if not log.as_json():
        log.say(_spelled(trial))
        return
    elapsed = time.monotonic() - search.started
    best, outcome = search.best_score, trial.outcome
    failed = outcome.failure is not None
    log.event(
        "trial", number=trial.number, map=str(trial.candidate), rows=trial.size.rows, columns=trial.size.width,
        score=None if failed else outcome.score, seconds=round(outcome.seconds, 3), failure=outcome.failure,
        best=str(best.candidate), best_score=best.outcome.score, elapsed=round(elapsed, 3),
        left=None if seconds is None else round(max(0.0, seconds - elapsed), 3),
    )  # fmt: skip


def _spelled(trial: Trial) -> str:
    outcome, size = trial.outcome, trial.size
    result = outcome.failure if outcome.failure is not None else f"score {outcome.score:.4f}"
    return (
        f"trial {trial.number:,}: {trial.candidate}: {result} with {size.width:,} columns, {size.rows:,} rows"
    )


def _table(search: Search, trial: Trial, seconds: float | None, trials: int | None) -> Table:
    """Return the best trials of the largest size so far, and the state of the search."""
    from rich.table import Table

    leaders = search.leaderboard()[:_SHOWN]
    elapsed = time.monotonic() - search.started
    state = f"{trial.number:,}{'' if trials is None else f' of {trials:,}'} trials, {elapsed:.0f} s"
    if seconds is not None:
        state += f", at most {max(0.0, seconds - elapsed):.0f} s left"
    table = Table("best so far", "score", caption=f"{state}; now {trial.candidate}", caption_justify="left")
    for leader in leaders:
        table.add_row(str(leader.candidate), f"{leader.outcome.score:.4f} ± {leader.outcome.error:.4f}")
    return table
