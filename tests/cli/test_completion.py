"""Tab completion as bash calls it, and as fish and a zsh at a terminal do where they are installed."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from kafeat.registry import kinds
from tests.zygote import KAFEAT

ENV = {**os.environ, "PATH": f"{Path(KAFEAT).parent}:{os.environ['PATH']}"}

# What bash does for a tab at the end of the words; `compopt` only works there.
BASH = """
eval "$SOURCE"
complete -p kafeat > /dev/null || exit 9
compopt() { echo "compopt $*"; }
COMP_WORDS=(%s "%s"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$(complete -p kafeat | sed 's/.*-F \\([^ ]*\\).*/\\1/') kafeat "%s" ""
printf '%%s\\n' "${COMPREPLY[@]}"
"""


@cache
def source(shell="bash"):
    """Return the script of a shell, as the README says to make it."""
    env = {**ENV, "_KAFEAT_COMPLETE": f"{shell}_source"}
    return subprocess.run([KAFEAT], env=env, capture_output=True, text=True, check=True).stdout


def completed(words, last, cwd):
    words, env = ["bash", "--norc", "-c", BASH % (words, last, last)], {**ENV, "SOURCE": source()}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.sampled
@pytest.mark.parametrize(("words", "last", "expected"), [
    ("kafeat", "tr", ["transform"]), ("kafeat transform", "--lim", ["--limit"]),
    ("kafeat transform --layout", "", ["columns", "list"]), ("kafeat config --kind", "four", ["fourier"]),
    ("kafeat kinds", "tensor_s", ["tensor_sketch", "tensor_srht"]),
])  # fmt: skip
def test_bash_is_told_words(words, last, expected, tmp_path):
    assert completed(words, last, tmp_path) == expected


@pytest.mark.sampled
@pytest.mark.parametrize("words", ["fit --config", "transform", "inspect", "config --check"])
def test_bash_is_told_to_complete_files(words, tmp_path):
    assert completed(f"kafeat {words}", "rb", tmp_path) == ["compopt", "-o", "default"]


def test_bash_is_told_to_complete_folders(tmp_path):
    assert completed("kafeat evaluate --report", "", tmp_path) == ["compopt", "-o", "dirnames"]


def test_every_kind_is_offered(tmp_path):
    assert completed("kafeat kinds", "", tmp_path) == list(kinds())


@pytest.mark.parametrize(
    ("shell", "says"), [("zsh", "#compdef kafeat"), ("fish", "complete --no-files --command kafeat")]
)
def test_the_other_shells_have_scripts(shell, says):
    assert says in source(shell)


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [("tr", ["transform"]), ("transform --layout ", ["columns", "list"]), ("fit --config rb", ["rbf.yaml"])],
)
def test_fish_completes(line, expected, tmp_path):
    (tmp_path / "rbf.yaml").touch()
    completions = tmp_path / "fish" / "completions"
    completions.mkdir(parents=True)
    (completions / "kafeat.fish").write_text(source("fish"))
    done = subprocess.run(
        ["fish", "--command", f'complete -C "kafeat {line}"'],
        **{"cwd": tmp_path, "env": {**ENV, "XDG_CONFIG_HOME": str(tmp_path)}},
        **{"capture_output": True, "text": True, "timeout": 60},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [told.split("\t")[0] for told in done.stdout.split("\n") if told] == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
@pytest.mark.parametrize(("line", "expected"), [("tr", "transform"), ("fit --config rb", "rbf.yaml")])
def test_zsh_completes_at_a_terminal(line, expected, tmp_path):
    (tmp_path / "rbf.yaml").touch()
    terminal, theirs = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    env = {**ENV, "TERM": "dumb", "HOME": str(tmp_path)}
    shell = subprocess.Popen(["zsh", "-f", "-i"], cwd=tmp_path, env=env, start_new_session=True, **streams)
    os.close(theirs)
    try:
        completing = 'autoload -Uz compinit; compinit -u; eval "$(_KAFEAT_COMPLETE=zsh_source kafeat)"; '
        says(terminal, f"{completing}PS1=REA''DY\n")  # the quotes tell the prompt from the echo of this line
        wait_for(terminal, "READY")
        says(terminal, f"kafeat {line}\t")
        assert expected in wait_for(terminal, expected)
    finally:
        os.close(terminal)
        shell.kill()
        shell.wait()


def says(terminal, text):
    os.write(terminal, text.encode())


def wait_for(terminal, text, seconds=30):
    """Read the terminal until it shows `text`, or nothing more for some time."""
    shown = ""
    until = time.monotonic() + seconds
    while text not in shown and time.monotonic() < until:
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 4096).decode()
    return shown


def test_nothing_heavy_is_imported_to_complete():
    """A tab must not wait: NumPy, pydantic and pyarrow would take most of a second."""
    code = """
import os, sys
os._exit = lambda code: print(*sys.modules)
from kafeat.__main__ import main
main()
"""
    env = {**ENV, "_KAFEAT_COMPLETE": "bash_complete", "COMP_WORDS": "kafeat kinds ", "COMP_CWORD": "2"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert "plain,fourier" in done.stdout
    imported = set(done.stdout.splitlines()[-1].split())
    assert "kafeat.cli.main" in imported
    assert imported.isdisjoint({"numpy", "pydantic", "pyarrow", "rich"})
