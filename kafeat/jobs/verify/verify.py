"""Verify an output: transform random chunks of the input again, and compare features and hashes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Any

from kafeat.contract.tile import Rows
from kafeat.errors import DataError, GateError, UsageError
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.json_text import read_json
from kafeat.io.writers.base import OutputOptions
from kafeat.io.writers.passthrough import KeptRows
from kafeat.jobs.options import VerifyOptions, with_keywords
from kafeat.jobs.transform.outputs import Outputs, outputs_of
from kafeat.jobs.verify.output_rows import OutputRows
from kafeat.maths.row_sample import row_hashes
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load_from
from kafeat.runtime.run import Done, RowPolicy


@dataclass(frozen=True)
class VerifyResult:
    """The result of a verification.

    Attributes:
        rows: Rows of the output.
        rows_compared: Rows that were computed again.
        largest_difference: Largest difference relative to the largest feature of its row; 0 is equal to the last bit.
        hashes: Which of model, input and output have the hash of the stats file.
    """

    rows: int
    rows_compared: int
    largest_difference: float
    hashes: tuple[str, ...]


@with_keywords(VerifyOptions)
def verify_file(asked: VerifyOptions) -> VerifyResult:
    """Transform random chunks of about `rows` rows again, and count all rows; raise `GateError` for a wrong output.

    `output_dtype` is the dtype of a text output, which does not state it; default: that of the stats, or of the map.
    `unit_variance` tells that the features are scaled, for an output that does not state it, such as text.
    `label` names the column that was copied as the label of LIBSVM; default: that of the stats, or none.
    With `drop` all rows are transformed again, as only that shows which rows were dropped.
    """
    fm = load_from(asked.model)
    known = {} if asked.stats is None else _read_stats(asked.stats)
    source, target = asked.source, asked.target
    hashes = _check_hashes(known, fm, asked.model, source, target)
    with asked.reading.open(source) as source_reader, asked.reading_output.open(target) as output_reader:
        _check_maker(output_reader, target, fm, asked.model)
        made = known.get("output", {})
        dtype = asked.output_dtype or made.get("dtype")
        scaled = asked.unit_variance or "scale" in {**made, **output_reader.notes}
        outputs = _outputs(output_reader, fm, scaled)
        copied = _copied(asked.label, known, output_reader)
        output = OutputRows(output_reader, source_reader, fm, outputs, dtype, copied)
        expected, compared, largest = _compare(asked, fm, source_reader, output, outputs)
        source_reader.check_unchanged()
        output_reader.check_unchanged()
    if output.rows != expected:
        raise GateError(f"{target}: expected {expected:,} rows, as {source} tells, got {output.rows:,}")
    return VerifyResult(output.rows, compared, largest, hashes)


def _compare(
    asked: VerifyOptions, fm: FeatureMap, source: Reader, output: OutputRows, outputs: Outputs
) -> tuple[int, int, float]:
    """Return the rows that the output must have, the rows compared, and the largest difference of one."""
    rule, dropped = asked.on_bad_rows, asked.on_bad_rows == "drop"
    chunks = source.chunks(
        match(source, fm.columns, ()), output.keep, fm.chunk_rows,
        typed_passthrough=output.typed, set_aside=rule != "error",
    )  # fmt: skip
    chosen = _RandomChunks(chunks, asked.seed, None if dropped else max(1, -(-asked.rows // fm.chunk_rows)))
    compared, largest = 0, 0.0
    for done in outputs.run(iter(chosen), output, asked.jobs, RowPolicy(set_aside=True)):
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


def _copied(label: str | None, known: dict[str, Any], made: Reader) -> list[str]:
    """Return the passthrough columns as far as the label or the stats tell; only LIBSVM needs to be told."""
    if label is None:
        return list(known.get("output", {}).get("keep", []))
    if not made.sparse or len(made.fields) < 2:
        raise UsageError(
            f"--label: expected an output of LIBSVM, got {made.location}, which names its columns"
        )
    return [label]


def _outputs(made: Reader, fm: FeatureMap, scaled: bool) -> Outputs:
    """Return what an output was made of: predictions, if the model makes them and the output has their columns."""
    writing = OutputOptions(features=True, unit_variance=scaled)
    features = outputs_of(fm, writing, sparse=made.sparse)
    if fm.predictor is None or scaled:
        return features
    predictions = outputs_of(fm, OutputOptions(), only_numbers=made.positional)
    # LIBSVM does not tell its width, and has a label beside the numbers.
    fields = made.settled().fields[-1:] if made.sparse else made.fields
    width = sum(field.width or 1 for field in fields)
    last = made.fields[-1].name if made.fields else ""
    endings = (predictions.names[-1], predictions.list_name)
    if width == predictions.width if made.positional else last.endswith(endings):
        return predictions
    return features


def _expected(done: Done, on_bad_rows: str, outputs: Outputs, typed: bool) -> tuple[Rows, KeptRows | None]:
    if done.bad_rows and on_bad_rows == "error":
        raise done.chunk.located(done.bad_rows[0])
    kept = done.chunk.passthrough
    if outputs.classes is not None:
        kept = outputs.classes.table(kept, done.floats, as_text=not typed)
    if done.good is None or on_bad_rows != "drop":
        return done.features, kept
    return done.features[done.good], None if kept is None else kept.filter(done.good)


class _RandomChunks:
    """An iterator over about `size` random chunks (all if None), with the first and the last, that counts all rows.

    It takes each chunk whose hash is among the smallest so far, as the number of chunks may be unknown. So it takes
    some more than `size`.
    """

    def __init__(self, chunks: Iterator[Chunk], seed: int, size: int | None) -> None:
        self._chunks, self._seed, self._size = chunks, seed, size
        self._smallest: list[int] = []
        self.rows = 0

    def __iter__(self) -> Iterator[Chunk]:
        last: Chunk | None = None
        for number, chunk in enumerate(self._chunks):
            self.rows += chunk.rows
            last = chunk
            if self._picks(number):
                last = None
                yield chunk
        if last is not None:
            yield last

    def _picks(self, number: int) -> bool:
        if self._size is None:
            return True
        smallness = -int(row_hashes(self._seed, number, 1)[0])
        if len(self._smallest) < self._size:
            heappush(self._smallest, smallness)
            return True
        return heappushpop(self._smallest, smallness) != smallness


def _read_stats(place: Location) -> dict[str, Any]:
    expected = "a file made by kafeat transform --stats"
    content = read_json(place, expected)
    with suppress(AttributeError, KeyError, TypeError):
        keep = content["output"].get("keep", [])
        known = [isinstance(content[name], dict) for name in ("model", "input", "output")]
        if all([*known, isinstance(keep, list), *(isinstance(name, str) for name in keep)]):
            return dict(content)
    raise DataError(f"{place}: expected {expected}, got another")


def _check_hashes(
    known: dict[str, Any], fm: FeatureMap, model: Location, source: Location, target: Location
) -> tuple[str, ...]:
    """Return the files that have the hashes of the stats; raise `GateError` for another hash."""
    checked = []
    for what, place in (("model", model), ("input", source), ("output", target)):
        expected = known.get(what, {}).get("sha256")
        if expected is None or isinstance(place, StandardStream):  # standard input can be read only once
            continue
        got = fm.digest if what == "model" else place.digest()
        if got != expected:
            raise GateError(
                f"{place}: expected the {what} with SHA-256 {str(expected)[:12]}…, got {str(got)[:12]}…"
            )
        checked.append(what)
    return tuple(checked)
