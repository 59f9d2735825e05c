"""Progress on stderr when it is a terminal; else nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int], None]


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Callable[[int | None], Progress] | None]:
    """Gives `announce(rows)`, which starts a bar of that length and returns what moves it, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:

        def announce(rows: int | None) -> Progress:
            task = bar.add_task(what, total=rows)
            return lambda done: bar.advance(task, done)

        yield announce
