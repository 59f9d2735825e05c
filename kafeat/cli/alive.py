"""Progress lines of a command whose stderr is not a terminal: one when it starts, and one per minute.

Text output has the first line only after a minute, so that cron sends no mail about short commands.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from kafeat.cli import log


class Alive:
    """Writes lines instead of a progress bar. It has the methods of `rich.progress.Progress` that are called here."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._what, self._counted = "", False
        self._total: int | None = None
        self._done, self._since, self._told = 0, time.monotonic(), False

    def add_task(self, what: str, *, total: int | None, counted: bool) -> Any:
        """Begin a phase with the name `what`. In JSON or with -v, also write once that the command has started."""
        self._what, self._total, self._counted = what, total, counted
        self._done, self._since = 0, time.monotonic()
        if log.as_json() or log.settings.verbose:
            self._start()
        return 0

    def remove_task(self, _task: Any) -> None:
        """Do nothing, because the next call of `add_task` replaces the phase."""

    def advance(self, _task: Any, done: int) -> None:
        """Add `done` to the number of finished rows or parts."""
        self._done += done

    def _start(self) -> None:
        if not self._told:
            self._told = True
            log.start({} if self._total is None else {self._unit: self._total})

    def tell(self) -> None:
        """Write a line about the progress so far."""
        self._start()
        seconds = time.monotonic() - self._since
        if self._counted:
            self._tell_count(self._done, self._total, seconds)
        else:
            log.say(
                f"{self._what}, for {timedelta(seconds=round(seconds))}", "progress",
                phase=self._what, seconds=round(seconds, 3),
            )  # fmt: skip

    def _tell_count(self, done: int, total: int | None, seconds: float) -> None:
        unit, rate = self._unit, done / max(seconds, 1e-3)  # no division by 0 if the phase has just begun
        left = None if total is None or not done else max(0.0, (total - done) / rate)
        log.say(
            f"{self._what}: {amount(done, total, unit, rate, left)}", "progress",
            phase=self._what, seconds=round(seconds, 3), total=total,
            left=None if left is None else round(left, 3), **{unit: done, f"{unit}_per_second": round(rate, 3)},
        )  # fmt: skip


def amount(done: int, total: int | None, unit: str, speed: float | None, left: float | None) -> str:
    """Return progress as text, such as `1,000 of 5,000 rows, 250 rows/s, 0:00:16 left`. Omit what is None."""
    of = "" if total is None else f" of {total:,}"
    fast = "" if speed is None else f", {speed:,.{0 if speed > 10 else 1}f} {unit}/s"
    return f"{done:,}{of} {unit}{fast}" + ("" if left is None else f", {timedelta(seconds=round(left))} left")
