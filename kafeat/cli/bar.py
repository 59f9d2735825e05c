"""The progress bar: amount done, speed and time left."""

from __future__ import annotations

from datetime import timedelta

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from kafeat.cli import log
from kafeat.cli.alive import amount


class _State(ProgressColumn):
    """The text after the bar: amount done, recent speed and time left, or the elapsed time of an uncounted phase."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        if not task.fields["counted"]:
            return Text(f"{timedelta(seconds=int(task.elapsed or 0))}", style="progress.elapsed")
        speed, total = task.finished_speed or task.speed, None if task.total is None else int(task.total)
        text = amount(int(task.completed), total, self._unit, speed, task.time_remaining)
        return Text(text, style="progress.download")


def bar(unit: str) -> Progress:
    """Return a bar on stderr that disappears when it ends."""
    return Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), _State(unit),
        console=log.console(stderr=True), transient=True,
    )  # fmt: skip
