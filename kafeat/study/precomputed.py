"""Evaluate recipes of a precomputed kernel on the square kernel matrix of all rows.

Rows are known by their numbers, so that any of them can be compared. The columns of a map are the rows that it is
fitted on, as scikit-learn splits both sides of a kernel matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kafeat.config import Config
from kafeat.contract.tile import dense
from kafeat.errors import DataError, UsageError
from kafeat.io.readers.memory import table_of
from kafeat.jobs.fit.fit import columns_of
from kafeat.jobs.fit.sample import matrices
from kafeat.study.candidates import Candidate
from kafeat.study.inputs import KernelMatrix, RereadableData
from kafeat.study.request import EvaluationRequest
from kafeat.types import Floats

_ROW = "row of the kernel matrix"


def by_row_numbers(
    data: RereadableData, request: EvaluationRequest, candidates: list[Candidate]
) -> tuple[RereadableData, list[Candidate]]:
    """Return data of row numbers and recipes of a kernel of these, if the recipes have a precomputed kernel."""
    precomputed = [
        one for one in candidates
        if one.fitted is None and getattr(one.config.steps[0], "kernel", None) == "precomputed"
    ]  # fmt: skip
    if not precomputed:
        return data, candidates
    other = next((one for one in candidates if one not in precomputed), None)
    if other is not None:
        raise UsageError(
            f"evaluate: {other.name}: expected a recipe whose first step has `kernel: precomputed`, as "
            f"{precomputed[0].name} has, got another: evaluate these apart, as their columns mean other things"
        )
    by_columns = {repr(one.config.columns): one.config for one in precomputed}
    if len(by_columns) > 1:
        raise UsageError("evaluate: kernel precomputed: expected recipes of the same columns, got others")
    matrix = KernelMatrix(_read(data, request, *by_columns.values()))
    return _numbered(data, request, len(matrix.values)), [_of_rows(one, matrix) for one in precomputed]


def _read(data: RereadableData, request: EvaluationRequest, config: Config) -> Floats:
    """Read the matrix (n, n)."""
    split = {} if request.split is None else {request.split: "--split"}
    with data.open() as source:
        source = source.settled()
        columns = columns_of(config, source, request.labels, split)
        chunks = source.chunks(columns, (), config.chunk_rows)
        parts = [dense(X) for _, X in matrices(chunks, np.dtype(np.float64))]
    values: Floats = np.concatenate([np.empty((0, columns.n_features)), *parts])
    if values.shape[0] != values.shape[1]:
        raise DataError(
            f"{data.name}: kernel precomputed: expected the square kernel matrix of all rows, of which the rows and "
            f"columns of the training rows are taken, got {values.shape[0]} rows and {values.shape[1]} columns"
        )
    return values


def _numbered(data: RereadableData, request: EvaluationRequest, n: int) -> RereadableData:
    """Return the numbers of rows, the labels and the split as data."""
    split = [] if request.split is None else [request.split]
    _, columns = data.label_columns({"--label": request.labels, "--split": split})
    table = table_of({_ROW: np.arange(n, dtype=np.float64), **columns})
    return replace(data, data=table, place=data.name, stamp=None)


def _of_rows(candidate: Candidate, matrix: KernelMatrix) -> Candidate:
    config = candidate.config
    first = config.steps[0].model_copy(update={"kernel": matrix})
    columns = config.columns.model_copy(update={"include": (_ROW,), "exclude": ()})
    recipe = config.model_copy(update={"steps": (first, *config.steps[1:]), "columns": columns})
    return replace(candidate, config=recipe)
