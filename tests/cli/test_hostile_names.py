"""Names and values of files cannot control the terminal, with or without colours."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.config import load_config
from kafeat.config.template import flow
from kafeat.errors import DataError, KafeatError, KafeatWarning, visible, visible_json
from tests.cli.terminal import on_terminal

# Clear the screen; set its title; the same in one character (C1); turn the direction of text; delete; end a line.
EVIL = "\x1b[2J\x1b]0;t\x07\x9b2J\u202e\u2066\u200f\x7f\x85\u2028\r"
MARKS = "\u202e\u2066\u200f"
OBEYED = {*map(chr, (*range(9), *range(11, 32), *range(127, 160))), *"\u061c\u200e\u200f\u2028\u2029"}
OBEYED |= {*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))}
OWN_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
MODEL, TABLE, OTHER = f"m{EVIL}.joblib", f"t{EVIL}.csv", f"o{EVIL}.csv"
LABEL, WORDS = f"y{MARKS}", f"w{MARKS}"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    texts = {WORDS: [f"v{i % 3}{EVIL}" for i in range(60)], LABEL: [f"c{i % 2}{EVIL}" for i in range(60)]}
    table = pa.table({f"x{MARKS}": rng.normal(size=60), **texts})
    pa_csv.write_csv(table, TABLE)
    pa_csv.write_csv(table.set_column(0, f"x{MARKS}", pa.array([EVIL] * 60)), OTHER)
    steps = [{"kind": "one_hot", "columns": [WORDS]}, "standardize", {"kind": "fourier", "n_components": 8}]
    Path("c.yaml").write_text(json.dumps({"steps": [*steps, {"kind": "ridge"}]}))
    Path("map.yaml").write_text(json.dumps({"steps": steps, "columns": {"exclude": [LABEL]}}))
    kafeat.fit("c.yaml", TABLE, LABEL).save(MODEL)
    kafeat.fit("map.yaml", TABLE).save("map.joblib")
    return tmp_path


COMMANDS = [
    ("fit", "--config", "c.yaml", TABLE, f"n{EVIL}.joblib", "--label", LABEL, "--verbose"),
    ("inspect", MODEL),
    ("diff", MODEL, "map.joblib"),
    ("predict", "--model", MODEL, TABLE, f"p{EVIL}.csv", "--verbose"),
    ("predict", "--model", MODEL, TABLE, f"p{EVIL}.csv", "--verbose", "--log-format", "json"),
    ("config", "--for", TABLE, "--label", LABEL),
    ("tune", TABLE, "-", "--label", LABEL, "--trials", "1"),
    ("evaluate", "--model", MODEL, TABLE, "--label", LABEL, "--all-rows"),
]
REFUSED = [
    (3, ("transform", "--model", "map.joblib", OTHER, "z.npy")),
    (3, ("transform", "--model", "map.joblib", OTHER, "z.npy", "--log-format", "json")),
    (3, ("transform", "--model", "map.joblib", TABLE, "z.csv", "--keep", EVIL)),
    (5, ("transform", "--model", "map.joblib", f"no{EVIL}.csv", "z.npy")),
    (5, ("inspect", f"no{EVIL}.joblib")), (2, ("kinds", EVIL)), (2, (EVIL,)), (2, ("fit", f"--{EVIL}")),
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("env", [{"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}], ids=["coloured", "plain"])
@pytest.mark.parametrize(("code", "words"), [*((0, words) for words in COMMANDS), *REFUSED])
def test_no_command_writes_what_a_terminal_obeys(place, run, code, words, env):
    done = run(*words, **env, code=code)
    for text in (done.stdout, done.stderr):
        assert not OBEYED & set(OWN_COLOURS.sub("", text))


@pytest.mark.parametrize("ending", ["parquet", "csv", "npy", "arrow"])
def test_a_name_may_be_no_utf8(place, run, ending):
    folder = os.fsdecode(b"\xff")
    os.mkdir(folder)
    rows = {"a": [0.0, 1.0, 4.0], "b": [1.0, 2.0, 3.0]}
    pq.write_table(pa.table(rows), "rows.parquet")
    kafeat.fit({"steps": ["standardize"]}, "rows.parquet").save("plain.joblib")
    shutil.copy("rows.parquet", f"{folder}/x.parquet")
    run("transform", "--model", "plain.joblib", f"{folder}/x.parquet", f"{folder}/z.{ending}", code=0)
    run("transform", "--model", "plain.joblib", "rows.parquet", f"z.{ending}", code=0)
    assert Path(f"{folder}/z.{ending}").read_bytes() == Path(f"z.{ending}").read_bytes()
    os.unlink(f"{folder}/z.{ending}")
    run("transform", "--model", "plain.joblib", folder, "parts", code=0)
    assert pq.read_table("parts/x.parquet").num_rows == 3


def test_a_terminal_sees_escapes(place):
    text, code = on_terminal("inspect", "no\x1b[2J\u202e.joblib", cwd=place)
    assert code == 5
    assert r"no\x1b[2J\u202e.joblib: No such file" in text
    assert "\x1b[2J" not in text


def test_messages_in_python_have_escapes(place):
    with pytest.raises(DataError, match=r"\\x1b\[2J.*\\u202e") as caught:
        kafeat.load("map.joblib").transform(pa.table({EVIL: [1.0]}))
    assert not OBEYED & set(str(caught.value))
    for kind in (KafeatError, KafeatWarning):
        assert str(kind(f"a{EVIL}\nb\tü")) == visible(f"a{EVIL}") + "\nb\tü"


def test_json_and_yaml_keep_the_names(place):
    text = f"é{EVIL}"
    assert json.loads(visible_json(json.dumps([text], ensure_ascii=False))) == [text]
    Path("n.yaml").write_text(f"columns: {{include: [{flow(text)}]}}\nsteps: [{{kind: standardize}}]\n")
    assert not OBEYED & set(Path("n.yaml").read_text())
    assert load_config("n.yaml").columns.include == (text,)
