"""Names that stand for the same file: an output there would destroy what is still read, or another output."""

from __future__ import annotations

import os
from collections.abc import Mapping

from kafeat.errors import UsageError
from kafeat.io.formats import SUFFIXES
from kafeat.io.uri import identity, is_remote, local_path, path_of


def refuse_same(read: Mapping[str, object], written: Mapping[str, str | None]) -> None:
    """An output in the place of something that is still read would destroy it, or another output."""
    for out in written.values():
        for what, name in read.items():
            if (
                isinstance(name, str)
                and "-" not in (name, out)
                and out is not None
                and is_same_file(name, out)
            ):
                raise UsageError(f"{out}: expected an output apart from the {what}, got the same file")
    places: dict[str, str] = {}
    for what, out in written.items():
        if out is None or out == "-" or _is_device(out):
            continue
        other = places.setdefault(identity(out), what)
        if other != what:
            raise UsageError(f"{out}: expected different files for {other} and {what}, got the same")


def refuse_table_name(model: str) -> None:
    """A model in the place of a table: two tables were named, and the second would be lost."""
    ending = next((suffix for suffix in SUFFIXES if path_of(model).lower().endswith(suffix)), None)
    if ending is not None:
        raise UsageError(
            f"{model}: expected the name of a model, as map.joblib, got that of a table ({ending})"
        )


def _is_device(place: str) -> bool:
    path = local_path(place)
    return not is_remote(place) and os.path.exists(path) and not os.path.isfile(path)


def is_same_file(one: str, other: str) -> bool:
    """Whether both names stand for one object or one existing regular file."""
    if is_remote(one) or is_remote(other):
        return identity(one) == identity(other)
    one, other = local_path(one), local_path(other)
    try:
        return os.path.isfile(one) and os.path.samefile(one, other)
    except OSError:
        return False
