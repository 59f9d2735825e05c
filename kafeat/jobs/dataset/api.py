"""`kafeat.transform` and `kafeat.predict`, and the run of a request: one file, or the parts of a data set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from kafeat.errors import PartsError, SystemRefusedError, UsageError
from kafeat.io.data_set import is_data_set, must_exist
from kafeat.io.formats import INPUTS, OUTPUTS
from kafeat.io.readers.dataset import InputOptions
from kafeat.io.storage.base import Location
from kafeat.io.storage.location import parse_location
from kafeat.io.writers.base import OutputOptions
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.jobs.dataset.transform import Announce, stats_of_parts, transform_request
from kafeat.jobs.transform.options import BadRowsLimit, RowOptions, TransformResult
from kafeat.jobs.transform.overlaps import refuse_files
from kafeat.jobs.transform.side_files import open_stats, stats
from kafeat.jobs.transform.transform import transform_file
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.runtime.engine import Engine


def run_file(
    request: DatasetRequest, device: str | None = None, announce: Announce | None = None
) -> TransformResult:
    """Transform one file to one file; `device` is the name of a provider of ONNX Runtime."""
    refuse_files(
        {"the input": request.source, "the model": request.model},
        {"an output": request.target, "--rejects": request.rules.rejects, "--stats": request.stats},
    )
    fm = request.map
    if device is not None:
        fm = _on_device(fm, device, request)
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
        run = transform_request(request, announce)
        if request.stats is not None:
            write_stats(stats_of_parts(run, request.model, request.source, request.target))
    return run


def _on_device(fm: FeatureMap, device: str, request: DatasetRequest) -> FeatureMap:
    try:
        from kafeat.onnx.device import on_device
    except ImportError as error:
        raise SystemRefusedError(f"--device {device}: {error}") from None
    return on_device(fm, device, request.engine.jobs)


Path: TypeAlias = "str | os.PathLike[str]"
OutputLayout: TypeAlias = Literal["columns", "list"]
Compression: TypeAlias = Literal["none", "snappy", "lz4", "zstd", "gzip"]
OutputDType: TypeAlias = Literal["float16", "float32", "float64"]
BadRows: TypeAlias = Literal["error", "drop", "null"]


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


def transform(
    src: Path,
    dst: Path,
    *,
    model: FeatureMap | Path,
    features: bool = False,
    unit_variance: bool = False,
    keep: str | Sequence[str] = (),
    jobs: int | None = None,
    input_format: str | None = None,
    delimiter: str = ",",
    no_header: bool = False,
    limit: int | None = None,
    output_format: str | None = None,
    layout: OutputLayout = "columns",
    prefix: str | None = None,
    compression: Compression | None = None,
    output_dtype: OutputDType | None = None,
    on_bad_rows: BadRows = "error",
    rejects: Path | None = None,
    max_bad_rows: int | str | None = None,
    max_drift: float | None = None,
    drift_test: float | None = None,
    stats: Path | None = None,
    device: str | None = None,
    overwrite: bool | None = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    engine: str = "threads",
    scheduler: str | None = None,
    fsync: bool = True,
) -> WrittenData:
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
    features : bool, default False
        True writes the features of a model that ends in a predictor, and not its predictions.
    unit_variance : bool, default False
        True multiplies the features by one factor, so that their mean variance is 1 and default penalties fit.
    keep : str or list of str, default ()
        Input columns to copy to the output: names, or "all".
    jobs : int or None, default None
        Number of threads; None takes all cores. It never changes the output.
    input_format : str or None, default None
        "csv", "parquet", "npy", "arrow", "libsvm" or "npz"; None takes the format of the suffix.
    delimiter : str, default ","
        Delimiter of a CSV input.
    no_header : bool, default False
        True reads a CSV without a header. Its columns are named c0, c1, …
    limit : int or None, default None
        Number of rows to read, for a trial; None reads all.
    output_format : str or None, default None
        "csv", "parquet", "npy", "arrow", "jsonl", "libsvm" or "npz"; None takes the format of the suffix.
    layout : {"columns", "list"}, default "columns"
        One column per feature, or one column of lists.
    prefix : str or None, default None
        Prefix of the output column names; None gives f0, f1, …
    compression : {"none", "snappy", "lz4", "zstd", "gzip"} or None, default None
        Compression of the output; None takes that of the format and the suffix.
    output_dtype : {"float16", "float32", "float64"} or None, default None
        Type of the numbers; None takes that of the map, and float64 for predictions.
    on_bad_rows : {"error", "drop", "null"}, default "error"
        For a row that cannot be transformed: raise an error, leave it out, or write null features.
    rejects : str, path or None, default None
        CSV file for the bad rows and the reason for each.
    max_bad_rows : int, str or None, default None
        Largest number of bad rows, or percentage such as "0.5%", of each input; above it nothing is written.
    max_drift : float or None, default None
        Largest share of values of a column outside the range of the fit; above it nothing is written.
    drift_test : float or None, default None
        Least p-value of a test that the mean of the features is that of the fit; below it nothing is written.
    stats : str, path or None, default None
        JSON file for statistics of the run.
    device : str or None, default None
        Device of ONNX Runtime, such as "cuda"; None computes on the processor.
    overwrite : bool or None, default None
        True replaces an existing output, False refuses to; None replaces a file and refuses a folder with files.
    rows_per_file : int or None, default None
        Number of rows to cut one file into parts of; None does not cut it.
    resume : bool, default False
        True keeps the parts of a previous run that are up to date.
    engine : {"threads", "processes", "dask", "ray", "spark"}, default "threads"
        Engine that transforms the parts.
    scheduler : str or None, default None
        Address of a Dask scheduler or a Ray cluster.
    fsync : bool, default True
        True flushes the output to disk before it gets its final name.

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
    _check_choices(
        input_format=(input_format, INPUTS),
        output_format=(output_format, OUTPUTS),
        layout=(layout, get_args(OutputLayout)),
        compression=(compression, get_args(Compression)),
        output_dtype=(output_dtype, get_args(OutputDType)),
        on_bad_rows=(on_bad_rows, get_args(BadRows)),
    )
    _check_counts(jobs=jobs, limit=limit, rows_per_file=rows_per_file)
    request = DatasetRequest(
        model if isinstance(model, FeatureMap) else _path("model", model),
        parse_location(_path("src", src)),
        parse_location(_path("dst", dst)),
        InputOptions(input_format, delimiter, not no_header, limit),
        OutputOptions(
            output_format, _kept(keep), layout, prefix, compression, overwrite is not False, fsync, output_dtype,
            features=features, unit_variance=unit_variance,
        ),
        RowOptions(
            on_bad_rows, _location("rejects", rejects), stats is not None, max_drift, drift_test,
            None if max_bad_rows is None else BadRowsLimit.parse(max_bad_rows),
        ),
        Engine(engine, scheduler, jobs),
        rows_per_file,
        resume,
        bool(overwrite),
        _location("stats", stats),
    )  # fmt: skip
    return _run(request, device)


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
    fm = model if isinstance(model, FeatureMap) else load(_path("model", model))
    fm.needed_predictor()
    # Parts are made by the file of the model, whose name the statistics have too.
    return transform(src, dst, model=model, **options)


def _run(request: DatasetRequest, device: str | None) -> WrittenData:
    """Transform the parts of a data set, or one file, whichever the request is."""
    done: DatasetResult | TransformResult
    parts, kept = None, 0
    if request.rows_per_file is not None or is_data_set(request.source):
        if device is not None:
            raise UsageError("device: expected one input file to transform, got many files, or rows_per_file")
        done = run_parts(request)
        parts, kept = done.parts, done.kept
        if done.failed:
            raise PartsError(str(request.target), parts, done.failed)
    else:
        _refuse_options_of_parts(request)
        done = run_file(request, device)
    return WrittenData(
        str(request.target), done.rows, done.columns, done.what, parts, kept, done.bad_rows, done.clipped,
        done.seconds,
    )  # fmt: skip


def _refuse_options_of_parts(request: DatasetRequest) -> None:
    """Refuse options that have no effect on one file."""
    for name, given in (
        ("engine", request.engine.name != "threads"),
        ("scheduler", request.engine.address is not None),
        ("resume", request.resume),
    ):
        if given:
            must_exist(request.source)
            raise UsageError(
                f"{name}: expected an input of many files, or rows_per_file, got one: {request.source}"
            )


def _path(name: str, value: object) -> str:
    if not isinstance(value, str | os.PathLike):
        remedy = "; FeatureMap.transform takes tables and arrays" if name == "src" else ""
        raise UsageError(f"{name}: expected a path or URI, got {type(value).__name__}{remedy}")
    return os.fspath(value)


def _location(name: str, value: object) -> Location | None:
    return None if value is None else parse_location(_path(name, value))


def _kept(keep: str | Sequence[str]) -> Sequence[str] | None:
    """Return the columns to copy; None copies all."""
    if isinstance(keep, str):
        return None if keep == "all" else [keep]
    return list(keep)


def _check_choices(**given: tuple[object, Sequence[str]]) -> None:
    for name, (value, choices) in given.items():
        if value is not None and value not in choices:
            raise UsageError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")


def _check_counts(**given: object) -> None:
    for name, value in given.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise UsageError(f"{name}: expected a whole number of at least 1, got {value!r}")
