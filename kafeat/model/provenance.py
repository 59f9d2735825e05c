"""From what a map was fitted, as the artifact holds it: no clock, no host, no user."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def printable(text: str) -> str:
    """The text without what could move a terminal's cursor."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _refuse_unprintable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected printable text")
    return text


Name = Annotated[str, AfterValidator(_refuse_unprintable)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Origin(_Record):
    """A file or a table: name, rows, and the SHA-256 of its bytes."""

    name: Name
    rows: Count
    sha256: Digest


class Search(_Record):
    """A parameter chosen from the data: values and scores, or widths and errors, and what was chosen."""

    parameter: Name
    chosen: float
    values: list[float] = []
    scores: list[float] = []
    target_error: float | None = None
    widths: list[int] = []
    errors: list[float] = []


class Provenance(_Record):
    """All of it. `given` are the rows that steps asked for besides the sample.

    `split` is the column that told the training rows, which alone were fitted on; `sources` count all rows.

    `imported` says what a map was made from that was fitted elsewhere: on how many rows is not known, and told as 0.
    """

    sources: list[Origin]
    rows_fitted: Count
    label: Name | None
    config_sha256: Digest
    given: list[Origin] = []
    searches: list[Search] = []
    imported: Name | None = None
    split: Name | None = None

    def to_plain(self) -> dict[str, Any]:
        """As builtins, without what is not there."""
        return self.model_dump(exclude_defaults=True) | {"label": self.label}
