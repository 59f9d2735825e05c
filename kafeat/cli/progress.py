"""Progress on stderr if it is a terminal. Each update also checks for missed signals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafeat.cli import log
from kafeat.cli.main import check

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Announcer:
    """Show the progress of a command: rows or parts done, or only the name of the phase."""

    def __init__(self, what: str, bar: Progress | None) -> None:
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
        self._task = self._bar.add_task(what, total=total, counted=counted)


@contextmanager
def progress(what: str, quiet: bool, unit: str = "rows") -> Iterator[Announcer]:
    """Yield an announcer that shows progress under the name `what`, counted in `unit`."""
    if quiet or log.as_json() or not sys.stderr.isatty():
        yield Announcer(what, None)
        return
    from kafeat.cli.bar import bar as new_bar

    with new_bar(unit) as bar:
        yield Announcer(what, bar)


@contextmanager
def steps_of(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current step of a long job."""
    if quiet or log.as_json() or not sys.stderr.isatty():
        yield lambda _step: check()
        return
    with log.console(stderr=True).status("") as status:

        def say(step: str) -> None:
            check()
            status.update(step)

        yield say
