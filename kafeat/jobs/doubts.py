"""What may not be meant, though nothing is wrong with it: said once, when a map is fitted."""

from __future__ import annotations

from collections.abc import Iterator

from kafeat.config import Config
from kafeat.errors import quoted
from kafeat.io.names import are_numbers
from kafeat.io.source import Source


def doubts(config: Config, source: Source, label: str | None) -> Iterator[str]:
    """Sentences for the person who calls the fit, about the columns that it takes for features."""
    names = [field.name for field in source.fields]
    if source.untyped and not source.positional and are_numbers(names):
        yield (
            f"{source.place}: the names of the columns are numbers ({', '.join(names[:3])}, …); if the first line is a "
            "row, read it with --no-header"
        )
    if config.columns.include:
        return
    for name in sorted(source.row_names):
        named = f"column {quoted(name)}" if name else "the column without a name"
        yield f"{source.place}: {named} is taken for names of rows, and is no feature"
    absent = [name for name in config.columns.exclude if name not in names]
    if absent and label is None and not source.positional:
        listed = ", ".join(map(quoted, absent))
        yield f"{source.place}: nothing was left out as {listed} (columns.exclude): the file has no such column"
