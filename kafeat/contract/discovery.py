"""Find classes by the names of their files: `tensor_sketch.py` holds `TensorSketch`. Nobody keeps a list."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def names_in(package: ModuleType) -> tuple[str, ...]:
    """Return the names of the modules of `package` in alphabetical order, without those that begin with `_`."""
    return _names_in(tuple(package.__path__))


@cache  # every step of a config asks
def _names_in(folders: tuple[str, ...]) -> tuple[str, ...]:
    names = (module.name for module in iter_modules(folders) if not module.ispkg)
    return tuple(sorted(name for name in names if not name.startswith("_")))


def load_class(package: ModuleType, name: str) -> type[Any]:
    """Import one module of `package` and return the class of its name."""
    module = import_module(f"{package.__name__}.{name}")
    cls: type[Any] = getattr(module, "".join(word.capitalize() for word in name.split("_")))
    return cls
