"""Passthrough columns of an output must be those of the input, in the same rows."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from kafeat.errors import GateError
from kafeat.io.options import InputOptions
from tests.jobs.files import transform_file, verify_file
from tests.recipes import fit_once
from tests.sizes import sampled

N, CHUNK = 700, 256
X = np.random.default_rng(0).normal(size=N)

KEPT = {
    "whole": pa.array([None, *range(1, N)]),
    "real": pa.array([float("nan"), None, *X[2:]]),
    "text": pa.array(["", None, 'a "quoted", word', *(f"row {i}" for i in range(3, N))]),
    "kind": pa.array(["u", "v"] * (N // 2)).dictionary_encode(),
    "day": pa.array([datetime.date(2024, 1, 1)] * N),
    "time": pa.array([datetime.datetime(2024, 1, 1, 1, 2, 3, 456000)] * N),
    "price": pa.array([decimal.Decimal("1.50")] * N),
    "truth": pa.array([True, None] * (N // 2)),
}
TABLE = pa.table({**KEPT, "x": X})


@pytest.fixture
def model(tmp_path):
    step = {"kind": "fourier", "n_components": 4, "frequencies": "iid"}
    recipe = {"columns": {"include": ["x"]}, "chunk_rows": CHUNK, "steps": [step]}
    fit_once(recipe, TABLE).save(tmp_path / "m.joblib")
    return str(tmp_path / "m.joblib")


def write(path, table):
    if path.suffix == ".csv":
        plain = (
            table.set_column(table.column_names.index("kind"), "kind", table["kind"].cast(pa.string()))
            if ("kind" in table.column_names and pa.types.is_dictionary(table["kind"].type))
            else table
        )
        pc.write_csv(plain, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=100)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=90)


def read(path):
    return pq.read_table(path) if path.suffix == ".parquet" else ipc.open_file(path).read_all()


@pytest.mark.sampled
@pytest.mark.parametrize("out", ["out.csv", "out.parquet", "out.arrow", "out.jsonl"])
@pytest.mark.parametrize("source", ["in.csv", "in.parquet", "in.arrow"])
def test_what_was_kept_is_found_again(model, tmp_path, source, out):
    write(tmp_path / source, TABLE)
    place, made = str(tmp_path / source), str(tmp_path / out)
    transform_file(model, place, made, keep=list(KEPT))
    assert verify_file(model, place, made).rows == N


@pytest.mark.parametrize("source", [*sampled("in.csv"), "in.parquet"])
@pytest.mark.parametrize("name", list(KEPT))
def test_another_value_is_named(model, tmp_path, source, name):
    write(tmp_path / source, TABLE)
    place, made = str(tmp_path / source), tmp_path / "out.parquet"
    transform_file(model, place, made, keep=list(KEPT))
    table = read(made)
    row, other = (301, 298)
    values = table[name].to_pylist()
    changed = {
        "day": datetime.date(2023, 1, 1), "time": datetime.datetime(2023, 1, 1), "price": decimal.Decimal("2.50"),
        "kind": "u", "truth": True, "text": "",
    }.get(name, values[other])  # fmt: skip
    if source == "in.csv":
        kind = table[name].type
        changed = str(changed) if pa.types.is_string(kind) else float(changed) if name == "price" else changed
    values[row] = changed
    index = table.column_names.index(name)
    write(made, table.set_column(index, table.schema.field(index), pa.array(values, table[name].type)))
    with pytest.raises(GateError, match=rf"row 302 .*column '{name}': expected .* as in the input, got "):
        verify_file(model, place, made)


def test_shifted_ids_are_found_in_text(model, tmp_path):
    write(tmp_path / "in.parquet", TABLE)
    place, made = str(tmp_path / "in.parquet"), tmp_path / "out.csv"
    transform_file(model, place, made, keep=["whole"])
    head, first, *rest = made.read_text().splitlines()
    ids = [line.split(",", 1)[0] for line in [first, *rest]]
    rest = [line.split(",", 1)[1] for line in [first, *rest]]
    lines = [f"{one},{line}" for one, line in zip([*ids[1:], ids[0]], rest, strict=True)]
    made.write_text("\n".join([head, *lines]) + "\n")
    with pytest.raises(GateError, match=r"row 1 .*column 'whole': expected None as in the input, got '1'"):
        verify_file(model, place, made)


@pytest.mark.parametrize("rule", ["drop", "null"])
def test_bad_rows_stay_in_step(model, tmp_path, rule):
    x = pa.array([None if i % 7 == 3 else X[i] for i in range(N)])
    bad = TABLE.set_column(TABLE.num_columns - 1, "x", x)
    write(tmp_path / "in.parquet", bad)
    place, made = str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")
    transform_file(model, place, made, keep=["whole", "text"], on_bad_rows=rule)
    assert verify_file(model, place, made, on_bad_rows=rule).rows == (600 if rule == "drop" else N)
    table = pq.read_table(made)
    shifted = pa.chunked_array([table["whole"].slice(1), table["whole"].slice(0, 1)])
    pq.write_table(table.set_column(0, "whole", shifted.combine_chunks()), made)
    with pytest.raises(GateError, match="column 'whole': expected"):
        verify_file(model, place, made, on_bad_rows=rule)


def test_columns_that_the_input_has_not_are_let_through(model, tmp_path):
    write(tmp_path / "in.parquet", TABLE)
    place, made = str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")
    transform_file(model, place, made)
    pq.write_table(pq.read_table(made).add_column(0, "mine", pa.array(range(N))), made)
    assert verify_file(model, place, made).rows == N


def test_text_without_names_is_compared_by_its_features(model, tmp_path):
    write(tmp_path / "in.parquet", TABLE)
    place, made = str(tmp_path / "in.parquet"), tmp_path / "out.csv"
    transform_file(model, place, made, keep=["whole"])
    made.write_text(made.read_text().partition("\n")[2])
    assert verify_file(model, place, made, reading_output=InputOptions(no_header=True)).rows == N
