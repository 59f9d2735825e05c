import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.contract.traits import ColumnTraits
from kafeat.errors import DataError
from kafeat.io.columns.columns import Column, Columns
from kafeat.io.columns.fields import require
from kafeat.io.columns.selection import choose, match
from kafeat.io.options import OutputOptions
from kafeat.io.readers.memory import reader_of
from kafeat.jobs.fit.labels import read_label
from tests.io.tables import open_reader, read
from tests.jobs.files import transform_file

TABLE = pa.table({
    "name": ["p", "q"], "height": [1.0, 2.0], "l": pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
    "class": [0, 1], "where": [{"lat": 1}, {"lat": 2}],
})  # fmt: skip


PIXELS = pa.table({name: [1.0, 2.0] for name in ("p0", "p1", "i0", "label", "p*")} | {"note": ["a", "b"]})


def positional(width, rows=2):
    return reader_of(np.arange(rows * width, dtype=float).reshape(rows, width))


def test_choose_takes_what_is_numeric_in_order():
    columns = choose(reader_of(TABLE), None, [], ["class"])
    assert columns == Columns((Column("height", None), Column("l", 2)), False, None)
    assert columns.names == ("height", "l[0]", "l[1]")
    assert columns.n_features == 3
    assert choose(reader_of(TABLE), ["class", "height"], [], ()).names == ("class", "height")
    assert choose(reader_of(TABLE), None, ["l"], ["class"]).names == ("height",)


CLASHING = pa.table({"l[1]": [7.0, 8.0], "l": pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2))})


def test_no_two_features_have_one_name():
    """Drifts, ranges and the columns of one_hot and of a union are found by the names of features."""
    message = (
        r"column 'l\[1\]': expected another name than that of an element of the list column 'l', .*; rename"
    )
    with pytest.raises(DataError, match=message):
        choose(reader_of(CLASHING), None, [], ())
    with pytest.raises(DataError, match=message):
        match(reader_of(CLASHING), choose(positional(3), None, [], ()), [])
    assert choose(reader_of(CLASHING), None, ["l[1]"], ()).names == ("l[0]", "l[1]")
    assert choose(reader_of(CLASHING), ["l[1]"], [], ()).names == ("l[1]",)


@pytest.mark.parametrize(("include", "exclude", "label", "message"), [
    (["heightt", "l"], ["clas"], None,
     r"<table>: columns.include: expected the column 'heightt' \(did you mean 'height'\?\), got name, "),
    (None, ["clas"], None, r"columns.exclude: expected the column 'clas' \(did you mean 'class'\?\)"),
    (None, [], "zzz", "--label: expected the column 'zzz', got name, height"),
    (["name"], [], None, "column 'name': expected numbers, got string"),
    (["where"], [], None, "column 'where': expected numbers, got struct"),
    (None, ["height", "l"], "class", r"expected at least one numeric feature column, got none \(not numeric"),
    (["q*"], [], "label", r"<table>: columns.include: expected columns that match 'q\*', got none"),
    (None, ["P?"], "label", r"<table>: columns.exclude: expected columns that match 'P\?', got none"),
    (["*"], [], "label", "column 'note': expected numbers, got string; one_hot codes texts"),
    (None, ["[ip]?", "absent"], "label", "expected at least one numeric feature column, got none"),
])  # fmt: skip
def test_choose_refuses(include, exclude, label, message):
    with pytest.raises(DataError, match=message):
        choose(reader_of(PIXELS if label == "label" else TABLE), include, exclude, [label] if label else [])


def test_what_is_left_out_may_be_absent():
    assert choose(reader_of(TABLE), None, ["label", "l"], ["class"]).names == ("height",)
    assert choose(positional(2), None, ["label", "c1", "c10"], ()).names == ("c0",)
    # A near name that is left out as well, or is no number, becomes no feature.
    assert choose(reader_of(TABLE), ["height"], ["clas"], ()).names == ("height",)
    assert choose(reader_of(TABLE), None, ["class", "clas", "nam", "l"], ()).names == ("height",)


@pytest.mark.parametrize(("include", "exclude", "names"), [
    (["p?"], [], ("p0", "p1", "p*")),
    (["p*"], [], ("p*",)),  # the column of that very name
    (["[!n]*"], [], ("p0", "p1", "i0", "p*")),  # all but the label
    (["i0", "p[01]", "p1"], [], ("i0", "p0", "p1")),
    (None, ["p[01]"], ("i0", "p*")),
])  # fmt: skip
def test_names_may_be_patterns(include, exclude, names):
    assert choose(reader_of(PIXELS), include, exclude, ["label"]).names == names


def test_patterns_take_no_names_of_rows(tmp_path):
    (tmp_path / "a.csv").write_text(",x,y\n0,1,2\n")
    with open_reader(tmp_path / "a.csv") as source:
        assert choose(source, ["*"], [], ()).names == ("x", "y")
        assert choose(source, ["", "x"], [], ()).names == ("", "x")


def test_a_map_keeps_the_names_that_matched(tmp_path):
    """Also over the parts of a data set; columns that match and come later are no features."""
    for part in range(2):
        pq.write_table(PIXELS.select(["note", "p0", "p1", "i0", "label"]), tmp_path / f"{part}.parquet")
    config = {"columns": {"include": ["p?"]}, "steps": [{"kind": "minmax"}]}
    fm = kafeat.fit(config, tmp_path)
    assert fm.columns.names == ("p0", "p1")
    loaded = kafeat.model.load.loads(fm.dumps(), "map")
    assert loaded.columns == fm.columns
    assert loaded.config.columns.include == ("p?",)
    more = PIXELS.append_column("p9", pa.array([5.0, 6.0]))
    assert loaded.transform(more).tolist() == [[0.0, 0.0], [1.0, 1.0]]


TIMES = pa.table({"n": [1.0], "t": pa.array([0], pa.timestamp("s"))})


def test_columns_of_times_in_a_model_file():
    columns = choose(reader_of(TIMES), None, [], (), ColumnTraits(times={"t": "keep"}))
    plain = columns.to_plain()
    assert plain["features"] == [["n", None], ["t", None, "times"]]
    assert Columns.from_plain(plain) == columns
    assert columns.times == {"t"}
    for entry in (["t", 2, "times"], ["t", None, "hours"], ["t", None, True], ["t", None, []]):
        with pytest.raises(ValueError, match=r"columns\.features: expected a name and a width, times"):
            Columns.from_plain({**plain, "features": [entry]})


NAMELESS = [[], [None, None], [[], [1, 2]], [[], None]]


@pytest.mark.parametrize("values", NAMELESS)
def test_lists_that_show_no_length_take_that_of_the_map(values):
    fitted = choose(reader_of(TABLE.select(["height", "l"])), None, [], ())
    n = len(values)
    lists = pa.array(values, pa.list_(pa.int64()))
    source = reader_of(pa.table({"height": pa.array([1.0] * n, pa.float64()), "l": lists}))
    array = choose(positional(3), None, [], ())
    for found in (match(source, fitted, []), match(source, array, [])):
        assert found.names == ("height", "l[0]", "l[1]")
        if not n:
            assert read(source, columns=found).shape == (0, 3)
            continue
        told = r"row 1 \(index 0\), column 'l\[0\]': expected a list of 2 numbers"
        with pytest.raises(DataError, match=told):
            read(source, columns=found)
    number = choose(reader_of(pa.table({"l": [1.0]})), None, [], ())
    if not any(values):
        told = "column 'l': expected lists of numbers in the first rows, got none"
        with pytest.raises(DataError, match=told):
            choose(source, None, [], ())
    with pytest.raises(DataError, match="column 'l': expected numbers, got l"):
        match(source, number, [])


def test_an_empty_csv_is_matched_by_position(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,note\n")
    with open_reader(tmp_path / "a.csv") as source:
        assert source.rows == 0
        found = match(source, choose(positional(2), None, [], ()), [])
        assert found.names == ("x", "y")
        assert read(source, columns=found).shape == (0, 2)
        with pytest.raises(DataError, match="expected 4 feature columns, got 3"):
            match(source, choose(positional(4), None, [], ()), [])


def test_names_cannot_command_a_terminal():
    source = reader_of(pa.table({"x\x1b[2J": [1.0], "y" * 200: [2.0]}))
    with pytest.raises(DataError, match=r"column 'x\\x1b\[2J': expected a name without control characters"):
        choose(source, None, [], ())
    with pytest.raises(DataError, match="expected the column 'z', got 'x") as refused:
        choose(source, ["z"], [], ())
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("kind", ["number", "label", "one_hot"])
def test_names_of_any_length_fit_a_line_wherever_they_stand(kind):
    name = "y" * 10_000
    steps = [{"kind": "one_hot", "columns": [name]}] if kind == "one_hot" else [{"kind": "standardize"}]
    value = {"number": [float("nan")], "label": [" " * 9_000], "one_hot": [float("inf")]}[kind]
    table = pa.table({name: value, "x": [1.0]})
    with pytest.raises(DataError, match=r"row 1 \(index 0\), \w+ 'y+'\.\.\.: expected ") as refused:
        kafeat.fit({"steps": steps}, table, label=name if kind == "label" else None)
    assert len(str(refused.value)) < 250


def test_match_by_name_takes_any_order_and_ignores_the_rest():
    columns = choose(reader_of(TABLE), None, [], ["class"])
    other = reader_of(TABLE.select(["l", "class", "height"]))
    assert match(other, columns, []).names == columns.names
    assert read(other, columns=match(other, columns, [])).tolist() == [[1, 1, 2], [2, 3, 4]]


@pytest.mark.parametrize(("table", "message"), [
    (TABLE.select(["name"]), "expected the columns 'height', 'l', got name"),
    (TABLE.set_column(1, "height", [["a", "b"]]), "column 'height': expected numbers, got string"),
    (TABLE.set_column(2, "l", [[1, 2]]), "column 'l': expected lists of 2 numbers, got numbers"),
    (TABLE.append_column("height", [[1, 2]]), "column 'height': expected one column of that name, got 2"),
])  # fmt: skip
def test_match_by_name_refuses(table, message):
    columns = choose(reader_of(TABLE), None, [], ["class"])
    with pytest.raises(DataError, match=message):
        match(reader_of(table), columns, [])


def test_match_by_position():
    columns = choose(reader_of(TABLE), None, [], ["class"])
    assert match(positional(3), columns, []).names == ("c0", "c1", "c2")
    assert match(positional(4), columns, ["c1"]).names == ("c0", "c2", "c3")
    with pytest.raises(DataError, match="<array>: expected 3 feature columns, got 4; columns without names"):
        match(positional(4), columns, [])
    fitted = choose(positional(4), None, ["c1"], ())
    assert fitted.input_width == 4
    assert match(reader_of(TABLE), fitted, ["class"]).names == ("height", "l[0]", "l[1]")
    # As wide as the fitted source: the same columns; as wide as the map: by position.
    assert match(positional(4), fitted, []).names == ("c0", "c2", "c3")
    assert match(positional(3), fitted, []).names == ("c0", "c1", "c2")


@pytest.mark.parametrize("change", [
    {"features": []}, {"features": "ab"}, {"features": [["a"]]}, {"features": [["a", 0]]},
    {"features": [["a", True]]}, {"features": [[1, None]]}, {"features": [["a", None], ["a", None]]},
    {"features": [["a\x1b[2J", None]]}, {"positional": 1},
    {"input_width": -1}, {"input_width": 2.0}, {"more": 1}, {"missing": 0},
    {"features": [["a", None, ["x"]]]}, {"features": [["a", 2, ["x"], True]]},
    {"features": [["a", None, [], True]]}, {"features": [["a", None, ["x", "x"], True]]},
    {"features": [["a", None, ["", ""], True]]}, {"features": [["a", None, ["x"], 1]]},
    {"features": [["a", None, "xy", True]]}, {"features": [["a", None, [1], True]]},
    {"features": [["a", None, ["x"] * 10_001, True]]},
])  # fmt: skip
def test_malformed_plain(change):
    plain = {"features": [["a", None]], "positional": False, "input_width": None, "missing": False}
    assert Columns.from_plain(plain).names == ("a",)
    with pytest.raises(ValueError, match="columns"):
        Columns.from_plain({**plain, **change})
    with pytest.raises(ValueError, match="columns: expected an entry as `fit` writes it"):
        Columns.from_plain([])


def test_kept_columns_of_csv(tmp_path):
    (tmp_path / "a.csv").write_text("id,i,f,t,x\n007,1,1.50,,1\n008,-2,2,a,2\n")
    with open_reader(tmp_path / "a.csv") as source:
        columns, keep = choose(source, ["x"], [], ()), ["t", "id", "f", "i"]
        kinds = [pa.string(), pa.string(), pa.float64(), pa.int64()]
        assert source.passthrough_schema(keep).types == kinds
        [chunk] = source.chunks(columns, keep, 10)
        assert chunk.passthrough.schema == source.passthrough_schema(keep)
        assert read_label(chunk, "i").tolist() == [1, -2]
        assert read_label(chunk, "id").tolist() == ["007", "008"]
        [chunk] = source.chunks(columns, keep, 10, typed_passthrough=False)
        assert chunk.passthrough.schema == source.passthrough_schema(keep, typed=False)
        assert chunk.passthrough["f"].to_pylist() == ["1.50", "2"]


NUMBERED = pa.table({f"x{i:04}": [1.0, 2.0] for i in range(12)})


def test_a_hint_is_no_column_that_is_asked_for_or_that_has_another_number():
    source = reader_of(NUMBERED.append_column("label", pa.array([0, 1])))
    for wanted, hint in (
        (["x0002", "x12"], "expected the column 'x12', got"),
        (["x0012", "x0003"], "expected the column 'x0012', got"),
        (["label", "labels"], "expected the column 'labels', got"),
        (["x03"], r"expected the column 'x03' \(did you mean 'x0003'\?\), got"),
        (["x003y"], r"expected the column 'x003y' \(did you mean 'x0003'\?\), got"),
        (["labell"], r"expected the column 'labell' \(did you mean 'label'\?\), got"),
    ):
        with pytest.raises(DataError, match=hint):
            require(source, wanted)


def test_a_numbered_column_that_is_absent_is_no_slip_for_its_neighbour():
    assert choose(reader_of(NUMBERED), None, ["x0012"], ()).n_features == 12


def test_spaces_beside_the_commas_of_keep_are_none_of_a_name(tmp_path):
    (tmp_path / "x.csv").write_text("a,b, c,d\n1,2,3,4\n2,3,4,5\n")
    fm = kafeat.fit({"columns": {"include": ["a"]}, "steps": ["minmax"]}, tmp_path / "x.csv")
    with pytest.raises(DataError, match=r"--keep: expected the column 'c' \(did you mean ' c'\?\)"):
        transform_file(fm, tmp_path / "x.csv", tmp_path / "z.parquet", keep=["c"])
    for keep, names in ((["b", " c", " d "], ["b", " c", "d"]), ([" c"], [" c"])):
        write = OutputOptions(keep=keep, overwrite=True)
        transform_file(fm, tmp_path / "x.csv", tmp_path / "z.parquet", writing=write)
        assert pq.read_schema(tmp_path / "z.parquet").names == [*names, "f0"]


def test_categories_in_a_dictionary_of_views_are_those_of_texts():
    """As polars exports a Categorical."""
    views = pa.DictionaryArray.from_arrays([0, 1, 0], pa.array(["r", "g"]).cast(pa.string_view()))
    made = [
        kafeat.fit({"steps": [{"kind": "one_hot", "columns": ["c"]}]}, pa.table({"c": c})).transform(
            pa.table({"c": views})
        )
        for c in (views, ["r", "g", "r"])
    ]
    np.testing.assert_array_equal(made[0], made[1])
    assert made[0].sum() == 3.0
