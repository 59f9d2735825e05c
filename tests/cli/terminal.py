"""Commands on a terminal of their own."""

import os
import pty
import subprocess


def on_terminal(command, cwd=None, env=None, timeout=60):
    """Run a command on a terminal of 120 columns; return its output and exit code."""
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [str(part) for part in command], cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs,
        env={**clean, "TERM": "xterm-256color", "COLUMNS": "120", **(env or {})},
    )  # fmt: skip
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
