"""Colours: on terminals, and where they are asked for."""

import pytest

from tests.cli.terminal import on_terminal

ESCAPE = "\x1b["


@pytest.mark.parametrize(("options", "env", "coloured"), [
    ([], {}, True), ([], {"NO_COLOR": "1"}, False), ([], {"NO_COLOR": ""}, True),
    ([], {"TERM": "dumb"}, False), (["--color", "never"], {}, False),
    ([], {"KAFEAT_COLOR": "never"}, False), (["--color", "auto"], {"KAFEAT_COLOR": "never"}, True),
])  # fmt: skip
def test_on_a_terminal(options, env, coloured):
    for words in ([*options, "fit"], ["fit", "--help", *options]):
        text, code = on_terminal(*words, env=env)
        assert code == (0 if "--help" in words else 2)
        assert (ESCAPE in text) == coloured, (words, text)


@pytest.mark.parametrize(("options", "env", "coloured"), [
    ([], {}, False), (["--color", "always"], {}, True), ([], {"KAFEAT_COLOR": "always"}, True),
    (["--color", "never"], {"KAFEAT_COLOR": "always"}, False), ([], {"FORCE_COLOR": "1"}, True),
    ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    (["--color", "always"], {"NO_COLOR": "1", "TERM": "dumb"}, True),
])  # fmt: skip
def test_in_a_pipe(in_process, options, env, coloured):
    for words in ([*options, "fit"], ["--help", *options]):
        done = in_process(*words, **env)
        assert (ESCAPE in done.stdout + done.stderr) == coloured


@pytest.mark.parametrize(("env", "coloured"), [({"FORCE_COLOR": "1"}, True), ({}, False)])
def test_tables_follow_the_same_rules(monkeypatch, env, coloured):
    from kafeat.cli import log

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert (log.console().color_system is not None) == coloured


def test_json_has_no_colours(in_process):
    done = in_process("--color", "always", "fit", KAFEAT_LOG_FORMAT="json")
    assert done.stderr.startswith("{")
    assert ESCAPE not in done.stderr


def test_the_command_has_the_last_word(in_process):
    done = in_process("--color", "always", "fit", "--color", "never")
    assert ESCAPE not in done.stderr


@pytest.mark.parametrize("words", [["transfor"], ["transform", "--bogus"], ["fit", "--limit", "0", "a", "b"]])
def test_usage_errors_have_colours(in_process, words):
    red = "\x1b[31m\x1b[1mError:\x1b[0m "
    assert red in in_process("--color", "always", *words).stderr
    assert red in on_terminal(*words)[0]
    done = in_process(*words)
    assert "\nError: " in done.stderr
    assert ESCAPE not in done.stderr
