"""Verify an output: transform random chunks of the input again, and compare features and hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import heappush, heappushpop
from typing import Any

import numpy as np

from kafeat.contract.tile import Rows, SparseRows, dense
from kafeat.errors import DataError, GateError, UsageError, counted, quoted, spell_row
from kafeat.io.columns.columns import Column, Columns
from kafeat.io.columns.fields import Field, as_spelled
from kafeat.io.columns.selection import match
from kafeat.io.data_set import MANIFEST, Part, is_data_set, list_parts
from kafeat.io.options import InputOptions
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.location import read_json
from kafeat.io.writers.libsvm import comparable_labels
from kafeat.io.writers.passthrough import KeptRows, difference
from kafeat.jobs.dataset.manifest import Manifest, read_manifest
from kafeat.jobs.options import VerifyOptions, with_keywords
from kafeat.jobs.transform.outputs import Outputs, levels_of
from kafeat.jobs.verify.forms import outputs_in
from kafeat.maths.row_sample import row_hashes
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load_from
from kafeat.runtime.run import Done, NewArrays, RowPolicy
from kafeat.types import Floats

# Tolerances relative to the largest feature of a row, since other processors or libraries may round differently.
TOLERANCE = {"float16": 2e-3, "float32": 1e-4, "float64": 1e-9}
_OF_ARROW = {"halffloat": "float16", "float": "float32", "double": "float64"}


class OutputRows:
    """Reads the rows of an output, and compares them with expected rows, which are computed in its `memory`.

    `at` is the next row to compare. `keep` names the passthrough columns, which come before the features and are also
    in the input. For LIBSVM, `kept` names the label. `promised` maps the location of each part to its number of rows.
    """

    def __init__(
        self,
        made: Reader,
        source: Reader,
        fm: FeatureMap,
        outputs: Outputs,
        dtype: str | None,
        kept: Sequence[str] = (),
        promised: Mapping[str, int] | None = None,
    ) -> None:
        self._made, self._width, self._outputs = made, outputs.width, outputs
        fields = _numbers(made, outputs.width)
        columns = Columns(
            tuple(Column(field.name, field.width) for field in fields), False, None, missing=True
        )
        self._names = _names_of(outputs, fields, made)
        self._dtype = np.dtype(dtype or outputs.dtype) if made.untyped else _dtype(made, fields)
        # Predictions in float64 are only as exact as the features, which have the map's dtype.
        self._tolerance = max(TOLERANCE[self._dtype.name], TOLERANCE[fm.dtype])
        lists = fields[0].width is not None
        # Memory in C or Fortran order, as when the output was written, because the last bit depends on it.
        self.memory = NewArrays(outputs.width, self._dtype, "C" if made.positional or lists else "F")
        written = self._columns_before(source, [field.name for field in made.fields[: -len(fields)]], kept)
        # Passthrough columns in text are compared as text, because their types would be guesses.
        self.typed = made.format.typed
        self._chunks = made.chunks(columns, written, fm.chunk_rows, typed_passthrough=not made.untyped)
        self._promised = dict(promised or {})
        self._chunk: Chunk | None = None
        self.at = self.rows = 0
        self._advance()

    def _columns_before(self, source: Reader, before: list[str], kept: Sequence[str]) -> list[str]:
        """Record which columns before the numbers are copied, and which are classes. Return those to read."""
        made, classes = self._made, self._outputs.classes
        predicted = [] if classes is None else before[-len(classes.names) :]
        self._predicted, self._labelled = set(predicted), made.sparse and bool(before)
        if made.sparse:
            self.keep = as_spelled(source, kept if self._labelled else [])
            return before
        ours = {field.name for field in source.fields}
        copied = before[: len(before) - len(predicted)]
        self.keep = [] if made.positional else [name for name in copied if name in ours]
        return [*self.keep, *predicted]

    def compare(self, expected: Rows, kept: KeptRows | None, made_of: Chunk) -> float:
        """Return the largest difference between the next rows and these. `kept` holds the passthrough columns."""
        largest = 0.0
        while len(expected):
            got, got_kept = self._next(len(expected))
            if not len(got):
                raise GateError(
                    f"{self._made.location}: expected more than {self.at:,} rows, because {made_of.location} has "
                    "more, got the end of the file"
                )
            largest = max(largest, self._difference(expected[: len(got)], got))
            expected = expected[len(got) :]
            if got_kept is not None and (kept is not None or self._labelled):
                self._compare_kept(None if kept is None else kept.slice(0, len(got)), got_kept)
                kept = None if kept is None else kept.slice(len(got))
            self.at += len(got)
        return largest

    def _next(self, most: int) -> tuple[Rows, KeptRows | None]:
        while self._chunk is not None and self._chunk.start + self._chunk.rows <= self.at:
            self._advance()
        chunk = self._chunk
        if chunk is None:
            return np.empty((0, self._width)), None
        first = self.at - chunk.start
        self._file, self._first = chunk.location, chunk.first_row + first
        read = chunk.numbers if self._outputs.sparse else chunk.matrix
        rows = read(np.dtype(np.float64))[first : first + most]
        features = rows if isinstance(rows, SparseRows) else dense(rows)
        kept = chunk.passthrough
        return features, None if kept is None else kept.slice(first, len(features))

    def _advance(self) -> None:
        """Go to the next chunk. The parts that end before it must have as many rows as the run wrote."""
        done, self._chunk = self._chunk, next(self._chunks, None)
        self.rows = 0 if done is None else done.start + done.rows
        for part in [*self._promised]:
            if self._chunk is not None and part == self._chunk.location:
                break
            expected = self._promised.pop(part)
            got = done.first_row + done.rows if done is not None and part == done.location else 0
            if got != expected:
                raise GateError(
                    f"{part}: expected {counted(expected, 'row')}, as {MANIFEST} says, got {got:,}"
                )

    def _compare_kept(self, expected: KeptRows | None, got: KeptRows) -> None:
        if self._labelled:
            expected, got = comparable_labels(self._file, self._first, expected, got)
        first = None if expected is None else difference(expected, got)
        if first is not None:
            source = "as the model predicts" if first.column in self._predicted else "as in the input"
            raise GateError(
                f"{self._file}: {spell_row(self._first + first.row)}, column {quoted(first.column)}: expected "
                f"{first.expected} {source}, got {first.got}"
            )

    def _difference(self, expected: Rows, got: Rows) -> float:
        """Return the largest difference of two rows, relative to the largest feature of the row."""
        if isinstance(expected, SparseRows) and isinstance(got, SparseRows):
            apart, size = _sparse_differences(expected, got, self._dtype)
        else:
            apart, size = _differences(dense(expected), dense(got), self._dtype)
        largest = _largest_of_rows(apart)
        relative = largest / np.maximum(size, np.finfo(np.float32).tiny)
        wrong = ~(relative <= self._tolerance)
        if wrong.any():
            row = int(np.argmax(wrong))
            differences = dense(apart[row : row + 1])[0]
            column = int(np.argmax(np.where(np.isnan(differences), np.inf, differences)))
            wanted, found = (float(dense(rows[row : row + 1])[0, column]) for rows in (expected, got))
            what = f"{self._outputs.what[:-1]} {column}" if self._names is None else self._names[column]
            raise GateError(
                f"{self._file}: {spell_row(self._first + row)}, {what}: expected {wanted:.9g}, got "
                f"{self._dtype.type(found):.9g}"
            )
        return float(relative.max(initial=0.0))

    def end(self) -> None:
        """Count the remaining rows."""
        while self._chunk is not None:
            self._advance()


def _names_of(outputs: Outputs, fields: list[Field], made: Reader) -> list[str] | None:
    """Return the names of the numbers, or None for features, one list, and formats without names."""
    named = outputs.what == "predictions" and len(fields) == outputs.width and not made.positional
    return [f"column {quoted(field.name)}" for field in fields] if named else None


def _differences(expected: Floats, got: Floats, dtype: np.dtype[Any]) -> tuple[Rows, Floats]:
    """Return the differences of two matrices, and the largest number of each row."""
    rounded = got.astype(dtype)
    with np.errstate(invalid="ignore"):
        apart: Floats = np.abs(rounded.astype(np.float64) - expected)
    apart[np.isnan(rounded) & np.isnan(expected)] = 0.0
    return apart, np.nan_to_num(np.abs(expected)).max(axis=1)


def _sparse_differences(expected: SparseRows, got: SparseRows, dtype: np.dtype[Any]) -> tuple[Rows, Floats]:
    """Return the same as `_differences`, for sparse rows."""
    wanted, found = (rows.csr.astype(dtype).astype(np.float64) for rows in (expected, got))
    apart = abs(wanted - found).tocsr()
    return SparseRows(apart.data, apart.indices, apart.indptr, expected.width), _largest_of_rows(expected)


def _largest_of_rows(rows: Rows) -> Floats:
    """Return the largest absolute value in each row, or NaN if the row has a NaN."""
    if not isinstance(rows, SparseRows):
        return np.abs(rows).max(axis=1)
    largest = np.zeros(len(rows))
    np.maximum.at(largest, rows.row_of, np.abs(rows.values).astype(np.float64))
    return largest


def _dtype(made: Reader, fields: list[Field]) -> np.dtype[Any]:
    """Return the dtype of the features. That of `fixed_size_list<element: float>[4]` is float32."""
    spelled = {
        name for field in fields for name in re.findall(r"halffloat|float(?:16|32|64)?|double", field.spelled)
    }
    if len(spelled) != 1:
        raise DataError(
            f"{made.location}: expected features of one floating type, got {', '.join(sorted(spelled))}"
        )
    name = spelled.pop()
    return np.dtype(_OF_ARROW.get(name, name))


def _numbers(made: Reader, width: int) -> list[Field]:
    """Return the fields of features or predictions, which come last, after the passthrough columns."""
    last = made.fields[-1]
    if last.kind == "list" and last.width in (None, width):
        return [replace(last, width=width)]
    return list(made.fields[-width:])


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
    """Transform random chunks of about `rows` rows again, and count all rows. Raise `GateError` for a wrong output.

    `output_dtype` is the dtype of a text output, which does not state it; default: that of the stats, or of the map.
    `unit_variance` means that the features are scaled, for an output that does not state it, such as text. `label`
    names the column that was copied as the label of LIBSVM; default: that of the stats, or none. With `drop`, all rows
    are transformed again, because only that shows which rows were dropped. For a folder, its manifest takes the place
    of stats, and states the rows of each part.
    """
    fm = load_from(asked.model)
    known = {} if asked.stats is None else _read_stats(asked.stats)
    source, target = asked.source, asked.target
    hashes = _check_hashes(known, fm, asked.model, source, target)
    fitted = fm.columns.file_dialect
    parts = list_parts(target, asked.reading_output.input_format).parts if is_data_set(target) else None
    manifest = read_manifest(target) if target.kind() == "folder" else None
    promised = {} if manifest is None else _promised(target, manifest, parts or ())
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
    return VerifyResult(output.rows, compared, largest, hashes)


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


def _compare(
    asked: VerifyOptions, rule: str, fm: FeatureMap, source: Reader, output: OutputRows, outputs: Outputs
) -> tuple[int, int, float]:
    """Return the expected number of rows, the rows compared, and the largest difference."""
    dropped = rule == "drop"
    chunks = source.chunks(
        match(source, fm.columns, ()), output.keep, fm.chunk_rows,
        typed_passthrough=output.typed, set_aside=rule != "error",
    )  # fmt: skip
    chosen = _RandomChunks(chunks, asked.seed, None if dropped else max(1, -(-asked.rows // fm.chunk_rows)))
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
    """Return the passthrough columns that --label names, or those `kept`. Only LIBSVM does not name them itself."""
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
        raise DataError(f"{bad}; if the transform set such rows aside, give verify its --on-bad-rows")
    kept = done.chunk.passthrough
    if outputs.classes is not None:
        kept = outputs.classes.table(kept, done.floats, as_text=not typed)
    if done.good is None or on_bad_rows != "drop":
        return done.features, kept
    return done.features[done.good], None if kept is None else kept.filter(done.good)


class _RandomChunks:
    """An iterator over about `size` random chunks (all if None), with the first and the last. It counts all rows.

    Since the number of chunks may be unknown, it yields each chunk whose hash is among the smallest so far, which is
    slightly more than `size`.
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
    """Compare the hashes of model, input and output with the stats, and return which were compared."""
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
