"""`_kafeat.json`: what the parts of an output are, from what they were made, and by which map."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kafeat._version import __version__
from kafeat.errors import DataError
from kafeat.io.storage.atomic import Guard, write_bytes
from kafeat.io.storage.data_set import MANIFEST
from kafeat.io.storage.files import opened
from kafeat.io.storage.locations import join, kind_of


class _Entry(BaseModel):
    # Others may say more in their manifests than we know of.
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


_Count = Annotated[int, Field(ge=0)]


class File(_Entry):
    """A file as it was: bytes, SHA-256, and a stamp that changes with every writing.

    A range of rows and rejects have no hash.
    """

    bytes: _Count
    sha256: str | None
    stamp: str


class Drift(_Entry):
    """The column of which the largest share lies outside of the range of the fit."""

    column: str
    share: float = Field(ge=0.0, allow_inf_nan=False)


class Record(_Entry):
    """A part that is done. `only` are the first row of its input and the one behind the last, None for all.

    `drift` is None where nobody asked for it, `rejects` where none were written. `made_by` is the number of the machine
    in the manifest's list.
    """

    name: str
    rows: _Count
    rows_read: _Count
    only: tuple[_Count, _Count] | None = Field(None, strict=False)
    input: File
    output: File
    seconds: float
    clipped: _Count = 0
    bad_rows: _Count = 0
    drift: Drift | None = None
    rejects: File | None = None
    made_by: _Count = 0


class Failure(_Entry):
    """A part that could not be done, and the code that its error ends a command with."""

    name: str
    error: str
    exit_code: int


class Manifest(_Entry):
    """Of a run. `settings` are all else that the bytes of the parts depend on.

    `foreign` are the files that were there when it began, and that no run had made.
    """

    kafeat: str = __version__
    format: Literal[1] = 1
    state: Literal["running", "complete", "incomplete"] = "running"
    input: str
    map: str
    settings: Mapping[str, Any]
    engine: str = "threads"
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    parts: list[Record] = []
    failed: list[Failure] = []
    machines: list[dict[str, str]] = []
    foreign: list[str] = []

    def with_parts(self, records: Iterable[Record], failed: Iterable[Failure], **more: Any) -> Manifest:
        """The same run, further on."""
        parts = sorted(records, key=lambda record: record.name)
        return self.model_copy(
            update={
                "parts": parts,
                "failed": sorted(failed, key=lambda failure: failure.name),
                "rows": sum(part.rows for part in parts),
                "bytes": sum(part.output.bytes for part in parts),
                **more,
            }
        )

    def write(self, folder: str, guard: Guard) -> None:
        """In its folder, at once."""
        write_bytes(join(folder, MANIFEST), self.dumps().encode(), guard=guard)

    def dumps(self) -> str:
        """As JSON, a part a line: it is looked at by people, too."""
        content = self.model_dump(mode="json")
        parts, failed = content.pop("parts"), content.pop("failed")
        head = json.dumps(content, indent=2, ensure_ascii=False)[:-2]
        return f'{head},\n  "failed": {_lines(failed)},\n  "parts": {_lines(parts)}\n}}\n'


def read_manifest(folder: str) -> Manifest | None:
    """The manifest of a folder; None if it has none."""
    place = join(folder, MANIFEST)
    if kind_of(place) is None:
        return None
    with opened(place) as file:
        text = file.readall()
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "content"
        raise DataError(
            f"{place}: {where}: expected a manifest of kafeat, got: {first['msg']}; --overwrite makes all parts again"
        ) from None


def _lines(entries: list[dict[str, Any]]) -> str:
    if not entries:
        return "[]"
    return "[\n    " + ",\n    ".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n  ]"
