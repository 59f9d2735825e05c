"""Columns that a step names as its own: the field of its recipe, and their positions in the fit sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field

from kafeat.contract.describe import Described, near
from kafeat.contract.name_patterns import feature_places
from kafeat.contract.step import Names
from kafeat.errors import DataError, quoted
from kafeat.types import Array


def as_tuple(value: object) -> object:
    """Convert a list only: a set has no order."""
    return tuple(value) if isinstance(value, list) else value


_Name = Annotated[str, Field(min_length=1), Described("a name (text, not empty)", "names")]
ColumnNames = Annotated[tuple[_Name, ...], BeforeValidator(as_tuple)]


def places_of(kind: str, columns: Sequence[str], names: Names | None) -> Array:
    """Return the positions of these columns, each once. `kind` names the step in messages."""
    if names is None:
        if columns:
            raise DataError(
                f"{kind}: expected to come first, or after steps that keep the input columns, as it reads them by name"
            )
        names = ()
    found: dict[int, None] = {}
    for name, places in feature_places(columns, names):
        if not places:
            meant = near(name, [other for other in names if other is not None])
            hint = "" if meant is None else f" (did you mean {quoted(meant)}?)"
            raise DataError(f"{kind}: columns: expected names of features, got {quoted(name)}{hint}")
        found |= dict.fromkeys(places)
    return np.array(list(found), dtype=np.int64)
