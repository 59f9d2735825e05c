"""`_kafeat.json`, the manifest of an output folder: its parts, their inputs, and the map."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kafeat._version import __version__
from kafeat.errors import DataError
from kafeat.io.data_set import MANIFEST
from kafeat.io.storage.atomic import Guard, write_bytes
from kafeat.io.storage.base import Location
from kafeat.jobs.transform.result import rejects_name


class _Entry(BaseModel):
    # Later versions may write keys that this one does not know.
    model_config = ConfigDict(defer_build=True, frozen=True, strict=True, extra="ignore", allow_inf_nan=False)


_Count = Annotated[int, Field(ge=0)]


class File(_Entry):
    """A file as a run saw it: size, SHA-256, and a stamp that changes whenever the file is written.

    The hash is None for rejects, and for an input of which only some rows were read.
    """

    bytes: _Count
    sha256: str | None
    stamp: str

    def is_at(self, place: Location, stamp: str) -> bool:
        """Return true if the file at `place` is unchanged: its `stamp` now, or its hash, equals the recorded value."""
        return stamp == self.stamp or (self.sha256 is not None and place.digest() == self.sha256)


class Drift(_Entry):
    """The column with the largest share of values outside the range of the training rows."""

    column: str
    share: float = Field(ge=0.0)


class PartRecord(_Entry):
    """A finished part.

    `only` is the range of rows of the input, such as (0, 8192) for the first 8,192; None: all. `first_bad_row`
    names a row and its problem, if any row is bad. `drift` and `p_value` (of the test of the features' mean) are None
    if they were not measured. `rejects` is None if none were written. `made_by` is an index into `machines` of the
    manifest.
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
    first_bad_row: str | None = None
    drift: Drift | None = None
    p_value: float | None = Field(None, ge=0.0, le=1.0)
    rejects: File | None = None
    made_by: _Count = 0
    lost_workers: list[str] = []
    made_again_by: str | None = None


class PartFailure(_Entry):
    """A part that could not be written, and the exit code of its error. `retry` is true if a later run may succeed."""

    name: str
    error: str
    exit_code: int
    retry: bool = False


State = Literal["running", "complete", "incomplete", "interrupted", "refused", "failed"]


class Manifest(_Entry):
    """The state of a run, and where and when it started. `settings` holds the options that affect the bytes of parts.

    `stopped` is the reason why parts were not tried. `unknown_files` were in the folder when the run began, and no run
    had written them. JSON calls them `foreign`. `pending` are the parts that the run has still to make. A killed
    run may leave files with these names.
    """

    kafeat: str = __version__
    format: Literal[1] = 1
    state: State = "running"
    exit_code: int | None = None
    start: str | None = None
    renewed: str | None = None
    end: str | None = None
    stopped: str | None = None
    command_line: str | None = None
    host: str | None = None
    pid: int | None = None
    user: str | None = None
    input: str
    map: str
    settings: Mapping[str, Any]
    engine: str = "threads"
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    parts: list[PartRecord] = []
    failed: list[PartFailure] = []
    machines: list[dict[str, str]] = []
    unknown_files: list[str] = Field([], alias="foreign")
    pending: list[str] = []

    def with_parts(
        self, records: Iterable[PartRecord], failed: Iterable[PartFailure], **more: Any
    ) -> Manifest:
        """Return a copy of the manifest with these parts and failures, and with other fields changed."""
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

    def write(self, folder: Location, guard: Guard) -> None:
        """Write the manifest to the folder, atomically."""
        write_bytes(folder.join(MANIFEST), self.dumps().encode(errors="replace"), guard=guard)

    def dumps(self) -> str:
        """Return the manifest as JSON with one part per line, so that people can read it."""
        content = self.model_dump(mode="json", by_alias=True)
        parts, failed = content.pop("parts"), content.pop("failed")
        head = json.dumps(content, indent=2, ensure_ascii=False)[:-2]
        return f'{head},\n  "failed": {_lines(failed)},\n  "parts": {_lines(parts)}\n}}\n'


def read_manifest(folder: Location) -> Manifest | None:
    """Read the manifest of a folder. Return None if the folder has no manifest."""
    place = folder.join(MANIFEST)
    if place.kind() is None:
        return None
    text = place.read()
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


def remove_part(record: PartRecord, folder: Location, rejects: Location | None) -> bool:
    """Remove a part and its rejects if they match the manifest. Return true if the part was removed."""
    removed = _remove(folder, record.name, record.output)
    if rejects is not None and record.rejects is not None:
        _remove(rejects, rejects_name(record.name), record.rejects)
    return removed


def _remove(folder: Location, name: str, file: File) -> bool:
    """Remove a file below a folder if its stamp or hash matches the manifest. Return true if it was removed.

    A file that somebody else has changed or created stays, and so does the target of a link.
    """
    place = folder.join(name)
    entry = place.entry() if folder.holds(name) else None
    if entry is None or entry.bytes != file.bytes or not file.is_at(place, entry.stamp):
        return False
    place.remove()
    return True
