"""`kafeat.transform` and `kafeat.predict`, which transform one file or all parts of a data set."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from kafeat.chain.blas import one_blas_thread
from kafeat.errors import KafeatWarning, PartsError, UsageError
from kafeat.io.options import changed
from kafeat.io.storage.atomic import beside
from kafeat.io.storage.base import Location, making
from kafeat.io.storage.owner import owning
from kafeat.io.storage.temporary_files import remove_stale_below
from kafeat.jobs.dataset.journal import DatasetResult, Journal
from kafeat.jobs.dataset.part import known_parts, text_parts
from kafeat.jobs.dataset.parts import plan_parts
from kafeat.jobs.dataset.plan import DatasetPlan
from kafeat.jobs.dataset.record import metrics, record_of, spelled
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.jobs.options import with_keywords
from kafeat.jobs.transform.options import FOR_PARTS, PredictOptions, TransformOptions
from kafeat.jobs.transform.outputs import outputs_of
from kafeat.jobs.transform.result import TransformResult
from kafeat.jobs.transform.transform import Announce, transform_file
from kafeat.runtime.backends import start_engine
from kafeat.runtime.environment import count_jobs, now

MakeFolder = Callable[[Location], None]
Begin = Callable[[str], AbstractContextManager[Announce | None]]


def transform_parts(request: DatasetRequest, announce: Announce | None = None) -> DatasetResult:
    """Write the features of every part of the input to a part of the same name below the output folder.

    A part that fails does not stop the others. `announce(parts)` returns a callback for the number of finished parts.
    """
    request.check()
    shared_map, listed = request.shared_map, plan_parts(request)
    with making(*request.folders) as make_folder, owning(*request.folders) as token:
        # Files are renamed and removed inside `with guard()`, during which no other run can take over the folders.
        writing = replace(request.writing, guard=token.publishing)
        request = replace(request, model=shared_map, writing=writing)
        plan = DatasetPlan.of(request, listed)
        return _run(request, plan, make_folder, announce or (lambda _parts: lambda _done: None))


def _run(
    request: DatasetRequest, plan: DatasetPlan, make_folder: MakeFolder, announce: Announce
) -> DatasetResult:
    """Write the parts that are not up to date, keep the manifest current, and return the result of the run."""
    outputs = outputs_of(request.map, request.writing)
    began = time.perf_counter()
    journal = Journal(request.target, plan, request.writing.guard)
    try:
        with journal.renewing():
            removed = _write_parts(request, plan, make_folder, journal, announce)
        seconds = time.perf_counter() - began
        journal.end(seconds)
    except BaseException as error:
        if plan.parts is not None and journal.done:
            done = f"{len(journal.done):,} of {len(plan.parts):,} parts are done"
            error.add_note(f"{done}: --resume goes on with the others")
        journal.leave(error, new=not plan.previous.entries and request.engine.ends_workers)
        raise
    finally:
        _sweep(request.folders)
    unknown_files = plan.previous.remaining(request.target, {*journal.done, *removed})
    names = {*removed} if plan.parts is None else {part.name for part in plan.parts}
    without_input = {*removed} - names
    lost = plan.previous.lost(request.target, journal.failed if plan.parts is None else names - journal.done)
    files = {"removed": tuple(sorted(without_input)), "unknown_files": unknown_files, "lost": lost}
    return journal.result(len(plan.up_to_date), outputs, seconds, **files)


def _write_parts(
    request: DatasetRequest, plan: DatasetPlan, make_folder: MakeFolder, journal: Journal, announce: Announce
) -> list[str]:
    """Remove outdated parts, write the missing ones, and return the names of the removed parts."""
    engine, good = request.engine, {*plan.up_to_date, *plan.to_check}
    if engine.in_this_process:  # no more workers than parts, which share the threads
        engine = replace(engine, jobs=min(count_jobs(engine.jobs), len(plan.parts) if plan.parts else 1))
    # The engine starts first: if that fails, nothing must have been removed.
    with start_engine(engine) as pool, one_blas_thread():
        with request.writing.guard():
            _sweep(request.folders)
            removed = plan.previous.remove_stale(
                request.target, request.rules.rejects, good, plan.manifest, request.writing.guard
            )
        journal.write()
        progress = announce(None if plan.parts is None else len(plan.parts))
        progress(len(plan.up_to_date))
        made = (
            text_parts(request, plan) if plan.parts is None else known_parts(request, plan, make_folder, pool)
        )
        with closing(made):
            for outcome in made:
                journal.add(outcome)
                progress(1)
                left = plan.parts is None or len(journal.done | journal.failed) < len(plan.parts)
                if left and journal.must_stop(request.max_failures):
                    break
    return removed


def _sweep(folders: list[Location]) -> None:
    """Remove the temporary files of killed runs."""
    for folder in folders:
        remove_stale_below(folder)


def run(
    request: DatasetRequest,
    idle: Iterable[str] = (),
    dashes: str = "",
    begin: Begin = lambda _unit: nullcontext(),
    warn: Callable[[str], None] = lambda _caution: None,
) -> TransformResult | DatasetResult:
    """Transform one file to one file, or the parts of a data set to a folder. Write statistics and metrics of the run.

    `begin` is called with the unit of progress, `rows` or `parts`, before the work begins. `warn` is called with
    sentences about what may be unintended. `DatasetRequest.over_parts` explains `idle` and `dashes`.
    """
    request.refuse_overlaps()
    known = list[TransformResult | DatasetResult]()
    with (
        _recorded(request, known, request.metrics, partial(metrics, request.target.absolute())),
        _recorded(request, known, request.stats, spelled),
    ):
        over_parts = request.over_parts(idle, dashes)
        if request.needs_predictor:
            request.map.needed_predictor()
        for caution in request.cautions:
            warn(caution)
        with begin("parts" if over_parts else "rows") as announce:
            if over_parts:
                known.append(transform_parts(request, announce))
            else:
                hashed = request.stats is not None
                known.append(
                    transform_file(
                        request.job, request.source, request.target, announce=announce, hashed=hashed
                    )
                )
    if known[0].unknown is not None:
        warn(f"{request.source}: {known[0].unknown}")
    return known[0]


@contextmanager
def _recorded(
    request: DatasetRequest,
    known: list[TransformResult | DatasetResult],
    place: Location | None,
    spell: Callable[[dict[str, Any]], str],
) -> Iterator[None]:
    """Write the record of a run to `place` after the block, even after an error. The block adds its result to `known`.

    The file is opened first, so that a path that cannot be written to is reported before the work begins.
    """
    if place is None:
        yield
        return
    start, began, failure = now(), time.perf_counter(), None
    try:
        with beside(place, request.writing.fsync) as file:
            try:
                yield
            except UsageError:  # write no record: `place` itself may be the mistake
                raise
            except BaseException as error:
                failure = error
            done = known[0] if known else getattr(failure, "result", None)
            file.write(spell(record_of(request, done, start, time.perf_counter() - began, failure)))
    finally:
        if failure is not None:  # even if writing the record failed, as on a full disk
            raise failure


@dataclass(frozen=True)
class WrittenData:
    """Output of `kafeat.transform` or `kafeat.predict`.

    Attributes:
        path: The file, or the folder of parts.
        rows: Number of rows.
        columns: Number of columns of features, or of predicted numbers.
        content: "features" or "predictions".
        parts: Number of parts in the folder; None for one file.
        kept: Number of parts that a previous run had written.
        bad_rows: Number of rows that were left out or have null features.
        clipped: Number of values that were clipped because they are outside the range of the training rows.
        seconds: Duration.
    """

    path: str
    rows: int
    columns: int
    content: Literal["features", "predictions"]
    parts: int | None
    kept: int
    bad_rows: int
    clipped: int
    seconds: float


@with_keywords(TransformOptions)
def transform(options: TransformOptions) -> WrittenData:
    """Write the features of a file or of many files, as `kafeat transform` does.

    Rows stream through in chunks, so that memory stays bounded for files of any size. An output appears only when it is
    complete. `FeatureMap.transform` transforms tables and arrays in memory.

    Parameters
    ----------
    src : str or path
        File or URI to read. A folder, a glob or a list of files (.txt) has many parts.
    dst : str or path
        File to write; for many parts the folder to write them to.
    model : FeatureMap, str or path
        The map, or its file.

    Returns
    -------
    WrittenData
        Path, rows and columns of the output, and what else the command prints.

    Raises
    ------
    kafeat.errors.UsageError
        An argument is invalid.
    kafeat.errors.DataError
        The data cannot be read, a row cannot be transformed, or more rows are bad than `max_bad_rows` allows.
    kafeat.errors.ArtifactError
        The model file is invalid.
    kafeat.errors.SystemRefusedError
        A file cannot be read or written.
    kafeat.errors.GateError
        The input has drifted further than `max_drift` or `drift_test` allow.
    kafeat.errors.PartsError
        Some parts failed; the others are written.

    Examples
    --------
    >>> import kafeat, numpy as np, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> np.save(os.path.join(folder, "x.npy"), X)
    >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}]}, X)
    >>> written = kafeat.transform(os.path.join(folder, "x.npy"), os.path.join(folder, "z.npy"), model=fm)
    >>> written.rows, written.columns
    (200, 64)
    """
    return _written(options)


def _written(options: PredictOptions, needs_predictor: bool = False) -> WrittenData:
    request, given = DatasetRequest.of(options, needs_predictor), changed(options)
    # Warnings show the line of the user's call, level 5. Levels 1 to 4 are `run`, this, `transform` and its wrapper.
    warn = partial(warnings.warn, category=KafeatWarning, stacklevel=5)
    done = run(request, [name for name in FOR_PARTS if name in given], warn=warn)
    parts, kept = (done.parts, done.kept) if isinstance(done, DatasetResult) else (None, 0)
    if isinstance(done, DatasetResult) and done.failed:
        raise PartsError(str(request.target), done.parts, done.failed, done.stopped)
    return WrittenData(
        str(request.target), done.rows, done.columns, done.what, parts, kept, done.bad_rows, done.clipped,
        done.seconds,
    )  # fmt: skip


@with_keywords(PredictOptions)
def predict(options: PredictOptions) -> WrittenData:
    """Write the predictions for a file or for many files, as `kafeat predict` does.

    Parameters
    ----------
    src : str or path
        File or URI to read. A folder, a glob or a list of files (.txt) has many parts.
    dst : str or path
        File to write; for many parts the folder to write them to.
    model : FeatureMap, str or path
        A map that ends in a predictor, or its file.

    Returns
    -------
    WrittenData
        Path, rows and columns of the output, and what else the command prints.

    Raises
    ------
    kafeat.errors.UsageError
        The model does not end in a predictor, or an argument is invalid.
    kafeat.errors.KafeatError
        As for `kafeat.transform`.

    Examples
    --------
    >>> import kafeat, numpy as np, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> np.save(os.path.join(folder, "x.npy"), X)
    >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}, {"kind": "ridge"}]}, X, X[:, 0])
    >>> kafeat.predict(os.path.join(folder, "x.npy"), os.path.join(folder, "y.csv"), model=fm).content
    'predictions'
    """
    return _written(options, needs_predictor=True)
