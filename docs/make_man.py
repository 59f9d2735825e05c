"""Manual pages from the help: kafeat.1, kafeat-fit.1, … `make reference` writes them to `share/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent, indent

import click

from kafeat._version import __version__
from kafeat.cli.command import Context, long_name, settings
from kafeat.cli.main import kafeat


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name of each command, such as `kafeat-fit`, and its page in roff."""
    whole = Context(kafeat, info_name="kafeat")
    names = kafeat.list_commands(whole)
    yield "kafeat", page(kafeat, whole, [f"kafeat-{name}" for name in names])
    for name in names:
        command = kafeat.get_command(whole, name)
        if command is not None:
            yield f"kafeat-{name}", page(command, Context(command, parent=whole, info_name=name), ["kafeat"])


def page(command: click.Command, context: click.Context, see: list[str]) -> str:
    """Return a page of section 1."""
    path = context.command_path
    name = path.replace(" ", "-")
    lines = [f'.TH "{name.upper()}" "1" "" "kafeat {__version__}" "kafeat"', ".SH NAME"]
    lines.append(_text(f"{name} - {command.get_short_help_str(limit=200).rstrip('.')}"))
    synopsis = " ".join(_text(piece) for piece in command.collect_usage_pieces(context))
    lines += [".SH SYNOPSIS", rf"\fB{_text(path)}\fR {synopsis}"]
    lines += [".SH DESCRIPTION", *_paragraphs(command.help or "")]
    lines += [".SH OPTIONS"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            lines += [".TP", rf"\fB{_text(record[0])}\fR", _text(record[1])]
    if isinstance(command, click.Group):
        lines += [".SH COMMANDS"]
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            lines += [
                ".TP",
                rf"\fB{_text(sub)}\fR",
                _text(found.get_short_help_str(limit=200) if found else ""),
            ]
    lines += _variables(command)
    lines += _sections(command.epilog or "")
    also = ", ".join(rf"\fB{_text(one)}\fR(1)" for one in see)
    return "\n".join([*lines, ".SH SEE ALSO", also]) + "\n"


def _variables(command: click.Command) -> Iterator[str]:
    """Yield the environment variables of the options."""
    known = [option for option in settings(command) if isinstance(option.envvar, list)]
    if known:
        yield ".SH ENVIRONMENT"
        yield _text(
            "Options that the command line does not set are read from these variables. The first one set counts."
        )
    for option in known:
        yield from (".TP", rf"\fB{_text(', '.join(option.envvar or ()))}\fR", _text(long_name(option)))


def _paragraphs(text: str) -> Iterator[str]:
    r"""Yield the paragraphs of a help text; those marked by \b keep their lines."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield ".PP"
        if paragraph.lstrip().startswith("\b"):
            yield from _as_is(paragraph.replace("\b\n", ""))
        else:
            yield _text(" ".join(paragraph.split()))


def _sections(epilog: str) -> Iterator[str]:
    """Yield the sections of an epilog that have a heading, such as examples and exit codes."""
    for block in re.split(r"\n\s*\n", epilog.strip()):
        heading, _, rest = block.removeprefix("\b\n").partition("\n")
        if block.startswith("\b\n") and heading.endswith(":"):
            yield f".SH {_text(heading[:-1].upper())}"
            yield from _as_is(rest)


def _as_is(block: str) -> Iterator[str]:
    """Yield lines that roff does not fill."""
    lines = indent(dedent(block.strip("\n")), "  ").rstrip().split("\n")
    yield from (".nf", *map(_text, lines), ".fi")


def _text(text: str) -> str:
    """Escape backslashes, hyphens, and characters that start a roff request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
