"""Progress on stderr: a bar or a live table on a terminal, otherwise lines. Every update checks for signals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from kafeat.cli import log
from kafeat.cli.alive import Alive
from kafeat.cli.main import check
from kafeat.contract.threads import repeating
from kafeat.errors import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from kafeat.study.tune.rungs import Search
    from kafeat.study.tune.trials import Trial


_MINUTE = 60.0


class Announcer:
    """Shows the progress of a command: rows or parts done, or only the name of the phase."""

    def __init__(self, what: str, bar: Progress | Alive | None) -> None:
        self._what, self._bar = what, bar
        self._task: TaskID | None = None

    def __call__(self, total: int | None) -> Callable[[int], None]:
        """Start a bar of this length (None: unknown) and return the function that advances it."""
        self._begin(self._what, total=total, counted=True)

        def advance(done: int) -> None:
            check()
            if self._bar is not None and self._task is not None:
                self._bar.advance(self._task, done)

        return advance

    def phase(self, what: str) -> None:
        """Show the name of a phase instead of the previous bar."""
        check()
        self._begin(what, total=None, counted=False)

    def _begin(self, what: str, total: int | None, counted: bool) -> None:
        if self._bar is None:
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(visible(what), total=total, counted=counted)


@contextmanager
def progress(what: str, unit: str = "rows") -> Iterator[Announcer]:
    """Yield an announcer that shows progress under the name `what`, counted in `unit`."""
    if log.settings.quiet:
        yield Announcer(what, None)
    elif log.live():
        from kafeat.cli.bar import bar as new_bar

        with new_bar(unit) as bar:
            yield Announcer(what, bar)
    else:
        lines = Alive(unit)
        with repeating(lines.tell, _MINUTE, "kafeat-alive"):
            yield Announcer(what, lines)


Show = Callable[["Search", "Trial"], None]

_SHOWN = 5


@contextmanager
def watching(seconds: float | None, trials: int | None) -> Iterator[Show]:
    """Yield a function that shows the search after each trial."""
    if not log.live():
        with progress("search") as announce:
            announce.phase("search")
            yield partial(_line, seconds)
        return
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
        log.say(_spelled(search, trial))
        return
    elapsed = time.monotonic() - search.started
    best, outcome = search.best_score, trial.outcome
    failed = outcome.failure is not None
    log.say(
        trial.rung if trial.later else "trial", "progress", rung=trial.rung, number=trial.number,
        map=str(trial.candidate), rows=trial.size.rows, columns=trial.columns,
        scoring=search.scoring.name,
        score=None if failed else outcome.score, seconds=round(outcome.seconds, 3), failure=outcome.failure,
        best=str(best.candidate), best_score=best.outcome.score, elapsed=round(elapsed, 3),
        left=None if seconds is None else round(max(0.0, seconds - elapsed), 3),
    )  # fmt: skip


def _spelled(search: Search, trial: Trial) -> str:
    failure, size = trial.outcome.failure, trial.size
    learned = f", 1/{round(1.0 / size.share)} of them to learn from" if size.share < 1.0 else ""
    place = trial.rung if trial.later else f"trial {trial.number:,}, {trial.rung}"
    made = f"{trial.columns:,} columns, {size.rows:,} rows{learned}"
    result = f"{failure} ({made})" if failure else f"{search.scoring} {search.stated(trial)} with {made}"
    return f"{place}: {trial.candidate}: {result}"


def _table(search: Search, trial: Trial, seconds: float | None, trials: int | None) -> Table:
    """Return a table of the best trials so far. The line below it has the number of all trials and the time left."""
    from rich.table import Table

    leaders = search.leaderboard()[:_SHOWN]
    score = str(search.scoring)
    elapsed = time.monotonic() - search.started
    state = f"{trial.number:,}{'' if trials is None else f' of {trials:,}'} trials, {elapsed:.0f} s"
    if seconds is not None:
        state += f", at most {max(0.0, seconds - elapsed):.0f} s left"
    table = Table("best so far", score, caption=f"{state}; now {trial.candidate}", caption_justify="left")
    for leader in leaders:
        table.add_row(str(leader.candidate), search.stated(leader))
    return table
