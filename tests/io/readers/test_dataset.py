"""A data set of many files is read as the one file that its parts would make."""

import glob
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, GateError, SystemRefusedError
from kafeat.io.data_set import list_parts
from kafeat.io.options import InputOptions
from kafeat.io.readers.parquet import ParquetReader
from kafeat.io.storage.location import parse_location
from tests.jobs.files import transform_parts, verify_file

HEIGHTS = (700, 0, 1, 900)
CONFIG = {
    "fit_rows": 40,
    "chunk_rows": 128,
    "steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 8, "frequencies": "orthogonal"}],
}


def table(rows: int, seed: int) -> pa.Table:
    X = np.random.default_rng(seed).normal(size=(rows, 3))
    return pa.table({f"x{j}": X[:, j] for j in range(3)} | {"y": (X[:, 0] > 0).astype(np.int64)})


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    """The same rows as one Parquet file, and as parts of every format."""
    tables = [table(rows, seed) for seed, rows in enumerate(HEIGHTS)]
    for folder in ("parquet", "csv", "npy"):
        (tmp_path / folder).mkdir()
    for i, part in enumerate(tables):
        pq.write_table(part, tmp_path / "parquet" / f"p{i}.parquet", row_group_size=100)
        pa_csv.write_csv(part, tmp_path / "csv" / f"p{i}.csv")
        X = np.column_stack([column.to_numpy() for column in part.columns])
        np.save(tmp_path / "npy" / f"p{i}.npy", X)
    pq.write_table(pa.concat_tables(tables), tmp_path / "one.parquet")
    return {name: str(tmp_path / name) for name in ("parquet", "csv", "npy", "one.parquet")}


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_fit_on_parts_is_a_fit_on_one_file(format, data):
    parts, one = kafeat.fit(CONFIG, data[format], "y"), kafeat.fit(CONFIG, data["one.parquet"], "y")
    X = table(50, 99).drop(["y"])
    assert np.array_equal(parts.transform(X), one.transform(X))
    assert parts.provenance.sources[0].rows == sum(HEIGHTS)
    assert parts.provenance.rows_fitted == 40


def test_npy_parts_are_matched_by_position(data):
    config = {**CONFIG, "columns": {"exclude": ["c3"]}}
    X = np.column_stack([column.to_numpy() for column in table(50, 99).columns])
    one = kafeat.fit(config, np.concatenate([np.load(path) for path in sorted(Path(data["npy"]).iterdir())]))
    assert np.array_equal(kafeat.fit(config, data["npy"]).transform(X), one.transform(X))


def test_a_sample_leaves_blocks_without_it_unread(data, monkeypatch):
    read: list[int] = []
    pieces = ParquetReader.pieces

    def counted(self, indices, height):  # type: ignore[no-untyped-def]
        for piece in pieces(self, indices, height):
            read.append(piece.num_rows)
            yield piece

    monkeypatch.setattr(ParquetReader, "pieces", counted)
    fm = kafeat.fit({**CONFIG, "fit_rows": 3}, data["parquet"], "y")
    # three rows lie in three blocks at most, of 100 rows at most
    assert 3 <= sum(read) <= 300
    assert fm.provenance.rows_fitted == 3


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.slow
def test_an_evaluation_of_parts_is_one_of_the_whole(format, data, tmp_path):
    kafeat.fit(CONFIG, data["one.parquet"], "y").save(tmp_path / "map.joblib")
    model, both = tmp_path / "map.joblib", (data[format], data["one.parquet"])
    told = [kafeat.evaluate(model, one, "y", rows=100) for one in both]
    keys = ("relative_frobenius", "score_raw", "score_map", "score_exact", "rows_train", "rows_test")
    assert [told[0][key] for key in keys] == [told[1][key] for key in keys]


@pytest.mark.parametrize(("format", "suffix"), [(None, "parquet"), ("csv", "csv")])
def test_the_part_that_is_wrong_is_named(data, tmp_path, format, suffix):
    """With the options of the run, which its manifest states: rows that it dropped, and the dtype of text."""
    model, out = str(tmp_path / "map.joblib"), tmp_path / "out"
    kafeat.fit(CONFIG, data["parquet"], "y").save(model)
    bad = table(700, 0).set_column(0, "x0", pa.array([float("nan"), *range(699)]))
    pq.write_table(bad, f"{data['parquet']}/p0.parquet")
    transform_parts(
        model, data["parquet"], out, on_bad_rows="drop", output_format=format, output_dtype="float16"
    )
    assert verify_file(model, data["parquet"], out).rows == sum(HEIGHTS) - 1
    with pytest.raises(DataError, match=r"p0.parquet: row 1 .* pass that to verify$"):
        verify_file(model, data["parquet"], out, on_bad_rows="error")
    read, write = (pq.read_table, pq.write_table) if format is None else (pa_csv.read_csv, pa_csv.write_csv)
    for part, rows, problem in [
        ("p0", [*range(40), 41, 40, *range(42, 699)], r"row 41 \(index 40\), feature \d: expected .*, got"),
        ("p0", range(698), "expected 699 rows, as _kafeat.json says, got 698"),
        ("p2", [], "expected 1 row, as _kafeat.json says, got 0"),
        ("p3", range(1, 900), r"row 1 \(index 0\), feature \d: expected .*, got"),
        ("p3", range(899), "expected 900 rows, as _kafeat.json says, got 899"),
        ("p3", [*range(900), 0], "expected 900 rows, as _kafeat.json says, got 901"),
        ("p2", None, "expected the finished parts of _kafeat.json, got none here"),
        ("p4", [0], "expected the finished parts of _kafeat.json, got one more"),
    ]:  # fmt: skip
        place = out / f"{part}.{suffix}"
        before = place.read_bytes() if place.exists() else None
        wrong = read(place if before is not None else out / f"p3.{suffix}").take(
            pa.array(rows or (), pa.int64())
        )
        place.unlink() if rows is None else write(wrong, place)
        with pytest.raises(GateError, match=rf"{place}: {problem}"):
            verify_file(model, data["parquet"], out)
        place.unlink(missing_ok=True) if before is None else place.write_bytes(before)
    assert verify_file(model, data["parquet"], out).largest_difference == 0.0


def test_a_mistake_is_told_by_its_part_and_its_row_there(data):
    bad = table(10, 5).set_column(1, "x1", pa.array([1.0] * 4 + [float("inf")] * 6))
    pq.write_table(bad, f"{data['parquet']}/p2.parquet")
    with pytest.raises(DataError, match=r"p2.parquet: row 5 .*column 'x1': expected a finite number"):
        kafeat.fit({**CONFIG, "fit_rows": "all"}, data["parquet"], "y")


def test_a_value_that_a_step_refuses_is_told_by_its_part(data):
    positive = pa.table(dict(zip("abc", np.ones((3, 20)), strict=True)))
    folder = Path(data["parquet"]).parent / "counts"
    folder.mkdir()
    pq.write_table(positive, folder / "p0.parquet")
    pq.write_table(positive.set_column(0, "a", pa.array([1.0] * 7 + [-1.0] * 13)), folder / "p1.parquet")
    with pytest.raises(DataError, match=r"p1.parquet: row 8 \(index 7\), column 'a'"):
        kafeat.fit({"fit_rows": "all", "steps": [{"kind": "homogeneous", "kernel": "chi2"}]}, folder)


@pytest.mark.parametrize("change", ["lacks", "wider"])
def test_a_part_with_other_columns_is_told(change, data):
    if change == "lacks":
        pq.write_table(table(5, 1).drop(["x1"]), f"{data['parquet']}/p2.parquet")
        with pytest.raises(DataError, match=r"p2.parquet: expected the column"):
            kafeat.fit({**CONFIG, "fit_rows": "all"}, data["parquet"], "y")
    else:
        np.save(f"{data['npy']}/p3.npy", np.ones((5, 9)))
        with pytest.raises(DataError, match=r"p3.npy: expected 4 columns, as .*p0.npy has, got 9"):
            kafeat.fit({**CONFIG, "fit_rows": "all"}, data["npy"])


MAP = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("other", [
    pa.nulls(1), pa.array([b"1"]), pa.array([{"a": 1}]), MAP, pa.array(["1"]),
    pa.array([[1, 2, 3]], pa.list_(pa.int64(), 3)),
    pa.array([1], pa.date32()), pa.array([1], pa.timestamp("us")), pa.array([1], pa.duration("us")),
    pa.array([1], pa.time64("us")),
], ids=lambda column: str(column.type))  # fmt: skip
def test_a_part_whose_column_is_of_another_type_is_told(tmp_path, other, listed, ending):
    """As the same part by itself is: dates and times are no numbers there."""
    own = pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2)) if listed else pa.array([1.0])
    for name, column in (("a", own), ("b", other)):
        if ending == "parquet":
            pq.write_table(pa.table({"x": column}), tmp_path / f"{name}.parquet")
        else:
            feather.write_feather(pa.table({"x": column}), tmp_path / f"{name}.arrow")
    expected = "lists of 2 numbers" if listed else "numbers"
    with pytest.raises(DataError, match=rf"b.{ending}: column 'x': expected {expected}, got "):
        kafeat.fit({"steps": ["standardize"]}, tmp_path)


def test_the_labels_of_all_parts_are_numbers_or_all_are_text(tmp_path):
    for name, labels in (("a", [0, 1] * 8), ("b", ["0", "1"] * 8)):
        pq.write_table(pa.table({"x": np.arange(16.0), "y": labels}), tmp_path / f"{name}.parquet")
    message = r"b.parquet: label 'y': expected numbers, as .*a.parquet has, got text"
    with pytest.raises(DataError, match=message):
        kafeat.fit({"steps": ["standardize"]}, tmp_path, label="y")
    with pytest.raises(DataError, match=message):
        kafeat.evaluate(config={"steps": ["standardize"]}, data=str(tmp_path), label="y")


def test_sparse_parts_are_as_wide_as_the_widest(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.libsvm").write_text("1 1:0.5 3:1\n0 2:1\n" * 20)
    (tmp_path / "in" / "b.libsvm").write_text("1 1:0.25 5:2\n" * 20)
    (tmp_path / "one.libsvm").write_text("1 1:0.5 3:1\n0 2:1\n" * 20 + "1 1:0.25 5:2\n" * 20)
    config = {"steps": [{"kind": "fourier", "n_components": 4, "frequencies": "iid"}]}
    parts, one = (kafeat.fit(config, tmp_path / name, "label") for name in ("in", "one.libsvm"))
    assert parts.n_features_in == one.n_features_in == 5
    X = np.eye(5)
    assert np.array_equal(parts.transform(X), one.transform(X))
    parts.save(tmp_path / "map.joblib")
    assert transform_parts(tmp_path / "map.joblib", tmp_path / "in", tmp_path / "out").rows == 60
    assert sorted(path.name for path in (tmp_path / "out").glob("[!_]*")) == ["a.parquet", "b.parquet"]


def test_the_digest_follows_names_sizes_and_ends(data):
    def digest() -> str:
        with InputOptions().open(parse_location(data["parquet"])) as source:
            return source.digest()

    first = digest()
    assert first == digest()
    pq.write_table(table(1, 50), f"{data['parquet']}/p2.parquet")
    assert digest() != first


@pytest.mark.timeout(60)  # tried in every way, 12 of them at 26 levels take days
def test_a_pattern_of_many_folders_is_that_of_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for depth in (0, 1, 3, 26):
        folder = tmp_path / "in" / "/".join(depth * "a")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "x.csv").write_text("x\n1\n")
    few = ("**", "**/a/**", "*/**/*")
    wanted = {one: sorted(set(glob.glob(f"in/{one}/x.csv", recursive=True))) for one in few}
    for pattern, few in (*zip(wanted, wanted, strict=True), ("/".join(12 * ["**"]), "**")):
        found = [str(part.location) for part in list_parts(parse_location(f"in/{pattern}/x.csv")).parts]
        assert sorted(found) == wanted[few]
    with pytest.raises(SystemRefusedError, match=r"nope\.csv: expected a file, or files of that pattern"):
        list_parts(parse_location("in/" + "**/" * 12 + "nope.csv"))


@pytest.mark.parametrize(("last", "told"), [
    ("Total,9", "Total"), ("*,9", "*"), (",9", ""), ("*,8", None), (",", None), ("7,3 ± 1", "3 ± 1"),
    ("SD,2", "SD"),
])  # fmt: skip
def test_a_line_of_totals_in_the_first_part_is_told(tmp_path, last, told):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"x,y\n1,2\n3,4\n5,3\n{last}\n")
    with InputOptions().open(parse_location(tmp_path)) as source:
        odd = "" if told is None else f"row 4 looks like a line of totals ({told!r}): head -n 4 "
        assert source.odd_rows[: len(odd) or None] == odd
