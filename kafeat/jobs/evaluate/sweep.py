"""Vary parameters of a recipe: one config for every combination of values."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from kafeat.config import Config, load_config
from kafeat.contract.describe import nearest
from kafeat.errors import ConfigError, UsageError, quoted

_PLACE = re.compile(r"steps\[(\d+)\]\.(\w+)")


@dataclass(frozen=True)
class Sweep:
    """Values of a parameter, of every step that has it or of one step."""

    key: str
    values: tuple[Any, ...]


def read_sweep(text: str) -> Sweep:
    """Parse KEY=a,b,c; a value is a number, true, false, or text."""
    key, equals, values = text.partition("=")
    parsed = tuple(_value(part.strip()) for part in values.split(","))
    if not equals or not key.strip() or "" in parsed:
        raise UsageError(f"--sweep {text}: expected KEY=a,b,c, for example n_components=128,256,512")
    if any(set(part) & set("{}[]") for part in values.split(",")):
        raise UsageError(f"--sweep {text}: expected numbers, true, false or words, got a list or a mapping")
    return Sweep(key.strip(), parsed)


def settings(config: Config, sweeps: Sequence[Sweep], name: str) -> Iterator[tuple[dict[str, Any], Config]]:
    """Yield every combination of the values with its config."""
    _refuse_twice(sweeps)
    for values in product(*(sweep.values for sweep in sweeps)):
        plain = {
            **config.to_plain(),
            "steps": copy.deepcopy([step.live_recipe() for step in config.steps]),
        }
        setting = dict(zip((sweep.key for sweep in sweeps), values, strict=True))
        for key, value in setting.items():
            _set(plain, key, value, name)
        try:
            yield setting, load_config(plain)
        except ConfigError as error:
            spelled = ", ".join(f"{key}={value}" for key, value in setting.items())
            raise ConfigError([f"{name} with {spelled}: {problem}" for problem in error.problems]) from None


def _refuse_twice(sweeps: Sequence[Sweep]) -> None:
    """Refuse a parameter or a value that is given twice, and the kind, which is no parameter."""
    keys = [sweep.key for sweep in sweeps]
    for sweep in sweeps:
        if len(set(map(repr, sweep.values))) < len(sweep.values):
            raise UsageError(
                f"--sweep {sweep.key}: expected every value once, got {', '.join(map(str, sweep.values))}"
            )
        place = _PLACE.fullmatch(sweep.key)
        if keys.count(sweep.key) > 1 or (place and place[2] in keys):
            raise UsageError(f"--sweep {sweep.key}: expected a parameter to be swept once, got it twice")
        if (place[2] if place else sweep.key) == "kind":
            raise UsageError(
                f"--sweep {sweep.key}: expected a parameter, got the kind: give a --config for each kind"
            )


def _set(plain: dict[str, Any], key: str, value: Any, name: str) -> None:
    place = _PLACE.fullmatch(key)
    steps = plain["steps"]
    if place:
        index, key = int(place[1]), place[2]
        if index >= len(steps):
            raise UsageError(f"--sweep steps[{index}].{key}: expected a step below {len(steps)} of {name}")
        steps = [steps[index]]
    every = list(_every(steps)) if place is None else steps
    holders = [step for step in every if key in step]
    if not holders:
        known = sorted({known for step in every for known in step if known != "kind"})
        where = f"steps[{place[1]}] ({steps[0]['kind']})" if place else "a step"
        which = f"one of {', '.join(known)}" if known else "which has none"
        raise UsageError(
            f"--sweep {key}: expected a parameter of {where} of {name}, {which}, got {quoted(key)}"
            f"{nearest(key, known)}"
        )
    for holder in holders:
        holder[key] = value


def _every(steps: Any) -> Iterator[dict[str, Any]]:
    """Yield all steps, nested ones included."""
    if isinstance(steps, dict):
        if "kind" in steps:
            yield steps
        for value in steps.values():
            yield from _every(value)
    elif isinstance(steps, list | tuple):
        for step in steps:
            yield from _every(step)


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
