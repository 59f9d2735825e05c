"""Read configs, check them, and report all mistakes at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import NoneType
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from kafeat.config.model import Config
from kafeat.config.yaml_reader import Mistake, Node, Path, Place, read
from kafeat.contract.describe import Declaration, describe, nearest, one_of, spell
from kafeat.contract.step import Step
from kafeat.errors import ConfigError, SystemRefusedError, may_pass
from kafeat.io.storage.files import ReadOnce
from kafeat.registry import SEARCHES, kinds, step_class

OURS = ("step", "parameter")
Source: TypeAlias = "str | os.PathLike[str] | Mapping[str, object] | Sequence[object] | Config"

M = TypeVar("M", bound=BaseModel)

MOST_BYTES = 1 << 20
_OTHER = {
    "steps": ("maps", "an experiment: give it to `kafeat evaluate --experiment`"),
    "maps": ("steps", "the config of one map: give it to --config"),
}
"""Required key of a kind of file: (key of the other kind, what a file with that key is and where to pass it)."""


def explain(error: ValidationError, root: type[BaseModel], plain: Any, node: Node | None) -> list[Mistake]:
    """Return the mistakes for which the class `root` rejected the data `plain`. `node`, if any, has their lines."""
    first: dict[Path, Mistake] = {}
    for detail in error.errors(include_url=False):
        mistake = _mistake(detail, root, plain, node)
        first.setdefault(mistake.path, mistake)
    # in a union, a mistake inside a member is more useful than a note that other members do not match
    outer = {path[:end] for path in first for end in range(len(path))}
    return [mistake for path, mistake in first.items() if path not in outer]


def _mistake(detail: Mapping[str, Any], root: type[BaseModel], plain: Any, node: Node | None) -> Mistake:
    kind, loc = detail["type"], detail["loc"]
    if kind in ("extra_forbidden", "invalid_key"):
        return _unknown_key(follow(loc[:-1], root, plain), loc[-1], node)
    spot = follow(loc, root, plain)
    if kind in OURS:
        return _ours(detail["ctx"], spot, node)
    at = node.place(spot.path) if node else None
    got = "nothing" if kind == "missing" else spell(detail["input"])
    if kind in ("value_error", "assertion_error") or not spot.declarations:
        message = str(detail["msg"]).partition(", ")[2] or detail["msg"]
        return Mistake(f"{message}, got {got}", spot.path, at)
    choices = [choice for declaration in spot.declarations for choice in declaration.choices]
    hint = nearest(detail["input"], choices) if kind != "missing" else ""
    search = SEARCHES.get(str(spot.path[-1])) if spot.path else None
    accepted = describe(*spot.declarations) + (f", or {search}" if search else "")
    return Mistake(f"expected {accepted}, got {got}{hint}", spot.path, at)


def _unknown_key(owner: DeclaredValue, key: object, node: Node | None) -> Mistake:
    path = (*owner.path, str(key))
    keys = owner.keys()
    problem = f"expected {one_of(keys, 'key')}, got {spell(key)}"
    return Mistake(problem + nearest(key, keys), path, node.key_place(path) if node else None)


def _ours(ctx: Mapping[str, Any], spot: DeclaredValue, node: Node | None) -> Mistake:
    """Return the mistake for an error whose message comes from a step or the registry, not from pydantic."""
    path = (*spot.path, ctx["field"]) if "field" in ctx else spot.path
    problem = ctx.get("text") or f"expected {ctx['expected']}, got {spell(ctx['got'])}"
    return Mistake(problem, path, node.place(path) if node else None)


class DeclaredValue(NamedTuple):
    """A value of a config (None if it is missing), the keys and indices that lead to it, and its declared types."""

    path: Path
    declarations: tuple[Declaration, ...]
    value: Any

    def keys(self) -> tuple[str, ...]:
        """Return the keys that are allowed if this value is a mapping."""
        choices: dict[str, None] = {}
        for member in _members(self.declarations):
            model = _model(member, self.value)
            if model is not None:
                own = ["kind"] if issubclass(model, Step) else []
                choices |= dict.fromkeys([*own, *model.model_fields])
        return tuple(choices)


def follow(loc: Sequence[str | int], root: type[BaseModel], plain: Any) -> DeclaredValue:
    """Find the value in `plain` that the location `loc` of a pydantic error means. `root` declares its type."""
    spot, at_union = DeclaredValue((), (Declaration(root),), plain), False
    for part in loc:
        if at_union:
            # `part` is the name of a union member, not a key: the parts after it are inside that member
            at_union = False
            continue
        members = _members(spot.declarations)
        inner = tuple(d for d in (_child(m, part, spot.value) for m in members) if d is not None)
        spot = DeclaredValue((*spot.path, part), inner, _value(spot.value, part))
        # pydantic adds the name of a union's member to locations, except for optional values
        at_union = any(sum(m.annotation is not NoneType for m in one.members) > 1 for one in inner)
    return spot


def _members(declarations: Sequence[Declaration]) -> list[Declaration]:
    return [member for declaration in declarations for member in declaration.members]


def _model(declaration: Declaration, value: Any) -> type[BaseModel] | None:
    annotation = declaration.annotation
    if annotation is Step:
        kind = value.get("kind") if isinstance(value, Mapping) else value
        return step_class(kind) if isinstance(kind, str) and kind in kinds() else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _child(declaration: Declaration, part: str | int, value: Any) -> Declaration | None:
    model = _model(declaration, value)
    if model is not None:
        field = model.model_fields.get(str(part))
        return Declaration.of_field(field) if field is not None else None
    origin, arguments = get_origin(declaration.annotation), get_args(declaration.annotation)
    if isinstance(part, int) and origin in (tuple, list, Sequence):
        fixed = origin is tuple and arguments[-1:] != (Ellipsis,)
        return Declaration.of(arguments[part if fixed else 0])
    return Declaration.of(arguments[1]) if origin in (dict, Mapping) else None


def _value(value: Any, part: str | int) -> Any:
    inside = isinstance(value, Mapping | list | tuple)
    with suppress(LookupError, TypeError):
        return value[part] if inside else None
    return None


def load_config(source: Source, root: type[Config] = Config) -> Config:
    """Read and check a config: the path of a YAML file (`-`: standard input), a mapping, steps, or a `Config`.

    `root` is `Config`, or a subclass with more keys. The error about an invalid config lists every
    mistake, with its line and column.
    """
    if isinstance(source, Config):
        return source
    if isinstance(source, Mapping | list | tuple):
        plain: dict[str, object] = (
            {"steps": list(source)} if not isinstance(source, Mapping) else dict(source)
        )
        return _checked("config", plain, root)
    if isinstance(source, str) and "\n" in source:
        raise ConfigError(
            [
                "config: expected a path, a mapping or a list of steps, got text: save it to a file, or give a mapping"
            ]
        )
    if isinstance(source, (str, os.PathLike)):
        return read_yaml(os.fsdecode(source), root, "steps")
    hint = "; its `config` is one" if isinstance(getattr(source, "config", None), Config) else ""
    raise ConfigError([f"config: expected a path, a mapping or a list of steps, got {spell(source)}{hint}"])


def read_yaml(name: str, root: type[M], key: str) -> M:
    """Read a YAML file, or standard input (`-`), into the class `root`, whose required key is `key`."""
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
    """Return the top-level keys of a YAML file, or of standard input (`-`). An invalid file has no keys."""
    node, _ = read(_content(name)[:MOST_BYTES])
    return frozenset(node.value) if node is not None and isinstance(node.value, dict) else frozenset()


def _content(name: str) -> bytes:
    """Return the content of a file, or of standard input (`-`), but at most one byte more than a config may have."""
    try:
        return (name if isinstance(name, ReadOnce) else ReadOnce(name)).head(MOST_BYTES + 1)
    except OSError as error:
        problem = f"{name}: cannot read the config: {error.strerror}"
        raise SystemRefusedError(problem, retry=may_pass(error)) from error
    except ValueError as error:
        raise SystemRefusedError(f"{name!r}: cannot read the config: {error}") from error


def _checked(
    name: str,
    plain: dict[str, object],
    root: type[M],
    node: Node | None = None,
    mistakes: Sequence[Mistake] = (),
) -> M:
    """Return `plain` as an instance of `root`, or raise an error with all mistakes of the YAML reader and of `root`."""
    try:
        model = root.model_validate(plain)
    except ValidationError as error:
        raise _refusal(name, [*mistakes, *explain(error, root, plain, node)]) from None
    if mistakes:
        raise _refusal(name, mistakes)
    return model


def _refusal(name: str, mistakes: Sequence[Mistake]) -> ConfigError:
    """Return an error with the mistakes by line. Of two mistakes for the same value, keep the YAML reader's."""
    once: dict[object, Mistake] = {}
    for mistake in mistakes:
        once.setdefault((mistake.at, mistake.path), mistake)
    ordered = sorted(once.values(), key=lambda mistake: mistake.at or Place(0, 0))
    return ConfigError([mistake.line(name) for mistake in ordered])
