"""Where a run over parts begins: its parts, and those of them that an earlier run has done already."""

from __future__ import annotations

from dataclasses import dataclass

from kafeat.dataframes.shared_map import SharedMap
from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.storage.data_set import Part, Parts, is_data_set, list_parts, renamed
from kafeat.io.storage.locations import entry_of, kind_of
from kafeat.io.storage.uri import shown
from kafeat.jobs.dataset.manifest import Manifest, Record
from kafeat.jobs.dataset.resume import PreviousRun
from kafeat.jobs.dataset.split import check_pouring, ranges
from kafeat.jobs.transform.options import InputOptions, OutputOptions, RowOptions
from kafeat.jobs.transform.overlaps import InputPlace, OutputPlace, refuse_overlaps
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.pool import Engine


@dataclass(frozen=True)
class DatasetRequest:
    """What is asked for: the files of `source`, or the rows of one file, `rows_per_file` at a time, below `target`.

    `stats` is a file that the caller writes.
    """

    model: str | FeatureMap
    source: str
    target: str
    reading: InputOptions
    writing: OutputOptions
    rules: RowOptions
    engine: Engine
    rows_per_file: int | None = None
    resume: bool = False
    overwrite: bool = False
    stats: str | None = None

    def check(self) -> None:
        """Refuse what cannot be, whatever the map and the files are."""
        self.engine.check()
        if self.reading.limit is not None:
            raise UsageError(
                "--limit: expected one file, got many or --rows-per-file: try it on one of the parts"
            )
        if self.target == "-":
            raise UsageError("-: expected a folder for the parts of the output, got standard output")
        if self.resume and self.overwrite:
            raise UsageError("--resume: expected it or --overwrite, got both: only one keeps what is done")
        if kind_of(self.target) not in (None, "folder"):
            raise SystemRefusedError(
                f"{self.target}: expected a folder for the parts of the output, got a file"
            )


@dataclass(frozen=True)
class DatasetPlan:
    """The parts of a run (None: text, whose rows are cut as they come), and what is known of them before it begins.

    Parts that are `proven` done stay as they are; those that are `known` may be done, which hashes tell.
    """

    parts: list[Part] | None
    earlier: PreviousRun
    manifest: Manifest
    proven: dict[str, Record]
    known: dict[str, Record]

    @classmethod
    def of(cls, asked: DatasetRequest, map: SharedMap, parts: list[Part] | None) -> DatasetPlan:
        """Look at what lies in the output's folder, and refuse what cannot be."""
        earlier = PreviousRun.of(asked.target, asked.resume, asked.overwrite, asked.rules.rejects)
        manifest = Manifest(
            input=shown(asked.source),
            map=map.digest,
            settings=_settings(asked),
            engine=asked.engine.name,
            foreign=sorted(earlier.foreign),
        )
        if parts is None:
            entry = None if asked.source == "-" else entry_of(asked.source)
            proven, known = earlier.whole(manifest, entry, asked.rules), dict[str, Record]()
        else:
            proven, known = earlier.of_parts(manifest, parts, asked.rules)
        if (proven or known) and earlier.manifest is not None:
            manifest = manifest.model_copy(update={"machines": earlier.manifest.machines})
        return cls(parts, earlier, manifest, proven, known)


def parts_of(asked: DatasetRequest, fm: FeatureMap) -> list[Part] | None:
    """The parts of the input, None for text whose rows are cut as they come; refuses what cannot be."""
    asked.rules.check(fm)
    found = _found(asked)
    _refuse_overlaps(asked, found)
    if found is not None:
        return renamed(found.parts, asked.writing.format, asked.reading.format)
    parts = ranges(asked.source, asked.reading, asked.writing, fm.chunk_rows, asked.rows_per_file or 0)
    if parts is None:
        check_pouring(asked.source, asked.rules, asked.engine)
    return parts


def _found(asked: DatasetRequest) -> Parts | None:
    """The files of the input; None for one that is cut."""
    if asked.rows_per_file is None:
        return list_parts(asked.source, asked.reading.format)
    if asked.source != "-" and is_data_set(asked.source):
        raise UsageError(
            f"--rows-per-file: expected one file to cut, got many: {shown(asked.source)}; each of them is a part "
            "without it"
        )
    return None


def _refuse_overlaps(asked: DatasetRequest, found: Parts | None) -> None:
    """Refuse what would be replaced, or be read as a part by the next run; `found` None is one file."""
    rejects = asked.rules.rejects
    if rejects == "-":
        raise UsageError("--rejects: expected a folder for the rejects of the parts, got standard output")
    if rejects is not None and kind_of(rejects) not in (None, "folder"):
        raise SystemRefusedError(f"{rejects}: expected a folder for the rejects of the parts, got a file")
    parts = () if found is None else found.parts
    read = [InputPlace("the input", (asked.source, *(part.location for part in parts)), found)]
    read += [InputPlace("the model", (asked.model,))] if isinstance(asked.model, str) else []
    written = [OutputPlace("an output", asked.target, folder=True)]
    written += [] if rejects is None else [OutputPlace("--rejects", rejects, folder=True)]
    written += [] if asked.stats is None else [OutputPlace("--stats", asked.stats)]
    refuse_overlaps(read, written)


def _settings(asked: DatasetRequest) -> dict[str, object]:
    """All that the bytes of the parts depend on, besides the map and the input."""
    reading, writing = asked.reading, asked.writing
    return {
        "input_format": reading.format,
        "delimiter": reading.delimiter,
        "header": reading.header,
        "format": writing.format,
        "keep": None if writing.keep is None else list(writing.keep),
        "layout": writing.layout,
        "prefix": writing.prefix,
        "compression": writing.compression,
        "dtype": writing.dtype,
        "on_bad_rows": asked.rules.on_bad_rows,
        "rows_per_file": asked.rows_per_file,
    }
