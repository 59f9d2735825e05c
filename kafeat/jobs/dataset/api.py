"""`kafeat.transform` and `kafeat.predict`, and the run of a request: one file, or the parts of a data set."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kafeat._version import __version__
from kafeat.errors import PartsError, SystemRefusedError, UsageError
from kafeat.io.formats import format_of
from kafeat.io.storage.atomic import beside
from kafeat.io.storage.base import Location
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.request import DatasetRequest, place_of
from kafeat.jobs.dataset.transform import Announce, transform_parts
from kafeat.jobs.options import with_keywords
from kafeat.jobs.transform.options import Path, TransformOptions
from kafeat.jobs.transform.result import Result, TransformResult
from kafeat.jobs.transform.transform import transform_file
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load_from
from kafeat.runtime.environment import machine, versions


def run(
    request: DatasetRequest, over_parts: bool, announce: Announce | None = None
) -> TransformResult | DatasetResult:
    """Transform one file to one file, or the parts of a data set to a folder, and write the statistics."""
    done: TransformResult | DatasetResult
    if not over_parts:
        request.refuse_overlaps()
    # The file is opened before the work begins, so that a path that cannot be written to is reported at once.
    with nullcontext() if request.stats is None else beside(request.stats, request.writing.fsync) as file:
        if over_parts:
            done = transform_parts(request, announce)
        else:
            done = transform_file(
                _on_device(request), request.source, request.target, reading=request.reading, writing=request.writing,
                rules=request.rules, jobs=request.engine.jobs, announce=announce, hashed=request.stats is not None,
            )  # fmt: skip
        if file is not None:
            json.dump(stats(request, done), file, indent=2, ensure_ascii=False)
            file.write("\n")
    return done


def _on_device(request: DatasetRequest) -> FeatureMap:
    if request.device is None:
        return request.map
    try:
        from kafeat.onnx.device import on_device
    except ImportError as error:
        raise SystemRefusedError(f"--device {request.device}: {error}") from None
    return on_device(request.map, request.device, request.engine.jobs)


def stats(request: DatasetRequest, done: TransformResult | DatasetResult) -> dict[str, Any]:
    """Return rows, bytes, seconds, hashes, drift and versions as builtins. Pipes have no bytes and no hash.

    Of parts these are sums; the manifest lists every part.
    """
    details = _of_file(request, done) if isinstance(done, TransformResult) else _of_parts(done)
    model = request.model
    return {
        "kafeat": __version__,
        "command": "predict" if done.what == "predictions" else "transform",
        "model": {
            "path": str(model) if isinstance(model, Location) else None,
            **details.pop("model"),
        },
        "input": {"path": str(request.source), "rows": done.rows_read, **details.pop("input")},
        "output": {"path": str(request.target), **details.pop("output")},
        "seconds": done.seconds,
        **details,
        "versions": versions(),
        "machine": machine(),
    }


def _scale(done: Result) -> dict[str, float]:
    return {} if done.scale is None else {"scale": done.scale}


def _of_file(request: DatasetRequest, done: TransformResult) -> dict[str, Any]:
    rejects = request.rules.rejects
    drift, test = done.drift, done.drift_test
    return {
        "model": {"sha256": request.map.digest},
        "input": {"bytes": request.source.size(), "sha256": done.input_sha256},
        "output": _written(request, done),
        "rows_per_second": done.rows_read / done.seconds if done.seconds > 0.0 else None,
        "clipped_values": done.clipped,
        "bad_rows": {
            "rule": request.rules.on_bad_rows,
            "count": done.bad_rows,
            "rejects": None if rejects is None else str(rejects),
        },
        "drift": None if drift is None else {"largest": max(drift.values(), default=0.0), "columns": drift},
        "drift_test": None if test is None else asdict(test),
    }


def _written(request: DatasetRequest, done: TransformResult) -> dict[str, Any]:
    keep = request.writing.keep
    return {
        "format": format_of(request.target, request.writing.format).name,
        "rows": done.rows,
        "columns": done.columns,
        "dtype": done.dtype,
        **({} if done.what == "features" else {"content": done.what}),
        **_scale(done),
        **({"keep": list(keep)} if keep else {}),
        "bytes": done.written.bytes,
        "sha256": done.written.sha256,
    }


def _of_parts(run: DatasetResult) -> dict[str, Any]:
    drift = run.largest_drift
    return {
        "model": {},
        "input": {},
        "output": {
            "parts": run.parts,
            "kept": run.kept,
            "failed": len(run.failed),
            "rows": run.rows,
            "columns": run.columns,
            **_scale(run),
            "bytes": run.bytes,
        },
        "clipped_values": run.clipped,
        "bad_rows": {"count": run.bad_rows},
        "drift": None
        if drift is None
        else {"largest": drift.share, "column": drift.column, "parts": run.drifts_known},
        "drift_test": None if run.least_p_value is None else {"least_p_value": run.least_p_value},
    }


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
    done = run(request, request.over_parts(name for name, there in given.items() if there))
    parts, kept = (done.parts, done.kept) if isinstance(done, DatasetResult) else (None, 0)
    if isinstance(done, DatasetResult) and done.failed:
        raise PartsError(str(request.target), done.parts, done.failed)
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
    fm = model if isinstance(model, FeatureMap) else load_from(place_of("model", model))
    fm.needed_predictor()
    # Parts are made by the file of the model, whose name the statistics have too.
    return transform(src, dst, model=model, **options)
