"""Write the statistics of a transform as JSON, for people and for `kafeat verify`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafeat._version import __version__
from kafeat.io.storage.atomic import beside
from kafeat.io.storage.formats import format_of
from kafeat.io.storage.locations import size_of
from kafeat.io.storage.uri import shown
from kafeat.io.writers.options import OutputOptions
from kafeat.jobs.transform.counts import TransformResult
from kafeat.jobs.transform.options import RowOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.environment import machine, versions


def stats(
    done: TransformResult,
    fm: FeatureMap,
    model: str,
    source: str,
    target: str,
    writing: OutputOptions,
    rules: RowOptions,
) -> dict[str, Any]:
    """Return rows, bytes, seconds, hashes, drift and versions. Pipes have no bytes and no hash."""
    return {
        "kafeat": __version__,
        "command": "transform",
        "model": {"path": shown(model), "sha256": fm.digest},
        "input": {
            "path": shown(source),
            "rows": done.rows_read,
            "bytes": size_of(source),
            "sha256": done.input_sha256,
        },
        "output": {
            "path": shown(target),
            "format": format_of(target, writing.format),
            "rows": done.rows,
            "columns": done.columns,
            "dtype": writing.dtype or fm.dtype,
            "bytes": done.output_bytes,
            "sha256": done.output_sha256,
        },
        "seconds": done.seconds,
        "rows_per_second": done.rows_read / done.seconds if done.seconds > 0.0 else None,
        "clipped_values": done.clipped,
        "bad_rows": {
            "rule": rules.on_bad_rows,
            "count": done.bad_rows,
            "rejects": None if rules.rejects is None else shown(rules.rejects),
        },
        "drift": None
        if done.drift is None
        else {"largest": max(done.drift.values(), default=0.0), "columns": done.drift},
        "versions": versions(),
        "machine": machine(),
    }


@contextmanager
def open_stats(path: str | None, fsync: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Open the file of the statistics, and yield a function that writes them; without a path it does nothing.

    The file is opened before the work begins, so that a path that cannot be written to is reported at once. It appears
    when the block ends without an error.
    """
    if path is None:
        yield lambda _content: None
        return
    with beside(path, fsync) as file:

        def write(content: dict[str, Any]) -> None:
            json.dump(content, file, indent=2, ensure_ascii=False)
            file.write("\n")

        yield write
