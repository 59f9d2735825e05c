"""`kafeat config` as a person types it."""

import io
import json
import os
import re
import sys
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafeat.config import load_config
from tests.zygote import ROOT, Process, apart


def test_a_started_config_is_piped_into_a_fit(tmp_path):
    with Process("config --kind pca") as config:
        digits = ROOT / "sample_data/digits.npy"
        apart("fit --config -", digits, "m.joblib", cwd=tmp_path, stdin=config.stdout)
    assert (tmp_path / "m.joblib").stat().st_size


def test_check_tells_what_is_sound_and_every_mistake_of_every_file(run, tmp_path, monkeypatch):
    (tmp_path / "good.yaml").write_text("steps: [{kind: standardize}, {kind: fourier}]\nfit_rows: all\n")
    (tmp_path / "bad.yaml").write_text("seed: -1\nsteps:\n  - kind: fuorier\n")
    (tmp_path / "worse.yaml").write_text("steps: []\n")
    said = "good.yaml: valid: standardize -> fourier, float32, fitted on every row\n"
    assert run("config --check good.yaml", cwd=tmp_path).stdout == said
    done = run("config --check bad.yaml good.yaml worse.yaml", cwd=tmp_path, code=2)
    assert done.stdout == said
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    assert lines[0] == "kafeat: bad.yaml:1:7: seed: expected a whole number from 0 to 2^63 - 1, got -1"
    assert lines[1].startswith("kafeat: bad.yaml:3:11: steps[0].kind: expected one of 'clip', ")
    assert lines[1].endswith("got 'fuorier'; did you mean 'fourier'?")
    assert lines[2].startswith("kafeat: worse.yaml:1:8: steps: expected a non-empty list of steps")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"steps: [{kind: pca}]")))
    assert run("config --check -", cwd=tmp_path).stdout.startswith("-: valid: pca, ")


EXPERIMENT = "about: a\ndata: b\noptions: {{{}}}\nmaps:\n  m: {{steps: [{{kind: {}}}]}}\n"


def test_check_takes_experiments_too(run, tmp_path, monkeypatch):
    (tmp_path / "good.yaml").write_text(EXPERIMENT.format("label: y, seeds: 2", "fourier"))
    (tmp_path / "bad.yaml").write_text(EXPERIMENT.format("", "fuorier"))
    (tmp_path / "worse.yaml").write_text(EXPERIMENT.format("seeds: 0, json: x", "fourier"))
    done = run("config --check bad.yaml good.yaml worse.yaml", cwd=tmp_path, code=2)
    assert done.stdout == "good.yaml: valid: an experiment with the maps m\n"
    kind, seeds, json = done.stderr.splitlines()
    assert kind.startswith("kafeat: bad.yaml:5:22: maps.m.steps[0].kind: expected one of 'clip', ")
    assert seeds == "kafeat: worse.yaml: options.seeds: 0 is not in the range 1<=x<=1000."
    assert json.startswith("kafeat: worse.yaml: options: expected one of label, ")
    content = (tmp_path / "good.yaml").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run("config --check -", cwd=tmp_path).stdout == "-: valid: an experiment with the maps m\n"


@pytest.mark.parametrize(("arguments", "code", "message"), [
    ("--kind pca --schema", 2, "config: expected at most one of --kind KIND, --for DATA, "),
    ("--label y", 2, "config: expected --for DATA with --label, got none"),
    ("--for nope.csv", 5, "nope.csv: "),
    ("--check", 2, "config: expected the names of files with --check, got none"),
    ("--schema x.yaml", 2, "config: expected the names of files with --check, got one without it"),
    ("--check nope.yaml", 5, "nope.yaml: cannot read the config: No such file"),
])  # fmt: skip
def test_mistakes(run, tmp_path, arguments, code, message):
    assert message in run("config", *arguments.split(), cwd=tmp_path, code=code).stderr


def test_a_config_and_data_on_one_stdin_are_refused(run, tmp_path):
    done = run("fit --config - - m.joblib", cwd=tmp_path, code=2)
    assert done.stderr == "kafeat: -: expected one of the config and the input on standard input, got both\n"


def test_the_schema_beside_the_configs_is_the_one_that_is_printed(run, tmp_path):
    printed = json.loads(run("config --schema", cwd=tmp_path).stdout)
    kept = json.loads((ROOT / "configs/kafeat.schema.json").read_text())
    assert kept == printed, "kafeat config --schema > configs/kafeat.schema.json"
    for path in (ROOT / "configs").glob("*.yaml"):
        assert path.read_text().startswith("# yaml-language-server: $schema=kafeat.schema.json\n"), path.name


def test_without_an_option_the_config_standardizes_and_has_a_map(run, tmp_path):
    done = run("config", cwd=tmp_path)
    (tmp_path / "start.yaml").write_text(done.stdout)
    assert [step.kind for step in load_config(tmp_path / "start.yaml").steps] == ["standardize", "nystroem"]


FIT = "steps: [{kind: fourier, n_components: 4}]"
EVALUATE = "about: a\ndata: b\noptions: {seeds: 1, rows: 20, exact_rows: 50}\nmaps: {m: {" + FIT + "}}"


@pytest.mark.parametrize(("words", "content"), [
    ("fit --config pipe.yaml x.csv m.joblib", FIT),
    pytest.param("config --check pipe.yaml", FIT, marks=pytest.mark.slow),
    ("config --check pipe.yaml", EVALUATE),
    pytest.param(
        "evaluate --config pipe.yaml x.csv --rows 20 --exact-rows 50 --seeds 1 --json e.json",
        FIT,
        marks=pytest.mark.slow,
    ),
    ("evaluate --experiment pipe.yaml x.csv --json e.json", EVALUATE),
    ("tune --from pipe.yaml x.csv best.yaml --label y --trials 1 --columns 4", FIT),
])  # fmt: skip
@pytest.mark.timeout(60)  # a pipe that is opened again waits for another writer
def test_a_config_from_a_pipe_is_read_once(tmp_path, run, words, content):
    os.mkfifo(tmp_path / "pipe.yaml")
    rows = "".join(f"{i % 7},{i % 11},{i % 5}\n" for i in range(100))
    (tmp_path / "x.csv").write_text("x,z,y\n" + rows)
    writer = Thread(target=(tmp_path / "pipe.yaml").write_text, args=(content,), daemon=True)
    writer.start()
    run(words, *([] if "--check" in words else ["-q"]), cwd=tmp_path)


def test_a_config_for_a_table_says_what_each_column_is_and_fits_as_it_is(run, tmp_path):
    rng = np.random.default_rng(0)
    n = 2500
    words = rng.choice(["red", "green", "blue", "round", "flat", "large"], size=(n, 4))
    table = pa.table(
        {
            "size": pa.array(rng.normal(size=n), mask=np.arange(n) >= 2400),  # no gap in the rows looked at
            "town": pa.array(rng.choice(["a", "b"], n), mask=rng.random(n) < 0.5),
            "shop": [f"s{i}" for i in rng.integers(800, size=n)],
            "note": [" ".join([*one, f"no{i % 1500}"]) for i, one in enumerate(words)],
            "id": [f"row {i}" for i in range(n)],
            "when": [f"2024-01-{1 + i % 28:02d}" for i in range(n)],
            "empty": pa.nulls(n, pa.float64()),
            "vector": pa.array([[1.0, float(i)] for i in range(n)], pa.list_(pa.float64(), 2)),
            "bytes": pa.array([b"x"] * n),
            "y": rng.normal(size=n),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    text = run("config --for x.parquet --label y", cwd=tmp_path).stdout
    with pa.ipc.new_stream(str(tmp_path / "x.arrows"), table.schema) as stream:  # which is read once
        stream.write_table(table)
    of_stream = run("config --for x.arrows --label y", cwd=tmp_path).stdout
    assert of_stream.replace("x.arrows", "x.parquet") == text
    said = " ".join(text.replace("\n#", " ").split())
    assert "A config to start from for x.parquet, by its first 2,000 rows." in said
    assert f"size: double, 2,000 different, such as {table['size'][0]} -> kept as numbers" in said
    left_out = "left out: 2,000 different values in the first 2,000 rows, few words: names of rows"
    assert f"id: string, 2,000 different, such as row 0 -> {left_out}" in said
    assert "empty: double, 0 different, 2,000 missing -> left out: no values" in said
    assert "vector: fixed_size_list -> kept as numbers" in said
    assert "bytes: binary -> left out: neither numbers, text nor times" in said
    assert re.search("y: such as [-0-9.]+ -> left out, as it is the label", said)
    for name, reading in (("town", "one_hot"), ("note", "text"), ("when", "date_parts"), ("shop", "target")):
        assert re.search(
            rf"{name}: string, [\d,]+ different(, [\d,]+ missing)?, such as [^>]+ -> {reading}", said
        )
    (tmp_path / "x.yaml").write_text(text)
    assert run("config --check x.yaml", cwd=tmp_path).stdout.startswith("x.yaml: valid: union, ")
    done = run("fit --config x.yaml x.parquet x.joblib --label y --limit 500", cwd=tmp_path)
    assert "left out: id (text, in columns.exclude)" in done.stderr


def test_a_config_for_no_rows_is_refused(run, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n")
    done = run("config --for x.csv", cwd=tmp_path, code=3)
    assert "x.csv: expected at least one row to fit on, got none" in done.stderr


def test_a_config_for_few_rows_of_lists_and_of_words_fits(run, tmp_path):
    lists = pa.table({"v": pa.array([[1.0, float(i)] for i in range(60)], pa.list_(pa.float64(), 2))})
    words = pa.table({"t": [f"red ball{i} blue" for i in range(60)]})
    for table, kind in ((lists, "standardize"), (words, "union")):
        pq.write_table(table, tmp_path / "x.parquet")
        (tmp_path / "x.yaml").write_text(run("config --for x.parquet", cwd=tmp_path).stdout)
        assert run("config --check x.yaml", cwd=tmp_path).stdout.startswith(f"x.yaml: valid: {kind}")
        run("fit --config x.yaml x.parquet x.joblib", cwd=tmp_path)


def test_a_config_for_few_rows_of_numbers_in_standard_input(run, tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(40)))
    content = (tmp_path / "x.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    text = run("config --for - --input-format csv", cwd=tmp_path).stdout
    assert "for -, by its 40 rows" in text
    (tmp_path / "x.yaml").write_text(text)
    chain = "standardize -> nystroem, float32"
    assert run("config --check x.yaml", cwd=tmp_path).stdout.startswith(f"x.yaml: valid: {chain}")
    run("fit --config x.yaml x.csv x.joblib", cwd=tmp_path)


def test_a_config_for_a_folder_shows_its_keys_and_days_in_numbers(run, tmp_path):
    for year in (2023, 2024):
        (folder := tmp_path / f"t/year={year}").mkdir(parents=True)
        days = [year * 10_000 + 101 + i % 12 * 100 + i % 28 for i in range(60)]
        columns = {"code": [f"{i % 7}" for i in range(60)], "x": np.arange(60) % 9 * 0.5}
        table = pa.table({"day": days, "due_date": [45_292.0 + day % 90 for day in days], **columns})
        pq.write_table(table, folder / "a.parquet")
    words = "config --for t --label x"
    text = " ".join(run(words, cwd=tmp_path).stdout.replace("\n#", " ").split())
    assert "for t (2 files, whose folders name year (2023, 2024)), by its first 60 rows." in text
    assert "'day': looks like days, such as 2023" in text
    assert "'due_date': looks like days, such as 453" in text
    assert "day: int64" not in run(f"{words} --exclude day", cwd=tmp_path).stdout
    assert "day: text, 60 different" in run(f"{words} --text day", cwd=tmp_path).stdout
    assert "--for DATA with --only, got none" in run("config --only x", cwd=tmp_path, code=2).stderr
    tuned = run("tune t t.yaml --label x --trials 1 --predictor ridge", cwd=tmp_path)
    assert "next: kafeat predict --model model.joblib NEW predictions\n" in tuned.stdout
