"""Colours: on a terminal, unless NO_COLOR or --color says otherwise."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

CHOICES = ("auto", "always", "never")

_choice = "auto"


def use(choice: str) -> None:
    """From now on: auto, always or never."""
    global _choice
    _choice = choice


def peek(arguments: Sequence[str]) -> None:
    """Obey KAFEAT_COLOR, and --color before it, wherever it stands; the last one counts.

    That is before anything is parsed, as help and mistakes in the options have colours, too.
    """
    given = [value for option, value in pairwise(arguments) if option == "--color"]
    given += [one.removeprefix("--color=") for one in arguments if one.startswith("--color=")]
    for choice in (os.environ.get("KAFEAT_COLOR"), *given):
        if choice in CHOICES:
            use(choice)


def forced() -> bool | None:
    """True or False where that is settled for any stream, whatever it is; None: by the stream."""
    return None if _choice == "auto" else _choice == "always"


def wanted(stream: TextIO) -> bool:
    """Whether what is written there has colours (https://no-color.org)."""
    settled = forced()
    if settled is not None:
        return settled
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def console(*, stderr: bool = False, **more: Any) -> Console:
    """Rich's console on that stream."""
    from rich.console import Console

    # names of files are no markup
    more |= {"markup": False, "emoji": False, "highlight": False}
    if not wanted(sys.stderr if stderr else sys.stdout):
        return Console(stderr=stderr, color_system=None, no_color=True, **more)
    if forced():
        more |= {"force_terminal": True, "color_system": "standard"}
    return Console(stderr=stderr, no_color=False, **more)
