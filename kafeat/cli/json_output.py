"""The JSON file of a command, checked before the work begins and written after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from kafeat.cli.overlaps import located
from kafeat.errors import visible_json


def check_json(name: str | None) -> None:
    """Refuse a file that cannot be written. None means that there is no file, and `-` is stdout."""
    from kafeat.io.storage.atomic import check_place

    if name not in (None, "-"):
        check_place(located(str(name)), clobber=True)


def write_json(name: str | None, content: Mapping[str, Any], ensure_ascii: bool = True) -> None:
    """Write the content to the file, if there is one."""
    from kafeat.io.storage.location import write_file

    text = visible_json(json.dumps(content, indent=2, ensure_ascii=ensure_ascii)) + "\n"
    if name == "-":
        click.echo(text, nl=False)
    elif name:
        write_file(name, text.encode())
