"""Work for engines whose workers are other processes: found there by its name."""

from __future__ import annotations

import os
import signal


def double(item: int) -> int:
    """Twice a number; the seventh kills whoever works on it."""
    if item == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * item
