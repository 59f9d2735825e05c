"""Colours on a terminal, unless NO_COLOR or --color says otherwise."""

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
    """Set the choice: auto, always or never."""
    global _choice
    _choice = choice


def peek(arguments: Sequence[str]) -> None:
    """Read the choice from --color, wherever it stands, or from KAFEAT_COLOR. The last --color counts.

    This happens before click parses the arguments, because help and usage errors have colours, too.
    """
    given = [value for option, value in pairwise(arguments) if option == "--color"]
    given += [one.removeprefix("--color=") for one in arguments if one.startswith("--color=")]
    for choice in (os.environ.get("KAFEAT_COLOR"), *given):
        if choice in CHOICES:
            use(choice)


def forced() -> bool | None:
    """Return True or False if --color decides for every stream, else None."""
    return None if _choice == "auto" else _choice == "always"


def wanted(stream: TextIO) -> bool:
    """Return True if this stream gets colours (https://no-color.org)."""
    settled = forced()
    if settled is not None:
        return settled
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def console(*, stderr: bool = False, **more: Any) -> Console:
    """Return a rich console on stdout or stderr."""
    from rich.console import Console

    # file names may contain brackets, which are not markup
    more |= {"markup": False, "emoji": False, "highlight": False}
    if not wanted(sys.stderr if stderr else sys.stdout):
        return Console(stderr=stderr, color_system=None, no_color=True, **more)
    if forced():
        more |= {"force_terminal": True, "color_system": "standard"}
    return Console(stderr=stderr, no_color=False, **more)
