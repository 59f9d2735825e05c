"""The line that says what was done: on a terminal or when asked for, so that a cron job stays silent."""

from __future__ import annotations

import sys

import click


def summarize(line: str, quiet: bool, verbose: bool) -> None:
    """Print `line` on stderr, and the machine with -v."""
    if quiet or not (verbose or sys.stderr.isatty()):
        return
    click.echo(line, err=True)
    if verbose:
        for fact in machine():
            click.echo(fact, err=True)


def machine() -> list[str]:
    """What equal bytes depend on: library versions and the processor kind that BLAS runs for."""
    import platform
    from importlib.metadata import version

    import numpy as np  # noqa: F401  # its BLAS is what is asked about
    from threadpoolctl import threadpool_info

    names = ("kafeat", "numpy", "scipy", "pyarrow", "joblib")
    blas = sorted(
        {f"{pool['internal_api']} {pool['version']} for {pool.get('architecture', '?')}"
         for pool in threadpool_info() if pool["user_api"] == "blas"}
    )  # fmt: skip
    return [
        "versions: " + ", ".join(f"{name} {version(name)}" for name in names),
        f"machine: {platform.machine()}, Python {platform.python_version()}, BLAS {'; '.join(blas) or 'unknown'}",
    ]
