"""Find classes by the names of their files: `tensor_sketch.py` holds `TensorSketch`. Nobody keeps a list."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from traceback import extract_tb
from types import ModuleType
from typing import Any

from kafeat.errors import UsageError, first_line


def names_in(package: ModuleType) -> tuple[str, ...]:
    """Return the names of the modules of `package` in alphabetical order, without those that begin with `_`."""
    return _names_in(tuple(package.__path__))


@cache  # every step of a config asks
def _names_in(folders: tuple[str, ...]) -> tuple[str, ...]:
    names = (module.name for module in iter_modules(folders) if not module.ispkg)
    return tuple(sorted(name for name in names if not name.startswith("_")))


def load_class(package: ModuleType, name: str, base: type, suffix: str = "") -> type[Any]:
    """Import one module of `package` and return the class of its name, with the suffix; it is a subclass of `base`.

    A mistake in the module is an error with its file and line.
    """
    class_name = "".join(word.capitalize() for word in name.split("_")) + suffix
    try:
        module = import_module(f"{package.__name__}.{name}")
    except (MemoryError, OSError):
        raise
    except Exception as error:
        raise UsageError(
            f"{_place(error, package, name)}: expected a module that Python imports, got "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error
    cls = getattr(module, class_name, None)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise UsageError(f"{module.__file__}: expected a class {class_name}({base.__name__}), got none")
    return cls


def _place(error: Exception, package: ModuleType, name: str) -> str:
    """Return the file and the line of an error of an import: the last line of the module itself that took part."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    lines = [one for one in extract_tb(error.__traceback__) if one.filename.endswith(f"{os.sep}{name}.py")]
    return f"{lines[-1].filename}:{lines[-1].lineno}" if lines else f"{package.__name__}.{name}"
