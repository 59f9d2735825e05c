"""Arrow IPC: files and streams, pipes, and what is not sound."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, SystemRefusedError
from kafeat.io.options import OutputOptions
from kafeat.io.readers.arrow_ipc import ArrowStreamReader
from kafeat.io.storage.location import parse_location
from tests.io.tables import open_reader, read
from tests.jobs.files import transform_file, verify_file
from tests.zygote import Process, apart

NO_FEATURES = kafeat.io.columns.columns.Columns((), False, None)


def packed(table, stream, height=7):
    out = io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=height)
    return out.getvalue()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)).astype("f4")
    lists = pa.array([row[1:].tolist() for row in X], pa.list_(pa.float32()))
    kinds = pa.array(["x", "y"] * 25).dictionary_encode()
    return pa.table({"id": [f"r{i}" for i in range(50)], "a": X[:, 0], "v": lists, "kind": kinds})


@pytest.fixture(scope="module")
def fm(table):
    steps = [{"kind": "fourier", "n_components": 8, "frequencies": "iid"}]
    return kafeat.fit({"steps": steps, "chunk_rows": 16}, table)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["x.arrow", "x.feather", "x.arrows", "x.ipc"])
def test_what_is_there_decides_and_not_the_suffix(tmp_path, table, stream, name):
    (tmp_path / name).write_bytes(packed(table, stream))
    with open_reader(tmp_path / name) as source:
        assert source.rows == (None if stream else 50)
        once = read(source)
        assert once.shape == (50, 3)
        assert read(source).tobytes() == once.tobytes()


NAMED = pytest.param(True, ("--input-format", "arrow"), marks=pytest.mark.slow)


@pytest.mark.parametrize(("stream", "named"), [(False, ()), (True, ()), NAMED])
def test_arrow_on_stdin_need_not_be_named(tmp_path, table, fm, stream, named):
    fm.save(tmp_path / "m.joblib")
    pq.write_table(table, tmp_path / "x.parquet")
    transform_file(fm, tmp_path / "x.parquet", tmp_path / "y.parquet", keep=("id",))
    words = f"transform --model {tmp_path}/m.joblib - - --output-format arrow --keep id"
    done = apart(words, *named, input=packed(table, stream))
    found = pa.ipc.open_stream(done.stdout).read_all()
    assert found.equals(pq.read_table(tmp_path / "y.parquet"))
    assert b'"map"' in found.schema.metadata[b"kafeat"]


def test_two_commands_in_a_pipe(tmp_path, table, fm):
    fm.save(tmp_path / "a.joblib")
    features = pa.table({f"f{i}": column for i, column in enumerate(fm.transform(table).T)})
    second = kafeat.fit({"steps": ["standardize", {"kind": "projection", "n_components": 4}]}, features)
    second.save(tmp_path / "b.joblib")
    pq.write_table(table, tmp_path / "x.parquet")
    with Process("transform --model a.joblib x.parquet - --output-format arrow", cwd=tmp_path) as first:
        apart("transform --model b.joblib - y.arrow --stats y.json", cwd=tmp_path, stdin=first.stdout)
    transform_file(fm, tmp_path / "x.parquet", tmp_path / "m.parquet")
    transform_file(second, tmp_path / "m.parquet", tmp_path / "z.arrow")
    assert (tmp_path / "y.arrow").read_bytes() == (tmp_path / "z.arrow").read_bytes()


def rows_of_stream(path, data):
    path.write_bytes(data)
    with open_reader(path) as source:
        return sum(len(chunk.passthrough) for chunk in source.chunks(NO_FEATURES, ["id"], 16))


@pytest.mark.parametrize("rows", [50, 0])
def test_a_stream_that_was_cut_off_is_none(tmp_path, table, rows):
    sound = packed(table.drop_columns(["kind"]).slice(0, rows), True)
    assert rows_of_stream(tmp_path / "x.arrows", sound) == rows
    marks = 0
    for size in range(8, len(sound), 8):
        with pytest.raises(DataError, match=r"x\.arrows: expected ") as refused:
            rows_of_stream(tmp_path / "x.arrows", sound[:size])
        marks += "got the end of the file: it was cut off" in str(refused.value)
    assert marks == 1 + -(-rows // 7)  # behind the schema and behind every batch


def test_nothing_may_follow_a_stream(tmp_path, table):
    sound = packed(table, True)
    for more in (b"\0", sound):
        told = f"expected nothing after the end .*, got {len(more):,} bytes more"
        with pytest.raises(DataError, match=told):
            rows_of_stream(tmp_path / "x.arrows", sound + more)
    with pytest.raises(DataError, match="expected nothing after the end"):
        rows_of_stream(tmp_path / "x.arrows", packed(table.slice(0, 0), True) + sound)


def test_files_that_come_by_a_pipe_end_with_their_footer(tmp_path, table):
    sound = packed(table, False)

    def rows(data):
        place = parse_location(write(tmp_path / "x.arrow", data))
        with ArrowStreamReader(place) as source:  # as if it came by a pipe
            return sum(len(chunk.passthrough) for chunk in source.chunks(NO_FEATURES, ["id"], 16))

    assert rows(sound) == 50
    for data in (sound + sound, sound[:-1], sound + b"\0"):
        with pytest.raises(DataError, match="expected the footer of an Arrow IPC file and its end"):
            rows(data)


def test_the_stream_of_a_command_that_fails_has_no_end(tmp_path, fm, table):
    fm.save(tmp_path / "m.joblib")
    late = table.set_column(1, "a", [[*np.arange(40.0), np.nan, *np.arange(9.0)]])
    pq.write_table(late, tmp_path / "x.parquet")
    first = apart("transform --model m.joblib x.parquet - --output-format arrow", cwd=tmp_path)
    assert first.returncode == 3
    assert pa.ipc.open_stream(first.stdout).read_all().num_rows == 32  # Arrow takes it for whole
    refused = pytest.raises(DataError, match="it was cut off, or its writer failed")
    with open_reader(write(tmp_path / "x.arrows", first.stdout)) as source, refused:
        read(source)


def write(path, data):
    path.write_bytes(data)
    return str(path)


def test_streams_of_polars_have_their_mark(tmp_path, table):
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table.select(["id", "a"]))
    for compression in ("uncompressed", "lz4", "zstd"):
        out = io.BytesIO()
        frame.write_ipc_stream(out, compression=compression)
        assert rows_of_stream(tmp_path / "x.arrows", out.getvalue()) == 50


@pytest.mark.parametrize("layout", ["columns", "list"])
@pytest.mark.parametrize("name", ["y.arrow", "y.arrows", "y.parquet"])
def test_outputs_verify_and_can_be_read_on(tmp_path, table, fm, name, layout):
    if name == "y.parquet" and layout != "columns" and int(pa.__version__.split(".")[0]) < 26:
        pytest.skip("before 26, pyarrow does not read nulls among lists of fixed size from Parquet")
    fm.save(tmp_path / "m.joblib")
    (tmp_path / "x.arrow").write_bytes(packed(table.set_column(1, "a", [[None, *range(49)]]), False))
    place, out = str(tmp_path / "x.arrow"), str(tmp_path / name)
    writing = OutputOptions(layout=layout, keep=("id", "kind"))
    transform_file(fm, place, out, writing=writing, on_bad_rows="null")
    assert verify_file(tmp_path / "m.joblib", place, out, on_bad_rows="null").largest_difference == 0.0
    with open_reader(out) as source:
        assert [field.name for field in source.fields][:2] == ["id", "kind"]
        assert source.notes["layout"] == layout
    recipe = {"columns": {"exclude": ["id", "kind"]}, "steps": [{"kind": "impute"}, {"kind": "minmax"}]}
    again = kafeat.fit(recipe, out)
    assert again.n_features_in == 8


@pytest.mark.parametrize("jobs", [1, 2])
def test_bytes_do_not_depend_on_jobs_or_on_how_rows_came(tmp_path, table, fm, jobs):
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=9)
    (tmp_path / "x.arrow").write_bytes(packed(table, False))
    (tmp_path / "s.arrow").write_bytes(packed(table, True, 50))
    contents = set()
    for name in ("x.parquet", "x.arrow", "s.arrow"):
        transform_file(fm, tmp_path / name, tmp_path / "y.arrow", keep=("id",), jobs=jobs)
        contents.add((tmp_path / "y.arrow").read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_flipped_bytes_are_read_or_refused_but_never_a_crash(tmp_path, table, stream):
    sound, path = packed(table, stream), tmp_path / "x.arrow"
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(sound)
        for at in rng.integers(len(sound), size=3):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(1, len(sound) + 1) if rng.random() < 0.3 else None])
        try:
            with open_reader(path) as source:
                for chunk in source.chunks(NO_FEATURES, ["id", "v"], 16):
                    chunk.passthrough.to_pylist()
        except (DataError, SystemRefusedError):  # pyarrow 20 asks the system for bytes before the first
            pass
