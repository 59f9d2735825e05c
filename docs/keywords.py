"""The keywords of `kafeat.transform` for the page of functions: they are made at its import, and not in the source."""

from __future__ import annotations

from inspect import Parameter, getdoc, signature
from typing import Any

import griffe

from kafeat.jobs.dataset.api import transform


class Keywords(griffe.Extension):
    """Describe that function as Python sees it, and not as its source does."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Take signature and docstring of the function that the decorator gives."""
        if pkg.path == "kafeat":
            read = pkg["jobs.dataset.api.transform"]
            read.parameters = griffe.Parameters(*map(shown, signature(transform).parameters.values()))
            read.docstring.value = getdoc(transform)


def shown(one: Parameter) -> griffe.Parameter:
    """A keyword with its type and its default."""
    default = None if one.default is Parameter.empty else repr(one.default)
    kind = griffe.ParameterKind(one.kind.description)
    return griffe.Parameter(one.name, annotation=one.annotation, kind=kind, default=default)
