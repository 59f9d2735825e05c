"""JSON lines through the commands, beside the CSV of the same rows."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from tests.zygote import apart

ROOT = Path(__file__).parents[2]
RENTALS = ROOT / "sample_data/rentals.csv"
STEPS = """
steps:
  - impute
  - {kind: date_parts, columns: [time]}
  - {kind: one_hot, columns: [station, weather], unknown: ignore}
  - standardize
  - {kind: nystroem, n_components: 8}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The rentals as JSON lines without what is missing, and a config with a predictor."""
    folder = tmp_path_factory.mktemp("jsonl")

    def value(text: str) -> object:
        try:
            return float(text)
        except ValueError:
            return text

    with open(RENTALS) as file:
        rows = [{key: value(text) for key, text in row.items() if text} for row in csv.DictReader(file)]
    (folder / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "x.ndjson.gz").write_bytes(gzip.compress((folder / "x.jsonl").read_bytes()))
    (folder / "map.yaml").write_text(STEPS)
    return folder


def test_transform(run, in_process, folder, tmp_path):
    model, out = tmp_path / "m.joblib", tmp_path / "out.jsonl"
    run("fit --config", folder / "map.yaml", RENTALS, model, "--label", "income")
    made = set()
    for source in (RENTALS, folder / "x.jsonl", folder / "x.ndjson.gz"):
        run("transform --model", model, source, out, "--keep", "income,station")
        run("verify --model", model, source, out)
        made.add(out.read_bytes())
    assert len(made) == 1
    assert list(json.loads(out.read_text().splitlines()[0]))[:3] == ["income", "station", "f0"]
    out.write_text(out.read_text().replace('"Harbour"', '"Habour"', 1))
    done = in_process("verify", "--model", model, folder / "x.jsonl", out)
    assert done.returncode != 0
    assert "row 1 (index 0), column 'station': expected 'Harbour' as in the input, got" in done.stderr


def test_standard_input_and_output(run, folder, tmp_path):
    model = tmp_path / "m.joblib"
    run("fit --config", folder / "map.yaml", folder / "x.jsonl", model, "--label", "income")
    run("transform --model", model, folder / "x.jsonl", tmp_path / "out.jsonl", "--keep", "income")
    command = f"transform --model {model} - - --input-format jsonl --output-format jsonl --keep income"
    for name in ("x.jsonl", "x.ndjson.gz"):
        with open(folder / name, "rb") as file:
            piped = apart(command, stdin=file)
        assert piped.stdout == (tmp_path / "out.jsonl").read_bytes()
