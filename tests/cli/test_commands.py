"""The commands as a user runs them, with the samples of the project; in processes of their own where that matters."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.cli.main import COMMANDS
from tests.zygote import KAFEAT, ROOT, apart, ended_in_a_long_call


def run_apart(*words, code=0, **options):
    """Run a command in a process of its own: for what is written to its streams as bytes, and what is read of them."""
    done = apart(*words, **options)
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False), done.stderr.decode()
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with sample_data, configs and a fitted map."""
    path = tmp_path_factory.mktemp("checkout")
    (path / "sample_data").symlink_to(ROOT / "sample_data")
    (path / "configs").symlink_to(ROOT / "configs")
    fm = kafeat.fit(path / "configs/fourier.yaml", path / "sample_data/digits.parquet", label="label")
    fm.save(path / "map.joblib")
    return path


def examples(text):
    """The command lines of a help text or a page; a line that goes on after a backslash is one."""
    text = re.sub(r" \\\n\s+", " ", text)
    return re.findall(r"^ {2,6}(kafeat (?!COMMAND|kinds KIND)[^#\n]*)", text, flags=re.M)


def in_bash(line, folder):
    subprocess.run(["bash", "-ec", f'PATH="{Path(KAFEAT).parent}:$PATH"; {line}'], cwd=folder, check=True,
                   capture_output=True, timeout=120)  # fmt: skip


@pytest.mark.parametrize("command", ["", *sorted({*COMMANDS} - {"tune", "predict", "demo"})])
@pytest.mark.slow
def test_every_help_has_examples_that_work_as_printed(run, folder, command):
    if command == "export":
        pytest.importorskip("onnxruntime")
    text = run(command, "--help", cwd=folder).stdout
    lines = examples(text)
    assert lines, "no example"
    for line in lines:
        in_bash(line, folder)


def test_version(run):
    assert run("--version").stdout == "kafeat 1.0.0\n"


def test_the_verbose_version_tells_which_core_computes():
    """The variable is read when the core is imported."""
    env = {**os.environ, "KAFEAT_COMPILED": "0"}
    done = subprocess.run([KAFEAT, "-v", "--version"], env=env, capture_output=True, text=True, check=True)
    first, *_, last = done.stdout.splitlines()
    assert (first, last) == ("kafeat 1.0.0", "core: NumPy (KAFEAT_COMPILED=0)")


def test_help_names_every_exit_code(run, folder):
    text = run("--help", cwd=folder).stdout
    assert all(f"  {code} " in text for code in (0, 1, 2, 3, 4, 5, 6, 130, 143))


def listed_options(help):
    return re.findall(r"^  (?:-\w, )?(--[\w-]+)", help, flags=re.M)


@pytest.mark.parametrize("command", ["tune", "transform", "predict", "evaluate"])
def test_the_help_of_many_options_shows_those_that_most_users_need_and_names_the_help_with_all(
    run, folder, command
):
    short, long = (run(command, name, cwd=folder).stdout for name in ("--help", "--help-all"))
    shown, every = listed_options(short), listed_options(long)
    assert len(shown) <= 20
    assert set(shown) < set(every)
    assert f"{len(every) - len(shown)} more options: kafeat {command} --help-all" in short
    assert "more options" not in long
    assert "Example" in short


@pytest.mark.parametrize(("arguments", "code", "message"), [
    ("fit --columns 20", 2, "'--columns': it belongs to `kafeat tune` or the config, as `n_components`."),
    ("fit --gamma 1", 2, "No such option '--gamma': it belongs to the config, as `gamma`."),
    ("inspect --resume", 2, "No such option '--resume': it belongs to `kafeat tune` or `kafeat transform` or"),
    ("transform --mode map.joblib a b", 2, "No such option"),
    ("transform --model map.joblib sample_data/digits.csv", 2, "Missing argument"),
    ("transform --model map.joblib nope.csv out.npy", 5, "nope.csv: No such file or directory"),
    ("transform --model nope.joblib sample_data/digits.csv out.npy", 5, "nope.joblib: No such file"),
    ("transform --model sample_data/digits.npy sample_data/digits.csv out.npy", 4, "expected a kafeat model"),
    ("transform --model map.joblib sample_data/digits.csv nope/out.npy", 5, "nope, got none: make it first"),
    ("fit sample_data/digits.csv m.joblib", 2, "Missing option '--config'. `kafeat tune` chooses a config"),
    ("fit sample_data/digits.csv m.joblib", 2, "`kafeat config --for DATA` starts one."),
    ("transform sample_data/digits.csv out.npy", 2, "Missing option '--model'. `kafeat fit` makes a model."),
    ("tune sample_data/digits.csv best.yaml", 2, "Missing option '--label'. It names the column to predict."),
    ("tune mine.xlsx of_excel.yaml --label y", 2, "got the file of a spreadsheet: save its sheet as CSV"),
    ("transform --model map.joblib sample_data/digits.csv a.XLS", 2, "name a .csv file, which it opens"),
    ("fit --config map.joblib sample_data/digits.csv m.joblib", 2, "this may be a model: pass it to --model"),
    ("fit --config sample_data/digits.csv sample_data/digits.csv m.joblib", 2, "--for DATA` starts one"),
    ("inspect sample_data/digits.csv", 4, "or not a model (`kafeat fit` makes one)"),
    ("transform --model map.joblib --keep label sample_data/digits.csv out.npy", 2, "passthrough"),
    ("transform --model map.joblib configs/fourier.yaml --input-format parquet out.npy", 3, "Parquet"),
    ("fit --config sample_data/README.md sample_data/digits.csv m.joblib", 2, "sample_data/README.md:"),
    ("fit --config configs/fourier.yaml sample_data/digits.csv m.joblib --label nope", 3, "nope"),
    ("evaluate --model map.joblib sample_data/digits.csv --label p20", 3, "not a feature of the map"),
    ("evaluate --model map.joblib sample_data/digits.csv --rows 1", 2, "rows"),
    ("kinds fuorier", 2, "did you mean 'fourier'"),
])  # fmt: skip
def test_exit_codes(run, folder, arguments, code, message):
    done = run(arguments, cwd=folder, code=code)
    assert message in done.stderr
    last = json.loads(run(arguments, cwd=folder, code=code, KAFEAT_LOG_FORMAT="json").stderr.splitlines()[-1])
    assert message in last["message"]
    # only a missing file or folder may be there later
    assert (last["event"], last["exit_code"], last["retry"]) == ("refused", code, code == 5)
    assert not list(folder.glob("out*")) + list(folder.glob(".*kafeat*"))


def test_what_cannot_be_piped_is_not_advised(run, folder):
    parquet = (ROOT / "sample_data/digits.parquet").read_bytes()
    done = run_apart("transform --model map.joblib - -", cwd=folder, input=parquet, code=3)
    told = b"kafeat: <stdin>: expected CSV, but this looks like Parquet: it cannot be piped; name the file\n"
    assert done.stderr == told


def test_stdin_to_stdout(run, folder, tmp_path):
    text = (ROOT / "sample_data/digits.csv").read_bytes()
    piped = run_apart("transform --model map.joblib - - --keep all", cwd=folder, input=text).stdout
    run(f"transform --model map.joblib sample_data/digits.csv {tmp_path}/o.csv --keep all", cwd=folder)
    assert piped == (tmp_path / "o.csv").read_bytes()
    table = pyarrow.csv.read_csv(tmp_path / "o.csv")
    assert (table.num_rows, table.num_columns) == (1797, 65 + 512)


def test_rows_none_give_a_valid_output_of_no_rows(run, folder, tmp_path):
    header = (ROOT / "sample_data/digits.csv").read_text().splitlines()[0]
    (tmp_path / "none.csv").write_text(header + "\n")
    for suffix in ("csv", "parquet", "npy"):
        run("transform --model", folder / "map.joblib", "none.csv", f"out.{suffix}", cwd=tmp_path)
    assert np.load(tmp_path / "out.npy").shape == (0, 512)
    assert pq.read_table(tmp_path / "out.parquet").shape == (0, 512)
    assert pyarrow.csv.read_csv(tmp_path / "out.csv").shape == (0, 512)
    fit = run("fit --config", folder / "configs/fourier.yaml", "none.csv", "m.joblib", cwd=tmp_path, code=3)
    evaluate = run("evaluate --model", folder / "map.joblib", "none.csv", cwd=tmp_path, code=3)
    assert "row" in fit.stderr
    assert "row" in evaluate.stderr


@pytest.mark.slow
def test_a_gate_that_is_not_met_ends_with_6_and_the_figures(run, folder, tmp_path):
    base = ["evaluate", "--model", "map.joblib", "sample_data/digits.parquet", "--label", "label"]
    out = tmp_path / "report.json"
    done = run(*base, "--max-error", "1e-9", "--min-score", "1.1", "--json", out, cwd=folder, code=6)
    assert "map.joblib: relative Frobenius error: expected at most 1e-09, got 0.0" in done.stderr
    assert "map.joblib: score of the features: expected at least 1.1, got 0." in done.stderr
    assert "relative, Frobenius norm" in done.stdout
    assert json.loads(out.read_text())["score_map"] > 0.9
    run(*base, "--max-error", "0.5", "--min-score", "0.5", cwd=folder)
    run(*base[:-2], "--min-score", "0.5", cwd=folder, code=2)


@pytest.mark.slow
def test_evaluate_reads_a_pipe_as_often_as_it_has_to(folder):
    options = ["--label", "label", "--json", "-"]
    text = (ROOT / "sample_data/digits.csv").read_bytes()
    piped = run_apart("evaluate", "--model", "map.joblib", "-", *options, cwd=folder, input=text)
    read = run_apart("evaluate", "--model", "map.joblib", "sample_data/digits.csv", *options, cwd=folder)
    one, other = (json.loads(done.stdout) for done in (piped, read))
    assert {k for k in one["records"][0] if one["records"][0][k] != other["records"][0][k]} <= {
        key for key in one["records"][0] if "seconds" in key
    } | {"rows_seen_in_fit"}
    bad = run_apart("evaluate", "--model", "map.joblib", "-", cwd=folder, input=b"a,b\n1,x\n", code=3)
    assert bad.stderr.startswith(b"kafeat: -: ")


def test_silent_when_nobody_watches(run, folder, tmp_path):
    words = ["transform", "--model", "map.joblib", "sample_data/digits.npy", tmp_path / "o.npy"]
    done = run_apart(*words, cwd=folder)
    assert done.stdout == done.stderr == b""
    told = run(*words, "-v", cwd=folder).stderr
    assert "1,797 rows x 512 features" in told
    assert "BLAS" in told


STUCK_IN = """
from {module} import {name}
{name}.{method} = stuck
sys.argv = ["kafeat", *{words!r}]
main.main()
"""
IN_NPY = "sample_data/digits.npy"
IN_FIT, IN_TILE = ("kafeat.chain.chain", "Chain", "fit"), ("kafeat.chain.tiles", "TileLoop", "__call__")


@pytest.mark.parametrize(("number", "place", "words"), [
    (signal.SIGTERM, IN_FIT, ["fit", "--config", "configs/fourier.yaml", IN_NPY, "out"]),
    (signal.SIGINT, IN_TILE, ["transform", "--model", "map.joblib", "sample_data/digits.npy", "out.npy"]),
    (signal.SIGTERM, IN_TILE,
     ["evaluate", "--model", "map.joblib", "sample_data/digits.parquet", "--label", "label"]),
])  # fmt: skip
def test_a_signal_in_a_long_call_of_a_library_ends_every_command(folder, tmp_path, number, place, words):
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    before = sorted(os.listdir(tmp_path))
    code = STUCK_IN.format(**dict(zip(("module", "name", "method"), place, strict=True)), words=words)
    returned, _, errors = ended_in_a_long_call(code, number, tmp_path)
    assert returned == 128 + number, errors
    assert errors.endswith(f"kafeat: {'interrupted' if number == signal.SIGINT else 'terminated'}\n")
    assert sorted(os.listdir(tmp_path)) == before


def test_an_interrupt_before_anything_is_imported_is_quiet(tmp_path):
    """It comes, surely, while the command line is being imported."""
    code = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "kafeat.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from kafeat.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_next_to_nothing_is_imported_before_an_interrupt_is_quiet():
    code = "import sys; before = set(sys.modules); import kafeat.__main__; print(*set(sys.modules) - before)"
    # Without `site`, whose imports would hide ours.
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, timeout=120)
    imported = set(done.stdout.decode().split())
    assert {name for name in imported if "kafeat" in name} == {"kafeat", "kafeat.__main__", "kafeat._version"}
    assert imported.isdisjoint({"typing", "re", "importlib"})


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_the_systems_refusal(folder):
    words = "transform --model map.joblib sample_data/digits.csv -"
    with open("/dev/full", "wb") as full:
        done = run_apart(words, cwd=folder, stdout=full, code=5)
    assert b"No space left" in done.stderr


@pytest.mark.parametrize(("words", "closed", "code"), [
    ("transform --model map.joblib nope.csv o.npy", 2, 5),
    ("transform --model map.joblib sample_data/digits.npy {out}/o.npy", 2, 0),
    ("inspect map.joblib", 1, 5),
    ("transform --model map.joblib sample_data/digits.csv -", 1, 5),
    ("transform --model map.joblib - {out}/o.csv", 0, 5),
])  # fmt: skip
def test_closed_streams(folder, tmp_path, words, closed, code):
    run_apart(words.format(out=tmp_path), cwd=folder, closed=closed, code=code)


def test_an_odd_encoding():
    """It is read when an interpreter starts."""
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    subprocess.run([KAFEAT, "kinds", "fourier"], env=env, check=True, capture_output=True)


def test_transform_says_how_many_values_were_clipped(run, tmp_path):
    seen = np.ones((2, 3))
    kafeat.fit({"steps": ["intersection_bins"]}, seen).save(tmp_path / "m.joblib")
    for name, data, said in (("beyond", 2.0 * seen, True), ("within", seen, False)):
        np.save(tmp_path / f"{name}.npy", data)
        done = run("transform --model m.joblib", f"{name}.npy", "z.npy", "-v", cwd=tmp_path)
        assert ("; 6 values outside the range of the training rows were clipped\n" in done.stderr) == said
        assert ("clipped" in done.stderr) == said


def test_inspect_shortens_long_names(run, tmp_path):
    table = pa.table({"y" * 10_000: [1.0, 2.0], "short": [1.0, 3.0]})
    kafeat.fit({"steps": ["standardize"]}, table).save(tmp_path / "m.joblib")
    lines = run("inspect m.joblib", cwd=tmp_path).stdout.splitlines()
    assert f"columns: '{'y' * 60}'..., short" in lines


def test_stats(run, folder, tmp_path):
    made = tmp_path / "o.parquet"
    command = ["transform", "--model", "map.joblib", "sample_data/digits.csv", made]
    run(*command, "--stats", tmp_path / "s.json", "--keep", "label", cwd=folder)
    told = json.loads((tmp_path / "s.json").read_text())
    source = folder / "sample_data/digits.csv"
    for part, path in (("model", folder / "map.joblib"), ("input", source), ("output", made)):
        assert told[part]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert told["input"]["rows"] == told["output"]["rows"] == 1797
    assert told["output"]["bytes"] == made.stat().st_size
    assert told["output"]["columns"] == 512
    assert told["drift"]["largest"] == 0.0
    assert len(told["drift"]["columns"]) == 64
    assert told["bad_rows"] == {"rule": "error", "count": 0, "rejects": None}
    assert set(told["versions"]) == {"kafeat", "numpy", "scipy", "pyarrow", "joblib"}
