"""Progress on stderr when it is a terminal, and the place where a signal that was missed is noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafeat.cli import color, log
from kafeat.cli.signals import check

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Announcer:
    """Shows how far a command is: in rows or parts, whose end may be known, or by the name of the phase alone."""

    def __init__(self, what: str, bar: Progress | None) -> None:
        self._what, self._bar = what, bar
        self._task: TaskID | None = None

    def __call__(self, total: int | None) -> Callable[[int], None]:
        """Start a bar of that length (None: unknown) and return what moves it."""
        self._begin(self._what, total=total, counted=True)

        def advance(done: int) -> None:
            check()
            if self._bar is not None and self._task is not None:
                self._bar.advance(self._task, done)

        return advance

    def phase(self, what: str) -> None:
        """Show what is done now, in the place of what was done before."""
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
    """Gives what shows the progress of something that is called `what`, counted in `unit`."""
    if quiet or log.as_json() or not sys.stderr.isatty():
        yield Announcer(what, None)
        return
    from kafeat.cli.bar import bar as new_bar

    with new_bar(unit) as bar:
        yield Announcer(what, bar)


@contextmanager
def steps_of(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Gives what is told each step of a long job: a line that shows it while it runs."""
    if quiet or log.as_json() or not sys.stderr.isatty():
        yield lambda _step: check()
        return
    with color.console(stderr=True).status("") as status:

        def say(step: str) -> None:
            check()
            status.update(step)

        yield say
