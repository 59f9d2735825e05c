"""Find out which outputs of a model a file holds, by the file's columns. If none fit, name the columns and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from kafeat.errors import GateError, UsageError, counted
from kafeat.io.columns.fields import listed
from kafeat.io.options import OutputOptions
from kafeat.io.readers.base import Reader
from kafeat.jobs.transform.outputs import Outputs, outputs_of
from kafeat.model.feature_map import FeatureMap

_LEVEL = re.compile(r"(?:lower|upper|set)(?:_.*)?_(0\.\d+)$|(?:lower|upper|set)(?:_.*)?$")
# Stands for the level of a single interval: the names of its columns, `lower` and `upper`, do not have a level.
_SOME = 0.5


def outputs_in(
    made: Reader, fm: FeatureMap, scaled: bool, asked: tuple[float, ...], stated: tuple[float, ...] = ()
) -> Outputs:
    """Return the outputs of the model that a file holds. Refuse a file with other columns.

    `scaled` is true for features of unit variance, `asked` are the levels of intervals that the file should have,
    and `stated` are the levels in its notes.
    """
    if asked and stated and asked != stated:
        raise GateError(f"{made.location}: expected {_option(asked)}, got an output of {_option(stated)}")
    wanted = list(_forms(made, fm, scaled, asked or stated))
    for form in wanted:
        if _holds(made, form):
            return form
    expected = " or ".join(dict.fromkeys(_spelled(made, form) for form in wanted))
    raise GateError(
        f"{made.location}: expected {expected}, got {_found(made)}{_advice(made, fm, scaled, asked)}"
    )


def _forms(made: Reader, fm: FeatureMap, scaled: bool, levels: tuple[float, ...]) -> Iterator[Outputs]:
    """Yield what a file may hold: predictions if the model has a predictor, and features if `levels` is empty."""
    if fm.predictor is not None and not scaled:
        yield outputs_of(fm, OutputOptions(interval=levels), only_numbers=made.positional)
        if levels:
            return
    writing = OutputOptions(features=True, unit_variance=scaled, interval=levels)
    yield outputs_of(fm, writing, sparse=made.sparse)


def _advice(made: Reader, fm: FeatureMap, scaled: bool, asked: tuple[float, ...]) -> str:
    """If the file holds other outputs of the model, return their name and their options as text. If not, return ''."""
    endings = filter(None, (_LEVEL.search(field.name) for field in made.fields))
    found = tuple(dict.fromkeys(float(one[1] or _SOME) for one in endings))
    for levels in dict.fromkeys([(), found, (_SOME,)]):
        with suppress(UsageError):
            for form in _forms(made, fm, False, levels):
                if _holds(made, form):
                    given = ["--interval"] * bool(asked and not levels) + ["--unit-variance"] * scaled
                    leave = f": leave {' and '.join(given)} out" if given else ""
                    if levels:
                        option = "the --interval of the output" if levels == (_SOME,) else _option(levels)
                        leave += f": give {option}"
                    return f", which are its {form.what}{' with intervals' if levels else ''}{leave}"
    return ""


def _option(levels: tuple[float, ...]) -> str:
    return " ".join(f"--interval {level!r}" for level in levels)


def _holds(made: Reader, form: Outputs) -> bool:
    """Return true if the last columns of the file are those of `form`, perhaps with a prefix."""
    if made.positional or made.sparse:
        width = _width(made)
        if form.what == "features" and made.sparse:
            return width <= form.width  # LIBSVM does not show zeros at the end
        if form.what == "features" and made.untyped:
            return width >= form.width  # without a header, passthrough columns are possible
        return width == form.width
    names = [field.name for field in made.fields]
    last = made.fields[-1] if made.fields else None
    wanted = list(_names(form))
    if last is not None and last.kind == "list":
        if last.width not in (None, form.width):
            return False
        if form.what == "features":
            return True  # a list may have any name
        wanted = [*([] if form.classes is None else form.classes.names), form.list_name]
    found = names[-len(wanted) :]
    prefix = found[0].removesuffix(wanted[0]) if found else ""
    return found == [prefix + name for name in wanted]


def _names(form: Outputs) -> list[str]:
    """Return the names of the columns without the prefix that they may have."""
    if form.what == "features":
        return [str(i) for i in range(form.width)]
    return [*([] if form.classes is None else form.classes.names), *form.names]


def _width(made: Reader) -> int:
    """Return how many numbers a row has, without the label of LIBSVM."""
    fields = made.settled().fields[-1:] if made.sparse else made.fields
    return sum(field.width or 1 for field in fields)


def _spelled(made: Reader, form: Outputs) -> str:
    if made.positional or made.sparse:
        return f"{counted(form.width, 'column')} of {form.what}"
    if form.what == "features":
        return f"the columns of the features in their order, {listed(form.names)}"
    return f"the columns of predictions, {listed(_names(form))}"


def _found(made: Reader) -> str:
    if made.positional or made.sparse:
        return counted(_width(made), "column")
    return listed([field.name for field in made.fields])
