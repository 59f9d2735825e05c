"""Messages on stderr: hints, signs of life, lines in JSON, and a stream that takes nothing."""

import errno
import json
import os
import pickle
import re
import time
from pathlib import Path

import numpy as np
import pytest

import kafeat
from kafeat.cli import log
from kafeat.cli.progress import progress
from kafeat.io.storage.files import refused
from kafeat.io.storage.location import parse_location
from kafeat.io.storage.owner import owning
from tests.zygote import ROOT, Process, apart

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stderr")
    (folder / "x.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    steps = [{"kind": "fourier", "n_components": 4, "frequencies": "iid", "gamma": 1.0}]
    kafeat.fit({"steps": steps}, folder / "x.csv").save(str(folder / "m.joblib"))
    return folder


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize(("words", "code"), [
    ("transform --model m.joblib x.csv o.csv -v", 0),
    ("transform --model m.joblib x.csv o.csv -v --log-format json", 0),
    ("transfor", 2),
    pytest.param("transform --bogus --log-format json", 2, marks=pytest.mark.slow),
    pytest.param("transform --model m.joblib x.csv o.csv --keep c", 3, marks=pytest.mark.slow),
    pytest.param("transform --model x.csv x.csv o.csv", 4, marks=pytest.mark.slow),
    ("inspect nothing", 5),
])  # fmt: skip
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


def test_a_closed_pipe_behind_a_table_is_no_error(tmp_path):
    """rich ends the program where the reader of a pipe has closed it."""
    np.save(tmp_path / "x.npy", np.arange(80.0).reshape(40, 2))
    (tmp_path / "p.yaml").write_text("steps:\n  - {kind: projection, n_components: 2}\n")
    with Process("evaluate --config p.yaml x.npy --jobs 1", cwd=tmp_path) as run:
        run.stdout.close()
        assert b"expected" not in run.stderr.read()
        assert run.wait() == 0


@pytest.mark.parametrize(("word", "meant"), [("transfor", "transform"), ("xyz", None)])
def test_commands_that_were_meant(run, word, meant):
    done = run(word, code=2)
    assert f"No such command '{word}'" in done.stderr
    assert (f"; did you mean '{meant}'?" in done.stderr) if meant else ("did you mean" not in done.stderr)


PAGE = (ROOT / "docs/reference/json.md").read_text()
ALWAYS = {"time", "level", "event", "message"}


def documented() -> dict[str, set[str]]:
    """The keys of each event of a line, by the page."""
    section = PAGE.split("\n## Lines on stderr\n")[1].split("\n## ")[0]
    words = re.findall(r"^- ((?:`\w+`, )*`\w+`)[^:\n]*: (.*(?:\n  .*)*)", section, re.M)
    found = {
        name: set(re.findall(r"`(\w+)`", keys)) for names, keys in words for name in re.findall(r"\w+", names)
    }
    trial = re.search(r"each trial is a line there with (.*?)\.", PAGE, re.S)
    found["progress"] |= set(re.findall(r"`(\w+)`", trial[1] if trial else ""))
    return found


def lines_of(stderr: str) -> list[dict[str, object]]:
    """The lines, whose keys are those of the page."""
    lines, keys = list(map(json.loads, stderr.splitlines())), documented()
    for line in lines:
        assert line.keys() >= ALWAYS
        assert line.keys() - ALWAYS <= keys[line["event"]]
    return lines


def test_every_json_line_has_the_keys_of_its_event(in_process, folder):
    (folder / "in").mkdir()
    (folder / "in/good.csv").write_text("a,b\n1,2\n,3\n")
    (folder / "in/poor.csv").write_text("c,b\n1,2\n")

    def told(words: str) -> tuple[int, list[dict[str, object]]]:
        done = in_process(*words.split(), "--log-format", "json", cwd=folder)
        lines = lines_of(done.stderr)
        ending = "refused" if done.returncode else "done"
        assert (lines[-1]["exit_code"], lines[-1]["event"]) == (done.returncode, ending)
        return done.returncode, lines

    _, (start, *_, end) = told("transform --model m.joblib x.csv o.csv -v")
    assert (start["event"], start["input"], start["pid"]) == ("start", "x.csv", os.getpid())
    assert (end["output"], end["rows"], end["bytes"]) == ("o.csv", 3, (folder / "o.csv").stat().st_size)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(end["time"]))
    words = ("transform", "--model", "m.joblib", "x.csv", "o.csv", "-q", "--log-format", "json")
    assert in_process(*words, cwd=folder).stderr == ""
    (line,) = told("transform --model m.joblib none.csv o.csv")[1]
    assert (line["retry"], line["message"]) == (True, "none.csv: No such file or directory")
    code, lines = told("transform --model m.joblib in out --on-bad-rows drop")
    events = [line["event"] for line in lines]
    assert (code, events) == (3, ["start", "warning", "info", "refused", "refused"])
    assert lines[-2]["part"] == "poor.csv"
    (folder / "fit.yaml").write_text("steps: [standardize, {kind: fourier, n_components: 4}, ridge]\n")
    rows = np.random.default_rng(0).normal(size=(60, 3))
    np.savetxt(folder / "l.csv", rows, delimiter=",", header="a,b,y", comments="")
    end = told("fit --config fit.yaml l.csv l.joblib --label y")[1][-1]
    assert (end["rows"], end["bytes"]) == (60, (folder / "l.joblib").stat().st_size)
    told_rows = [told(words)[1][-1]["rows"] for words in (
        "tune l.csv t.yaml --label y --columns 8 --trials 1", "evaluate --config fit.yaml l.csv --label y",
        "evaluate --model l.joblib l.csv", "evaluate --model l.joblib l.csv --label y --all-rows",
    )]  # fmt: skip
    assert told_rows == [60] * 4
    with owning(parse_location(folder / "out")):
        assert told("transform --model m.joblib in out --overwrite")[1][-1]["retry"] is True


@pytest.mark.parametrize(
    ("problem", "retry"),
    [(errno.ENOSPC, True), (errno.EIO, True), (errno.ENOENT, True), (errno.EACCES, False)],
)
def test_a_disk_may_be_free_or_a_file_there_later_but_a_permission_stays_denied(problem, retry):
    assert pickle.loads(pickle.dumps(refused("x", OSError(problem, "")))).retry is retry


@pytest.mark.parametrize(("form", "least"), [("json", 1), ("text", 0)])
def test_a_line_a_minute_tells_that_a_command_is_alive(monkeypatch, capfd, form, least):
    monkeypatch.setattr(log, "settings", log.Settings(log_format=form))
    monkeypatch.setattr("sys.argv", ["/bin/kafeat", "transform", "s3://key:secret@bucket/x.csv"])
    for minute, lines in ((60.0, least), (0.01, 3)):
        monkeypatch.setattr("kafeat.cli.progress._MINUTE", minute)
        with progress("transform") as announce:
            announce(1000)(250)
            time.sleep(0.3 if minute < 1.0 else 0.0)
        written = capfd.readouterr().err.splitlines()
        assert len(written) >= lines
        assert len(written) == lines or minute < 1.0
    if form == "json":
        last = lines_of("\n".join(written))[-1]
        assert (last["event"], last["rows"], last["total"]) == ("progress", 250, 1000)
        assert last["left"] == pytest.approx(750 / last["rows_per_second"], rel=0.01)
    else:
        assert written[0].startswith("start: kafeat transform s3://bucket/x.csv; kafeat ")
        assert re.fullmatch(r"transform: 250 of 1,000 rows, [\d,.]+ rows/s, \d:\d\d:\d\d left", written[-1])


def test_a_long_run_shows_its_start_and_how_far_it_is(in_process, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("kafeat.cli.progress._MINUTE", 0.03)
    np.save(tmp_path / "x.npy", np.ones((1_000_000, 2), np.float32))
    words = ("transform", "--model", folder / "m.joblib", "x.npy", "o.npy", "--log-format", "json")
    *told, done = lines_of(in_process(*words, cwd=tmp_path).stderr)
    (start,) = (line for line in told if line["event"] == "start")
    lines = [line for line in told if line is not start]  # of a thread, which may be faster than a start
    assert (start["event"], start["rows"], start["output"]) == ("start", 1_000_000, "o.npy")
    assert {(line["event"], line["total"]) for line in lines} == {("progress", 1_000_000)}
    assert [line["rows"] for line in lines] == sorted(line["rows"] for line in lines)
    assert 0 < lines[-1]["rows"] <= 1_000_000
    assert (done["event"], done["rows"]) == ("done", 1_000_000)


def test_what_libraries_say_is_a_line_of_the_log():
    code = """
import logging, warnings
from kafeat.cli import log
log.settings.log_format = "json"
log.hear_libraries()
logging.getLogger("boto").warning("slow %s", "down")
warnings.warn("old")
"""
    said = [line["message"] for line in lines_of(apart(code=code).stderr.decode())]
    assert said[0] == "boto: slow down"
    assert "UserWarning: old" in said[1]
