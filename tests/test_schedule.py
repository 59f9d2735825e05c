"""docs/schedule.md: its scripts, run as they are printed, and its units, read by systemd."""

import fcntl
import json
import re
import shutil
import subprocess
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
from ruamel.yaml import YAML

import kafeat
from tests.zygote import ROOT, for_scripts

locks = shutil.which("flock") is not None
pytestmark = pytest.mark.skipif(not locks, reason="the scripts lock with util-linux's flock")


def block(title):
    """The text of a file that the page shows."""
    page = (ROOT / "docs" / "schedule.md").read_text(encoding="utf-8")
    assert page.count(f' title="{title}"\n--8<-- "schedule/{title}"\n```\n') == 1, title
    return (ROOT / "examples" / "schedule" / title).read_text(encoding="utf-8")


def installed(folder, title, text=None):
    (folder / "recipe.sh").write_text(block("recipe.sh"), encoding="utf-8")
    script = folder / title
    script.write_text(text or block(title), encoding="utf-8")
    script.chmod(0o755)
    return script


def run(script, folder, *words, **variables):
    # as little as cron gives, and a kafeat in the folder `bin` comes first
    environment = {"PATH": f"{folder}/bin:{folder}/usual:/usr/bin:/bin", "HOME": str(folder), **variables}
    (folder / "usual").mkdir(exist_ok=True)
    how = {"pass_fds": [for_scripts(folder / "usual")], "env": environment, "timeout": 120}
    return subprocess.run([script, folder, *words], **how, capture_output=True, text=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "map.joblib"
    fourier = {"kind": "fourier", "n_components": 16, "features": "offset", "frequencies": "iid"}
    steps = ["standardize", fourier]
    kafeat.fit({"steps": steps}, ROOT / "sample_data" / "digits.parquet", label="label").save(path)
    return path


@pytest.fixture
def folder(tmp_path, model):
    shutil.copy(model, tmp_path / "map.joblib")
    shutil.copy(ROOT / "sample_data" / "digits.parquet", tmp_path / "incoming.parquet")
    return tmp_path


def features(folder):
    table = pq.read_table(folder / "features.parquet")
    return np.column_stack([table[f"f{i}"].to_numpy() for i in range(16)])


def log(folder):
    (file,) = (folder / "logs").glob("*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def numbers(folder, ending):
    """The numbers that a script has left for Prometheus, by their names and labels."""
    (file,) = (folder / "logs").glob(f"*{ending}")
    lines = (line.rsplit(" ", 1) for line in file.read_text().splitlines())
    return {name: float(value) for name, value in lines}


def succeeded(folder, script="nightly-features"):
    """When the script last succeeded."""
    told = numbers(folder, f"{script}{str(folder).replace('/', '_')}.prom")
    return told[f'kafeat_recipe_last_success_timestamp_seconds{{recipe="{script}",folder="{folder}"}}']


def test_a_night_and_the_next(folder):
    script = installed(folder, "nightly-features")
    for night in (1, 2):
        done = run(script, folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")  # silent: cron sends no mail
        assert abs(succeeded(folder) - time.time()) < 60.0
        assert [line["event"] for line in log(folder)] == ["start", "done", "done"] * night
        expected = kafeat.load(folder / "map.joblib").transform(pq.read_table(folder / "incoming.parquet"))
        # rows and columns may differ in the last bit
        np.testing.assert_allclose(features(folder), expected, rtol=0, atol=8 * np.finfo(np.float32).eps)
    record = json.loads((folder / "features.json").read_text())["output"]
    assert (record["path"], record["rows"]) == ("features.parquet", 1797)


def break_after(folder, command, harm):
    """Let every `kafeat COMMAND` be followed by something that does harm."""
    (folder / "bin").mkdir()
    lines = ("#!/bin/sh", f'{folder}/usual/kafeat "$@" || exit', f'[ "$1" != {command} ] || {harm}')
    installed(folder / "bin", "kafeat", "\n".join(lines))


@pytest.mark.parametrize(("command", "harm", "code"), [
    ("transform", "cp incoming.parquet features.new.parquet", 6), ("transform", "rm features.new.parquet", 5),
    ("transform", "kill -9 $PPID", -9), ("verify", "rm features.new.parquet", 5), ("verify", "exit 6", 6),
])  # fmt: skip
def test_a_night_that_is_not_verified_leaves_the_previous_one(folder, command, harm, code):
    script = installed(folder, "nightly-features")
    assert run(script, folder).returncode == 0
    before = {name: (folder / name).read_bytes() for name in ("features.parquet", "features.json")}
    pq.write_table(pq.read_table(folder / "incoming.parquet").slice(0, 900), folder / "incoming.parquet")
    break_after(folder, command, harm)
    failed = run(script, folder)
    assert failed.returncode == code
    assert code < 0 or f"exit code {code}" in failed.stderr
    assert before == {name: (folder / name).read_bytes() for name in before}
    shutil.rmtree(folder / "bin")
    assert run(script, folder).returncode == 0  # nothing of the failure is in the way
    assert json.loads((folder / "features.json").read_text())["output"]["rows"] == 900


DENIED = """echo '{"exit_code": 5, "retry": false}' >&2; exit 5"""


@pytest.mark.parametrize(("harm", "code", "told"), [
    ("kill -9 $$", 137, "killed, mostly for lack of memory"), ("kill $$", 143, "stopped by a signal"),
    ("exit 127", 127, "kafeat cannot be started"), (DENIED, 77, r"the system refused \(permission, path\)"),
])  # fmt: skip
def test_a_night_that_ends_otherwise_shows_no_line_of_an_earlier_one(folder, harm, code, told):
    script = installed(folder, "nightly-features")
    assert run(script, folder).returncode == 0
    (folder / "bin").mkdir()
    installed(folder / "bin", "kafeat", f"#!/bin/sh\n{harm}\n")
    failed = run(script, folder)
    assert failed.returncode == code
    assert re.search(rf"nightly-features: {folder}: {told}.*; exit code {code}; the end of", failed.stderr)
    assert "done" not in failed.stderr


def test_a_night_without_rows_or_without_its_input_keeps_the_previous_features(folder):
    script, made = installed(folder, "nightly-features"), folder / "features.parquet"
    assert run(script, folder).returncode == 0
    before, when = made.read_bytes(), succeeded(folder)
    table = pq.read_table(folder / "incoming.parquet")
    pq.write_table(table.slice(0, 0), folder / "incoming.parquet")
    empty = run(script, folder)
    said = json.loads(empty.stderr.splitlines()[-1])["message"]
    assert (empty.returncode, said) == (3, "incoming.parquet: expected good rows, got none")
    assert log(folder)[-1]["event"] == "refused"
    (folder / "incoming.parquet").unlink()
    gone = run(script, folder)
    assert (gone.returncode, "another try may help" in gone.stderr) == (5, True)
    assert (made.read_bytes(), succeeded(folder)) == (before, when)
    assert numbers(folder, ".run.prom")[f'kafeat_exit_code{{output="{folder}/features.new.parquet"}}'] == 5


def test_a_model_is_replaced_by_one_that_is_no_worse(folder):
    script, table = installed(folder, "retrain-model"), pq.read_table(folder / "incoming.parquet")
    places = [folder / name for name in ("map.joblib", "map.previous.joblib")]
    places[0].unlink()
    (folder / "best.yaml").write_text(
        "steps: [standardize, {kind: fourier, n_components: 32, frequencies: iid}, ridge]"
    )
    pq.write_table(table.slice(1400), folder / "recent.parquet")
    pq.write_table(table.slice(0, 300), folder / "labelled.parquet")
    # No first model is so good.
    assert (run(script, folder, "1.5").returncode, places[0].exists()) == (6, False)
    done = run(script, folder, "0.5")
    assert (done.returncode, done.stdout + done.stderr, places[1].exists()) == (0, "", False)
    first = places[0].read_bytes()
    pq.write_table(table.slice(0, 1400), folder / "labelled.parquet")
    assert run(script, folder).returncode == 0  # more rows, a better model
    second = places[0].read_bytes()
    assert first != second
    assert places[1].read_bytes() == first
    assert run(script, folder).returncode == 0  # the same model is no worse, and does not take the way back
    assert [place.read_bytes() for place in places] == [second, first]
    assert not (folder / "map.new.joblib").exists()
    for rows, code in ((table.drop_columns(["label"]), 3), (table.slice(0, 60), 6)):
        pq.write_table(rows, folder / "labelled.parquet")
        refused = run(script, folder)
        assert (refused.returncode, [place.read_bytes() for place in places]) == (code, [second, first])
        assert not (folder / "map.new.joblib").exists()
    break_after(folder, "evaluate", "cp score.json in-use.json")
    # a score that cannot be read, or that a few rows do not have, is none to compare with
    for score, code in (("[]", 2), ('  "score_model": null,\n', 3)):
        (folder / "score.json").write_text(score)
        assert run(script, folder).returncode == code
    assert places[0].read_bytes() == second


def test_a_missing_column_is_in_the_mail(folder):
    table = pq.read_table(folder / "incoming.parquet").drop_columns(["label"])
    pq.write_table(table, folder / "incoming.parquet")
    failed = run(installed(folder, "nightly-features"), folder)
    told, last = failed.stderr.splitlines()
    assert failed.returncode == 3
    assert "cannot be read, has no rows, lacks a column or has a bad value; exit code 3" in told
    assert "incoming.parquet: --keep: expected the column 'label', got" in json.loads(last)["message"]


LOCK = "nightly.lock"
PLACES = [("nightly-features", LOCK), ("nightly-parts", LOCK), ("nightly-features", "logs")]


@pytest.mark.parametrize(("script", "place"), PLACES)
def test_a_folder_that_cannot_be_written_to_is_worth_another_try(script, place, folder):
    # a folder in the place of a file, and a file in that of a folder: root may write to what is read-only
    (folder / place).mkdir() if place == "nightly.lock" else (folder / place).touch()
    refused = run(installed(folder, script), folder)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert place in refused.stderr
    assert "earlier run" not in refused.stderr
    assert not list(folder.glob("features*"))


@pytest.mark.slow
@pytest.mark.parametrize("script", ["nightly-features", "nightly-parts"])
def test_two_runs_do_not_meet(script, folder):
    (folder / "incoming").mkdir()
    shutil.copy(folder / "incoming.parquet", folder / "incoming")
    name, script = script, installed(folder, script)
    with (folder / "nightly.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        refused = run(script, folder)
    assert (refused.returncode, refused.stdout) == (75, "")
    assert refused.stderr == f"{name}: {folder}: an earlier run is not done yet\n"
    assert not list(folder.glob("features*"))
    assert run(script, folder).returncode == 0  # the lock went with its holder


def test_parts_are_made_once_and_bad_ones_fail_alone(folder):
    script = installed(folder, "nightly-parts")
    (folder / "incoming").mkdir()
    for name in ("a.parquet", "b.parquet"):
        shutil.copy(folder / "incoming.parquet", folder / "incoming" / name)
    done = run(script, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    made = {file.name: file.stat().st_mtime_ns for file in (folder / "features").glob("*.parquet")}
    assert set(made) == {"a.parquet", "b.parquet"}
    assert (folder / "features/_VERIFIED").exists()

    (folder / "incoming" / "c.parquet").write_bytes(b"no Parquet")
    shutil.copy(folder / "incoming.parquet", folder / "incoming" / "d.parquet")
    failed = run(script, folder)
    part, last = log(folder)[-2:]
    assert json.loads(failed.stderr.splitlines()[-1]) == last
    assert (failed.returncode, part["exit_code"], last["exit_code"]) == (3, 3, 3)
    assert (part["part"], "c.parquet" in part["message"]) == ("c.parquet", True)
    now = {file.name: file.stat().st_mtime_ns for file in (folder / "features").glob("*.parquet")}
    assert set(now) == {*made, "d.parquet"}
    assert made.items() <= now.items()  # kept, not made again
    assert not (folder / "features/_VERIFIED").exists()  # of the last night, whose parts these are no more


@pytest.mark.parametrize(("command", "harm", "code"), [
    ("transform", "cp incoming/a.parquet features/b.parquet", 6), ("transform", "rm features/b.parquet", 6),
    ("transform", "kill -9 $PPID", -9), ("verify", "exit 6", 6),
])  # fmt: skip
def test_parts_that_are_not_verified_have_no_marker(folder, command, harm, code):
    script, marker = installed(folder, "nightly-parts"), folder / "features/_VERIFIED"
    (folder / "incoming").mkdir()
    for name in ("a.parquet", "b.parquet"):
        shutil.copy(folder / "incoming.parquet", folder / "incoming" / name)
    marker.parent.mkdir()
    marker.touch()  # of an earlier night
    break_after(folder, command, harm)
    assert run(script, folder).returncode == code
    assert not marker.exists()
    shutil.rmtree(folder / "bin")
    done = run(script, folder)  # the harm is mended without help
    assert (done.returncode, marker.exists()) == (0, True), done.stderr


def test_a_night_that_changes_no_part_keeps_the_marker(folder):
    script, incoming = installed(folder, "nightly-parts"), folder / "incoming"
    incoming.mkdir()
    for name in "abcd":
        shutil.copy(folder / "incoming.parquet", incoming / f"{name}.parquet")
    assert run(script, folder).returncode == 0
    made = {file: file.stat().st_mtime_ns for file in (folder / "features").glob("[a-d]*")}
    incoming.rename(folder / "away")  # not mounted, then empty, then only half, and then a model that is none

    def refused():
        failed = run(script, folder)
        assert made == {file: file.stat().st_mtime_ns for file in (folder / "features").glob("[a-d]*")}
        assert (folder / "features/_VERIFIED").exists()
        return failed.returncode, json.loads(failed.stderr.splitlines()[-1])["message"]

    missing = (5, "incoming: more than a tenth of the earlier files are missing")
    assert refused() == missing
    incoming.mkdir()
    assert refused() == missing
    for name in "ab":
        shutil.copy(folder / "incoming.parquet", incoming / f"{name}.parquet")
    assert refused() == missing
    shutil.rmtree(incoming)
    (folder / "away").rename(incoming)
    model = (folder / "map.joblib").read_bytes()
    (folder / "map.joblib").write_bytes(b"no model")
    assert refused()[0] == 4
    (folder / "map.joblib").write_bytes(model)
    for file in incoming.iterdir():
        pq.write_table(pq.read_table(file).slice(0, 0), file)
    # These parts have changed.
    assert (run(script, folder).returncode, (folder / "features/_VERIFIED").exists()) == (3, False)


def test_the_alerts_are_about_numbers_that_the_scripts_write(folder):
    assert run(installed(folder, "nightly-features"), folder).returncode == 0
    text = "".join(file.read_text() for file in (folder / "logs").glob("*.prom"))
    (group,) = YAML(typ="safe").load(block("kafeat.rules.yml"))["groups"]
    names = {name for rule in group["rules"] for name in re.findall(r"kafeat_\w+", rule["expr"])}
    assert len(group["rules"]) == len(names) == 2
    assert names <= {*re.findall(r"^(\w+){", text, flags=re.M)}


def test_the_crontab_calls_the_script():
    lines = block("crontab").splitlines()
    call = r"[A-Z_]+=\S+|(\S+ ){5}/usr/local/bin/nightly-features /\S+"
    assert all(re.fullmatch(call, line) for line in lines)


def test_systemd_reads_the_units(tmp_path):
    names = ("nightly-features.service", "nightly-features.timer")
    for name in names:
        # `verify` looks for the command and the user on this machine
        script = str(installed(tmp_path, "nightly-features"))
        text = block(name).replace("/usr/local/bin/nightly-features", script)
        (tmp_path / name).write_text(re.sub("^User=.*\n", "", text, flags=re.M))
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    units = [str(tmp_path / name) for name in names]
    words = [analyze, "verify", "--man=no", *units]
    checked = subprocess.run(words, capture_output=True, text=True, timeout=60)
    # it ends with 0 after an unknown key, and warns
    ours = re.compile(f"{re.escape(str(tmp_path))}|nightly-features")
    complaints = [line for line in checked.stderr.splitlines() if ours.search(line)]
    assert (checked.returncode, complaints) == (0, [])
