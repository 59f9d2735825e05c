"""The config that a search starts from."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kafeat.config import Config, load_config
from kafeat.config.model import Steps
from kafeat.registry import build_step

Recipe = dict[str, Any]


def _standardize() -> tuple[Any, ...]:
    return (build_step({"kind": "standardize"}),)


class SearchStart(Config):
    """A config that may come without steps, as one of columns alone."""

    steps: Steps = Field(default_factory=_standardize, description="a chain to try as well", min_length=1)


def load_start(base: Any) -> tuple[Config, list[Recipe]]:
    """Return the config to start from, and the recipes of its own steps, which are one of the candidates."""
    start = load_config({} if base is None else base, SearchStart)
    own = "steps" in start.model_fields_set
    return start, [step.recipe() for step in start.map_steps] if own else []
