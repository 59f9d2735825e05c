"""The progress bar: amount done, speed and time left."""

from __future__ import annotations

from datetime import timedelta

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kafeat.cli import log


class _Done(ProgressColumn):
    """The amount done and, if known, the total; or the elapsed time of a phase that counts nothing."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        if not task.fields["counted"]:
            return Text(f"{timedelta(seconds=int(task.elapsed or 0))}", style="progress.elapsed")
        of = "" if task.total is None else f"/{int(task.total):,}"
        return Text(f"{int(task.completed):,}{of} {self._unit}", style="progress.download")


class _Left(TimeRemainingColumn):
    """The time left, if the total is known."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task) + " left"


class _Speed(ProgressColumn):
    """Rows or parts a second, over the last half minute."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(
            "" if speed is None else f"{speed:,.{0 if speed > 10 else 1}f} {self._unit}/s",
            style="progress.data.speed",
        )


def bar(unit: str) -> Progress:
    """Return a bar on stderr that disappears when it ends."""
    return Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), _Done(unit), _Speed(unit), _Left(),
        console=log.console(stderr=True), transient=True,
    )  # fmt: skip
