"""Experiments: several maps and the options of their evaluation, in one YAML file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from kafeat.config.load import read_yaml
from kafeat.config.model import FROZEN, Config
from kafeat.contract.describe import Described, nearest
from kafeat.errors import UsageError

Text = Annotated[str, Field(min_length=1), Described("text, not empty", "texts")]
Maps = Annotated[
    dict[str, Config], Field(min_length=1), Described("a mapping of names to recipes, not empty", "mappings")
]
_SUFFIXES = (".yaml", ".yml")


class Experiment(BaseModel):
    """A comparison of maps that can be repeated on a table."""

    model_config = FROZEN

    about: Text = Field(description="what is compared, on one line")
    data: Text = Field(description="the table that it needs, with its columns")
    options: dict[str, Any] = Field(
        default={}, description="options of `kafeat evaluate`, by their names with _ for -"
    )
    maps: Maps = Field(description="the recipes of the maps, by their names")


def load_experiment(name: str) -> Experiment:
    """Read an experiment of the package by its name, or one of your own by the path of its YAML file.

    Raises
    ------
    UsageError
        If the package has no experiment of this name.
    ConfigError
        If the file is invalid.
    """
    if name.endswith(_SUFFIXES):
        return read_yaml(name, Experiment, "maps")
    names = experiment_names()
    if name not in names:
        raise UsageError(
            f"--experiment: expected one of {', '.join(names)}, or a file NAME.yaml, got {name!r}"
            f"{nearest(name, names)}"
        )
    return read_yaml(str(_folder() / f"{name}.yaml"), Experiment, "maps")


def experiment_names() -> list[str]:
    """Return the names of the experiments of the package."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def _folder() -> Path:
    return Path(str(resources.files("kafeat"))) / "experiments"
