"""Every option of a transform is known to `--resume` and to `verify`; a forgotten one fails a test by its name."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kafeat
from kafeat.errors import KafeatError
from kafeat.io.options import InputOptions, declared
from kafeat.io.storage.location import parse_location
from kafeat.jobs.options import VerifyOptions
from kafeat.jobs.transform.options import TransformOptions
from kafeat.jobs.verify.verify import verify_file

OPTIONS = [one.name for one, _ in declared(TransformOptions)]
CHANGING: dict[str, dict[str, Any]] = {
    "input_format": {"input_format": "jsonl"}, "delimiter": {"delimiter": ";"}, "encoding": {"encoding": "utf-16"},
    "no_header": {"no_header": True}, "null_values": {"null_values": ["7.000"]}, "decimal": {"decimal": ","},
    "thousands": {"thousands": "."}, "unit": {"unit": ["kg"]}, "date_format": {"date_format": ["%Y-%d-%m"]},
    "text": {"text": ["5.000"], "keep": ["5.000"]},
    "features": {"features": True}, "unit_variance": {"features": True, "unit_variance": True},
    "output_format": {"output_format": "csv"}, "layout": {"layout": "list"}, "prefix": {"prefix": "my_"},
    "compression": {"compression": "zstd"}, "output_dtype": {"output_dtype": "float16"}, "keep": {"keep": ["5.000"]},
    "interval": {"interval": 0.9}, "on_bad_rows": {"on_bad_rows": "null"},
}  # fmt: skip
"""For each option that changes the output values with which it does."""
SAME: dict[str, dict[str, Any]] = {
    "fsync": {"fsync": False}, "jobs": {"jobs": 1}, "stats": {"stats": "stats.json"}, "rejects": {"rejects": "bad"},
    "max_bad_rows": {"max_bad_rows": "90%"}, "max_drift": {"max_drift": 1.0}, "drift_test": {"drift_test": 0.0},
    "metrics": {"metrics": "m.prom"},
}  # fmt: skip
"""The same for options that change no byte of it."""
ELSEWHERE = {"limit", "rows_per_file", "resume", "overwrite", "engine", "scheduler", "max_failures"}
"""Options of what is made, by whom and of which rows, which have tests of their own."""
BASE = {"output_format": "parquet", "on_bad_rows": "drop"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("every")
    rng = np.random.default_rng(0)
    days = [f"2020-{month:02}-{day:02}" for month, day in rng.integers(1, 13, (60, 2))]
    lines = [f"{a:.3f},{day},{a + len(day):.3f}" for a, day in zip(rng.uniform(0, 9, 60), days, strict=True)]
    (folder / "fit.csv").write_text("\n".join(["5.000,2020-02-05,y", *lines]))
    steps = [
        {"kind": "date_parts", "columns": ["2020-02-05"]},
        {"kind": "fourier", "n_components": 4},
        {"kind": "ridge"},
    ]
    kafeat.fit({"chunk_rows": 64, "steps": steps}, folder / "fit.csv", label="y").save(folder / "map.joblib")
    return str(folder / "map.joblib")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that every option about text reads otherwise, below names that may be a row."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/x.csv").write_text("5.000,2020-02-05\n1.500,2020-04-03\n7.000,2020-01-02\n2.250 kg,2020-05-06\n")


def made(model: str, out: str, **options: Any) -> dict[str, bytes] | str:
    """The parts of the folder `out`, or why there are none."""
    try:
        kafeat.transform("in", out, model=model, **BASE | options)
    except KafeatError as error:
        return str(error).replace(out, "OUT")
    return {path.name: path.read_bytes() for path in Path(out).glob("[!_]*")}


def test_every_option_is_tried():
    """A new one is added to `CHANGING` or to `SAME`, with a value."""
    assert sorted(OPTIONS) == sorted([*CHANGING, *SAME, *ELSEWHERE])


@pytest.mark.parametrize("name", [*CHANGING, *SAME])
def test_resume_makes_what_a_new_run_makes(name, model):
    given = (CHANGING | SAME)[name]
    before, fresh = made(model, "out"), made(model, "fresh", **given)
    assert (fresh == before) == (name in SAME)
    assert made(model, "out", **given, resume=True) == fresh


@pytest.mark.parametrize("name", [name for name in (*CHANGING, *SAME) if not hasattr(InputOptions, name)])
def test_verify_knows_the_option(name, model):
    """It is told by an option of the same name, or reads it from the output."""
    given = (BASE | (CHANGING | SAME)[name]) if name != "output_format" else BASE
    kafeat.transform("in/x.csv", "x.parquet", model=model, **given)
    known = {one.name for one in fields(VerifyOptions)}
    told = {own: value for own, value in given.items() if own in known and own != "stats"}
    assert verify_file(*map(parse_location, (model, "in/x.csv", "x.parquet")), **told).rows > 0
