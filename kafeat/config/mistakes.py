"""What pydantic complains about, in our words: one mistake for each place, all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from kafeat.config.declared import Spot, follow
from kafeat.config.document import Mistake, Node, Path
from kafeat.describe import describe, nearest, one_of, spell
from kafeat.registry import SEARCHES

OURS = ("step", "parameter")


def explain(error: ValidationError, root: type[BaseModel], plain: Any, node: Node | None) -> list[Mistake]:
    """The mistakes in `plain`, which `root` refused; places are known if it was read from `node`."""
    found: dict[Path, Mistake] = {}
    for detail in error.errors(include_url=False):
        mistake = _mistake(detail, root, plain, node)
        found.setdefault(mistake.path, mistake)
    # of a union, the member that looked inside knows more than those that the value was no match for
    outer = {path[:end] for path in found for end in range(len(path))}
    return [mistake for path, mistake in found.items() if path not in outer]


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


def _unknown_key(owner: Spot, key: object, node: Node | None) -> Mistake:
    path = (*owner.path, str(key))
    keys = owner.keys()
    problem = f"expected {one_of(keys, 'key')}, got {spell(key)}"
    return Mistake(problem + nearest(key, keys), path, node.key_place(path) if node else None)


def _ours(ctx: Mapping[str, Any], spot: Spot, node: Node | None) -> Mistake:
    """A mistake that a step or the registry described itself."""
    path = (*spot.path, ctx["field"]) if "field" in ctx else spot.path
    problem = ctx.get("text") or f"expected {ctx['expected']}, got {spell(ctx['got'])}"
    return Mistake(problem, path, node.place(path) if node else None)
