"""What lies in an output's folder already, and which parts of it an earlier run proves done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from kafeat.errors import UsageError, counted
from kafeat.io.storage.data_set import MANIFEST, Part, is_hidden
from kafeat.io.storage.locations import Entry, entry_of, join, kind_of, listed
from kafeat.io.storage.ownership import is_lock
from kafeat.jobs.dataset.manifest import Manifest, Record, read_manifest
from kafeat.jobs.dataset.removal import remove_written
from kafeat.jobs.transform.options import RowOptions
from kafeat.jobs.transform.rejects import rejects_name


@dataclass(frozen=True)
class PreviousRun:
    """The files of a folder, by name, and the manifest that it has; without `resume` nothing is proven."""

    entries: Mapping[str, Entry]
    manifest: Manifest | None
    resume: bool
    overwrite: bool
    rejects: Mapping[str, Entry] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: str, resume: bool, overwrite: bool, rejects: str | None = None) -> PreviousRun:
        """`rejects` is the folder of the rejects, if they are asked for.

        Refuses a folder that holds something, unless asked to go on with it or to replace it.
        """
        entries = _entries(folder)
        there = [name for name in entries if not is_hidden(name) or name == MANIFEST]
        if there and not (resume or overwrite):
            raise UsageError(
                f"{folder}: expected an empty folder or none, got {counted(len(there), 'file')}; --resume goes on with "
                "an unfinished run, --overwrite makes all parts again"
            )
        told = _entries(rejects) if resume and rejects is not None else {}
        manifest = _manifest(folder, overwrite) if MANIFEST in entries else None
        return cls(entries, manifest, resume, overwrite, told)

    @cached_property
    def _records(self) -> dict[str, Record]:
        return {} if self.manifest is None else {record.name: record for record in self.manifest.parts}

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Files that no run has made. One that was killed may have made parts that its manifest does not tell."""
        before = self.manifest
        others = (name for name in self.entries if name not in self._records and not is_hidden(name))
        if before is not None and before.state == "running":
            return frozenset(others) & frozenset(before.foreign)
        return frozenset(others)

    def may_replace(self, name: str) -> bool:
        """Whether a part may take the place of what has its name."""
        return self.overwrite or name not in self.foreign

    def strange(self, folder: str, known: AbstractSet[str]) -> tuple[str, ...]:
        """Files that readers of the folder see, and that are neither parts of this run nor were removed by it."""
        others = (name for name in self.entries if name not in known and not is_hidden(name))
        return tuple(sorted(name for name in others if entry_of(join(folder, name)) is not None))

    def of_parts(
        self, manifest: Manifest, parts: Iterable[Part], rules: RowOptions
    ) -> tuple[dict[str, Record], dict[str, Record]]:
        """Parts that are proven done by their stamps, and those that may be, which hashes must tell.

        None is, where the map or the settings were others, or the part does not tell what the rules ask for.
        """
        before = self.manifest
        if (
            not self.resume
            or before is None
            or before.map != manifest.map
            or before.settings != manifest.settings
        ):
            return {}, {}
        records, proven, known = self._records, dict[str, Record](), dict[str, Record]()
        for part in parts:
            record, entry = records.get(part.name), self.entries.get(part.name)
            if record is None or entry is None or record.only != part.only:
                continue
            if (record.input.bytes, record.output.bytes) != (part.bytes, entry.bytes):
                continue
            if not self._obeys(record, rules):
                continue
            same = (record.input.stamp, record.output.stamp) == (part.stamp, entry.stamp)
            (proven if same else known)[part.name] = record
        return proven, known

    def _obeys(self, record: Record, rules: RowOptions) -> bool:
        """Whether its drift is known and is not too much, and its rejects are there, if that is asked for.

        What is not so is made again, and told as it is of any part.
        """
        if rules.max_drift is not None and (record.drift is None or record.drift.share > rules.max_drift):
            return False
        return rules.rejects is None or self._has_rejects(record)

    def _has_rejects(self, record: Record) -> bool:
        """Whether they are as the earlier run has written them."""
        there = self.rejects.get(rejects_name(record.name))
        return there is not None and record.rejects is not None and there.stamp == record.rejects.stamp

    def whole(self, manifest: Manifest, source: Entry | None, rules: RowOptions) -> dict[str, Record]:
        """All parts that a finished run has cut from one file, if their stamps prove them done and it unchanged."""
        before = self.manifest
        if source is None or before is None or before.state != "complete":
            return {}
        parts = [
            Part(record.name, "", source.bytes, source.stamp, record.only)
            for record in self._records.values()
        ]
        proven, _ = self.of_parts(manifest, parts, rules)
        return proven if len(proven) == len(parts) else {}

    def remove_stale(self, folder: str, rejects: str | None, good: AbstractSet[str]) -> list[str]:
        """Remove the parts of the earlier run that are not `good`, so that no reader takes them for parts of this one.

        Their rejects go with them. Returns what was removed. What no run has written stays, whatever the manifest says.
        """
        gone = []
        for name, record in self._records.items():
            if name in good or name not in self.entries:
                continue
            if remove_written(folder, name, record.output):
                gone.append(name)
            if rejects is not None and record.rejects is not None:
                remove_written(rejects, rejects_name(name), record.rejects)
        return gone


def _entries(folder: str) -> dict[str, Entry]:
    if kind_of(folder) is None:  # of a dry run: a run makes its folder first
        return {}
    return {entry.name: entry for entry in listed(folder) if not is_lock(entry.name)}


def _manifest(folder: str, overwrite: bool) -> Manifest | None:
    try:
        return read_manifest(folder)
    except Exception:
        if overwrite:
            return None
        raise
