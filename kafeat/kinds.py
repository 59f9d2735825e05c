"""The names of the kinds of steps, which are those of their files; nothing of them is imported to tell."""

from __future__ import annotations

from functools import cache
from pkgutil import iter_modules

import kafeat.samplers
import kafeat.scalers


def samplers() -> tuple[str, ...]:
    """The kinds of samplers, in alphabetical order."""
    return _kinds_in(tuple(kafeat.samplers.__path__))


def scalers() -> tuple[str, ...]:
    """The kinds of scalers, in alphabetical order."""
    return _kinds_in(tuple(kafeat.scalers.__path__))


def kinds() -> tuple[str, ...]:
    """Every kind: scalers first, as they come first in a chain."""
    return scalers() + samplers()


@cache  # every step of a config asks
def _kinds_in(folders: tuple[str, ...]) -> tuple[str, ...]:
    found = (module.name for module in iter_modules(folders) if not module.ispkg)
    return tuple(sorted(name for name in found if not name.startswith("_")))
