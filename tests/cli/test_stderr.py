"""Messages on stderr: hints, and a stream that takes nothing."""

import os
from pathlib import Path

import pytest

import kafeat
from tests.zygote import apart

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stderr")
    (folder / "x.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    steps = [{"kind": "fourier", "n_components": 4, "frequencies": "iid", "gamma": 1.0}]
    kafeat.fit({"steps": steps}, folder / "x.csv").save(str(folder / "m.joblib"))
    return folder


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("transform --model m.joblib x.csv o.csv -v", 0),
        ("transform --model m.joblib x.csv o.csv -v --log-format json", 0),
        ("transfor", 2),
        pytest.param("transform --bogus --log-format json", 2, marks=pytest.mark.slow),
        pytest.param("transform --model m.joblib x.csv o.csv --keep c", 3, marks=pytest.mark.slow),
        pytest.param("transform --model x.csv x.csv o.csv", 4, marks=pytest.mark.slow),
        ("inspect nothing", 5),
    ],
)
def test_a_line_without_room_changes_no_exit_code(folder, words, code):
    with FULL.open("w") as full:
        done = apart(words, stderr=full, cwd=folder)
    assert done.returncode == code
    if not code:
        assert len((folder / "o.csv").read_text().splitlines()) == 4
        (folder / "o.csv").unlink()


def test_a_reader_that_has_left_changes_no_exit_code(folder):
    reading, writing = os.pipe()
    os.close(reading)
    done = apart("inspect nothing", stderr=writing, cwd=folder)
    os.close(writing)
    assert done.returncode == 5


@pytest.mark.parametrize(("word", "meant"), [("transfor", "transform"), ("xyz", None)])
def test_commands_that_were_meant(run, word, meant):
    done = run(word, code=2)
    assert f"No such command '{word}'" in done.stderr
    assert (f"; did you mean '{meant}'?" in done.stderr) if meant else ("did you mean" not in done.stderr)
