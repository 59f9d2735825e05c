"""Write a starting config for a table, with the steps that `tune` tries first and a comment on each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kafeat.config import commented
from kafeat.errors import counted
from kafeat.io.options import InputOptions
from kafeat.jobs.fit import LOOK, Encoding, Groups, Listener, Look, recipe_of, rereadable, with_columns
from kafeat.study.tune.input import TunedTable, load_start, read_table

_WIDTH = 512
_DONE = {
    "numbers": "kept as numbers",
    "categories": "one_hot: a column of each frequent category",
    "many": "target: the mean label of its value",
    "texts": "text: by its words and letters",
    "times": "date_parts: month, weekday, hour and others",
}


def config_for(
    data: Any,
    labels: Sequence[str],
    reading: InputOptions | None = None,
    exclude: Sequence[str] = (),
    only: Sequence[str] = (),
) -> str:
    """Return the YAML of a config for a table, with a comment on each column. `labels` are not features.

    Columns are read, or refused, as in `tune`, and its notes on columns become comments.
    """
    said: list[str] = []
    with rereadable(data, reading, tuple(labels) or None) as source:
        tell, start = Listener(warn=said.append), recipe_of(load_start({})[0], None, None, exclude, only)
        table = read_table(source, start, tuple(labels), None, tell, counted=bool(labels), every=True)
        base = recipe_of(load_start({"columns": {"exclude": list(labels)}})[0], None, None, exclude, only)
        with source.open() as opened:
            parts = opened.parts
        config = with_columns(base, table.groups, _steps(table.groups, "target" if labels else "one_hot"))
        if labels:
            said.insert(0, table.summary.taken_for("auto", "kafeat tune --task {}"))
        return commented(config, [*_comments(table, labels, parts), *said])


def _steps(groups: Groups, encoding: Encoding) -> list[dict[str, Any]]:
    """Return the steps that suit the first rows. The steps fill gaps if any row may have a missing value."""
    gaps = groups.rows >= LOOK or any(look.missing for look in groups.looks)
    width = _WIDTH if not groups.texts else _WIDTH // 2
    chain: list[dict[str, Any]] = [
        *groups.in_line(gaps, encoding),
        {"kind": "standardize"},
        {"kind": "nystroem", "n_components": min(width, groups.rows)},
    ]
    each = _WIDTH // 2 // max(1, len(groups.texts))
    return groups.beside_texts(chain, each, labelled=encoding == "target")


def _comments(table: TunedTable, labels: Sequence[str], parts: str) -> Iterator[str]:
    """Yield comments: the type of each column, how it is read, and what to do next."""
    place, groups = table.place, table.groups
    first = "first " if groups.rows >= LOOK or parts else ""
    of_rows = f"its {first}{counted(groups.rows, 'row')}"
    yield f"A config to start from for {place}{f' ({parts})' if parts else ''}, by {of_rows}."
    yield "`kafeat tune` searches for a better one for a label."
    for look in groups.looks:
        yield f"  {look.name}: {_described(look, bool(labels))}"
    for label, value in zip(labels, np.atleast_1d(table.labels[0]) if labels else (), strict=True):
        yield f"  {label}: such as {value} -> left out, as it is {'the label' if len(labels) == 1 else 'a label'}"


def _described(look: Look, labelled: bool) -> str:
    figures = ["times" if look.reading == "times" and look.type in ("text", "numbers") else look.type]
    if look.distinct is not None:
        figures += [f"{look.distinct:,} different", *([f"{look.missing:,} missing"] if look.missing else [])]
    figures += [f"such as {look.example}"] if look.example else []
    reading = "categories" if look.reading == "many" and not labelled else look.reading
    done = f"left out: {look.reason}" if reading is None else _DONE[reading]
    return f"{', '.join(figures)} -> {done}"
