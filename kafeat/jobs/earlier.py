"""What lies in an output's folder already, and which parts of it an earlier run proves done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kafeat.errors import SystemRefusedError, UsageError, counted
from kafeat.io.locations import Entry, join, kind_of, listed, remove
from kafeat.io.parts import MANIFEST, Part, is_hidden
from kafeat.jobs.manifest import Manifest, Record, read_manifest
from kafeat.jobs.options import Rules
from kafeat.jobs.rejects import rejects_of


@dataclass(frozen=True)
class Earlier:
    """The files of a folder, by name, and the manifest that it has; without `resume` nothing is proven."""

    entries: Mapping[str, Entry]
    manifest: Manifest | None
    resume: bool
    rejects: Mapping[str, Entry] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: str, resume: bool, overwrite: bool, rejects: str | None = None) -> Earlier:
        """`rejects` is the folder of the rejects, if they are asked for.

        Refuses a folder that holds something, unless asked to go on with it or to replace it.
        """
        if resume and overwrite:
            raise UsageError("--resume: expected it or --overwrite, got both: only one keeps what is done")
        kind = kind_of(folder)
        if kind is None:
            return cls({}, None, resume)
        if kind != "folder":
            raise SystemRefusedError(f"{folder}: expected a folder for the parts of the output, got a file")
        entries = _entries(folder)
        there = [name for name in entries if not is_hidden(name) or name == MANIFEST]
        if there and not (resume or overwrite):
            raise UsageError(
                f"{folder}: expected an empty folder or none, got {counted(len(there), 'file')}; --resume goes on with "
                "an unfinished run, --overwrite makes all parts again"
            )
        told = _entries(rejects) if resume and rejects is not None and kind_of(rejects) == "folder" else {}
        return cls(entries, _manifest(folder, overwrite), resume, told)

    @property
    def _records(self) -> dict[str, Record]:
        return {} if self.manifest is None else {record.name: record for record in self.manifest.parts}

    def strange(self, made: AbstractSet[str]) -> tuple[str, ...]:
        """Files that readers of the folder see, and that are neither parts of the earlier run nor `made` by this one.

        A run that was killed may have made parts that its manifest does not tell.
        """
        ours = {*self._records, *made}
        return tuple(sorted(name for name in self.entries if name not in ours and not is_hidden(name)))

    def of_parts(
        self, manifest: Manifest, parts: Iterable[Part], rules: Rules
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

    def _obeys(self, record: Record, rules: Rules) -> bool:
        """Whether its drift is known and is not too much, and its rejects are there, if that is asked for.

        What is not so is made again, and told as it is of any part.
        """
        if rules.max_drift is not None and (record.drift is None or record.drift.share > rules.max_drift):
            return False
        return rules.rejects is None or self._has_rejects(record)

    def _has_rejects(self, record: Record) -> bool:
        """Whether they are as the earlier run has written them."""
        there = self.rejects.get(rejects_of("", record.name))
        return there is not None and record.rejects is not None and there.stamp == record.rejects.stamp

    def whole(self, manifest: Manifest, source: Entry | None, rules: Rules) -> dict[str, Record]:
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

    def remove_stale(
        self, folder: str, rejects: str | None, wanted: AbstractSet[str] | None, good: AbstractSet[str]
    ) -> list[str]:
        """Remove the parts of the earlier run that are not `good`, so that no reader takes them for parts of this one.

        Their rejects go with them. Returns those that this run makes nothing in place of, if that is known. Files that
        no run has made stay.
        """
        records = self._records
        stale = [name for name in records if name in self.entries and name not in good]
        for name in stale:
            remove(join(folder, name))
            if rejects is not None and self._has_rejects(records[name]):
                remove(rejects_of(rejects, name))
        return sorted(name for name in stale if wanted is not None and name not in wanted)


def _entries(folder: str) -> dict[str, Entry]:
    return {entry.name: entry for entry in listed(folder)}


def _manifest(folder: str, overwrite: bool) -> Manifest | None:
    try:
        return read_manifest(folder)
    except Exception:
        if overwrite:
            return None
        raise
