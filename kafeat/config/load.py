"""Read configs, check them, and report all mistakes at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from kafeat.config.messages import explain
from kafeat.config.model import Config
from kafeat.config.places import Mistake, Node, Place
from kafeat.config.yaml_reader import read
from kafeat.contract.describe import spell
from kafeat.errors import ConfigError, SystemRefusedError
from kafeat.io.storage.files import ReadOnce

Source: TypeAlias = "str | os.PathLike[str] | Mapping[str, object] | Config"

M = TypeVar("M", bound=BaseModel)

MOST_BYTES = 1 << 20
_OTHER = {
    "steps": ("maps", "an experiment: give it to `kafeat evaluate --experiment`"),
    "maps": ("steps", "the config of one map: give it to --config"),
}
"""For the required key of a file, the key of the other kind of files, and what to do with those."""


def load_config(source: Source, root: type[Config] = Config) -> Config:
    """Read and check a config: the path of a YAML file (`-` is standard input), its content, or a config as it is.

    `root` is the class of the config, for those that accept other keys. The error about an invalid config lists every
    mistake, with its line and column.
    """
    if isinstance(source, Config):
        return source
    if isinstance(source, Mapping):
        return _checked("config", dict(source), root)
    if isinstance(source, (str, os.PathLike)):
        return read_yaml(os.fsdecode(source), root, "steps")
    raise ConfigError([f"config: expected a path or a mapping, got {spell(source)}"])


def read_yaml(name: str, root: type[M], key: str) -> M:
    """Read a YAML file, or standard input (`-`), as a `root`, of which `key` is a required key."""
    content, top = _content(name), Place(1, 1)
    if len(content) > MOST_BYTES:
        raise _refusal(name, [Mistake(f"expected a config of at most {MOST_BYTES} bytes, got more", at=top)])
    node, mistakes = read(content)
    if node is None:
        empty = Mistake(f"expected a mapping with the key '{key}', got an empty file", at=top)
        raise _refusal(name, mistakes or [empty])
    other, remedy = _OTHER[key]
    if not isinstance(node.value, dict):
        hint = ": `kafeat config --for DATA` starts one" if key == "steps" else ""
        got = Mistake(f"expected a mapping with the key '{key}', got {spell(node.value)}{hint}", at=node.at)
        raise _refusal(name, [*mistakes, got])
    if other in node.value and key not in node.value:
        raise _refusal(name, [*mistakes, Mistake(f"expected the key '{key}', got {remedy}", at=node.at)])
    return _checked(name, node.value, root, node, mistakes)


def top_keys(name: str) -> frozenset[str]:
    """Return the keys of a YAML file, or of standard input (`-`), as far as it can be read."""
    node, _ = read(_content(name)[:MOST_BYTES])
    return frozenset(node.value) if node is not None and isinstance(node.value, dict) else frozenset()


def _content(name: str) -> bytes:
    """Read a file, or standard input (`-`)."""
    try:
        return (name if isinstance(name, ReadOnce) else ReadOnce(name)).head(MOST_BYTES + 1)
    except OSError as error:
        raise SystemRefusedError(f"{name}: cannot read the config: {error.strerror}") from error
    except ValueError as error:
        raise SystemRefusedError(f"{name!r}: cannot read the config: {error}") from error


def _checked(
    name: str,
    plain: dict[str, object],
    root: type[M],
    node: Node | None = None,
    mistakes: Sequence[Mistake] = (),
) -> M:
    """Return the model, or refuse it with all mistakes: those of the YAML reader, and its own."""
    try:
        model = root.model_validate(plain)
    except ValidationError as error:
        raise _refusal(name, [*mistakes, *explain(error, root, plain, node)]) from None
    if mistakes:
        raise _refusal(name, mistakes)
    return model


def _refusal(name: str, mistakes: Sequence[Mistake]) -> ConfigError:
    """Return an error with the mistakes by their place; of two for the same value, with that of the YAML reader."""
    once: dict[object, Mistake] = {}
    for mistake in mistakes:
        once.setdefault((mistake.at, mistake.path), mistake)
    ordered = sorted(once.values(), key=lambda mistake: mistake.at or Place(0, 0))
    return ConfigError([mistake.line(name) for mistake in ordered])
