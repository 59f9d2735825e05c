"""A worker process, which reads work from standard input and writes results to standard output.

It ends when standard input ends, and so whenever the process that started it ends, for whatever reason.
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
from kafeat.runtime.pool import of_this_process


def main() -> None:
    """Do one item of work after the other."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Nothing else may read from standard input, and text that a library prints is no result.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    calls: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(inbox, calls), name="kafeat-inbox", daemon=True).start()
    while True:
        result = _done(calls.get())
        try:
            pickle.dump(result, outbox)
            outbox.flush()
        except BrokenPipeError:
            _leave()


def _done(call: bytes) -> tuple[object, str | None]:
    """Return the result, or an error of unpickling the call, such as a missing module."""
    try:
        work, item = pickle.loads(call)  # noqa: S301  # from the process that started this one
    except Exception as error:
        return None, f"{type(error).__name__}: {first_line(error)}"
    return work(item), None


def _receive(inbox: IO[bytes], calls: SimpleQueue[bytes]) -> None:
    try:
        while True:
            calls.put(pickle.load(inbox))  # noqa: S301
    except (EOFError, OSError, pickle.UnpicklingError):
        _leave()


def _leave() -> NoReturn:
    of_this_process().ask()
    remove_ours()
    sys.stderr.flush()
    os._exit(0)
