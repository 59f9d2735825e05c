"""A process that works for another one: work comes by its standard input, and results leave by its standard output.

It ends with its standard input, which ends with the process that has started it, however that one ends.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from queue import SimpleQueue
from typing import IO, NoReturn

from kafeat.errors import first_line
from kafeat.io.storage.temporary_files import remove_ours
from kafeat.runtime.stop import of_this_process


def main() -> None:
    """Do what comes, one thing after the other."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Nothing else reads from there, and what a library prints is no result.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    came: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(inbox, came), name="kafeat-inbox", daemon=True).start()
    while True:
        result = _done(came.get())
        try:
            pickle.dump(result, outbox)
            outbox.flush()
        except BrokenPipeError:
            _leave()


def _done(call: bytes) -> tuple[object, str | None]:
    """The result, or what is wrong with the call: a module that is not here, above all."""
    try:
        work, item = pickle.loads(call)  # noqa: S301  # from the process that has started this one
    except Exception as error:
        return None, f"{type(error).__name__}: {first_line(error)}"
    return work(item), None


def _receive(inbox: IO[bytes], came: SimpleQueue[bytes]) -> None:
    try:
        while True:
            came.put(pickle.load(inbox))  # noqa: S301
    except (EOFError, OSError, pickle.UnpicklingError):
        _leave()


def _leave() -> NoReturn:
    of_this_process().ask()
    remove_ours()
    sys.stderr.flush()
    os._exit(0)
