"""What a transform did, as JSON: for those who look at it in the morning, and for `kafeat verify`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafeat._version import __version__
from kafeat.io.storage.atomic import beside
from kafeat.io.storage.formats import format_of
from kafeat.io.storage.locations import size_of
from kafeat.io.storage.uri import shown
from kafeat.jobs.transform.counts import TransformResult
from kafeat.jobs.transform.options import OutputOptions, RowOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.environment import machine, versions

if TYPE_CHECKING:
    pass


def stats(
    done: TransformResult,
    fm: FeatureMap,
    model: str,
    source: str,
    target: str,
    writing: OutputOptions,
    rules: RowOptions,
) -> dict[str, Any]:
    """Rows, bytes, seconds, hashes, drift and versions. What has no file has no bytes and no hash."""
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
    """Gives what writes them, if there is a path. The file appears when the block ends without an error.

    It is opened before the work begins: a place that cannot be written to is told before an hour of it.
    """
    if path is None:
        yield lambda _content: None
        return
    with beside(path, fsync) as file:

        def write(content: dict[str, Any]) -> None:
            json.dump(content, file, indent=2, ensure_ascii=False)
            file.write("\n")

        yield write
