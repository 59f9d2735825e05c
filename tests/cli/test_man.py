"""Manual pages: one for each command, sound roff, with all that the help says."""

import shutil
import subprocess

import click
import pytest

from kafeat.cli.command import Context
from kafeat.cli.main import COMMANDS, kafeat
from tests.zygote import ROOT


@pytest.fixture(scope="module")
def made():
    return ROOT / "share/man/man1"


def test_every_command_has_a_page(made):
    assert {path.name for path in made.iterdir()} == {"kafeat.1", *(f"kafeat-{name}.1" for name in COMMANDS)}


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_groff_reads_them_without_a_warning_and_shows_every_option(made):
    for path in sorted(made.iterdir()):
        groff = ["groff", "-man", "-ww", "-Tutf8", "-k", "-P-cbou", path]
        done = subprocess.run(groff, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), path.name
        text = done.stdout.replace("\u2212", "-").replace("\u2010", "-")  # by the version of groff
        name = path.stem.removeprefix("kafeat-")
        command = kafeat if path.stem == "kafeat" else kafeat.get_command(Context(kafeat), name)
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.opts[0] in text, (path.name, option.opts)
    assert "SYNOPSIS" in done.stdout


def test_no_line_of_text_is_taken_for_a_request(made):
    """A line that begins with a dot or an apostrophe is one to roff."""
    known = {".TH", ".SH", ".PP", ".TP", ".nf", ".fi"}
    for path in made.iterdir():
        for line in path.read_text().splitlines():
            assert not line.startswith("'"), (path.name, line)
            assert not line.startswith(".") or line.split()[0] in known, (path.name, line)


def test_exit_codes_and_examples_are_in_the_page(made):
    whole = (made / "kafeat.1").read_text()
    assert ".SH EXIT CODES" in whole
    assert "  143  terminated (SIGTERM)" in whole
    fit = (made / "kafeat-fit.1").read_text()
    assert ".SH EXAMPLE" in fit
    assert r"KAFEAT_FIT_LABEL, KAFEAT_LABEL" in fit
