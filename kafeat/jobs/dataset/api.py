"""`kafeat.transform` and `kafeat.predict`, and the run of a request: one file, or the parts of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kafeat.errors import PartsError, SystemRefusedError, UsageError
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.request import DatasetRequest, path_of
from kafeat.jobs.dataset.transform import Announce, stats_of_parts, transform_parts
from kafeat.jobs.transform.options import Path, TransformOptions, with_keywords
from kafeat.jobs.transform.outputs import TransformResult
from kafeat.jobs.transform.side_files import open_stats, stats
from kafeat.jobs.transform.transform import transform_file
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load


def run_file(request: DatasetRequest, announce: Announce | None = None) -> TransformResult:
    """Transform one file to one file."""
    request.refuse_overlaps()
    fm = (
        request.map
        if request.device is None
        else _on_device(request.map, request.device, request.engine.jobs)
    )
    with open_stats(request.stats, request.writing.fsync) as write_stats:
        done = transform_file(
            fm, request.source, request.target, reading=request.reading, writing=request.writing,
            rules=request.rules, jobs=request.engine.jobs, announce=announce, hashed=request.stats is not None,
        )  # fmt: skip
        if request.stats is not None:
            write_stats(
                stats(done, fm, request.model, request.source, request.target, request.writing, request.rules)
            )
    return done


def run_parts(request: DatasetRequest, announce: Announce | None = None) -> DatasetResult:
    """Transform the parts of a data set to a folder."""
    with open_stats(request.stats, request.writing.fsync) as write_stats:
        run = transform_parts(request, announce)
        if request.stats is not None:
            write_stats(stats_of_parts(run, request.model, request.source, request.target))
    return run


def _on_device(fm: FeatureMap, device: str, jobs: int | None) -> FeatureMap:
    try:
        from kafeat.onnx.device import on_device
    except ImportError as error:
        raise SystemRefusedError(f"--device {device}: {error}") from None
    return on_device(fm, device, jobs)


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
        clipped: Number of values beyond the range of the fit that were clipped.
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
    request = DatasetRequest.of(options)
    given = {"engine": options.engine != "threads", "scheduler": options.scheduler, "resume": options.resume}
    done: DatasetResult | TransformResult
    parts, kept = None, 0
    if request.over_parts(name for name, there in given.items() if there):
        done = run_parts(request)
        parts, kept = done.parts, done.kept
        if done.failed:
            raise PartsError(str(request.target), parts, done.failed)
    else:
        done = run_file(request)
    return WrittenData(
        str(request.target), done.rows, done.columns, done.what, parts, kept, done.bad_rows, done.clipped,
        done.seconds,
    )  # fmt: skip


def predict(src: Path, dst: Path, *, model: FeatureMap | Path, **options: Any) -> WrittenData:
    """Write the predictions for a file or for many files, as `kafeat predict` does.

    Parameters
    ----------
    src : str or path
        File or URI to read. A folder, a glob or a list of files (.txt) has many parts.
    dst : str or path
        File to write; for many parts the folder to write them to.
    model : FeatureMap, str or path
        A map that ends in a predictor, or its file.
    options : keyword arguments
        The options of `kafeat.transform`, but for `features` and `unit_variance`.

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
    refused = sorted({"features", "unit_variance"} & set(options))
    if refused:
        raise UsageError(f"predict: expected no {refused[0]}, got one: only kafeat.transform takes it")
    fm = model if isinstance(model, FeatureMap) else load(path_of("model", model))
    fm.needed_predictor()
    # Parts are made by the file of the model, whose name the statistics have too.
    return transform(src, dst, model=model, **options)
