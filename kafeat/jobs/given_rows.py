"""Rows that a config names for its steps, beside the data: landmarks from a file, or from an array."""

from __future__ import annotations

import numpy as np

from kafeat.config import Config
from kafeat.io.columns import Columns
from kafeat.io.formats import open_source
from kafeat.io.memory import source_of
from kafeat.io.selection import match
from kafeat.io.source import Source
from kafeat.io.uri import name_of
from kafeat.jobs.rows import matrices
from kafeat.provenance import Origin, printable
from kafeat.sparse import dense
from kafeat.step import DOUBLE
from kafeat.types import Floats


def read_given(config: Config, columns: Columns, label: str | None) -> tuple[dict[str, Floats], list[Origin]]:
    """The rows that steps ask for besides the sample, with the columns of the map, and from what they came."""
    found: dict[str, Floats] = {}
    records: list[Origin] = []
    for step in config.steps:
        for name, rows in step.given_rows.items():
            if name in found:
                continue
            with open_source(rows, None) if isinstance(rows, str) else source_of(rows) as source:
                names = {field.name for field in source.fields}
                matched = match(source, columns, [label] if label is not None and label in names else [])
                found[name] = _all_rows(source, matched, config)
                file = printable(name_of(name))
                records.append(Origin(name=file, rows=len(found[name]), sha256=source.digest()))
    return found, records


def _all_rows(source: Source, columns: Columns, config: Config) -> Floats:
    parts: list[Floats] = [np.empty((0, columns.n_features))]
    parts += [dense(X) for _, X in matrices(source.chunks(columns, (), config.chunk_rows), DOUBLE)]
    return np.ascontiguousarray(np.concatenate(parts))
