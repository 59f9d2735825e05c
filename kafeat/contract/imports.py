"""Python functions by their names, `module:function`, which are imported only where the user allows it.

A name stays a name unless it is read inside of `allowing_imports(True)`: then it becomes the function. So a config or a
model file from a stranger runs nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from traceback import extract_tb
from typing import Annotated, Any, TypeGuard

from pydantic import AfterValidator, Field

from kafeat.contract.describe import Described
from kafeat.errors import KafeatError, UsageError

_allowed: ContextVar[bool] = ContextVar("allow_import", default=False)

PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"


@contextmanager
def allowing_imports(allowed: bool) -> Iterator[None]:
    """Import the functions that configs and model files name, where they are read in this block, or do not."""
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


def imports_allowed() -> bool:
    """Return True inside of `allowing_imports(True)`."""
    return _allowed.get()


class ImportedFunction:
    """A function that was imported by its name."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = self.__name__ = name
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self._function(*arguments)
        except (KafeatError, MemoryError):
            raise
        except Exception as error:  # the function may do anything
            raise UsageError(
                f"kernel {self.name!r}: expected values of the kernel, got {type(error).__name__}: {error} "
                f"({_place(error)}): mend the function, or use another kernel"
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return import_function, (self.name,)


def _place(error: Exception) -> str:
    """Return the file and the line that raised an error."""
    last = extract_tb(error.__traceback__)[-1]
    return f"{last.filename}, line {last.lineno}"


def import_function(name: str) -> ImportedFunction:
    """Import a function by its name; `UsageError` if there is none of that name, or its module cannot be imported."""
    module, _, attribute = name.partition(":")
    try:
        function = getattr(import_module(module), attribute)
    except MemoryError:
        raise
    except Exception as error:  # the module may do anything
        problem = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"kernel: expected a function that can be imported, got {name!r} ({problem}): its folder has to be in "
            "PYTHONPATH"
        ) from error
    if not callable(function):
        raise UsageError(f"kernel: expected a function, got {name!r}, which is a {type(function).__name__}")
    return ImportedFunction(name, function)


def _imported_if_allowed(name: str) -> str | ImportedFunction:
    return import_function(name) if _allowed.get() else name


FunctionName = Annotated[
    str,
    Field(pattern=PATTERN),
    AfterValidator(_imported_if_allowed),
    Described("a function by its name ('module:function')", "names of functions"),
]
"""A field that holds the name of a function, or the `ImportedFunction` of that name."""


def is_function_name(value: object) -> TypeGuard[str]:
    """Return True for the name of a function that was not imported."""
    return isinstance(value, str) and ":" in value


def refusal(name: str) -> str:
    """Return the message about a function that may not be imported."""
    return (
        f"kernel: expected --allow-import (in Python: allow_import=True) to import {name!r}, got none: importing runs "
        "the code of that module, so allow it only for configs and maps that you trust"
    )


def not_imported(name: str) -> Callable[..., Any]:
    """Return a function in the place of one that was not imported: it refuses every call."""

    def refuse(*_arguments: Any) -> Any:
        raise UsageError(refusal(name))

    return refuse
