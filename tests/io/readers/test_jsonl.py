"""JSON lines as input, beside Python's json module and the CSV of the same rows."""

import csv
import gzip
import io
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafeat
from kafeat.contract.coding import Coding
from kafeat.contract.traits import ColumnTraits
from kafeat.errors import DataError
from kafeat.io.columns.columns import Column, Columns
from kafeat.io.columns.selection import choose, match
from kafeat.io.options import InputOptions, OutputOptions
from kafeat.io.readers import jsonl, text_stream
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit.labels import read_label
from tests.io.tables import open_reader, read
from tests.jobs.files import transform_file

Row = dict[str, Any]
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)
_NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False))
_VALUES = {
    "number": st.one_of(_NUMBERS, st.none()),
    "text": st.one_of(_TEXT, st.none()),
    "word": st.sampled_from(["a", "b", "true", "1", "1.0", "007", "nan", None, 1, 1.5, True, False]),
    "flag": st.sampled_from([True, False, None]),
    "time": st.sampled_from(["2024-02-29", "2024-02-29T12:30:00.5Z", 1.7e9, 0, "never", None]),
}


def spelled(value: Any) -> str:
    """A value as CSV has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def as_csv(rows: list[Row], names: list[str]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([names, *([spelled(row[name]) for name in names] for row in rows)])
    return out.getvalue().encode()


def as_lines(rows: list[Row]) -> bytes:
    """Nulls are left out in every second row, and keys turned round."""
    lines = []
    for number, row in enumerate(rows):
        shown = dict(reversed(row.items())) if number % 3 == 1 else row
        if number % 2:
            shown = {name: value for name, value in shown.items() if value is not None}
        lines.append(json.dumps(shown, ensure_ascii=number % 4 < 2))
    return "".join(line + "\n" for line in lines).encode()


def outcome(path: Path, columns: Columns, height: int) -> list[list[float]] | str:
    """The features, or the error without the name of the file and advice, which depends on the first rows."""
    try:
        with open_reader(path) as source:
            found = read(source, "float64", height, match(source, columns, ()))
            return [["nan" if math.isnan(x) else x for x in row] for row in found.tolist()]
    except DataError as error:
        return "\n".join(line.partition(": ")[2].partition(";")[0] for line in str(error).splitlines())


@given(
    st.lists(st.fixed_dictionaries(_VALUES), min_size=1, max_size=12),
    st.integers(1, 13),
    st.sampled_from([64, 1 << 20]),
    st.booleans(),
)
def test_features_are_those_of_the_same_csv(rows, height, look, missing):
    """Numbers, words as categories, booleans and times; an error is the same error."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_stream, "LOOK", look)
        folder = Path(name)
        (folder / "x.csv").write_bytes(as_csv(rows, list(_VALUES)))
        (folder / "x.jsonl").write_bytes(as_lines(rows))
        for names in (["number"], ["flag"], ["time"], ["word"], ["text"], ["number", "flag"]):
            features = tuple(Column(name, None, times=name == "time") for name in names)
            plain = Columns(features, False, None, missing)
            assert outcome(folder / "x.jsonl", plain, height) == outcome(folder / "x.csv", plain, height)
        coded = []
        for ending in ("csv", "jsonl"):
            with open_reader(folder / f"x.{ending}") as source:
                codings = ColumnTraits(coded={"word": Coding(True), "text": Coding(True)})
                columns = choose(source, ["word", "text"], [], (), codings)
                try:
                    X = read(source, "float64", height, columns)
                    settled = columns.settled(X)
                    coded.append((X.tolist(), [column.categories.values for column in settled.features]))
                except DataError as error:
                    coded.append(str(error).partition(": ")[2])
        assert coded[0] == coded[1]


def test_the_fields_are_those_of_the_same_csv(tmp_path):
    rows = [
        {"n": 1, "x": 0.5, "code": "007", "flag": True, "text": "a", "empty": None},
        {"n": None, "x": "nan", "code": "12", "flag": None, "text": "1", "empty": None},
    ]
    (tmp_path / "x.csv").write_bytes(as_csv(rows, list(rows[0])))
    (tmp_path / "x.jsonl").write_bytes(as_lines(rows))
    with open_reader(tmp_path / "x.csv") as one, open_reader(tmp_path / "x.jsonl") as other:
        assert one.fields == other.fields
        assert [field.code for field in one.fields] == [field.code for field in other.fields]


def test_numbers_keep_their_digits_and_are_the_nearest_doubles(tmp_path):
    digits = [
        "9007199254740993", "123456789012345678901234567890", "0.1000000000000000055511151231257827",
        "1E5", "-0", "-0.0", "4.9e-324", "1.7976931348623157e308", "0.30000000000000004", "2e-400",
    ]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("".join(f'{{"x":{one}}}\n' for one in digits))
    assert read(tmp_path / "x.jsonl").ravel().tobytes() == np.array([float(one) for one in digits]).tobytes()
    with open_reader(tmp_path / "x.jsonl") as source:
        [chunk] = source.chunks(Columns((), False, None), ["x"], 100, typed_passthrough=False)
        assert chunk.passthrough["x"].to_pylist() == digits


SOUND = '{"a":1,"b":2}\n'


@pytest.mark.parametrize("content", [
    b'\xef\xbb\xbf{"a":1,"b":2}\r\n{"b":4,"a":3}\r\n',
    b'\n \t\r\n{"a":1,"b":2}\n\n\n{"a":3,"b":4}',
    b' {\t"a" : 1 , "b":2}  \n{"b":"4","a":"3"}\n',
    b'{"a":1,"b":2,"new":"{[,0,","t":"12:30"}\n{"later":null,"a":3e0,"b":4.0}\n',
    b'{"a":1,"b":2,"t":"\\ud83d\\ude00\\u0000"}\n{"b":4,"\\u0061":3}\n',
], ids=["BOM and CRLF", "blank lines and no last line end", "blanks", "other keys", "escapes"])  # fmt: skip
def test_spellings(tmp_path, content):
    columns = Columns((Column("a", None), Column("b", None)), False, None)
    for name, packed in (
        ("x.jsonl", content),
        ("x.ndjson.gz", gzip.compress(content)),
        ("x.jsonl.zst", pa.compress(content, codec="zstd", asbytes=True)),
    ):
        (tmp_path / name).write_bytes(packed)
        with open_reader(tmp_path / name) as source:
            assert read(source, columns=columns).tolist() == [[1, 2], [3, 4]]


BROKEN = {
    '{"a":1,"b":[1]}': "key 'b': expected a plain value, got an array; flatten it first",
    '{"a":1,"b":2,"c":{}}': "key 'c': expected a plain value, got an object; flatten it first",
    '{"a":1,"b":2,"a":3}': "key 'a': expected one value, got 2",
    '{"a":1,"b":NaN}': "expected a number or null, got NaN, which JSON does not have",
    "[1,2]": r"expected a JSON object, got '\[1,2\]'",
    '"{"': "expected a JSON object, got '\"{\"'",
    "a,b": r"expected JSON, got 'a,b' at character 1 \(Expecting value\)",
    SOUND.strip() + " " + SOUND.strip(): "expected JSON, got .* at character 15",
    '{"a":1,"b":2': "expected JSON, got the end of the line at character 13",
    '{"a":1,"b":"\t"}': "expected JSON, got .* at character 13 .Invalid control character",
    '{"a":1,"b":"\\ud800"}': "expected Unicode text, got half a surrogate pair",
    '{"a":1,"b":"\udcff"}': r"expected UTF-8 text, got b'\\xff\"}' \(byte 13\); iconv converts it",
    '{"a":' + "[" * 100_000: "expected values that are not nested, got many levels",
}


@pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
def test_a_line_that_breaks_the_format_is_refused_or_set_aside(tmp_path, line):
    content = (f"{SOUND}\n{line}\n{SOUND}").encode(errors="surrogateescape")
    (tmp_path / "x.jsonl").write_bytes(content)
    columns = Columns((Column("a", None), Column("b", None)), False, None)
    with open_reader(tmp_path / "x.jsonl") as source:
        with pytest.raises(DataError, match=rf"x\.jsonl: row 2 \(index 1\): {BROKEN[line]}"):
            read(source, columns=columns)
        [chunk] = source.chunks(columns, [], 10, set_aside=True)
        X, sound = chunk.decode(np.dtype("f8"))
        assert not sound
        [bad] = chunk.invalid_values(X)
        assert bad.row == 1
        assert chunk.broken_text(1) == line.encode(errors="surrogateescape").decode(errors="replace")
        assert X[[0, 2]].tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize(("content", "problem"), [
    (b"", "expected the column 'a', got none"),
    (b"{}\n", "expected the column 'a', got none"),
    (b"a,b\n1,2\n", r"row 1 \(index 0\): expected JSON, .*; jq -c writes one object per line"),
    (b'[\n {\n  "a": 1\n }\n]\n', r"row 1 .*; jq -c writes one object per line"),
    (b'{"aa":1}\n', r"expected the column 'a' \(did you mean 'aa'\?\), got aa"),
    (b"PAR1" + bytes(30), "expected JSON lines, but this looks like Parquet: --input-format parquet"),
    ('{"a":1}\n'.encode("utf-16"), "byte 3: expected UTF-8 text, got a NUL byte"),
    (gzip.compress(b'{"a":1}\n', mtime=0)[:-9], "expected sound gzip data"),
])  # fmt: skip
def test_a_file_that_is_something_else(tmp_path, content, problem):
    (tmp_path / "x.jsonl").write_bytes(content)
    refused = pytest.raises(DataError, match=rf"x\.jsonl: {problem}")
    with refused, open_reader(tmp_path / "x.jsonl") as source:
        read(source, columns=match(source, Columns((Column("a", None),), False, None), ()))


def test_csv_that_is_json_lines_is_refused_with_advice(tmp_path):
    (tmp_path / "x.csv").write_text('{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n')
    refused = pytest.raises(DataError, match=r"; are these JSON lines \(--input-format jsonl\)\?")
    with open_reader(tmp_path / "x.csv") as source, refused:
        match(source, Columns((Column("a", None),), False, None), ())


@pytest.mark.parametrize("limit", [None, 5])
def test_a_key_may_come_late_and_must_come(tmp_path, monkeypatch, limit):
    """The columns of the map are wanted, whatever the first rows have."""
    monkeypatch.setattr(text_stream, "LOOK", 100)
    rows = [{"a": i} if i < 90 else {"b": -i, "a": i} for i in range(99)]
    (tmp_path / "x.jsonl").write_bytes(as_lines(rows))
    os.mkdir(tmp_path / "parts")
    for name in ("p.jsonl", "q.jsonl"):
        (tmp_path / "parts" / name).write_bytes(as_lines(rows))
    for place, times in ((tmp_path / "x.jsonl", 1), (tmp_path / "parts", 2)):
        with InputOptions(limit=limit).open(parse_location(place)) as source:
            assert [field.name for field in source.fields] == ["a"]
            columns = Columns((Column("b", None), Column("a", None)), False, None, missing=True)
            found = read(source, height=7, columns=match(source, columns, ()))
            expected = [[row.get("b", np.nan), row["a"]] for row in rows * times][:limit]
            np.testing.assert_array_equal(found, expected)
            columns = Columns((Column("never", None), Column("a", None)), False, None, missing=True)
            if limit is None:
                with pytest.raises(DataError, match="expected never in at least one row, got none"):
                    read(source, columns=match(source, columns, ()))


@pytest.mark.parametrize("look", [1 << 16, 1 << 20])
def test_one_row_that_is_longer_than_the_first_look(tmp_path, monkeypatch, look):
    monkeypatch.setattr(text_stream, "LOOK", look)
    text = "x" * (3 << 20)
    (tmp_path / "x.jsonl").write_bytes(as_lines([{"a": 1, "t": text}, {"a": 2, "t": text}, {"a": 3}]))
    assert read(tmp_path / "x.jsonl").tolist() == [[1], [2], [3]]
    monkeypatch.setattr(text_stream, "LONGEST", 1 << 20)
    with pytest.raises(DataError, match="expected lines of less than .* bytes, got a longer one"):
        read(tmp_path / "x.jsonl")


def test_passthrough_columns_keep_their_types(tmp_path):
    """Text stays text, also if it is digits; CSV has all of it as it is written."""
    rows = [
        {"x": i, "whole": 7, "float": 0.5 if i else None, "flag": i > 0, "zip": "012", "n": "5", "mixed": "a"}
        for i in range(2)
    ]
    rows[1] |= {"mixed": 1, "n": "", "zip": None}
    (tmp_path / "x.jsonl").write_bytes(as_lines(rows))
    fm = kafeat.fit({"steps": ["standardize"]}, pa.table({"x": [1.0, 2.0]}))
    keep = OutputOptions(keep=["whole", "float", "flag", "zip", "n", "mixed"])
    for ending in ("parquet", "jsonl", "csv"):
        transform_file(fm, tmp_path / "x.jsonl", tmp_path / f"out.{ending}", writing=keep)
    table = pq.read_table(tmp_path / "out.parquet")
    kinds = [pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.string(), pa.string()]
    assert table.schema.types[:-1] == kinds
    expected = [(7, None, False, "012", "5", "a"), (7, 0.5, True, None, "", "1")]
    assert [tuple(row.values())[:-1] for row in table.to_pylist()] == expected
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [tuple(json.loads(line).values())[:-1] for line in lines] == expected
    with open(tmp_path / "out.csv") as file:
        assert [row[:-1] for row in csv.reader(file)][1:] == [
            ["7", "", "false", "012", "5", "a"],
            ["7", "0.5", "true", "", "", "1"],
        ]


def test_a_value_of_another_type_than_the_first_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(text_stream, "LOOK", 100)
    rows: list[Row] = [{"x": i, "flag": True} for i in range(20)]
    (tmp_path / "x.jsonl").write_bytes(as_lines([*rows, {"x": 1, "flag": 1}]))
    fm = kafeat.fit({"steps": ["standardize"]}, pa.table({"x": [1.0, 2.0]}))
    with pytest.raises(DataError, match=r"row 21 .index 20., column 'flag': expected bool as in the first"):
        transform_file(fm, tmp_path / "x.jsonl", tmp_path / "out.parquet", keep=["flag"])


COLUMNS = [([1, 2, 1], "i"), ([0.5, 2, 1], "f"), (["a", "1", "a"], "O"), ([True, False], "b")]


@pytest.mark.parametrize(("values", "kind"), COLUMNS)
def test_labels_have_the_types_of_json(tmp_path, values, kind):
    (tmp_path / "x.jsonl").write_bytes(as_lines([{"y": value} for value in values]))
    with open_reader(tmp_path / "x.jsonl") as source:
        [chunk] = source.chunks(Columns((), False, None), ["y"], 10)
        labels = read_label(chunk, "y")
    assert labels.dtype.kind == kind
    assert labels.tolist() == values


def test_the_same_bytes_for_any_number_of_jobs_and_any_chunks(tmp_path, monkeypatch):
    """Also where some blocks have to be checked line by line, and with bad rows."""
    rng = np.random.default_rng(0)
    draws = enumerate(rng.random((500, 2)).tolist())
    rows = [{"a": x, "b": y, "t": "[" if i % 50 == 0 else "s"} for i, (x, y) in draws]
    lines = as_lines(rows).splitlines(keepends=True)
    lines[300:300] = [b'{"a":[]}\n', b"\n", b'{"a":1}\n', b"oops\n"]
    (tmp_path / "x.jsonl").write_bytes(b"".join(lines))
    seen = set()
    for look in (200, 1 << 20):
        monkeypatch.setattr(text_stream, "LOOK", look)
        for chunk_rows in (64, 1024):
            config = {"chunk_rows": chunk_rows, "steps": ["standardize"]}
            fm = kafeat.fit(config, pa.table({"a": [0.0, 1], "b": [0.0, 1]}))
            for jobs in (1, 3):
                out, rejects = tmp_path / "o.jsonl", tmp_path / "r.csv"
                asked = {"model": fm, "keep": ["t"], "on_bad_rows": "drop", "rejects": rejects}
                kafeat.transform(tmp_path / "x.jsonl", out, jobs=jobs, **asked)
                seen.add((out.read_bytes(), rejects.read_bytes()))
    [(made, rejected)] = seen
    assert made.count(b"\n") == 500
    assert [line.split(b",")[0] for line in rejected.splitlines()[1:]] == [b"301", b"302", b"303"]


_PIECES = [
    '{"a":1}', '{"a":2,"b":"x"}', "{}", "{", "}", "[", "]", ",", ",0,", "0", '"', '"a":1', '{"a":1', '"b":"', ":",
    '{"a":1,"a":2}', '{"a":{"b":1}}', '{"a":[1]}', '{"a":"{["}', '{"a":"\\ud800"}', '{"a":"\\ud83d\\ude00"}',
    '{"a":NaN}', "null", " ", "\t", "\r", "", '{"a":true,"c":null}', '{"c":1.50,"a":-0}', "é", "\udcff", "\\",
]  # fmt: skip


def accepted(line: bytes) -> Row | None:
    """Return a line as Python's json module reads it, None if it is no flat object with different keys."""

    def flat(pairs: list[tuple[str, Any]]) -> Row:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError
        return dict(pairs)

    def refuse(_: str) -> None:
        raise ValueError

    try:
        hooks = {"object_pairs_hook": flat, "parse_constant": refuse, "parse_float": str, "parse_int": str}
        row = json.loads(line.decode(), **hooks)
        if not isinstance(row, dict) or any(isinstance(value, dict | list) for value in row.values()):
            return None
        json.dumps(row, ensure_ascii=False).encode()
    except ValueError:
        return None
    return row


def check_lines(lines: list[bytes], look: int) -> None:
    """The rows are those of the json module, whatever lines stand beside each other."""
    given_lines = [line for line in lines if line.strip()]
    expected = [accepted(line) for line in given_lines]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_stream, "LOOK", look)
        path = Path(folder) / "x.jsonl"
        path.write_bytes(b'{"a":"0","b":null,"c":0}\n' + b"\n".join([*lines, b""]))
        with open_reader(path) as source:
            chunks = source.chunks(
                Columns((), False, None), ["a", "b", "c"], 3, typed_passthrough=False, set_aside=True
            )
            rows, broken = [], []
            for chunk in chunks:
                rows += chunk.passthrough.to_pylist()
                broken += [chunk.broken_text(row) is not None for row in range(chunk.rows)]
    texts = [{name: jsonl._text((row or {}).get(name)) for name in "abc"} for row in expected]
    assert rows[1:] == texts
    assert broken[1:] == [row is None for row in expected]


@settings(max_examples=2 * settings.default.max_examples)
@given(
    st.lists(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=3).map("".join), max_size=8),
    st.sampled_from([20, 1 << 20]),
)
def test_every_line_is_read_as_the_json_module_reads_it(lines, look):
    check_lines([line.encode(errors="surrogateescape") for line in lines], look)


@pytest.mark.parametrize("between", ["", ",", "0", ",0,", ",null,"])
@pytest.mark.parametrize(
    ("first", "second"),
    [('{"a":1', '"b":2}'), ('{"a":"x', 'y"}'), ('{"a":1},0,{"a":2}', '{"a":3'), ("[", "]")],
)
def test_no_row_takes_two_lines(first, second, between):
    for look in (20, 1 << 20):
        check_lines([f"{first}{between}".encode(), f"{between}{second}".encode(), b'{"a":9}'], look)


def test_keys_that_differ_from_row_to_row_take_no_more_memory_than_rows_of_a_table(tmp_path, monkeypatch):
    """3,000 rows with a key each would be nine million cells."""
    monkeypatch.setattr(jsonl, "_MOST_CELLS", 1 << 20)
    (tmp_path / "x.jsonl").write_text("".join(f'{{"k{i}":{i}}}\n' for i in range(3000)))
    with open_reader(tmp_path / "x.jsonl") as source:
        assert len(source.fields) == 3000
        assert [field.kind for field in source.fields[:200]] == ["number"] * 200
        assert sum(len(values) for values in source._values) <= jsonl._MOST_CELLS
        columns = Columns((Column("k2999", None),), False, None, missing=True)
        assert np.nansum(read(source, columns=columns, height=750)) == 2999


@pytest.mark.parametrize("values", [[1.5, "NA", 2.5], ["1,5", "NA", "2,25"], ["1.5", None, "2"]])
def test_labels_in_strings_are_read_as_those_of_csv(tmp_path, values):
    rows = [{"n": i, "y": value} for i, value in enumerate(values)]
    (tmp_path / "x.jsonl").write_bytes(as_lines(rows))
    (tmp_path / "x.csv").write_bytes(as_csv(rows, ["n", "y"]))
    labels = []
    for name in ("x.jsonl", "x.csv"):
        with InputOptions().open(parse_location(tmp_path / name)) as opened:
            source = opened.coding(["y"])
            columns = choose(source, ["n"], [], ["y"])
            labels += [chunk.passthrough.column("y") for chunk in source.chunks(columns, ["y"], 9)]
    assert labels[0].type == pa.float64()
    assert labels[0] == labels[1]
