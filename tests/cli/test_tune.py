"""`kafeat tune`: its files, its messages and its exit codes."""

import io
import json
import os
import re
import signal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.config import load_config
from kafeat.io.storage.files import lock
from tests.cli.terminal import on_terminal
from tests.zygote import apart, ended_in_a_long_call

QUICK = ("--columns", 16, "--trials", 3, "--jobs", 1)
SEARCH = ("tune", "x.csv", "best.yaml", "--label", "y", *QUICK)


@pytest.fixture
def table(tmp_path):
    """200 rows of a sine, and the rows to test on."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    split = np.where(np.arange(200) % 5 == 0, "test", "train")
    columns = {"x": x, "z": rng.normal(size=200), "y": np.sin(2.0 * x), "split": split}
    pc.write_csv(pa.table(columns), tmp_path / "x.csv")
    return tmp_path


def test_the_config_that_is_written_fits_and_the_test_rows_are_scored_once(table, run):
    done = run("tune x.csv best.yaml --label y --split split", *QUICK, cwd=table)
    assert re.search(
        r"R² 0\.\d+ ± \S+ on rows held out to choose by; raw columns have -?\S+, a constant prediction has 0\.0000\n",
        done.stdout,
    )
    assert re.search(r"R² 0\.\d+ ± \S+ on 40 test rows, not seen before", done.stdout)
    assert "next: kafeat fit --config best.yaml x.csv map.joblib --label y --split split" in done.stdout
    assert sorted(os.listdir(table)) == ["best.yaml", "x.csv"]
    text = (table / "best.yaml").read_text()
    assert "--columns 16 --seeds 2 --trials 3" in text
    run("fit --config best.yaml x.csv map.joblib --label y --split split", cwd=table)
    assert kafeat.load(table / "map.joblib").n_components == 16


def test_one_command_goes_from_the_table_to_a_model(table, run):
    words = (*SEARCH, "--predictor", "ridge", "--model", "m.joblib")
    done = run(*words, cwd=table)
    assert "model: m.joblib\nnext: kafeat predict --model m.joblib" in done.stdout
    run("fit --config best.yaml x.csv other.joblib --label y", cwd=table)
    names = ("m.joblib", "other.joblib")
    rows = pc.read_csv(table / "x.csv").drop_columns(["y"])
    first, second = (kafeat.load(table / name).predict(rows) for name in names)
    assert np.array_equal(first, second)
    refused = run(*words, "--resume", cwd=table, code=2)
    assert "m.joblib: expected no file of that name, got one" in refused.stderr


def test_a_config_is_replaced_only_if_that_is_allowed(table, run):
    (table / "best.yaml").write_text("mine")
    refused = run(*SEARCH, cwd=table, code=2)
    assert "best.yaml: expected no file of that name, got one" in refused.stderr
    assert (table / "best.yaml").read_text() == "mine"
    run(*SEARCH, "--overwrite", cwd=table)
    assert (table / "best.yaml").read_text() != "mine"


def test_json_and_json_lines(table, run):
    done = run("tune x.csv best.yaml --label y", *QUICK, "--json", "-", "--log-format", "json", cwd=table)
    result = json.loads(done.stdout)
    assert result["columns"] == 16
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    trials = [line for line in lines if line["message"] == "trial"]
    assert [line["number"] for line in trials] == list(range(1, len(trials) + 1))
    assert all(line["elapsed"] > 0.0 for line in trials)
    assert trials[0]["columns"] == 16
    assert result["trials"] == 3 == len(trials)


@pytest.mark.parametrize(("options", "code", "message"), [
    (("--label", "absent"), 3, "--label: expected the column 'absent'"),
    (("--label", "y", "--split", "z"), 3, "split 'z': expected train or test"),
    (("--label", "y", "--time", "soon"), 2, "90s, 10m or 1h, got 'soon'"),
    (("--label", "y", "--from", "x.csv"), 2, "x.csv"),
])  # fmt: skip
def test_mistakes_leave_no_file(table, run, options, code, message):
    done = run("tune x.csv best.yaml", *options, "--trials", 1, "--columns", 4, cwd=table, code=code)
    assert message in done.stderr
    assert os.listdir(table) == ["x.csv"]


def test_rows_from_a_pipe_have_no_next_command(table, run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((table / "x.csv").read_bytes())))
    done = run("tune - best.yaml --label y", *QUICK, cwd=table)
    assert "on rows held out to choose by" in done.stdout
    assert "next:" not in done.stdout


def test_the_config_may_go_to_standard_output(table, run, tmp_path):
    done = run("tune x.csv - --label y", *QUICK, cwd=table)
    (tmp_path / "c.yaml").write_text(done.stdout)
    assert load_config(tmp_path / "c.yaml").steps
    assert "next: kafeat fit" in done.stderr
    assert not (table / "-").exists()
    both = run("tune x.csv - --label y", *QUICK, "--json", "-", cwd=table, code=2)
    assert "expected --json apart from the output" in both.stderr


INTERRUPTED = """
import os, signal, sys
from kafeat.cli import main, progress
from contextlib import contextmanager
@contextmanager
def watching(*_):
    def show(search, trial):
        if trial.number == {number}:
            os.kill(os.getpid(), signal.{name})
    yield show
progress.watching = watching
sys.argv = ["kafeat", *{words!r}]
main.main()
"""


def interrupted(folder, number, name, *more):
    """Run a search of one thread that gets a signal after a trial."""
    words = ["tune", "x.csv", "best.yaml", "--label", "y", *map(str, QUICK[:2]), "--jobs", "1", *more]
    code = INTERRUPTED.format(number=number, name=name, words=words)
    return apart(code=code, cwd=folder, text=True)


def test_an_interrupted_search_writes_the_best_config_so_far_and_goes_on(table):
    done = interrupted(table, 2, "SIGINT")
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    assert "interrupted after 2 trials; --resume goes on" in done.stdout
    assert load_config(table / "best.yaml").steps
    assert len((table / "best.yaml.journal").read_text().splitlines()) == 1 + 2
    more = interrupted(table, 10_000, "SIGINT", "--resume", "--trials", "3", "--json", "result.json")
    assert more.returncode == 0, more.stderr
    assert json.loads((table / "result.json").read_text())["trials"] >= 3
    assert not (table / "best.yaml.journal").exists()


LONG = """
from kafeat.study.tune.scorer import Scorer
score, trials = Scorer._tested, 0
def tested(self, *rest):
    global trials
    trials += 1
    return score(self, *rest) if trials <= {splits} else stuck()
Scorer._tested = tested
"""
COMMAND = """
sys.argv = ["kafeat", "tune", "x.csv", "best.yaml", "--label", "y", "--columns", "16", "--jobs", "{jobs}"]
main.main()
"""
API = """
import kafeat
try:
    tuning = kafeat.tune("x.csv", "y", columns=16, jobs={jobs})
    print(tuning.trials, tuning.interrupted, tuning.config.steps[-1].kind)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
"""


@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGTERM, 1), (signal.SIGINT, 2)])
def test_the_first_signal_ends_a_long_trial(table, number, jobs):
    code = (LONG + COMMAND).format(splits=2, jobs=jobs)
    returned, stdout, stderr = ended_in_a_long_call(code, number, table)
    assert returned == 128 + number, stderr
    said = "terminated" if number == signal.SIGTERM else "interrupted"
    assert f"{said} after 1 trial; --resume goes on" in stdout
    assert load_config(table / "best.yaml").steps
    assert len((table / "best.yaml.journal").read_text().splitlines()) == 1 + 1


def test_the_first_signal_ends_a_search_without_a_trial(table):
    code = (LONG + COMMAND).format(splits=0, jobs=1)
    returned, _, stderr = ended_in_a_long_call(code, signal.SIGTERM, table)
    assert returned == 128 + signal.SIGTERM, stderr
    assert stderr.endswith("kafeat: terminated\n")
    assert os.listdir(table) == ["x.csv"]


@pytest.mark.parametrize(("splits", "said"), [(2, r"1 True \w+\n"), (0, "KeyboardInterrupt\n")])
def test_an_interrupt_in_python_ends_a_long_trial_and_the_script_ends(table, splits, said):
    code = (LONG + API).format(splits=splits, jobs=2)
    returned, stdout, stderr = ended_in_a_long_call(code, signal.SIGINT, table)
    assert returned == 0, stderr
    assert re.fullmatch(said, stdout)


def test_a_terminal_shows_the_best_maps_and_the_time(table):
    pq.write_table(pc.read_csv(table / "x.csv"), table / "x.parquet")
    text, code = on_terminal("tune x.parquet best.yaml --label y --time 1m", *QUICK, cwd=table)
    assert code == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert "best so far" in text
    assert re.search(r"\d of 3 trials, \d+ s, at most \d+ s left", text)


def test_a_pipe_gets_a_line_of_text_for_each_trial_among_the_others(table, in_process):
    lines = in_process(*SEARCH, "--time", "1m", cwd=table).stderr.splitlines()
    assert lines[0].startswith("x.csv: 2 features")
    trials = [line for line in lines if line.startswith("trial ")]
    shape = r"trial (\d+), maps: .+: R² -?\d\.\d{4} ± \d\.\d{4} with \d+ columns, \d+ rows$"
    told = [re.match(shape, line) for line in trials]
    assert [match and match[1] for match in told] == [str(k + 1) for k in range(len(trials))]
    assert in_process(*SEARCH, "--overwrite", "--quiet", cwd=table).stderr == ""


def test_the_columns_are_recommended_within_the_bounds_and_the_page_is_written(table, run):
    pytest.importorskip("matplotlib")
    words = "x.csv best.yaml --label y --trials 2 --jobs 1 --max-bytes-per-row 256 --report page"
    done = run(f"tune {words}", cwd=table)
    chosen = re.search(r"R² over columns:\n(?: .*\n)*? +(\d+)  \S+ ± \S+  <\n", done.stdout)
    assert load_config(table / "best.yaml").steps[-1].n_components == int(chosen[1]) <= 64
    page = (table / "page" / "index.html").read_text()
    assert "kafeat fit --config best.yaml x.csv map.joblib --label y" in page
    refused = run("tune x.csv b.yaml --label y --columns 64 --max-bytes-per-row 255", cwd=table, code=2)
    assert "expected at least 256 for 64 columns" in refused.stderr


JOURNAL = "best.yaml.journal"


@pytest.mark.parametrize(("words", "name"), [
    (f"{JOURNAL} best.yaml", "the input"),
    (f"x.csv best.yaml --from {JOURNAL}", "the config"),
    (f"x.csv best.yaml --json {JOURNAL}", "--json"),
])  # fmt: skip
def test_a_journal_takes_the_place_of_no_other_file_of_the_command(table, run, words, name):
    (table / "best.yaml.journal").write_text("steps: [{kind: fourier}]")
    done = run(f"tune {words} --label y --resume", *QUICK, cwd=table, code=2)
    assert f"a journal apart from {name}" in done.stderr
    assert (table / "best.yaml.journal").read_text() == "steps: [{kind: fourier}]"


@pytest.mark.parametrize("more", [(), ("--resume",), ("--overwrite",)])
@pytest.mark.parametrize("kind", ["file", "link", "dangling", "fifo"])
def test_a_file_that_is_no_journal_stays(table, in_process, more, kind):
    journal, mine = table / "best.yaml.journal", table / "mine"
    if kind == "fifo":
        os.mkfifo(journal)
    elif kind == "file":
        journal.write_text('{"key": "mine"}\n')
    else:
        journal.symlink_to(mine)
        if kind == "link":
            mine.write_text("mine")
    done = in_process(*SEARCH, *more, cwd=table)
    said = "best.yaml.journal: expected no file of that name, or the journal of a search, got another file; move it"
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (table / "best.yaml").exists()
    assert kind != "file" or journal.read_text() == '{"key": "mine"}\n'
    assert mine.exists() == (kind == "link")


def test_the_journal_of_a_killed_search_is_gone_on_with_or_kept(table, run):
    interrupted(table, 3, "SIGKILL")
    journal = (table / "best.yaml.journal").read_bytes()
    refused = run(*SEARCH, "--overwrite", cwd=table, code=2)
    said = "best.yaml.journal: expected no trials of an earlier search, got 3; go on with them (--resume, in Python "
    assert said in refused.stderr
    assert "remove the file to restart" in refused.stderr
    assert (table / "best.yaml.journal").read_bytes() == journal
    run(*SEARCH, "--resume", cwd=table)
    assert sorted(os.listdir(table)) == ["best.yaml", "x.csv"]


def test_a_search_is_resumed_without_a_journal_and_after_its_end(table, run):
    for _ in range(2):
        run(*SEARCH, "--resume", cwd=table)
    (table / "best.yaml").write_text("# mine\n")
    refused = run(*SEARCH, "--resume", cwd=table, code=2)
    assert "expected no file of that name" in refused.stderr
    assert (table / "best.yaml").read_text() == "# mine\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_search_whose_outputs_cannot_be_written_is_not_lost(table, run):
    full = run(*SEARCH, "--json", "/dev/full", cwd=table, code=5)
    assert "/dev/full: No space left on device" in full.stderr
    made = (table / "best.yaml.journal").read_text().splitlines()[1:]
    run(*SEARCH, "--resume", "--json", "trials.json", cwd=table)
    assert sorted(os.listdir(table)) == ["best.yaml", "trials.json", "x.csv"]
    seconds = {row["seconds"] for row in json.loads((table / "trials.json").read_text())["table"]}
    assert seconds <= {round(json.loads(line)["seconds"], 3) for line in made}  # none was made again


@pytest.mark.parametrize("error", [kafeat.errors.UsageError("exists"), KeyboardInterrupt("stop")])
def test_a_refused_result_leaves_the_journal(table, error):
    def write(_tuning):
        raise error

    arguments = {"columns": 16, "trials": 3, "jobs": 1, "journal": str(table / "j"), "split": "split"}
    with pytest.raises(type(error), match=str(error)):
        kafeat.tune(table / "x.csv", "y", **arguments, write=write)
    assert len((table / "j").read_text().splitlines()) == 1 + 3
    kafeat.tune(table / "x.csv", "y", **arguments, resume=True)
    assert not (table / "j").exists()


def test_a_search_that_cannot_succeed_leaves_no_journal(table, run):
    rows = "".join(f"{i},{i % 7},{'test' if i < 5 else 'train'}\n" for i in range(100))
    (table / "x.csv").write_text("x,y,split\n" + rows.replace("test", "train"))
    done = run(*SEARCH, "--split", "split", cwd=table, code=3)
    assert "at least one row of test" in done.stderr
    assert os.listdir(table) == ["x.csv"]


def test_two_searches_do_not_share_a_journal(table, in_process):
    with open(table / "best.yaml.journal", "wb") as other:
        lock(other.fileno())
        done = in_process(*SEARCH, cwd=table)
    assert (done.returncode, "got one in use" in done.stderr) == (5, True), done.stderr


def test_a_device_as_output_has_no_journal(table, run):
    before = os.listdir("/dev")
    run("tune x.csv /dev/null --label y", *QUICK, cwd=table)
    assert os.listdir("/dev") == before


@pytest.mark.parametrize(("words", "bound"), [
    ("tune x.csv best.yaml --label y --seeds 100000000", "1<=x<=1000"),
    ("tune x.csv best.yaml --label y --columns 100000000", "2<=x<=1048576"),
    ("tune x.csv best.yaml --label y --jobs 100000000", "1<=x<=4096"),
    (f"tune x.csv best.yaml --label y --max-bytes-per-row {10**30}", "1<=x<=9007199254740992"),
    (f"tune x.csv best.yaml --label y --trials {10**30}", "1<=x<=9007199254740992"),
    ("evaluate --config c.yaml x.csv --seeds 100000000", "1<=x<=1000"),
    (f"evaluate --config c.yaml x.csv --rows {10**30}", "2<=x<=9007199254740992"),
    (f"verify --model m.joblib x.csv o.csv --rows {10**30}", "1<=x<=9007199254740992"),
    (f"verify --model m.joblib x.csv o.csv --seed {10**30}", "0<=x<=9007199254740992"),
    (f"transform --model m.joblib x.csv o.csv --limit {10**30}", "1<=x<=9007199254740992"),
    (f"transform --model m.joblib x.csv o --rows-per-file {10**30}", "1<=x<=9007199254740992"),
    ("fit --config c.yaml x.csv m.joblib --jobs 5000", "1<=x<=4096"),
])  # fmt: skip
def test_a_large_number_is_refused_with_its_bound(table, run, words, bound):
    done = run(words, cwd=table, code=2)
    assert f"is not in the range {bound}" in done.stderr


def test_the_scores_of_evaluate_and_class_weights_are_options(tmp_path, in_process, run):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    rows = "".join(f"{a},{b},{'rare' if a > 1.2 else 'usual'}\n" for a, b in x)
    (tmp_path / "c.csv").write_text("a,b,y\n" + rows)
    command = ("tune", "c.csv", "best.yaml", "--label", "y", *QUICK, "--overwrite", "--predictor", "ridge")
    told = in_process(*command, cwd=tmp_path).stdout
    assert re.search(
        r"^log loss 0\.\d{4} ± 0\.\d{4} on rows held out to choose by; raw columns have \S+, a constant",
        told,
        re.M,
    )
    assert re.search(r"^accuracy [01]\.\d{4}, balanced accuracy [01]\.\d{4}, AUC [01]\.\d{4}$", told, re.M)
    told = in_process(*command, "--scoring", "error_rate", cwd=tmp_path)
    assert re.search(r"^error rate 0\.\d{4} ± ", told.stdout, re.M)
    assert re.search(r"^trial 1, maps: .*: error rate 0\.\d{4} ± 0\.\d{4} with", told.stderr, re.M)
    told = in_process(*command, "--class-weight", "balanced", cwd=tmp_path).stdout
    assert re.search(r"^balanced accuracy [01]\.\d{4} ± ", told, re.M)
    assert "class_weight: balanced" in (tmp_path / "best.yaml").read_text()
    run("fit --config best.yaml c.csv m.joblib --label y --class-weight none", cwd=tmp_path)
    assert kafeat.load(tmp_path / "m.joblib").config.predictor.class_weight == "none"
