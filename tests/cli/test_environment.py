"""Options from variables: KAFEAT_FIT_JOBS for one command, KAFEAT_JOBS for every one; the command line wins."""

import click
import numpy as np
import pytest

import kafeat as package
from kafeat.cli import log
from kafeat.cli.command import settings, warn_of_unknown_variables
from kafeat.cli.main import COMMANDS, kafeat


def command(name):
    return kafeat.get_command(click.Context(kafeat), name)


def parsed(name, arguments, env, monkeypatch):
    """The parameters that the command would be called with."""
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    return command(name).make_context(name, list(arguments)).params


def test_the_command_line_wins_over_its_own_variable_and_that_over_the_one_of_all(monkeypatch):
    words, env = ("--model", "m", "a", "b"), {"KAFEAT_JOBS": "3"}
    assert parsed("transform", words, env, monkeypatch)["jobs"] == 3
    env["KAFEAT_TRANSFORM_JOBS"] = "2"
    assert parsed("transform", words, env, monkeypatch)["jobs"] == 2
    assert parsed("transform", (*words, "--jobs", "1"), env, monkeypatch)["jobs"] == 1
    assert parsed("verify", words, env, monkeypatch)["jobs"] == 3
    assert parsed("transform", words, {"KAFEAT_TRANSFORM_JOBS": ""}, monkeypatch)["jobs"] == 3


@pytest.mark.parametrize(("text", "value"), [("1", True), ("yes", True), ("0", False), ("off", False)])
def test_flags_are_read_as_words(monkeypatch, text, value):
    words = ("--model", "m", "a", "b")
    env = {"KAFEAT_QUIET": text, "KAFEAT_FSYNC": text, "KAFEAT_OVERWRITE": text}
    found = parsed("transform", words, env, monkeypatch)
    assert [log.settings.quiet, found["fsync"], found["overwrite"]] == [value] * 3
    assert parsed("transform", (*words, "--no-fsync"), env, monkeypatch)["fsync"] is False


def test_several_names_are_apart_as_in_path(monkeypatch):
    found = parsed("evaluate", ("a.npy",), {"KAFEAT_MODEL": "my map.joblib:b.joblib"}, monkeypatch)
    assert found["model"] == ("my map.joblib", "b.joblib")


def test_what_one_call_alone_decides_has_no_variable(monkeypatch):
    """An exported KAFEAT_LIMIT would cut every output short, with exit code 0."""
    words, env = ("--model", "m", "a", "b"), {"KAFEAT_LIMIT": "3"}
    assert parsed("transform", words, env, monkeypatch)["limit"] is None
    assert all(option.name != "limit" for name in COMMANDS for option in settings(command(name)))


def test_one_variable_means_the_same_in_every_command():
    meanings = {}
    for name in COMMANDS:
        for option in settings(command(name)):
            for variable in option.envvar:
                shape = (option.type.name, option.is_flag)
                assert meanings.setdefault(variable, shape) == shape, variable
    assert {"KAFEAT_MODEL", "KAFEAT_JOBS", "KAFEAT_EVALUATE_JSON", "KAFEAT_DIFF_EXIT_CODE"} <= set(meanings)
    assert "KAFEAT_JSON" not in meanings


def test_predict_reads_the_variables_of_transform_too(monkeypatch):
    words, env = ("--model", "m", "a", "b"), {"KAFEAT_JOBS": "4"}
    assert parsed("predict", words, env, monkeypatch)["jobs"] == 4
    assert parsed("predict", words, env | {"KAFEAT_TRANSFORM_JOBS": "3"}, monkeypatch)["jobs"] == 3
    assert parsed("predict", words, env | {"KAFEAT_PREDICT_JOBS": "2"}, monkeypatch)["jobs"] == 2
    assert parsed("transform", words, {}, monkeypatch)["jobs"] == 3


NOBODY = "no option is set by this variable, so it is ignored"


MEANT = {"KAFEAT_JOSB": "KAFEAT_JOBS", "KAFEAT_TRANSFROM_MAX_DRIFT": "KAFEAT_TRANSFORM_MAX_DRIFT"}
MEANT |= {"KAFEAT_COLOUR": "KAFEAT_COLOR", "KAFEAT_JSON": None, "KAFEAT_LIMIT": None}


@pytest.mark.parametrize(("name", "meant"), MEANT.items())
def test_a_variable_that_sets_nothing_is_told(in_process, run, name, meant):
    done = run("kinds", **{name: "7"})
    assert done.stderr == f"note: {name}: {NOBODY}{f'; did you mean {meant}?' if meant else ''}\n"
    assert in_process("kinds", **{name: ""}).stderr == ""


def test_a_misspelt_variable_is_told_beside_the_error_that_it_causes_and_not_with_quiet(in_process):
    done = in_process("transform", "in.csv", "out.csv", KAFEAT_MODLE="map.joblib")
    assert done.stderr.endswith(
        "Error: Missing option '--model'. `kafeat fit` makes a model.\n"
        f"note: KAFEAT_MODLE: {NOBODY}; did you mean KAFEAT_MODEL?\n"
    )
    words = ("transform", "--model", "none.joblib", "in.csv", "out.csv", "--quiet")
    assert "note:" not in in_process(*words, KAFEAT_MODLE="map.joblib").stderr


def test_every_variable_of_an_option_is_known(monkeypatch, capsys):
    options = [option for name in COMMANDS for option in settings(command(name))]
    every = {variable for option in options for variable in option.envvar}
    assert len(every) > 100
    for name in {*every, "KAFEAT_COLOR", "KAFEAT_COMPILED"}:
        monkeypatch.setenv(name, "1")
    warn_of_unknown_variables(kafeat)
    assert capsys.readouterr().err == ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("environment")
    rows = np.random.default_rng(0).normal(size=(50, 3))
    np.save(path / "x.npy", rows)
    for kind in ("standardize", "minmax"):
        package.fit({"steps": [{"kind": kind}]}, rows).save(path / f"{kind}.joblib")
    (path / "c.yaml").write_text("steps: [{kind: minmax}]\n")
    return path


def test_a_bad_value_is_told_by_the_name_of_its_variable(run, folder):
    done = run("inspect x", cwd=folder, code=2, KAFEAT_COLOR="pink")
    assert "Invalid value for KAFEAT_COLOR: 'pink' is not one of" in done.stderr
    done = run("transform x.npy z.npy --model m", cwd=folder, code=2, KAFEAT_TRANSFORM_JOBS="0")
    assert "Invalid value for KAFEAT_TRANSFORM_JOBS: 0 is not in the range" in done.stderr
    done = run("transform x.npy z.npy --model m -j 0", cwd=folder, code=2, KAFEAT_JOBS="1")
    assert "Invalid value for '--jobs' / '-j': 0 is not in the range" in done.stderr


def test_errors_are_json_where_the_variable_says_so_and_the_command_line_does_not(run, folder):
    assert run("transform", cwd=folder, code=2, KAFEAT_LOG_FORMAT="json").stderr.startswith('{"time": ')
    assert run("config --check", cwd=folder, code=2, KAFEAT_LOG_FORMAT="json").stderr.startswith('{"time": ')
    words = ("transform", "no.npy", "z.npy", "--log-format", "text", "--model", "no")
    assert run(*words, cwd=folder, code=5, KAFEAT_LOG_FORMAT="json").stderr.startswith("kafeat: no.npy: ")


def test_maps_of_the_environment_do_not_join_a_comparison(run, folder):
    words = ("evaluate", "x.npy", "--json", "-")
    both = {"KAFEAT_MODEL": "standardize.joblib", "KAFEAT_CONFIG": "c.yaml"}
    assert "standardize" not in run(*words, "--config", "c.yaml", cwd=folder, **both).stdout
    assert "minmax" not in run(*words, "--model", "standardize.joblib", cwd=folder, **both).stdout


def test_the_help_names_a_variable(run, folder):
    text = " ".join(run("fit --help", cwd=folder).stdout.split())
    assert "--config is read from KAFEAT_FIT_CONFIG or KAFEAT_CONFIG. The command line takes" in text
    assert "Environment:" in run("--help", cwd=folder).stdout


@pytest.mark.parametrize(("variable", "words"), [
    ("KAFEAT_MAX_DRIFT", ["transform", "--model", "m", "a.csv", "b.csv"]),
    ("KAFEAT_MAX_ERROR", ["evaluate", "--model", "m", "a.csv"]),
    ("KAFEAT_EVALUATE_MIN_SCORE", ["evaluate", "--model", "m", "a.csv", "--label", "b"]),
    ("KAFEAT_TAU", ["evaluate", "--model", "m", "a.csv", "--label", "b", "--learner", "dual_l1"]),
])  # fmt: skip
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_no_number_is_told_of_the_variable(run, tmp_path, variable, words, value):
    text = run(*words, cwd=tmp_path, code=2, **{variable: value}).stderr
    assert f"Invalid value for {variable}: {value} is no" in text
