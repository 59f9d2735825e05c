"""The keywords of functions of options, for the page of functions: they are made at import, not in the source."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, getdoc, signature
from typing import Any

import griffe

from kafeat.jobs.dataset.api import predict, transform
from kafeat.jobs.fit.fit import fit
from kafeat.study.evaluate import evaluate
from kafeat.study.tune.tune import tune

FUNCTIONS: tuple[Callable[..., Any], ...] = (tune, fit, evaluate, transform, predict)


class Keywords(griffe.Extension):
    """Describe these functions as Python sees them, and not as their sources do."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Take signatures and docstrings of the functions that the decorator gives."""
        if pkg.path == "kafeat":
            for function in FUNCTIONS:
                read = pkg[f"{function.__module__.removeprefix('kafeat.')}.{function.__name__}"]
                read.parameters = griffe.Parameters(*map(shown, signature(function).parameters.values()))
                read.docstring.value = getdoc(function)


def shown(one: Parameter) -> griffe.Parameter:
    """A keyword with its type and its default."""
    default = None if one.default is Parameter.empty else repr(one.default)
    kind = griffe.ParameterKind(one.kind.description)
    return griffe.Parameter(one.name, annotation=one.annotation, kind=kind, default=default)
