"""The provenance of a map, as its model file stores it: the data and their hashes, but not time, host and user."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def printable(text: str) -> str:
    """Return the text with unprintable characters replaced, because these could control a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _refuse_unprintable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected printable text")
    return text


Name = Annotated[str, AfterValidator(_refuse_unprintable)]


Value = bool | int | float | Name | list[Any] | dict[str, Any] | None
"""The value of a parameter, of any type that JSON has."""


class _Record(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, strict=True, extra="forbid")

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # some fields are lists, which have no hash


class Origin(_Record):
    """A file or a table: name, rows, and the SHA-256 of its bytes."""

    name: Name
    rows: Count
    sha256: Digest


class ChosenParameter(_Record):
    """A parameter that was chosen from the data, either by the `scores` of `values` or by the `errors` of `widths`."""

    parameter: Name
    chosen: Value
    values: list[Value] = []
    scores: list[float] = []
    target_error: float | None = None
    widths: list[int] = []
    errors: list[float] = []


class Provenance(_Record):
    """The data that a map was fitted on, and the choices made from them.

    `label` is a list if there are several label columns. `given` lists rows that the config gives to steps besides the
    sample, such as landmarks. `split` is the column that marks training and test rows; only training rows were fitted
    on, but `sources` count all rows. `imported` names the origin of a map that another library fitted. The number of
    rows of such a map is unknown and stored as 0. `rows_learned` counts the rows that a predictor was fitted on, and
    `weight` is the column of their weights.
    """

    sources: list[Origin]
    rows_fitted: Count
    label: Name | list[Name] | None
    config_sha256: Digest
    given: list[Origin] = []
    searches: list[ChosenParameter] = []
    imported: Name | None = None
    split: Name | None = None
    rows_learned: Count | None = None
    weight: Name | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return the record as builtins, without entries that have their defaults."""
        return self.model_dump(exclude_defaults=True) | {"label": self.label}
