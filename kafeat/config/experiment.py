"""Experiments: several maps and the options of their evaluation, in one YAML file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from kafeat.config.load import read_yaml
from kafeat.config.model import FROZEN, Config
from kafeat.contract.describe import Described, nearest
from kafeat.contract.step import refuse_parameter
from kafeat.errors import UsageError

# Printed texts have no line breaks or control characters: these would break a table, or control the terminal.
_LINE = StringConstraints(strip_whitespace=True, pattern=r"^[^\p{C}]*[^\p{C}\p{Z}][^\p{C}]*$")
_LINE_SAID = "one line of printable text, not empty"
Text = Annotated[str, _LINE, Described(_LINE_SAID, "texts")]
Maps = Annotated[
    dict[str, Config], Field(min_length=1), Described("a mapping of names to recipes, not empty", "mappings")
]
KEY = "maps"
"""The key that tells an experiment from a config: every experiment has it, and a config never."""
_SUFFIXES = (".yaml", ".yml")


class Experiment(BaseModel):
    """A comparison of maps on a table, with the options of `kafeat evaluate`."""

    model_config = FROZEN

    about: Text = Field(description="what is compared, on one line")
    data: Text = Field(description="the table to compare the maps on, and its columns")
    options: dict[str, Any] = Field(
        default={}, description="options of `kafeat evaluate`, such as `exact_rows` for --exact-rows"
    )
    maps: Maps = Field(description="the recipes of the maps, by their names")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name in self.maps:
            try:
                _NAME.validate_python(name)
            except ValidationError:
                refuse_parameter("maps", f"names that are {_LINE_SAID}", name)
        return self


_NAME: TypeAdapter[str] = TypeAdapter(Text)


def read_experiment(name: str) -> Experiment:
    """Read an experiment from a YAML file, or from standard input (`-`)."""
    return read_yaml(name, Experiment, KEY)


def load_experiment(name: str) -> Experiment:
    """Read an experiment: a built-in one by its name, or any other by the path of its YAML file."""
    if name.endswith(_SUFFIXES):
        return read_experiment(name)
    names = experiment_names()
    if name not in names:
        raise UsageError(
            f"--experiment: expected one of {', '.join(names)}, or a file NAME.yaml, got {name!r}"
            f"{nearest(name, names)}"
        )
    return read_experiment(str(_folder() / f"{name}.yaml"))


def experiment_names() -> list[str]:
    """Return the sorted names of the built-in experiments."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def _folder() -> Path:
    return Path(str(resources.files("kafeat"))) / "experiments"
