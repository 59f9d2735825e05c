"""A config to start from for a table: its columns as comments, and the steps that `tune` tries first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafeat.errors import DataError, counted
from kafeat.io.columns.fields import require
from kafeat.io.options import InputOptions
from kafeat.io.readers.base import Reader
from kafeat.jobs.fit.looks import LOOK, Encoding, Groups, Look, groups_of, with_columns
from kafeat.jobs.fit.reread import rereadable
from kafeat.study.tune.notes import commented
from kafeat.study.tune.space import load_start

_WIDTH = 512
_DONE = {
    "numbers": "kept as numbers",
    "categories": "one_hot: a column of each frequent category",
    "many": "target: the mean label of its value",
    "texts": "text: by its words and letters",
    "times": "date_parts: month, weekday, hour and others",
}


def config_for(data: Any, labels: Sequence[str], reading: InputOptions | None = None) -> str:
    """Return the YAML of a config for a table, with a comment on each column; `labels` are no features."""
    with rereadable(data, reading) as source, source.open() as first:
        require(first, labels, "--label")
        table = first.settled()
        base = load_start({"columns": {"exclude": list(labels)}})[0]
        groups = groups_of(table, base, labels, every=True)
        if not groups.rows:
            raise DataError(f"{table.location}: expected at least one row, got none")
        empty = [one.name for one in groups.looks if one.reading == "numbers" and one.distinct == 0]
        groups = groups.without(empty, "no values")
        encoding: Encoding = "target" if labels else "one_hot"
        config = with_columns(base, groups, _steps(groups, encoding))
        return commented(config, list(_comments(table, groups, labels)))


def _steps(groups: Groups, encoding: Encoding) -> list[dict[str, Any]]:
    """Return the steps for what the first rows hold; later rows may lack values."""
    gaps = groups.rows >= LOOK or any(look.missing for look in groups.looks)
    width = _WIDTH if not groups.texts else _WIDTH // 2
    chain: list[dict[str, Any]] = [
        *groups.in_line(gaps, encoding),
        {"kind": "standardize"},
        {"kind": "nystroem", "n_components": min(width, groups.rows)},
    ]
    each = _WIDTH // 2 // max(1, len(groups.texts))
    return groups.beside_texts(chain, each, labelled=encoding == "target")


def _comments(table: Reader, groups: Groups, labels: Sequence[str]) -> Iterator[str]:
    """Yield what each column is, and how to go on."""
    of_rows = f"its first {LOOK:,} rows" if groups.rows >= LOOK else f"its {counted(groups.rows, 'row')}"
    yield f"A config to start from for {table.location}, by {of_rows}."
    yield "`kafeat tune` searches for a better one for a label."
    for look in groups.looks:
        yield f"  {look.name}: {_described(look, bool(labels))}"
    if labels:
        yield f"  {', '.join(labels)}: left out, as {'it is the label' if len(labels) == 1 else 'they are labels'}"


def _described(look: Look, labelled: bool) -> str:
    figures = [look.type]
    if look.distinct is not None:
        figures += [f"{look.distinct:,} different", *([f"{look.missing:,} missing"] if look.missing else [])]
    figures += [f"such as {look.example}"] if look.example else []
    reading = "categories" if look.reading == "many" and not labelled else look.reading
    done = f"left out: {look.reason}" if reading is None else _DONE[reading]
    done += f"; it {look.reason}" if reading is not None and look.reason else ""
    return f"{', '.join(figures)} -> {done}"
