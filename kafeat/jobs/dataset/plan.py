"""Plan a run over parts by finding those that the previous run has already written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from kafeat.errors import DataError, UsageError, counted
from kafeat.io.data_set import MANIFEST, Part, is_hidden
from kafeat.io.options import changed
from kafeat.io.storage.atomic import Guard
from kafeat.io.storage.base import Entry, Location
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.owner import is_lock
from kafeat.jobs.dataset.manifest import Manifest, PartRecord, read_manifest, remove_part
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.jobs.transform.options import RowOptions
from kafeat.jobs.transform.result import rejects_name
from kafeat.runtime.environment import now, process


@dataclass(frozen=True)
class PreviousRun:
    """The files of an output folder by name, and its manifest. Without `resume`, no part counts as up to date."""

    entries: Mapping[str, Entry]
    manifest: Manifest | None
    resume: bool
    overwrite: bool
    rejects: Mapping[str, Entry] = field(default_factory=dict)

    @classmethod
    def of(
        cls, folder: Location, resume: bool, overwrite: bool, rejects: Location | None = None
    ) -> PreviousRun:
        """List an output folder, and the folder of `rejects` if there is one.

        Refuse a folder that is not empty, unless `resume` or `overwrite` is set.
        """
        entries = _entries(folder)
        there = [name for name in entries if not is_hidden(name) or name == MANIFEST]
        if there and not (resume or overwrite):
            raise UsageError(
                f"{folder}: expected an empty folder or none, got {counted(len(there), 'file')}; --resume goes on with "
                "an unfinished run, --overwrite makes all parts again"
            )
        reject_files = _entries(rejects) if resume and rejects is not None else {}
        manifest = _manifest(folder, overwrite) if MANIFEST in entries else None
        return cls(entries, manifest, resume, overwrite, reject_files)

    @cached_property
    def _records(self) -> dict[str, PartRecord]:
        return {} if self.manifest is None else {record.name: record for record in self.manifest.parts}

    @cached_property
    def unknown_files(self) -> frozenset[str]:
        """The names of files that no run of kafeat has written.

        A killed run may have written files that its manifest does not list. So after a killed run, only files that were
        there before it count. A file of a failed part does not count, because the run may have written it.
        """
        before = self.manifest
        others = frozenset(name for name in self.entries if name not in self._records and not is_hidden(name))
        if before is None:
            return others
        old = frozenset(before.unknown_files)
        return (
            others & old
            if before.state not in ("complete", "incomplete")
            else others - ({one.name for one in before.failed} - old)
        )

    def may_replace(self, name: str) -> bool:
        """Return true if a part may replace the file `name`: with `overwrite`, or if a run of kafeat wrote the file."""
        return self.overwrite or name not in self.unknown_files

    def remaining(self, folder: Location, handled: AbstractSet[str]) -> tuple[str, ...]:
        """Return the visible files of the previous run's folder that still exist, except those in `handled`."""
        others = (name for name in self.entries if name not in handled and not is_hidden(name))
        return tuple(sorted(name for name in others if folder.join(name).kind() is not None))

    def lost(self, folder: Location, failed: AbstractSet[str]) -> tuple[str, ...]:
        """Return the parts of a previous run that this run removed and could not write again."""
        before = sorted(failed & self._records.keys() & self.entries.keys())
        return tuple(name for name in before if folder.join(name).entry() is None)

    def of_parts(
        self, manifest: Manifest, parts: Iterable[Part], rules: RowOptions
    ) -> tuple[dict[str, PartRecord], dict[str, PartRecord]]:
        """Return the parts that are up to date by their stamps, and the parts whose hashes must be compared.

        Both are empty if the map or the settings have changed. Parts that break the rules are in neither.
        """
        before = self.manifest
        if (
            not self.resume
            or before is None
            or before.map != manifest.map
            or _without_defaults(before.settings) != manifest.settings
        ):
            return {}, {}
        records, up_to_date, to_check = self._records, dict[str, PartRecord](), dict[str, PartRecord]()
        for part in parts:
            record, entry = records.get(part.name), self.entries.get(part.name)
            if record is None or entry is None or record.only != part.only:
                continue
            if (record.input.bytes, record.output.bytes) != (part.bytes, entry.bytes):
                continue
            if not self._follows(record, rules):
                continue
            same = (record.input.stamp, record.output.stamp) == (part.stamp, entry.stamp)
            (up_to_date if same else to_check)[part.name] = record
        return up_to_date, to_check

    def _follows(self, record: PartRecord, rules: RowOptions) -> bool:
        """Return true if the record satisfies the rules for bad rows, drift and rejects.

        A part that breaks the rules is written again, and then the run reports the problem.
        """
        if rules.max_bad_rows is not None and not rules.max_bad_rows.allows(
            record.bad_rows, record.rows_read
        ):
            return False
        if rules.max_drift is not None and (record.drift is None or record.drift.share > rules.max_drift):
            return False
        tested = rules.drift_test is not None and record.rows_read > record.bad_rows
        if tested and (record.p_value is None or record.p_value < (rules.drift_test or 0.0)):
            return False
        entry, rejects = self.rejects.get(rejects_name(record.name)), record.rejects
        # If rejects are wanted, the file of the previous run must still be there unchanged.
        same = entry is not None and rejects is not None and entry.stamp == rejects.stamp
        return rules.rejects is None or same

    def of_one_file(
        self, manifest: Manifest, source: Entry | None, rules: RowOptions
    ) -> dict[str, PartRecord]:
        """Return all parts that a finished run made from one file, if the file and every part are unchanged."""
        before = self.manifest
        if source is None or before is None or before.state != "complete":
            return {}
        parts = [
            Part(record.name, LocalPath(record.name), source.bytes, source.stamp, record.only)
            for record in self._records.values()
        ]
        up_to_date, _ = self.of_parts(manifest, parts, rules)
        return up_to_date if len(up_to_date) == len(parts) else {}

    def remove_stale(
        self, folder: Location, rejects: Location | None, good: AbstractSet[str], by: Manifest, guard: Guard
    ) -> list[str]:
        """Remove outdated parts and their rejects, so that no reader uses them as parts of this run.

        Parts named in `good` stay, and so does every file that no run has written, even if the manifest lists its name.
        Before anything is removed, the state of the old manifest becomes "running", with the start and the process of
        the new manifest, `by`. Return the names of the removed parts.
        """
        pending = {*(self.manifest.pending if self.manifest else ())} - self.unknown_files
        if self.manifest is not None and (pending | self._records.keys()) & self.entries.keys() - good:
            now_running = {"state", "exit_code", "start", "end", "command_line", "host", "pid", "user"}
            more = by.model_dump(include={*now_running, "unknown_files"})
            self.manifest.model_copy(update=more).write(folder, guard)
        removed = []
        for name, record in self._records.items():
            if name in good or name not in self.entries:
                continue
            if remove_part(record, folder, rejects):
                removed.append(name)
        for name in sorted(pending & self.entries.keys() - good - {*removed}):
            if folder.holds(name):  # written by a run that was killed before it recorded the part
                folder.join(name).remove()
                removed.append(name)
        return removed


def _entries(folder: Location) -> dict[str, Entry]:
    return {entry.name: entry for entry in folder.listed() if not is_lock(entry.name)}


def _manifest(folder: Location, overwrite: bool) -> Manifest | None:
    try:
        return read_manifest(folder)
    except DataError:  # a broken manifest
        if overwrite:
            return None
        raise


@dataclass(frozen=True)
class DatasetPlan:
    """The parts of a run, and their state before it begins.

    `parts` is None for text, which is cut into parts while it is read. Parts in `up_to_date` stay as they are. For
    parts in `to_check`, a worker compares hashes to find out if they are up to date.
    """

    parts: list[Part] | None
    previous: PreviousRun
    manifest: Manifest
    up_to_date: dict[str, PartRecord]
    to_check: dict[str, PartRecord]

    @classmethod
    def of(cls, request: DatasetRequest, parts: list[Part] | None) -> DatasetPlan:
        """Compare the parts with the output folder, and refuse a folder that must not be written to."""
        previous = PreviousRun.of(request.target, request.resume, request.overwrite, request.rules.rejects)
        manifest = Manifest(
            input=str(request.source),
            map=request.shared_map.digest,
            settings=_settings(request),
            engine=request.engine.name,
            foreign=sorted(previous.unknown_files),
            pending=[part.name for part in parts or ()],
            start=now(),
            **process(),
        )
        if parts is None:
            to_check = dict[str, PartRecord]()
            up_to_date = previous.of_one_file(manifest, request.source.entry(), request.rules)
        else:
            up_to_date, to_check = previous.of_parts(manifest, parts, request.rules)
        if (up_to_date or to_check) and previous.manifest is not None:
            manifest = manifest.model_copy(update={"machines": previous.manifest.machines})
        return cls(parts, previous, manifest, up_to_date, to_check)


_NOT_CONTENT = (
    "overwrite", "fsync", "sweep", "guard", "rejects", "drift", "max_drift", "drift_test", "max_bad_rows",
)  # fmt: skip
"""Options that do not change the bytes of a part. `PreviousRun._follows` checks the rules for bad rows and drift."""

_OF_EARLIER: dict[str, object] = {
    "input_format": None, "delimiter": None, "header": True, "format": None, "keep": [], "layout": "columns",
    "prefix": None, "compression": None, "dtype": None, "on_bad_rows": "error", "rows_per_file": None,
}  # fmt: skip
"""Settings that earlier versions wrote even if they were the defaults."""


def _settings(request: DatasetRequest) -> dict[str, object]:
    """Return the options that affect the bytes of the parts, besides the map and the input.

    Defaults are left out, so that finished parts stay valid when a later version adds an option.
    """
    groups = (request.reading, request.writing, request.rules)
    values = {name: value for one in groups for name, value in changed(one, _NOT_CONTENT).items()}
    renamed = {"output_format": "format", "output_dtype": "dtype"}
    settings = {renamed.get(name, name): value for name, value in values.items()}
    if settings.pop("no_header", False):
        settings["header"] = False
    if request.writing.unit_variance:
        settings["scale"] = request.map.unit_scale
    return settings | ({} if request.rows_per_file is None else {"rows_per_file": request.rows_per_file})


def _without_defaults(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a manifest, perhaps of an earlier version, in the form that `_settings` returns."""
    return {
        name: value
        for name, value in settings.items()
        if name not in _OF_EARLIER or value != _OF_EARLIER[name]
    }
