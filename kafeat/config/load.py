"""A config from wherever it comes: checked whole, and every mistake in it reported at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import BinaryIO, TypeAlias

from pydantic import ValidationError

from kafeat.config.messages import explain
from kafeat.config.model import Config
from kafeat.config.yaml_reader import Mistake, Node, Place, read
from kafeat.contract.describe import spell
from kafeat.errors import ConfigError, SystemRefusedError

Source: TypeAlias = "str | os.PathLike[str] | Mapping[str, object] | Config"

MOST_BYTES = 1 << 20


def load_config(source: Source) -> Config:
    """The config at a path (`-`: standard input), in a mapping, or as it is; `ConfigError` lists all mistakes."""
    if isinstance(source, Config):
        return source
    if isinstance(source, Mapping):
        config, mistakes = _check(dict(source), None)
        name = "config"
    elif isinstance(source, (str, os.PathLike)):
        name = os.fsdecode(source)
        config, mistakes = _from_text(_content(name))
    else:
        raise ConfigError([f"config: expected a path or a mapping, got {spell(source)}"])
    if config is None or mistakes:
        raise ConfigError([mistake.line(name) for mistake in _in_order(mistakes)])
    return config


def _content(name: str) -> bytes:
    """Of a file, or of standard input (`-`)."""
    try:
        if name == "-":
            return _whole(sys.stdin.buffer)
        with open(name, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SystemRefusedError(f"{name}: cannot read the config: {error.strerror}") from error
    except ValueError as error:
        raise SystemRefusedError(f"{name!r}: cannot read the config: {error}") from error


@lru_cache(maxsize=1)
def _whole(stream: BinaryIO) -> bytes:
    """What a stream holds; it is read once, and may be asked for again."""
    return stream.read(MOST_BYTES + 1)


def _from_text(content: bytes) -> tuple[Config | None, list[Mistake]]:
    top = Place(1, 1)
    if len(content) > MOST_BYTES:
        return None, [Mistake(f"expected a config of at most {MOST_BYTES} bytes, got more", at=top)]
    node, mistakes = read(content)
    if node is None:
        empty = Mistake("expected a mapping with the key 'steps', got an empty file", at=top)
        return None, mistakes or [empty]
    if not isinstance(node.value, dict):
        got = Mistake(f"expected a mapping with the key 'steps', got {spell(node.value)}", at=node.at)
        return None, [*mistakes, got]
    config, more = _check(node.value, node)
    return config, [*mistakes, *more]


def _check(plain: dict[str, object], node: Node | None) -> tuple[Config | None, list[Mistake]]:
    try:
        return Config.model_validate(plain), []
    except ValidationError as error:
        return None, explain(error, Config, plain, node)


def _in_order(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """By place; where the reader and the check both complain, the reader knows better."""
    once: dict[object, Mistake] = {}
    for mistake in mistakes:
        once.setdefault((mistake.at, mistake.path), mistake)
    return sorted(once.values(), key=lambda mistake: mistake.at or Place(0, 0))
