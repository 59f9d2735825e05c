"""Rows that cannot be transformed: left out, or null; and nobody else's bytes move."""

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, SystemRefusedError, UsageError
from kafeat.io.options import OutputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.transform.options import BadRowsLimit, RowOptions
from tests.jobs.files import transform_file
from tests.sizes import sampled

N, D = 700, 3
RNG = np.random.default_rng(11)
IID = {"kind": "fourier", "n_components": 4, "frequencies": "iid"}
X = RNG.exponential(size=(N, D)).astype(np.float32)
NOT_FINITE = {0: 1, 5: 0, 256: 2, 257: 2, 400: 0, N - 1: 1}
NEGATIVE = {6: 0, 300: 2}
"""Rows, and the column of each that is spoilt."""
BAD = sorted({**NOT_FINITE, **NEGATIVE})
GOOD = [row for row in range(N) if row not in BAD]


@pytest.fixture(scope="module")
def fm():
    steps = [{"kind": "homogeneous", "kernel": "chi2", "order": 1}]
    return kafeat.fit({"chunk_rows": 200, "steps": steps}, pa.table({f"x{i}": X[:, i] for i in range(D)}))


def spoilt():
    Y = X.copy()
    for row, column in NOT_FINITE.items():
        Y[row, column] = np.nan if row % 2 else np.inf
    for row, column in NEGATIVE.items():
        Y[row, column] = -1.0
    return Y


@pytest.fixture(params=["csv", "parquet", "npy"])
def source(request, tmp_path):
    table = pa.table({"id": np.arange(N), **{f"x{i}": spoilt()[:, i] for i in range(D)}})
    path = tmp_path / f"in.{request.param}"
    if request.param == "csv":
        pa_csv.write_csv(table, path)
    elif request.param == "parquet":
        pq.write_table(table, path)
    else:
        np.save(path, spoilt())
    return str(path)


def features_of(path):
    if str(path).endswith(".npy"):
        return np.load(path)
    table = pa_csv.read_csv(path) if str(path).endswith(".csv") else pq.read_table(path)
    kept = [name for name in table.column_names if name.startswith("f")]
    return np.stack([table[name].to_numpy().astype(np.float32) for name in kept], axis=1)


@pytest.mark.parametrize("format", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("rule", ["drop", "null"])
@pytest.mark.parametrize("jobs", [1, *sampled(3)])
def test_other_rows_keep_their_bytes(fm, source, tmp_path, format, rule, jobs):
    clean, out, rejects = tmp_path / f"clean.{format}", tmp_path / f"out.{format}", tmp_path / "why.csv"
    np.save(tmp_path / "clean-in.npy", X)
    transform_file(fm, tmp_path / "clean-in.npy", clean)
    rules = RowOptions(on_bad_rows=rule, rejects=parse_location(rejects))
    done = transform_file(fm, source, out, rules=rules, jobs=jobs)
    assert (done.rows_read, done.bad_rows) == (N, len(BAD))
    expected, got = features_of(clean), features_of(out)
    if rule == "drop":
        assert done.rows == len(GOOD)
        assert got.tobytes() == expected[GOOD].tobytes()
    else:
        assert done.rows == N
        assert got[GOOD].tobytes() == expected[GOOD].tobytes()
        assert np.isnan(got[BAD]).all()
    lines = list(csv.DictReader(rejects.read_text().splitlines()))
    assert [int(line["row"]) - 1 for line in lines] == BAD
    names = [f"c{i}" if source.endswith("npy") else f"x{i}" for i in range(D)]
    columns = {**NOT_FINITE, **NEGATIVE}
    assert [line["column"] for line in lines] == [names[columns[row]] for row in BAD]
    given = [float(line[name]) for line in lines for name in names]
    assert given == pytest.approx(spoilt()[BAD].ravel().tolist(), nan_ok=True)
    assert "expected a value of at least 0, got -1" in lines[BAD.index(6)]["problem"]


@pytest.mark.parametrize("layout", ["columns", "list"])
@pytest.mark.parametrize("rule", ["error", "drop", "null"])
def test_only_null_makes_nullable_fields_and_kept_columns_follow(fm, tmp_path, layout, rule):
    if (rule, layout) == ("null", "list") and int(pa.__version__.partition(".")[0]) < 26:
        pytest.skip("pyarrow 25 writes null lists, 26 reads them")
    table = pa.table({"id": np.arange(N), **{f"x{i}": spoilt()[:, i] for i in range(D)}})
    if rule == "error":
        table = table.take(GOOD)
    pq.write_table(table, tmp_path / "in.parquet")
    out = str(tmp_path / "out.parquet")
    writing = OutputOptions(keep=["id"], layout=layout)
    transform_file(fm, tmp_path / "in.parquet", out, writing=writing, on_bad_rows=rule)
    found = pq.read_table(out)
    assert found["id"].to_pylist() == (list(range(N)) if rule == "null" else GOOD)
    for field in list(found.schema)[1:]:
        assert field.nullable == (rule == "null")
        nulls = np.flatnonzero(found[field.name].is_null().to_numpy()).tolist()
        assert nulls == (BAD if rule == "null" else [])


def test_null_lists_ask_for_a_pyarrow_that_writes_them(fm, tmp_path, monkeypatch):
    monkeypatch.setattr(pa, "__version__", "24.0.0")
    with pytest.raises(UsageError, match="expected pyarrow >= 25, which can write a null list, got 24.0.0"):
        transform_file(fm, spoilt(), tmp_path / "out.parquet", layout="list", on_bad_rows="null")
    assert [file.name for file in tmp_path.iterdir()] == ["in.npy"]


def test_a_null_row_is_empty_fields_in_csv(fm, tmp_path):
    transform_file(fm, spoilt()[:7], tmp_path / "out.csv", on_bad_rows="null")
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert [index for index, line in enumerate(lines) if set(line) == {","}] == [0, 5, 6]


@pytest.mark.parametrize("bad", [[0, 1], [0, 1, 2, 3, 7], [1, 2, N - 2, N - 1], range(N)])
def test_bad_rows_that_begin_a_tile_do_not_stand_in_for_each_other(fm, bad, tmp_path):
    """A row set aside gives its place to the first that was not, which may be refused itself."""
    Y = X.copy()
    Y[list(bad), 1] = -1.0
    out = str(tmp_path / "z.npy")
    transform_file(fm, Y, out, on_bad_rows="null")
    np.testing.assert_array_equal(np.isnan(np.load(out)).all(axis=1), np.isin(np.arange(N), list(bad)))
    assert transform_file(fm, Y, out, on_bad_rows="drop").rows == N - len(bad)
    assert np.load(out).shape == (N - len(bad), fm.n_components)


def test_rows_that_overflow_are_set_aside_and_the_rest_is_right(tmp_path):
    data = RNG.normal(size=(600, D))
    fm = kafeat.fit({"steps": [{"kind": "polynomial_features", "degree": 4}]}, data)
    data[[3, 300, 301]] = 1e12
    with pytest.raises(DataError, match=r"row 4 \(index 3\).*expected features that float32 can hold"):
        transform_file(fm, data, tmp_path / "out.npy")
    done = transform_file(fm, data, tmp_path / "out.npy", on_bad_rows="null")
    assert done.bad_rows == 3
    found = np.load(tmp_path / "out.npy")
    rest = np.setdiff1d(np.arange(600), [3, 300, 301])
    assert found[rest].tobytes() == fm.transform(data[rest]).tobytes()


def test_a_null_value_where_missing_numbers_are_filled_is_no_bad_row(tmp_path):
    data = RNG.normal(size=(60, D))
    data[5, 1] = np.nan
    steps = [{"kind": "impute"}, {"kind": "fourier", "n_components": 8, "frequencies": "iid"}]
    fm = kafeat.fit({"steps": steps}, data)
    data[7, 2] = np.inf
    done = transform_file(fm, data, tmp_path / "out.npy", on_bad_rows="drop")
    assert (done.rows, done.bad_rows) == (59, 1)


def test_rejects_need_a_rule(fm, tmp_path):
    with pytest.raises(UsageError, match="--rejects: expected --on-bad-rows drop or null"):
        transform_file(fm, X, tmp_path / "o.npy", rejects=tmp_path / "r.csv")


def test_clipped_values_of_bad_rows_are_not_counted(tmp_path):
    data = RNG.exponential(size=(300, 2))
    fm = kafeat.fit({"steps": ["intersection_bins"]}, data)
    data[0] = [1e6, 1.0]  # the row that takes the places of bad ones
    data[11] = [1e6, np.nan]
    done = transform_file(fm, data, tmp_path / "o.npy", on_bad_rows="drop")
    assert (done.clipped, done.bad_rows) == (1, 1)


@pytest.mark.parametrize("text", [b"1,2\n\xe9\n3,4\n", b"1,2\n1,\xe9\n", b"1,2\n3,4\n1,2,\xe9\n"])
def test_text_that_is_no_utf8_is_an_error_by_any_rule(tmp_path, text, capfd):
    (tmp_path / "in.csv").write_bytes(b"a,b\n" + text)
    fm = kafeat.fit({"steps": [IID]}, pa.table(dict(zip("ab", RNG.normal(size=(2, 9)), strict=True))))
    for rule in ("error", "drop"):
        told = r"in.csv: (line \d, byte \d+: expected UTF-8|row .*expected 2 fields)"
        with pytest.raises(DataError, match=told):
            transform_file(fm, tmp_path / "in.csv", tmp_path / "o.npy", on_bad_rows=rule)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("rule", ["drop", "null"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("steps", [["standardize"], ["impute"]])
@pytest.mark.slow
def test_rows_with_too_few_or_too_many_fields(tmp_path, rule, late, steps):
    n = 60_000 if late else 40  # several blocks of text, and one
    rows = [f"{i % 7}.5,{i % 11},id{i}" for i in range(n)]
    ragged = {0: "1", 3: "1,2,3,4", 4: ",", n // 2: "7", n - 1: "8,9,10,11,12"}
    for row, text in ragged.items():
        rows[row] = text
    (tmp_path / "in.csv").write_text("\n".join(["a,b,id", "", *rows[:2], "", *rows[2:]]) + "\n")
    X = np.array([[i % 7 + 0.5, i % 11] for i in range(n)])
    fm = kafeat.fit({"chunk_rows": 1000, "steps": [*steps, IID]}, pa.table({"a": X[:, 0], "b": X[:, 1]}))
    out, rejects = tmp_path / "out.csv", tmp_path / "why.csv"
    with pytest.raises(DataError, match=r"row 1 \(index 0\): expected 3 fields, got 1"):
        transform_file(fm, tmp_path / "in.csv", out)
    done = transform_file(fm, tmp_path / "in.csv", out, keep=["id"], on_bad_rows=rule, rejects=rejects)
    assert (done.rows_read, done.bad_rows) == (n, len(ragged))
    good = np.setdiff1d(np.arange(n), list(ragged))
    found = pa_csv.read_csv(out)
    kept = np.array(found["id"].to_pylist())
    assert kept[kept != ""].tolist() == [f"id{i}" for i in good]
    got = features_of(out)
    transform_file(fm, X, tmp_path / "clean.csv")
    clean = features_of(tmp_path / "clean.csv")[good]
    assert (got if rule == "drop" else got[good]).tobytes() == clean.tobytes()
    lines = list(csv.DictReader(rejects.read_text().splitlines()))
    assert {int(line["row"]) - 1: line["text"] for line in lines} == ragged
    assert all(None not in line and None not in line.values() for line in lines)  # as wide as the header
    assert {line["a"] + line["b"] + line["id"] for line in lines} == {""}
    assert lines[1]["problem"] == "expected 3 fields, got 4"


@pytest.mark.parametrize(("name", "head", "last"), [
    ("x.csv", "a,b\n1,2\n", '3,"4"'), ("x.csv", "a,b\r1,2\r", "13,4"),
    ("x.jsonl", '{"a":1,"b":2}\n', '{"c":"{}","a":3,"b":4}'),
])  # fmt: skip
def test_a_file_that_was_cut_in_a_line_is_refused_by_any_rule(tmp_path, name, head, last):
    fm = kafeat.fit({"steps": ["standardize"]}, pa.table({"a": [1.0, 2.0], "b": [1.0, 3.0]}))
    cut = tmp_path / name

    def rows(text, rule="drop"):
        cut.write_text(text)
        return transform_file(fm, cut, tmp_path / "o.npy", on_bad_rows=rule).rows

    for end in range(1, len(last)):
        begun = last[:end]
        if name == "x.csv" and "," in begun and begun.count('"') != 1:
            assert rows(head + begun) == 1 + begun[-1].isdigit()  # all fields, perhaps without the number
            continue
        for rule in ("drop", "error"):
            with pytest.raises(DataError, match="the file was cut off|expected a quote that closes"):
                rows(head + begun, rule)
        if begun.count('"') != 1 or name == "x.jsonl":
            assert rows(head + begun + head[-1]) == 1  # with its end it is a bad row
    assert rows(head + last) == 2


def test_a_null_row_of_one_column_is_a_row(tmp_path):
    (tmp_path / "in.csv").write_text("a\n1\nx\n3\n")
    fm = kafeat.fit({"steps": ["standardize"]}, pa.table({"a": [1.0, 2.0, 3.0]}))
    transform_file(fm, tmp_path / "in.csv", tmp_path / "out.csv", on_bad_rows="null")
    assert (tmp_path / "out.csv").read_text().splitlines()[2] == '""'
    assert pa_csv.read_csv(tmp_path / "out.csv", convert_options=pa_csv.ConvertOptions(
        column_types={"f0": pa.float32()}, quoted_strings_can_be_null=True))["f0"].null_count == 1  # fmt: skip


def test_a_reader_of_rejects_that_leaves_is_an_error(fm, tmp_path):
    import os
    import threading

    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=lambda: os.close(os.open(tmp_path / "pipe", os.O_RDONLY)))
    reader.start()
    rules = RowOptions(on_bad_rows="drop", rejects=parse_location(tmp_path / "pipe"))
    with pytest.raises(SystemRefusedError, match="pipe: Broken pipe"):
        transform_file(fm, np.full((60_000, D), np.nan, np.float32), tmp_path / "out.npy", rules=rules)
    reader.join()
    assert not (tmp_path / "out.npy").exists()


def test_rejects_tell_a_column_of_theirs_from_one_of_the_input(tmp_path):
    """A kept column may have the name of one that tells what is wrong."""
    table = pa.table({"row": [1.0, float("nan")], "text": ["a", "b"]})
    fm = kafeat.fit({"steps": ["standardize"]}, table.slice(0, 1).select(["row"]))
    pq.write_table(table, tmp_path / "in.parquet")
    asked = {"keep": ["text"], "output_format": "csv", "on_bad_rows": "drop", "rejects": tmp_path / "why.csv"}
    transform_file(fm, tmp_path / "in.parquet", tmp_path / "out.npy", **asked)
    [line] = csv.DictReader((tmp_path / "why.csv").read_text().splitlines())
    assert list(line) == ["row", "column", "problem", "text", "input.row", "input.text"]
    assert [*line.values()] == ["2", "row", "expected a finite number, got nan", "", "nan", "b"]


LIMITS = [("0", 0, 10, True), ("0", 1, 10, False), ("7", 7, 8, True), ("7", 8, 100_000, False)]
# 0.7 * 1000 / 100 is less than 7 in some orders of doubles
LIMITS += [("0.7%", 7, 1000, True), ("0.7%", 8, 1000, False), ("100%", 5, 5, True), ("0%", 0, 0, True)]


@pytest.mark.parametrize(("text", "bad", "rows", "allowed"), LIMITS)
def test_a_limit_of_bad_rows_is_exact(text, bad, rows, allowed):
    assert BadRowsLimit.parse(text).allows(bad, rows) == allowed


@pytest.mark.parametrize("text", ["", "-1", "1.5", "101%", "% 1", "1e3", "5 %", "½", True, None, 0.5])
def test_no_other_limit_of_bad_rows_is_read(text):
    with pytest.raises(UsageError, match="--max-bad-rows: expected a number of rows such as 10"):
        BadRowsLimit.parse(text)


@pytest.mark.parametrize("rule", ["drop", "null"])
def test_more_bad_rows_than_allowed_write_no_output_but_what_they_were(fm, source, tmp_path, rule):
    (tmp_path / "out.npy").write_bytes(b"previous")
    before = sorted(path.name for path in tmp_path.iterdir())
    kept = {"rejects": tmp_path / "rejects.csv", "stats": tmp_path / "s.json"}
    options = {"model": fm, "on_bad_rows": rule, **kept}
    told = rf"at most {len(BAD) - 1} bad rows .*, got {len(BAD)} of 700; the .* row 1 "
    with pytest.raises(DataError, match=told):
        kafeat.transform(source, tmp_path / "out.npy", max_bad_rows=len(BAD) - 1, **options)
    assert (tmp_path / "out.npy").read_bytes() == b"previous"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "rejects.csv", "s.json"])
    assert len(kept["rejects"].read_text().splitlines()) == 1 + len(BAD)
    known = json.loads(kept["stats"].read_text())
    assert (known["state"], known["exit_code"], known["bad_rows"]["count"]) == ("refused", 3, len(BAD))
    assert len(known["drift"]["columns"]) == 3
    good = X[GOOD].astype(np.float64)
    ends = np.column_stack([good.min(axis=0), good.max(axis=0)]).tolist()
    assert [*known["drift"]["seen"].values()] == ends
    assert re.search(told, known["error"])
    done = kafeat.transform(source, tmp_path / "out.npy", max_bad_rows=len(BAD), **options)
    assert done.bad_rows == len(BAD)


@pytest.mark.parametrize("rule", ["drop", "null"])
def test_bad_rows_are_counted_on_stderr(fm, tmp_path, in_process, run, rule):
    fm.save(tmp_path / "map.joblib")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("x0,x1,x2\n1,none at all,1\n1,1,none at all\n")
    (tmp_path / "in/b.csv").write_text("x0,x1,x2\n1,1,1\n1,1,none at all\n")
    (tmp_path / "c.csv").write_text("x0,x1,x2\n1,1,1\n")
    command = ("transform", "--model", "map.joblib", "--on-bad-rows", rule)
    fate = f"{'left out' if rule == 'drop' else 'made null'} (--on-bad-rows {rule}); the first is"
    where = "row 1 (index 0), column 'x1': expected a number, got 'none at all'\n"
    one = run(*command, "in/a.csv", "out.csv", cwd=tmp_path)
    assert one.stderr == f"note: in/a.csv: 2 of 2 rows {fate} {where}"
    some = in_process(*command, "in/b.csv", "-", "--rejects", "r.csv", cwd=tmp_path)
    problem = where.partition(": ")[2]
    assert some.stderr == f"note: in/b.csv: 1 of 2 rows {fate} row 2 (index 1), column 'x2': {problem}"
    assert in_process(*command, "in/a.csv", "out.csv", "--quiet", cwd=tmp_path).stderr == ""
    assert in_process(*command, "c.csv", "out.csv", cwd=tmp_path).stderr == ""
    said = f"note: in: 3 of 4 rows {fate} a.csv: {where}note: out: 1 file has no good row: a.csv\n"
    for more in ((), ("--resume",)):
        both = run(*command, "in", "out", *more, cwd=tmp_path)
        assert both.stderr == said


def test_an_output_without_rows_is_a_warning(fm, tmp_path, in_process):
    fm.save(tmp_path / "map.joblib")
    (tmp_path / "in").mkdir()
    for name, rows in (("a", ""), ("b", "1,1,1\n" * 3)):
        (tmp_path / f"in/{name}.csv").write_text("x0,x1,x2\n" + rows)
    command = ("transform", "--model", "map.joblib", "--log-format", "json")

    def told(*files):
        return [json.loads(line) for line in in_process(*command, *files, cwd=tmp_path).stderr.splitlines()]

    warned = [line["message"] for line in told("in/a.csv", "o.csv") if line["level"] == "warning"]
    assert warned == ["o.csv: expected rows to write, got none: in/a.csv has none"]
    lines = told("in", "out", "--resume")
    warned = [line["message"] for line in lines if line["level"] == "warning"]
    assert warned == ["out: 1 file has no good row: a.csv"]
    assert lines[-1]["rows_per_second"] > 0.0
    kept = told("in", "out", "--resume")[-1]
    assert (kept["rows"], kept["rows_per_second"]) == (3, 0.0)  # this run made none


@pytest.mark.parametrize("text", [
    'x0,x1,x2,t\n1,1,1,"a\rb"\n1,1\n',  # in quotes it is a character
    "x0,x1,x2,t\r\n1,1,1,a\r\n1,1\r\n",
    "x0,x1,x2,t\r1,1,1,a\r1,1\r",  # all rows end so
])  # fmt: skip
def test_carriage_returns_that_are_in_place_are_not_blamed(fm, tmp_path, text):
    (tmp_path / "in.csv").write_bytes(text.encode())
    with pytest.raises(DataError, match=r"row 2 \(index 1\): expected 4 fields, got 2(?!.*carriage return)"):
        kafeat.transform(tmp_path / "in.csv", tmp_path / "out.npy", model=fm)
