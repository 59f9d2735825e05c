"""Progress on stderr when it is a terminal, and the place where a signal that was missed is noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafeat.cli import color, log
from kafeat.cli.signals import check

Progress = Callable[[int], None]


@contextmanager
def progress(what: str, quiet: bool, unit: str = "rows") -> Iterator[Callable[[int | None], Progress]]:
    """Gives `announce(rows)`, which starts a bar of that length and returns what moves it, chunk by chunk."""
    if quiet or log.as_json() or not sys.stderr.isatty():
        yield lambda _rows: lambda _done: check()
        return
    from kafeat.cli.bar import bar as new_bar

    with new_bar(unit) as bar:

        def announce(rows: int | None) -> Progress:
            task = bar.add_task(what, total=rows)

            def advance(done: int) -> None:
                check()
                bar.advance(task, done)

            return advance

        yield announce


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
