"""The line that says what was done: on a terminal or when asked for, so that a cron job stays silent."""

from __future__ import annotations

import sys

from kafeat.cli import log


def summarize(line: str, quiet: bool, verbose: bool) -> None:
    """Print `line` on stderr, and the machine with -v."""
    if quiet or not (verbose or log.as_json() or sys.stderr.isatty()):
        return
    log.say(line)
    if verbose:
        from kafeat.runtime.environment import machine, versions

        log.say("versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()))
        here = machine()
        log.say(f"machine: {here['processor']}, Python {here['python']}, BLAS {here['blas']}")
