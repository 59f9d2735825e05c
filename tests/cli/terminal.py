"""Commands on a terminal of their own."""

import os
import pty

from tests.zygote import Process


def on_terminal(*words, env=None, timeout=60, **options):
    """Run a command, or the program `code`, on a terminal of 120 columns; return its output and exit code."""
    ours, theirs = pty.openpty()
    plain = {"TERM": "xterm-256color", "COLUMNS": "120", "NO_COLOR": None, "FORCE_COLOR": None}
    of_terminal = {**plain, **(env or {})}
    process = Process(*words, stdin=theirs, stdout=theirs, stderr=theirs, env=of_terminal, **options)
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux says so when the other side is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    return b"".join(parts).decode(), process.wait(timeout)
