"""Colours: --color sets NO_COLOR or FORCE_COLOR, which rich reads, too."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

CHOICES = ("auto", "always", "never")


def apply(arguments: Sequence[str]) -> None:
    """Set NO_COLOR or FORCE_COLOR by --color, wherever it stands, or by KAFEAT_COLOR. The last --color counts.

    This happens before click parses the arguments, because help and usage errors have colours, too.
    """
    given = [value for option, value in pairwise(arguments) if option == "--color"]
    given += [one.removeprefix("--color=") for one in arguments if one.startswith("--color=")]
    known = [choice for choice in (os.environ.get("KAFEAT_COLOR"), *given) if choice in CHOICES]
    match known[-1:]:
        case ["never"]:
            os.environ["NO_COLOR"] = "1"
        case ["always"]:
            os.environ.pop("NO_COLOR", None)
            os.environ["FORCE_COLOR"] = "1"


def wanted(stream: TextIO) -> bool:
    """Return True if this stream gets colours (https://no-color.org, https://force-color.org).

    Rich decides in the same way. It is not asked, because its import would slow down help and errors.
    """
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (os.environ.get("TERM") != "dumb" and stream.isatty())


def console(*, stderr: bool = False, **more: Any) -> Console:
    """Return a rich console on stdout or stderr."""
    from rich.console import Console

    forced = "standard" if os.environ.get("FORCE_COLOR") else "auto"
    system: Any = forced if wanted(sys.stderr if stderr else sys.stdout) else None
    # File names may contain brackets, which are not markup. Without colours, there is no bold text, either.
    return Console(
        stderr=stderr, color_system=system, markup=False, emoji=False, highlight=False, **more
    )  # fmt: skip
