"""The request of a transform: one file to one, or the parts of a data set to a folder."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from kafeat.errors import KafeatError, SystemRefusedError, UsageError
from kafeat.io.data_set import Parts, is_data_set, list_parts, must_exist
from kafeat.io.options import InputOptions, OutputOptions, taken
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.location import place_of
from kafeat.jobs.transform.options import STRICT, BadRowsLimit, PredictOptions, RowOptions
from kafeat.jobs.transform.outputs import levels_of
from kafeat.jobs.transform.overlaps import InputPlace, OutputPlace, refuse_overlaps
from kafeat.jobs.transform.transform import TransformJob
from kafeat.model.feature_map import FeatureMap
from kafeat.model.shared import SharedMap, shared
from kafeat.runtime.engine import Engine


@dataclass(frozen=True)
class DatasetRequest:
    """A transform of the file `source` to the file `target`, or of a data set `source` to the folder `target`.

    With `rows_per_file`, one file is cut into parts of at most this many rows. `resume` keeps the parts of the previous
    run that are up to date. The file `stats` must not be in the folder of the parts.
    """

    model: Location | FeatureMap | SharedMap
    source: Location
    target: Location
    reading: InputOptions = InputOptions()
    writing: OutputOptions = OutputOptions()
    rules: RowOptions = STRICT
    engine: Engine = Engine()
    rows_per_file: int | None = None
    resume: bool = False
    overwrite: bool = False
    stats: Location | None = None
    max_failures: int | None = None
    metrics: Location | None = None
    needs_predictor: bool = False
    """True if only predictions are wanted, so that a map without a predictor is refused."""

    @classmethod
    def of(cls, asked: PredictOptions, needs_predictor: bool = False) -> DatasetRequest:
        """Return the request for the user's options, in which locations and limits are parsed."""
        if asked.metrics is not None and not str(asked.metrics).endswith(".prom"):
            raise UsageError(
                "--metrics: expected a name that ends in .prom, because the node exporter reads no others, "
                f"got {asked.metrics}"
            )
        keep = [asked.keep] if isinstance(asked.keep, str) else list(asked.keep)
        most = asked.max_bad_rows
        return taken(
            cls,
            asked,
            model=asked.model if isinstance(asked.model, FeatureMap) else place_of("model", asked.model),
            source=place_of("src", asked.src, "; FeatureMap.transform takes tables and arrays"),
            target=place_of("dst", asked.dst),
            reading=taken(InputOptions, asked),
            writing=taken(
                OutputOptions, asked, keep=None if asked.keep == "all" else keep, interval=levels_of(asked.interval),
                overwrite=asked.overwrite is not False,
            ),
            rules=taken(
                RowOptions, asked, rejects=_place_of("rejects", asked.rejects),
                drift=asked.stats is not None or asked.metrics is not None,
                max_bad_rows=None if most is None else BadRowsLimit.parse(most),
            ),
            engine=Engine(asked.engine, asked.scheduler, asked.jobs),
            overwrite=bool(asked.overwrite),
            stats=_place_of("stats", asked.stats),
            metrics=_place_of("metrics", asked.metrics),
            needs_predictor=needs_predictor,
        )  # fmt: skip

    def over_parts(self, idle: Iterable[str] = (), dashes: str = "") -> bool:
        """Return true if the input has parts. Otherwise refuse `idle` options, which have no effect on one file.

        `dashes` is `--` if messages should name options as on the command line, or empty.
        """
        cut = "--rows-per-file" if dashes else "rows_per_file"
        missing = self.source.kind() is None  # a missing input is reported before wrong options
        if self.rows_per_file is not None or is_data_set(self.source):
            if missing:
                _ = self.files
            return True
        for option in idle:
            must_exist(self.source)
            raise UsageError(
                f"{dashes}{option}: expected an input of many files, or {cut}, got one: {self.source}"
            )
        if missing:
            self.source.open_random().close()
        return False

    @cached_property
    def files(self) -> Parts:
        """The files of an input of many files, listed once."""
        return list_parts(self.source, self.reading.input_format)

    @cached_property
    def shared_map(self) -> SharedMap:
        """The map in a form for other processes. Its file is read once, because it may be a pipe."""
        return shared(self.model)

    @property
    def map(self) -> FeatureMap:
        """The map itself. Unlike `shared_map`, it also exists for a map that cannot be saved."""
        return self.job.fm

    @property
    def job(self) -> TransformJob:
        """The job that transforms one file or one part."""
        model = self.model if isinstance(self.model, FeatureMap) else self.shared_map
        return TransformJob(model, self.reading, self.writing, self.rules, self.engine.jobs)

    @property
    def cautions(self) -> list[str]:
        """The reasons why requested intervals may have a lower coverage than their level."""
        predictor = self.map.predictor if self.writing.interval else None
        return [] if predictor is None else predictor.interval_cautions(self.map.config.split_by)

    @property
    def folders(self) -> list[Location]:
        """The folders of the parts and of their rejects."""
        return [folder for folder in (self.target, self.rules.rejects) if folder is not None]

    def refuse_overlaps(self) -> None:
        """Refuse outputs that would replace an input or each other, or that the next run would read as an input."""
        files = None
        with suppress(KafeatError):  # the run reports an input that cannot be read
            files = self.files if is_data_set(self.source) else None
        folders, parts = self.rows_per_file is not None or files is not None, files.parts if files else ()
        read = [InputPlace("the input", (self.source, *(part.location for part in parts)), files)]
        if isinstance(self.model, Location):
            read.append(InputPlace("the model", (self.model,)))
        alone = (("--stats", self.stats), ("--metrics", self.metrics))
        places = (("an output", self.target), ("--rejects", self.rules.rejects), *alone)
        written = [
            OutputPlace(what, place, folder=folders and (what, place) not in alone)
            for what, place in places
            if place is not None
        ]
        refuse_overlaps(read, written)

    def check(self) -> None:
        """Refuse options that contradict each other, before map and files are read."""
        self.engine.check()
        if self.reading.limit is not None:
            raise UsageError(
                "--limit: expected one file, got many or --rows-per-file: try it on one of the parts"
            )
        if self.rows_per_file is not None and is_data_set(self.source):
            raise UsageError(
                f"--rows-per-file: expected one file to cut, got many: {self.source}; without this option, "
                "each file is a part"
            )
        if self.resume and self.overwrite:
            raise UsageError(
                "--resume: expected --resume or --overwrite, got both; --resume keeps finished parts, "
                "--overwrite makes all again"
            )
        for folder in self.folders:
            name, what = (
                ("-", "parts of the output")
                if folder is self.target
                else ("--rejects", "rejects of the parts")
            )
            if isinstance(folder, StandardStream):
                raise UsageError(f"{name}: expected a folder for the {what}, got standard output")
            if folder.kind() not in (None, "folder"):
                raise SystemRefusedError(f"{folder}: expected a folder for the {what}, got a file")


def _place_of(name: str, value: object) -> Location | None:
    return None if value is None else place_of(name, value)
