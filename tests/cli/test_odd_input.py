"""Inputs that look odd and are sound: they are read, and to the same numbers."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from tests.cli.bad_input import DECIMALS, ROWS, matrix, npy, packed, parquet, raw, sound_csv, text
from tests.jobs.files import transform_file

X = np.array(ROWS)
SOUND = {
    "csv": (raw(sound_csv()), X),
    "csv with quotes": (text('"1","2","3"'), np.vstack([X, [1, 2, 3]])),
    "csv with spaces and signs": (text(" 1 ,+2, -3"), np.vstack([X, [1, 2, -3]])),
    "csv with booleans": (text("true,False,1"), np.vstack([X, [1, 0, 1]])),
    "csv without a last line end": (raw(sound_csv().rstrip()), X),
    "csv with subnormal numbers": (text("1e-310,-1e-45,1e-40"), np.vstack([X, [1e-310, -1e-45, 1e-40]])),
    "csv with more columns": (raw("\n".join(["x,c,b,a", *[f"w,{r[2]},{r[1]!r},{r[0]}" for r in ROWS]]).encode()), X),
    "csv with a name in quotes": (raw(sound_csv().replace(b"a,b,c", b'"a",b,"c"', 1)), X),
    "gzip": (packed(), X),
    "gzip under another name": (packed(name="in.csv"), X),
    "csv with 10,000 columns": (
        raw((",".join(["a", "b", "c", *(f"x{i}" for i in range(9_997))]) + "\n" + ",".join(["2"] * 10_000)).encode()),
        np.full((1, 3), 2.0),
    ),
    "parquet of decimals": (parquet(a=DECIMALS), np.column_stack([np.arange(12) / 4, X[:, 1:]])),
    "parquet of coded numbers": (parquet(a=pa.array(np.arange(12.0)).dictionary_encode()), X),
    "parquet of nullable fields without a null": (parquet(a=pa.array(np.arange(12.0))), X),
    "parquet without rows": (
        parquet(a=pa.array([], pa.float64()), b=pa.array([], pa.float32()), c=pa.array([], pa.int8())), X[:0]
    ),
    "parquet of large decimals": (parquet(a=pa.array([Decimal(i) for i in range(12)], pa.decimal256(60, 3))), X),
    "npy of one row": (npy(matrix()[:1]), X[:1]),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_odd_input(name, tmp_path):
    make, expected = SOUND[name]
    fm = kafeat.fit(
        {"steps": [{"kind": "polynomial_features", "degree": 1}]},
        pa.table(dict(zip("abc", X.T, strict=True))),
    )
    transform_file(fm, make(tmp_path), tmp_path / "out.npy")
    found = np.load(tmp_path / "out.npy")
    assert found.tobytes() == fm.transform(expected.astype(np.float64)).tobytes()
