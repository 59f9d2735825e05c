"""The summary line of a command, written on a terminal or with -v, so that cron jobs stay silent."""

from __future__ import annotations

import sys

from kafeat.cli import log


def summarize(line: str, quiet: bool, verbose: bool) -> None:
    """Write `line` to stderr; with -v, also the versions and the machine."""
    if quiet or not (verbose or log.as_json() or sys.stderr.isatty()):
        return
    log.say(line)
    if verbose:
        from kafeat.runtime.environment import machine, versions

        log.say("versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()))
        here = machine()
        log.say(f"machine: {here['processor']}, Python {here['python']}, BLAS {here['blas']}")
