import datetime
import decimal
import os

import numpy as np
import pyarrow as pa
import pytest

from kafeat.errors import UsageError
from tests.io.writers.opening import open_writer
from tests.zygote import Process


def written(path, kept, *heights, compression=None):
    rows = len(kept)
    options = {"names": ["f0"], "dtype": np.dtype("f4"), "passthrough_schema": kept.schema}
    with open_writer(path, "csv", compression=compression, **options) as sink:
        for start, height in zip(np.cumsum([0, *heights]), [*heights, rows], strict=True):
            part = kept.slice(start, height)
            sink.write(np.ones((len(part), 1), "f4"), part)
    return path.read_bytes().decode()


def test_a_value_is_quoted_for_what_it_holds(tmp_path):
    values = ["plain", "a,b", 'say "x"', "two\nlines", "cr\r", " sp ", "", None, "ü", "-"]
    quoted = ["plain", '"a,b"', '"say ""x"""', '"two\nlines"', '"cr\r"', " sp ", "", "", "ü", "-"]
    kept = pa.table({"t": values})
    truth = "t,f0\n" + "".join(f"{value},1\n" for value in quoted)
    for heights in ((), (1, 1, 1), (3, 4), (0, 9)):
        assert written(tmp_path / "o.csv", kept, *heights) == truth
    for kind in (pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        assert written(tmp_path / "o.csv", kept.cast(pa.schema([("t", kind)])), 2, 5) == truth


def test_many_rows_in_pieces_of_their_own(tmp_path):
    kept = pa.table({"t": [f"{i}," if i % 3 else str(i) for i in range(5000)]})
    truth = "t,f0\n" + "".join(f'"{i},",1\n' if i % 3 else f"{i},1\n" for i in range(5000))
    assert written(tmp_path / "o.csv", kept, 7, 3000) == truth


def test_names_are_quoted_as_values_are(tmp_path):
    kept = pa.table({"a,b": ["x"], 'q"': ["y"], "cr\r": ["z"], "": ["e"]})
    assert written(tmp_path / "o.csv", kept).startswith('"a,b","q""","cr\r",,f0\nx,y,z,e,1\n')


@pytest.mark.parametrize("beside", ["x", "a,b"])
def test_every_plain_type_is_spelled_as_its_text(tmp_path, beside):
    columns = {
        "d": pa.array([datetime.date(2024, 2, 29)]), "b": pa.array([True]),
        "n": pa.array([decimal.Decimal("1.50")]), "i": pa.array([7], pa.int8()), "x": pa.array([0.1]),
        "t": pa.array([datetime.time(1, 2, 3)], pa.time32("s")), "none": pa.array([None], pa.null()),
    }  # fmt: skip
    texts = ["2024-02-29", "true", "1.50", "7", "0.1", "01:02:03", ""]
    typed = pa.table({**columns, "s": [beside]})
    plain = pa.table({**{name: [text] for name, text in zip(columns, texts, strict=True)}, "s": [beside]})
    assert written(tmp_path / "o.csv", typed) == written(tmp_path / "o.csv", plain)


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary(3), pa.dictionary(pa.int8(), pa.binary()),
     pa.month_day_nano_interval(), pa.list_(pa.int8()), pa.struct([("a", pa.int8())])],
    ids=str,
)  # fmt: skip
def test_what_csv_cannot_hold_is_refused_by_name(tmp_path, kind):
    options = {"names": ["f0"], "dtype": np.dtype("f4"), "passthrough_schema": pa.schema([("raw", kind)])}
    told = "o.csv: column 'raw': expected a passthrough column that CSV can hold, got "
    with pytest.raises(UsageError, match=told), open_writer(tmp_path / "o.csv", "csv", **options):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("format", "packing"), [("csv", ""), ("csv", "gzip"), ("csv", "zstd"), ("arrow", "")]
)
def test_a_stream_whose_reader_leaves_says_nothing(format, packing):
    code = (
        "import numpy as np, sys; from kafeat.io.writers.open import open_writer\n"
        "from kafeat.io.formats import FORMATS\n"
        "from kafeat.io.storage.location import parse_location\n"
        "from kafeat.io.writers.base import Layout\n"
        "X = np.random.default_rng(0).normal(size=(20000, 4)).astype('f4')\n"
        "try:\n"
        "    layout = Layout(list('abcd'), X.dtype, compression=sys.argv[2] or None)\n"
        "    with open_writer(parse_location('-'), FORMATS[sys.argv[1]], layout) as s:\n"
        "        for _ in range(50): s.write(X, None)\n"
        "except BrokenPipeError: sys.exit(3)\n"
    )
    child = Process(format, packing, code=code)
    child.stdout.read(10)
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait() == 3


def test_float16_beside_the_features_is_written_as_numbers(tmp_path):
    half = pa.table({"h": pa.array(np.array([0.1, -2.0, np.nan], "f2"))})
    options = {"names": ["f0"], "dtype": np.dtype("f4"), "passthrough_schema": half.schema}
    with open_writer(tmp_path / "o.csv", "csv", **options) as writer:
        writer.write(np.ones((3, 1), "f4"), half)
    read = np.loadtxt(tmp_path / "o.csv", delimiter=",", skiprows=1)
    assert np.array_equal(read[:, 0].astype("f2"), half["h"].to_numpy(), equal_nan=True)
