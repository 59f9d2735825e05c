"""The run that a folder belongs to: told by the file `.kafeat.lock`, and by the signs of life that its driver gives."""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from kafeat.errors import KafeatError, SystemRefusedError
from kafeat.io.storage.locations import entry_of
from kafeat.io.storage.uri import shown

NAME = ".kafeat.lock"

SIGN_SECONDS = 10.0
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Owner:
    """A run, and for people who look for it the process that drives it."""

    run: str
    host: str
    process: int
    since: str

    @staticmethod
    def new() -> Owner:
        """A run that begins, driven by this process."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return Owner(secrets.token_hex(8), socket.gethostname(), os.getpid(), since)

    @staticmethod
    def loads(content: bytes) -> Owner | None:
        """What was dumped; None for anything else: it was not written to its end."""
        try:
            return Owner(**json.loads(content))
        except (ValueError, TypeError):
            return None

    def dumps(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self)).encode()


@contextmanager
def signs_of_life(give: Callable[[], None]) -> Iterator[None]:
    """Give a sign every few seconds until the end of the block."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(SIGN_SECONDS):
            with suppress(OSError, KafeatError):
                give()

    thread = threading.Thread(target=go_on, name="kafeat-owner", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def refuse_signs(folder: str, owner: Owner, place: str) -> None:
    """Watch the file that tells signs of life by its time; returns when its owner is dead, or has left.

    What is compared is one look with the next: no clock with another.
    """
    first, ends = entry_of(place), time.monotonic() + PATIENCE_SECONDS
    while first is not None and time.monotonic() < ends:
        time.sleep(PATIENCE_SECONDS / 30)
        now = entry_of(place)
        if now is None:
            return
        if now != first:
            raise taken(folder, owner)


def check(folder: str, owner: Owner | None, run: str) -> None:
    """Refuse a folder that is another run's by now, or nobody's."""
    if owner is None or owner.run != run:
        got = f"nobody's: {NAME} is gone" if owner is None else f"one of {_spelled(owner)}"
        raise SystemRefusedError(f"{shown(folder)}: expected a folder of this run still, got {got}")


def taken(folder: str, owner: Owner | None) -> SystemRefusedError:
    """A run that is at work cannot lose its folder."""
    return SystemRefusedError(
        f"{shown(folder)}: expected a folder that no run writes to, got one of {_spelled(owner)}; wait until it has "
        "ended, or end it"
    )


def _spelled(owner: Owner | None) -> str:
    if owner is None:
        return "a run that begins"
    return f"a run since {owner.since} (process {owner.process} on {owner.host})"
