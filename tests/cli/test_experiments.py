"""Experiments: what `kafeat evaluate --experiment` takes from the YAML, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kafeat.cli.evaluate import evaluate
from kafeat.config.experiment import experiment_names, load_experiment
from tests.zygote import ROOT

DIGITS = ROOT / "sample_data/digits.parquet"
OWN = """\
about: two maps
data: "digits with a column `label`"
options: {{label: label, learner: ridge, penalty: 0.5, limit: 200, rows: 20, exact_rows: 50, {more}}}
maps:
  few: {{steps: [{{kind: fourier, n_components: 4}}]}}
  many: {{steps: [{{kind: projection, n_components: 8}}]}}
"""


@pytest.fixture
def evaluated(in_process: Callable, tmp_path: Path) -> Callable:
    """Evaluate an experiment of its own and return the exit code, the results and the messages."""

    def evaluated(*words: object, more: str = "seeds: 1") -> tuple[int, dict, str]:
        (tmp_path / "own.yaml").write_text(OWN.format(more=more))
        asked = ("evaluate", "--experiment", "own.yaml", *words, "--json", "e.json", "--quiet")
        done = in_process(*asked, cwd=tmp_path)
        file = tmp_path / "e.json"
        return done.returncode, json.loads(file.read_text()) if file.exists() else {}, done.stderr

    return evaluated


@pytest.mark.parametrize("name", experiment_names())
def test_the_command_takes_the_options_of_every_experiment(name):
    context = evaluate.make_context("evaluate", ["--experiment", name, "x.csv"])
    asked = load_experiment(name).options
    assert context.params["label"] == (asked["label"],)
    assert context.params["learner"] == asked["learner"]
    assert context.params["penalty"] == asked.get("penalty")
    assert context.params["exact_rows"] == asked["exact_rows"]
    assert context.params["sweep"] == ((asked["sweep"],) if "sweep" in asked else ())


def test_the_list_tells_what_each_experiment_needs(run):
    done = run("evaluate --list-experiments")
    for name in experiment_names():
        assert f"\n{name}\n    {load_experiment(name).about}\n    DATA: " in f"\n{done.stdout}"


def test_maps_have_the_names_and_options_of_the_experiment(evaluated):
    code, results, stderr = evaluated(DIGITS)
    assert code == 0, stderr
    assert results["experiment"] == "own.yaml"
    assert [one["map"] for one in results["records"]] == ["few", "many"]
    assert {one["penalty_map"] for one in results["records"]} == {0.5}
    assert {(one["rows"], one["rows_exact"], one["data_rows"]) for one in results["records"]} == {
        (20, 50, 200)
    }


def test_the_command_line_takes_precedence(evaluated, tmp_path):
    (tmp_path / "mine.yaml").write_text("steps: [{kind: projection, n_components: 3}]\n")
    code, results, stderr = evaluated(
        DIGITS, "--penalty", "0.25", "--sweep", "n_components=6", "--config", "mine.yaml", more="sweep: n_components=2"
    )  # fmt: skip
    assert code == 0, stderr
    assert [(one["map"], one["n_components"]) for one in results["records"]] == [
        ("few", 6), ("many", 6), ("mine.yaml", 6),
    ]  # fmt: skip
    assert {one["penalty_map"] for one in results["records"]} == {0.25}


def test_an_error_in_the_data_tells_which_table_is_needed(evaluated, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    code, results, stderr = evaluated("x.csv")
    assert (code, results) == (3, {})
    assert "x.csv: --label: expected the column 'label', got a, b" in stderr
    assert "own.yaml needs this table: digits with a column `label`" in stderr


@pytest.mark.parametrize(("more", "message"), [
    ("json: x.json", "own.yaml: options: expected one of label, split"),
    ("sedes: 2", "got 'sedes'; did you mean 'seeds'?"),
    ("scoring: [auc, speed]", "own.yaml: options.scoring: 'speed' is not one of"),
    ("splits: [1, 2]", "own.yaml: options.splits: expected a number or text, got a list of 2"),
    ("scoring: {auc: 1}", "own.yaml: options.scoring: expected a number or text, or a list"),
])  # fmt: skip
def test_wrong_options_are_refused(evaluated, more, message):
    code, results, stderr = evaluated(DIGITS, more=more)
    assert (code, results) == (2, {})
    assert message in stderr


@pytest.mark.parametrize("name", ['""', '" "', '"a\\e[31mb"', '"a\\nb"'])
def test_text_that_a_terminal_would_obey_is_refused(run, tmp_path, name):
    content = "about: {}\ndata: b\nmaps: {{{}: {{steps: [{{kind: fourier}}]}}}}\n"
    for about, key, place in ((name, "m", "own.yaml:1:8: about"), ("a", name, "own.yaml:3:7: maps")):
        (tmp_path / "own.yaml").write_text(content.format(about, key))
        done = run("evaluate --experiment own.yaml", DIGITS, cwd=tmp_path, code=2)
        assert f"{place}: expected " in done.stderr
        assert "one line of printable text, not empty, got " in done.stderr
        assert "\x1b" not in done.stderr


def test_folded_text_is_one_line(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("about: >\n  two\n  lines\ndata: |\n  b\nmaps: {m: {steps: [{kind: fourier}]}}\n")
    assert load_experiment(str(file)).about == "two lines"


def test_configs_and_experiments_are_not_taken_for_each_other(run, tmp_path):
    (tmp_path / "one.yaml").write_text("steps: [{kind: fourier}]\n")
    (tmp_path / "many.yaml").write_text(OWN.format(more="seeds: 1"))
    done = run("evaluate --experiment one.yaml", DIGITS, cwd=tmp_path, code=2)
    assert "one.yaml:1:1: expected the key 'maps', got the config of one map: give it to" in done.stderr
    done = run("evaluate --config many.yaml", DIGITS, cwd=tmp_path, code=2)
    assert "many.yaml:1:1: expected the key 'steps', got an experiment: give it to" in done.stderr


def test_an_unknown_name_lists_the_names(run):
    done = run("evaluate --experiment guide-digit", DIGITS, code=2)
    assert "guide-digits, " in done.stderr
    assert "did you mean 'guide-digits'?" in done.stderr
