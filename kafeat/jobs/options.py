"""Options of `kafeat fit` and `verify`, each declared once, and Python keywords that are made from options.

The command line imports this file for its help, so it imports nothing slow.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, Field, dataclass
from functools import wraps
from inspect import cleandoc, signature
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypeVar

from kafeat.io.options import (
    CLASS_WEIGHT,
    DROP_UNLABELLED,
    EXCLUDE,
    INTERVAL,
    JOBS,
    LABEL,
    ONLY,
    OUTPUT_DTYPE,
    SPLIT_BY,
    WEIGHT,
    InputOptions,
    Option,
    check,
    declared,
    option,
)

ClassWeight = Literal["none", "balanced"]

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

    from kafeat.config import Config
    from kafeat.io.storage.base import Location
    from kafeat.types import TableLike

    Path: TypeAlias = str | os.PathLike[str]
    Data: TypeAlias = Path | TableLike
    Label: TypeAlias = str | Sequence[str] | npt.ArrayLike
    Recipe: TypeAlias = Path | Mapping[str, object] | Sequence[object] | Config


@dataclass(frozen=True)
class ColumnOptions:
    """Options of `kafeat config --for` that choose the feature columns."""

    exclude: str | Sequence[str] = option((), EXCLUDE, variable=False)
    only: str | Sequence[str] = option((), ONLY, variable=False)


@dataclass(frozen=True)
class FitOptions:
    """Arguments of `kafeat.fit`."""

    config: Recipe
    data: Data
    label: Label | None = option(None, LABEL)
    split: str | None = option(
        None,
        "Column with the values train and test. Fit on the train rows only; the column is not a feature.",
        use="column", metavar="COL",
    )  # fmt: skip
    weight: str | None = option(None, WEIGHT)
    class_weight: ClassWeight | None = option(None, CLASS_WEIGHT)
    split_by: str | None = option(None, SPLIT_BY)
    exclude: str | Sequence[str] = option((), EXCLUDE)
    only: str | Sequence[str] = option((), ONLY)
    jobs: int | None = option(None, JOBS)
    drop_unlabelled: bool = option(False, DROP_UNLABELLED)
    intervals: bool = option(
        True,
        "Keep the errors on held-out rows, for `predict --interval`. A fit takes up to twice as long, "
        "and up to nine times if steps learn from the label.",
        names=("--intervals/--no-intervals",),
    )
    reading: InputOptions | None = None


@dataclass(frozen=True)
class VerifyOptions:
    """Files and options of `kafeat verify`."""

    model: Location
    source: Location
    target: Location
    _: KW_ONLY
    stats: Location | None = option(
        None, "Also compare the hashes in the file that `transform --stats` wrote.",
        group="Output", use="file", metavar="FILE.json",
    )  # fmt: skip
    rows: int = option(
        100_000,
        "Approximate number of rows to recompute, some of every part; more for text without a manifest.",
    )
    seed: int = option(0, "Seed of the choice of rows.", least=0)
    on_bad_rows: Literal["error", "drop", "null"] | None = option(
        None,
        "Value of this option when transforming (default: that in the stats or the manifest, else error). With drop, "
        "every row is recomputed.",
        group="Bad rows and drift", choices=("error", "drop", "null"),
    )  # fmt: skip
    output_dtype: str | None = option(None, OUTPUT_DTYPE)
    unit_variance: bool = option(
        False, "Expect features of `transform --unit-variance`. Parquet, Arrow and the stats record this themselves."
    )  # fmt: skip
    interval: float | Sequence[float] = option((), INTERVAL)
    label: str | None = option(
        None,
        "Column of IN that `transform --keep` copied as the label of LIBSVM. The stats record it themselves.",
        use="column", metavar="COL", variable=False,
    )  # fmt: skip
    jobs: int | None = option(None, JOBS)
    reading: InputOptions = InputOptions()
    reading_output: InputOptions = InputOptions()


P = ParamSpec("P")
Options = TypeVar("Options")
Returned = TypeVar("Returned")


def with_keywords(
    options: Callable[P, Options],
) -> Callable[[Callable[[Options], Returned]], Callable[P, Returned]]:
    """Return a decorator for a function of one options object. It replaces the object by a keyword per option.

    The docstring of the function gets the help of each option, unless it already describes the keyword.
    """

    def decorate(function: Callable[[Options], Returned]) -> Callable[P, Returned]:
        @wraps(function)
        def with_options(*files: P.args, **given: P.kwargs) -> Returned:
            try:
                signature(with_options).bind(*files, **given)
            except TypeError as error:  # the user's keywords do not fit
                raise TypeError(f"kafeat.{function.__name__}: {error}") from None
            made = options(*files, **given)
            check(made)
            return function(made)

        returns = signature(function).return_annotation
        vars(with_options)["__signature__"] = own = signature(options).replace(return_annotation=returns)
        if "Parameters\n" in (function.__doc__ or ""):
            with_options.__doc__ = _documented(function.__doc__ or "", list(own.parameters), options)
        return with_options

    return decorate


def _documented(text: str, names: Sequence[str], options: Any) -> str:
    """Return a docstring with a paragraph for each keyword, in their order."""
    head, title, rest = cleandoc(text).partition("Parameters\n----------\n")
    written, blank, tail = rest.partition("\n\n")
    found = {one.partition(" : ")[0]: one.rstrip() for one in re.split(r"^(?=\w+ : )", written, flags=re.M)}
    made = {one.name: _paragraph(one, says) for one, says in declared(options)} | found
    return "".join((head, title, "\n".join(made[name] for name in names), blank, tail))


def _paragraph(one: Field[Any], says: Option) -> str:
    """Describe a keyword as numpydoc does."""
    *kinds, last = str(one.type).split(" | ")
    words = f"{', '.join(kinds)} or {last}" if kinds else last
    words = words.replace("Path", "str, path").replace("Sequence[str]", "list of str")
    if says.choices:
        words = ", ".join([*(["None"] if last == "None" else []), *map(json.dumps, says.allowed)])
        words = f"{{{words}}}{' or list of these' if says.multiple else ''}"
    default = json.dumps(one.default) if isinstance(one.default, str) else one.default
    meaning = textwrap.fill(says.python or says.help, 116, initial_indent="    ", subsequent_indent="    ")
    return f"{one.name} : {words}, default {default}\n{meaning}"
