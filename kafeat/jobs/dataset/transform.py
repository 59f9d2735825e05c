"""Stream a data set of many files through a map to a folder: each part by itself, complete or not there."""

from __future__ import annotations

from dataclasses import replace

from kafeat.dataframes.shared_map import shared
from kafeat.io.storage.locations import making
from kafeat.io.storage.ownership import owning
from kafeat.jobs.dataset.job import Announce, DatasetJob
from kafeat.jobs.dataset.journal import Run
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest, parts_of
from kafeat.jobs.transform.options import STRICT, InputOptions, OutputOptions, RowOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.pool import Engine


def transform_parts(
    model: str | FeatureMap,
    source: str,
    target: str,
    *,
    reading: InputOptions | None = None,
    writing: OutputOptions | None = None,
    rules: RowOptions = STRICT,
    engine: Engine | None = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    stats: str | None = None,
    announce: Announce | None = None,
) -> Run:
    """Write the features of every part of `source` to a part of the same name below the folder `target`.

    `source` is a folder, a glob or a list of names; with `rows_per_file` one file, which is cut into parts of so many
    rows at most. `resume` keeps parts that the manifest of an earlier run proves done and unchanged. A part that fails
    does not end the others. `stats` is a file that the caller writes: it is refused among the parts.
    `announce(parts)` returns what is told of each part that is done.
    """
    asked = DatasetRequest(
        model, source, target, reading or InputOptions(), writing or OutputOptions(), rules, engine or Engine(),
        rows_per_file, resume, overwrite, stats,
    )  # fmt: skip
    asked.check()
    travelling = shared(model)
    parts = parts_of(asked, travelling.map)
    folders = [folder for folder in (target, rules.rejects) if folder is not None]
    with making(*folders) as make, owning(*folders) as token:
        asked = replace(asked, writing=replace(asked.writing, guard=token.publishing))
        job = DatasetJob(asked, travelling, DatasetPlan.of(asked, travelling, parts), make)
        return job.run(announce or (lambda _parts: lambda _done: None))
