"""Exact kernels by name: the class `AdditiveChi2Kernel` is the kernel `additive_chi2`."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules

from kafeat.maths.kernel import Kernel


@cache
def _kernels() -> dict[str, Kernel]:
    families = [import_module(f"{__name__}.{family.name}") for family in iter_modules(__path__)]
    classes = {
        found
        for family in families
        for found in vars(family).values()
        if isinstance(found, type) and issubclass(found, Kernel) and not isabstract(found)
    }
    return {_name_of(found): found() for found in sorted(classes, key=_name_of)}


def _name_of(kernel: type[Kernel]) -> str:
    words = kernel.__name__.removesuffix("Kernel")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", words).lower()


def find_kernel(name: str) -> Kernel:
    """Return the kernel of that name."""
    return _kernels()[name]


def kernel_names(form: type = Kernel) -> tuple[str, ...]:
    """Return the names of the kernels that are of this class, such as `TiledKernel`, in alphabetical order."""
    return tuple(name for name, kernel in _kernels().items() if isinstance(kernel, form))
