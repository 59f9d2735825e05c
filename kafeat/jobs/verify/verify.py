"""Verify an output: transform some rows of the input again, and compare features and hashes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafeat.contract.tile import Rows
from kafeat.errors import DataError, GateError, UsageError
from kafeat.io.columns.selection import match
from kafeat.io.data_set import MANIFEST, Part, is_data_set, list_parts
from kafeat.io.options import InputOptions
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.location import read_json
from kafeat.io.writers.passthrough import KeptRows
from kafeat.jobs.dataset.manifest import Manifest, read_manifest
from kafeat.jobs.options import VerifyOptions, with_keywords
from kafeat.jobs.transform.outputs import Outputs, levels_of
from kafeat.jobs.verify.forms import outputs_in
from kafeat.jobs.verify.output_rows import TOLERANCE, OutputRows, reading_output
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load_from
from kafeat.runtime.run import Done, RowPolicy


@dataclass(frozen=True)
class VerifyResult:
    """The result of a verification.

    Attributes:
        rows: Rows of the output.
        rows_compared: Rows that were computed again.
        largest_difference: Largest difference relative to the largest feature of its row; 0 means equal bits.
        hashes: Which of model, input and output have the hash of the stats file or, for a folder, of its manifest.
    """

    rows: int
    rows_compared: int
    largest_difference: float
    hashes: tuple[str, ...]


@with_keywords(VerifyOptions)
def verify_file(asked: VerifyOptions) -> VerifyResult:
    """Transform about `rows` rows again, some of each part, and count all rows. Raise `GateError` for a wrong output.

    `output_dtype` is the dtype of a text output, which does not state its dtype; default: the dtype in the stats, or
    that of the map. `unit_variance` means that the features of an output without notes, such as text, are scaled.
    `label` names the column that was copied as the label of LIBSVM; default: the name in the stats, or none. With
    `drop`, all rows are transformed again, because only that shows which rows were dropped. For a folder, its manifest
    takes the place of stats, and states the rows and the hash of each part.
    """
    fm = load_from(asked.model)
    known = {} if asked.stats is None else _read_stats(asked.stats)
    source, target = asked.source, asked.target
    hashes = _check_hashes(known, fm, asked.model, source, target)
    fitted = fm.columns.file_dialect
    folder = target.parent if target.name == MANIFEST else target
    with reading_output():
        parts = list_parts(target, asked.reading_output.input_format).parts if is_data_set(target) else None
        listed = folder is not target or target.kind() == "folder"
        manifest = read_manifest(folder) if listed else None
    promised = {} if manifest is None else _promised(folder, manifest, parts or ())
    made = _recorded(known, manifest)
    rule = asked.on_bad_rows or made["on_bad_rows"]
    with (
        asked.reading.open(source, fitted=fitted) as source_reader,
        _opened_output(target, asked.reading_output, parts) as output_reader,
    ):
        _check_maker(output_reader, target, fm, asked.model)
        dtype = asked.output_dtype or made["dtype"]
        scaled = asked.unit_variance or "scale" in {**made, **output_reader.notes}
        stated = {**made, **output_reader.notes}.get("interval")
        outputs = outputs_in(output_reader, fm, scaled, levels_of(asked.interval), _stated_levels(stated))
        copied = _copied(asked.label, made["keep"], output_reader)
        output = OutputRows(output_reader, source_reader, fm, outputs, dtype, copied, promised)
        expected, compared, largest = _compare(asked, rule, fm, source_reader, output, outputs)
        source_reader.check_unchanged()
        output_reader.check_unchanged()
    if output.rows != expected:
        raise GateError(f"{target}: expected {expected:,} rows, as in {source}, got {output.rows:,}")
    if manifest is not None:
        _check_parts(folder, manifest)
        hashes = (*hashes, "output")
    return VerifyResult(output.rows, compared, largest, hashes)


@reading_output()
def _opened_output(target: Location, reading: InputOptions, parts: Sequence[Part] | None) -> Reader:
    """Open an output. Folders of its parts, such as `day=1`, do not become columns."""
    if parts is None:
        return reading.open(target)
    return reading.open_parts(target, [replace(part, keys=()) for part in parts])


def _promised(folder: Location, manifest: Manifest, parts: Sequence[Part]) -> dict[str, int]:
    """Return the number of rows of each part by location. Refuse a part that is missing or that no run has finished."""
    rows = {record.name: record.rows for record in manifest.parts}
    there = {part.name: part.location.source for part in parts}
    for name in sorted({one.name for one in manifest.failed} | (rows.keys() ^ there.keys())):
        got = "one more" if name in there else "none here; transform with --resume makes it"
        raise GateError(f"{folder.join(name)}: expected the finished parts of {MANIFEST}, got {got}")
    return {place: rows[name] for name, place in there.items()}


def _check_parts(folder: Location, manifest: Manifest) -> None:
    """Compare every byte of the parts with their hashes. This comes last: a wrong row says more than a wrong hash."""
    for record in manifest.parts:
        place, hashed = folder.join(record.name), record.output.sha256
        if hashed is not None:
            _check_hash("output", place, hashed, place.digest(), f", as {MANIFEST} says")


def _check_hash(what: str, place: Location, expected: object, got: object, by: str = "") -> None:
    if got != expected:
        raise GateError(f"{place}: expected the {what} with SHA-256 {expected!s:.12}…{by}, got {got!s:.12}…")


def _compare(
    asked: VerifyOptions, rule: str, fm: FeatureMap, source: Reader, output: OutputRows, outputs: Outputs
) -> tuple[int, int, float]:
    """Return the expected number of rows, the number of compared rows, and the largest difference."""
    dropped = rule == "drop"
    chunks = source.chunks(
        match(source, fm.columns, ()), output.keep, fm.chunk_rows,
        typed_passthrough=output.typed, set_aside=rule != "error",
    )  # fmt: skip
    chosen = _SomeRows(chunks, asked.seed, math.inf if dropped else asked.rows, output.total or source.rows)
    compared, largest = 0, 0.0
    for done in outputs.run(iter(chosen), output.memory, asked.jobs, RowPolicy(set_aside=True)):
        if not dropped:
            output.at = done.chunk.start
        expected, kept = _expected(done, rule, outputs, output.typed)
        largest = max(largest, output.compare(expected, kept, done.chunk))
        compared += len(expected)
    output.end()
    return output.at if dropped else chosen.rows, compared, largest


def _check_maker(output: Reader, target: Location, fm: FeatureMap, model: Location) -> None:
    """Refuse an output whose notes name another map."""
    maker = output.notes.get("map")
    if maker not in (None, fm.digest):
        raise GateError(
            f"{target}: expected an output of {model} ({str(fm.digest)[:12]}), got one of the map {str(maker)[:12]}"
        )


def _copied(label: str | None, kept: list[str], made: Reader) -> list[str]:
    """Return the passthrough columns: --label, which is only for LIBSVM, or those `kept` according to the stats."""
    if label is None:
        return kept
    if not made.sparse or len(made.fields) < 2:
        raise UsageError(
            f"--label: expected an output of LIBSVM, got {made.location}, which names its columns"
        )
    return [label]


def _stated_levels(stated: object) -> tuple[float, ...]:
    """Return the levels of intervals that the notes of an output state as text, or its stats as a list."""
    listed = stated.split(",") if isinstance(stated, str) else stated if isinstance(stated, list) else []
    with suppress(TypeError, ValueError):
        return levels_of([float(one) for one in listed])
    raise DataError(f"interval: expected numbers in the notes or the stats of the output, got {stated!r:.40}")


def _expected(done: Done, on_bad_rows: str, outputs: Outputs, typed: bool) -> tuple[Rows, KeptRows | None]:
    if done.bad_rows and on_bad_rows == "error":
        bad = done.chunk.located(done.bad_rows[0])
        raise DataError(f"{bad}; if the transform had --on-bad-rows drop or null, pass that to verify")
    kept = done.chunk.passthrough
    if outputs.classes is not None:
        kept = outputs.classes.table(kept, done.floats, as_text=not typed)
    if done.good is None or on_bad_rows != "drop":
        return done.features, kept
    return done.features[done.good], None if kept is None else kept.filter(done.good)


class _SomeRows:
    """An iterator over about `most` of `total` rows, spread over all chunks. `rows` counts the rows of all chunks.

    It yields all rows of some random chunks and of the last chunk, and the first rows of all other chunks. The bytes of
    first rows do not depend on later rows. For text, `total` is None. The share to yield is then computed from the rows
    read so far, so that more than `most` rows are yielded.
    """

    def __init__(self, chunks: Iterator[Chunk], seed: int, most: float, total: int | None) -> None:
        self._chunks, self._most, self._total = chunks, most, total
        self._rng = np.random.default_rng(seed)
        self.rows = 0

    def __iter__(self) -> Iterator[Chunk]:
        due, following = 0.0, next(self._chunks, None)
        while (chunk := following) is not None:
            following = next(self._chunks, None)
            self.rows += chunk.rows
            share = min(1.0, self._most / max(self._total or self.rows, 1))
            due += share * chunk.rows
            whole = following is None or due > self._rng.random() * chunk.rows
            rows = chunk.rows if whole else math.ceil(share / 2 * chunk.rows)
            due -= rows
            yield chunk if whole else chunk.selected(np.arange(chunk.rows) < rows)


def _read_stats(place: Location) -> dict[str, Any]:
    expected = "a file made by kafeat transform --stats"
    content = read_json(place, expected)
    with suppress(AttributeError, KeyError, TypeError):
        keep = content["output"].get("keep", [])
        parts = [content.get("bad_rows", {}), *(content[name] for name in ("model", "input", "output"))]
        known = [isinstance(part, dict) for part in parts]
        if all([*known, isinstance(keep, list), *(isinstance(name, str) for name in keep)]):
            return dict(content)
    raise DataError(f"{place}: expected {expected}, got another")


def _recorded(known: dict[str, Any], manifest: Manifest | None) -> dict[str, Any]:
    """Return the options of the transform that its stats, or the manifest of its folder, state."""
    settings, rule = manifest.settings if manifest else {}, known.get("bad_rows", {}).get("rule")
    made = {"dtype": None, "on_bad_rows": rule or "error", **settings, **known.get("output", {})}
    made["keep"] = made.get("keep") or []
    if made["dtype"] not in (None, *TOLERANCE) or not isinstance(made["keep"], list):
        raise DataError(
            f"dtype, keep: expected a dtype and columns in the record of the run, got {made['dtype']!r:.40}, "
            f"{made['keep']!r:.40}"
        )
    return made


def _check_hashes(
    known: dict[str, Any], fm: FeatureMap, model: Location, source: Location, target: Location
) -> tuple[str, ...]:
    """Compare the hashes of model, input and output with the stats. Return the names of the compared hashes."""
    checked = []
    for what, place in (("model", model), ("input", source), ("output", target)):
        expected = known.get(what, {}).get("sha256")
        if expected is None or isinstance(place, StandardStream):  # standard input can be read only once
            continue
        _check_hash(what, place, expected, fm.digest if what == "model" else place.digest())
        checked.append(what)
    return tuple(checked)
