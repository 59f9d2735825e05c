"""The run that owns a folder. The file `.kafeat.lock` names it. Without locks, its driver gives signs of life."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kafeat.errors import KafeatError, SystemRefusedError
from kafeat.io.storage.base import Location

NAME = ".kafeat.lock"
MOST_BYTES = 4096

SIGN_SECONDS = 10.0
PATIENCE_SECONDS = 30.0


class Owner(BaseModel):
    """A run. Host, process and start time help people to find it."""

    model_config = ConfigDict(frozen=True, strict=True)

    run: str = Field(pattern=r"^[0-9a-f]{16}$")
    host: str
    process: int
    since: str

    @staticmethod
    def new() -> Owner:
        """Return a new run that this process drives."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return Owner(run=secrets.token_hex(8), host=socket.gethostname(), process=os.getpid(), since=since)

    @staticmethod
    def loads(content: bytes) -> Owner | None:
        """Read a run from JSON. Return None for content that no run has written to its end."""
        try:
            return Owner.model_validate_json(content)
        except ValidationError:
            return None

    def dumps(self) -> bytes:
        """Return the run as JSON."""
        return self.model_dump_json().encode()


@contextmanager
def signs_of_life(give: Callable[[], None]) -> Iterator[None]:
    """Give a sign of life every few seconds until the end of the block."""
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


def refuse_if_alive(folder: Location, owner: Owner, sign: Location) -> None:
    """Refuse a folder whose owner gives signs of life, which change the stamp of a file. Return if there are none.

    Stamps are compared with each other, and never with a clock of this machine.
    """
    first, ends = sign.entry(), time.monotonic() + PATIENCE_SECONDS
    while first is not None and time.monotonic() < ends:
        time.sleep(PATIENCE_SECONDS / 30)
        now = sign.entry()
        if now is None:
            return
        if now != first:
            raise taken(folder, owner)


def check(folder: Location, owner: Owner | None, run: str) -> None:
    """Refuse a folder that belongs to another run, or to none."""
    if owner is None or owner.run != run:
        got = f"no owner: {NAME} is gone" if owner is None else _spelled(owner)
        raise SystemRefusedError(
            f"{folder}: expected this run to own the folder, got {got}; let one run at a time write there"
        )


def taken(folder: Location, owner: Owner | None) -> SystemRefusedError:
    """Return the error for a folder in which another run is at work."""
    return SystemRefusedError(
        f"{folder}: expected a folder that no run writes to, got one of {_spelled(owner)}; wait until it has "
        "ended, or end it"
    )


def _spelled(owner: Owner | None) -> str:
    if owner is None:
        return "a new run"
    return f"a run since {owner.since} (process {owner.process} on {owner.host})"
