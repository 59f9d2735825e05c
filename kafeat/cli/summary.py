"""The line that says what was done: on a terminal or when asked for, so that a cron job stays silent."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafeat.cli import log


def listed(names: Sequence[str]) -> str:
    """Names of columns, some of them where they are many."""
    from kafeat.io.names import shown

    names = list(map(shown, names))
    return ", ".join(names) if len(names) <= 12 else ", ".join([*names[:8], "…", *names[-2:]])


def summarize(line: str, quiet: bool, verbose: bool) -> None:
    """Print `line` on stderr, and the machine with -v."""
    if quiet or not (verbose or log.as_json() or sys.stderr.isatty()):
        return
    log.say(line)
    if verbose:
        from kafeat.machine import machine, versions

        log.say("versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()))
        here = machine()
        log.say(f"machine: {here['processor']}, Python {here['python']}, BLAS {here['blas']}")
