"""The names of the kinds of steps, which are those of their files; nothing of them is imported to tell."""

from __future__ import annotations

from pkgutil import iter_modules
from types import ModuleType

import kafeat.samplers
import kafeat.scalers


def samplers() -> tuple[str, ...]:
    """The kinds of samplers, in alphabetical order."""
    return _kinds_in(kafeat.samplers)


def scalers() -> tuple[str, ...]:
    """The kinds of scalers, in alphabetical order."""
    return _kinds_in(kafeat.scalers)


def kinds() -> tuple[str, ...]:
    """Every kind: scalers first, as they come first in a chain."""
    return scalers() + samplers()


def _kinds_in(package: ModuleType) -> tuple[str, ...]:
    found = (module.name for module in iter_modules(package.__path__) if not module.ispkg)
    return tuple(sorted(name for name in found if not name.startswith("_")))
