"""Write a map as an ONNX file after checking that its outputs agree with those of the map, except for rounding."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from kafeat.chain import precision
from kafeat.chain.chain import Chain, FittedStep
from kafeat.chain.program import What
from kafeat.contract.step import DOUBLE
from kafeat.errors import GateError, UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.storage.location import write_file
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.onnx.model import INPUT, OPSET, coded, numbers_of, to_model
from kafeat.runtime.run import InMemory, RowPolicy, run
from kafeat.types import Floats, Mask

# The relative size of the random changes that show how sensitive a map is, and how often they are drawn.
_STEP = 1e-6
_DRAWS = 2
# Rounding in sums of fewer terms is treated as if the sums had this many terms.
_LEAST_TERMS = 1024


@dataclass(frozen=True)
class Agreement:
    """The `largest` difference between graph and map in any of `rows` rows, and the difference `allowed` in that row.

    If some rows differ by more than is allowed, `largest` is the largest difference in these rows. The map refused
    `refused` other rows.
    """

    rows: int
    refused: int
    largest: float
    allowed: float
    agrees: bool


def compare(fm: FeatureMap, data: bytes) -> Agreement:
    """Compare the ONNX model with the map's features and predictions, on probe rows and on a table without rows."""
    graph, codes = _session(data), probe_rows(fm)
    Z, given = features(fm, codes), as_given(fm.columns, codes)
    refused: Mask = np.asarray(np.isnan(Z).any(axis=1))
    allowed = rounding(fm, codes[~refused])
    made, *predicted = graph(given)
    difference, agrees = _compared(made, Z, refused)
    agrees &= graph(codes[:0])[0].shape == (0, fm.n_components)
    beyond = difference > allowed
    agrees &= not beyond.any()
    if fm.predictor is not None:
        apart, fits = _compared(predicted[0], features(fm, codes, "predictions"), refused)
        agrees &= fits and bool((apart <= prediction_rounding(fm, Z[~refused], allowed)).all())
    if not len(difference):
        return Agreement(0, len(codes), 0.0, 0.0, agrees)
    worst = int(np.argmax(np.where(beyond, difference, -1.0) if beyond.any() else difference))
    return Agreement(
        len(difference), int(refused.sum()), float(difference[worst]), float(allowed[worst]), bool(agrees)
    )


def _compared(G: Floats, Z: Floats, refused: Mask) -> tuple[Floats, bool]:
    """Return the largest difference in each row that is not refused, and whether shapes and refused rows agree."""
    # In a row that the map refuses, the graph's outputs must not be finite either.
    fits = G.shape == Z.shape and not np.isfinite(G[refused]).all(axis=1).any()
    difference: Floats = np.abs(G[~refused].astype(np.float64) - Z[~refused]).max(axis=1, initial=0.0)
    difference[np.isnan(difference)] = np.inf
    return difference, fits


def _session(data: bytes) -> Callable[[Floats], list[Floats]]:
    """Return a function that computes the outputs of a graph, in their order."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UsageError(
            f"export: expected onnxruntime, got: {error}; pip install 'kafeat[onnx]', or --no-check"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # do not print errors, which are raised as exceptions
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime does not document the classes of its errors.
        raise UsageError(
            f"opset: expected a model that onnxruntime {onnxruntime.__version__} runs, got: {error}"
        ) from None

    return lambda X: session.run(None, {INPUT: X})


def features(fm: FeatureMap, codes: Floats, what: What = "features") -> Floats:
    """Return the features or the predicted numbers of rows whose categories are codes, with NaN for refused rows."""
    read = replace(fm, columns=fm.columns.as_read)
    program, (source, columns) = read.program(what), read.source(codes)
    out = np.empty((len(codes), program.width), program.dtype)
    chunks = source.chunks(columns, (), fm.chunk_rows)
    for _ in run(program, chunks, InMemory(out), 1, RowPolicy(set_aside=True), in_memory=True):
        pass
    return out


def rounding(fm: FeatureMap, codes: Floats) -> Floats:
    """Bound the rounding errors of each row's features, (n,), by how sensitive the map is to small changes.

    To first order, a stable computation in precision ε gives the exact result for inputs and a state that are off by ε.
    The effect of such changes is measured in float64. Errors of sums of n terms grow like a random walk, by √n. A term
    of ε times the largest feature bounds later errors. Steps before the cast of a float32 map have the ε of float64.
    """
    chain = fm.chain
    X: Floats = codes.astype(np.float64)
    moved = float(np.finfo(DOUBLE).eps) * _moved(chain, X)
    terms = max(_LEAST_TERMS, *(transform.widest for transform in fm.program.transforms))
    eps = float(np.finfo(fm.dtype).eps)
    after_cast = Chain(chain.steps[chain.cast_after :])
    if after_cast.steps:
        if chain.cast_after:
            X = _doubles(Chain(chain.steps[: chain.cast_after]), X)
        moved += eps * _moved(after_cast, X)
    size = np.abs(_doubles(chain, codes.astype(np.float64))).max(axis=1, initial=0.0)
    return np.sqrt(terms) * (moved + eps * size)


def prediction_rounding(fm: FeatureMap, Z: Floats, allowed: Floats) -> Floats:
    """Bound how far predictions move, (n,), if the features Z (n, D) of a row move by `allowed` (n,).

    A score moves by Σ|w| times as much, and by the rounding error of its product, √D ε Σ|wz|. A probability moves by at
    most twice the largest move of a score, divided by the temperature.
    """
    state = fm.needed_predictor().fitted.state
    w, eps = np.abs(state["weights"]), float(np.finfo(DOUBLE if state["wide"] else fm.dtype).eps)
    rounding = eps * np.sqrt(len(w)) * (np.abs(Z.astype(DOUBLE)) @ w)
    moved: Floats = (allowed[:, None] * w.sum(axis=0) + rounding).max(axis=1)
    size = np.abs(state["intercept"]).max()
    if "temperature" in state:
        moved, size = 2.0 * moved / float(state["temperature"]), 1.0
    return moved + 16.0 * float(np.finfo(DOUBLE).eps) * size


def _doubles(chain: Chain, X: Floats) -> Floats:
    """Return the features of rows X in float64, with NaN for refused rows."""
    return precision.features(chain.bind(DOUBLE), X, np.arange(len(X)), DOUBLE)


def _moved(chain: Chain, X: Floats) -> Floats:
    """Return how far each row's features move, (n,), relative to the size of random changes of rows X and states."""
    rng = np.random.default_rng(1)
    exact, moved = _doubles(chain, X), np.zeros(len(X))
    for _ in range(_DRAWS):
        steps = tuple(_off(fitted, rng) for fitted in chain.steps)
        other = _doubles(Chain(steps), _shaken(X, rng))
        moved = np.fmax(moved, np.abs(other - exact).max(axis=1, initial=0.0))
    return moved / _STEP


def _shaken(values: Floats, rng: np.random.Generator) -> Floats:
    return values * (1.0 + _STEP * rng.choice([-1.0, 1.0], size=values.shape))


def _off(fitted: FittedStep, rng: np.random.Generator) -> FittedStep:
    state: dict[str, Any] = {
        name: _shaken(value, rng) if value.dtype.kind == "f" else value
        for name, value in fitted.state.items()
    }
    return replace(fitted, state=state)


_ROWS = 240
_MISSING = 0.05


def probe_rows(fm: FeatureMap) -> Floats:
    """Return the rows (n, d) for the comparison, with codes of categories. A map always gets the same random rows."""
    rng = np.random.default_rng(0)
    X = _within(fm, rng)
    plain = np.ones(fm.n_features_in, dtype=bool)
    for j, categories in coded(fm.columns).items():
        plain[j] = False
        X[:, j] = rng.integers(-1 if categories.lenient else 0, len(categories.values), size=len(X))
    if fm.columns.missing:
        X[(rng.random(X.shape) < _MISSING) & plain] = np.nan
    return X


def _within(fm: FeatureMap, rng: np.random.Generator) -> Floats:
    shape = (_ROWS, fm.n_features_in)
    if fm.column_ranges is None:  # Old files lack ranges: use rows of both signs, and positive rows.
        X = rng.standard_normal(shape)
        X[::2] = np.abs(X[::2])
        return X.astype(fm.input_dtype)
    highest = float(np.finfo(fm.input_dtype).max)
    low, high = (
        np.clip(np.nan_to_num(end), -highest, highest)
        for end in (fm.column_ranges.low, fm.column_ranges.high)
    )
    share = rng.random(shape)
    share[1::3] **= 8
    share[2::3] = np.rint(share[2::3])
    share[0], share[1] = 0.0, 1.0
    # low + share·(high − low) could overflow the dtype.
    return ((1.0 - share) * low + share * high).astype(fm.input_dtype)


def as_given(columns: Columns, codes: Floats) -> Floats:
    """Convert rows with codes to inputs of the graph: numbers of categories, and another number if unknown."""
    X = codes.copy()
    for j, categories in coded(columns).items():
        numbers = numbers_of(categories)
        known = codes[:, j] >= 0.0
        X[~known, j] = numbers.max() + 1.0
        X[known, j] = numbers[codes[known, j].astype(np.intp)]
    return X


@dataclass(frozen=True)
class Exported:
    """A written ONNX file.

    Attributes
    ----------
    bytes : int
        Size of the file.
    opset : int
        Operator set of the graph.
    agreement : Agreement or None
        Comparison of the graph's features with the map's; None with `check=False`.
    """

    bytes: int
    opset: int
    agreement: Agreement | None


def export(
    model: str | os.PathLike[str] | FeatureMap,
    path: str | os.PathLike[str],
    *,
    opset: int = OPSET,
    check: bool = True,
    overwrite: bool = True,
    fsync: bool = True,
) -> Exported:
    """Write a map as an ONNX file, completely or not at all. ONNX's checker tests the model first.

    Parameters
    ----------
    model : str, path or FeatureMap
        Map to export, or the location of its model file.
    path : str or path
        File to write.
    opset : int, default 17
        ONNX operator set of the graph, at least 13.
    check : bool, default True
        Run the graph by onnxruntime on rows within the range of the training rows. The features must agree with those
        of `transform`, except for rounding.
    overwrite : bool, default True
        Replace an existing file.
    fsync : bool, default True
        Wait until the file is on the disk.

    Returns
    -------
    Exported
        Size, opset and agreement.

    Raises
    ------
    kafeat.errors.UsageError
        If a step has no ONNX operators, or the opset is not supported.
    kafeat.errors.GateError
        If the features do not agree; nothing is written.
    """
    fm = model if isinstance(model, FeatureMap) else load(model)
    proto = to_model(fm, opset)
    data: bytes = proto.SerializeToString(deterministic=True)
    del proto
    onnx.checker.check_model(data, full_check=True)
    agreement = compare(fm, data) if check else None
    if agreement and not agreement.agrees:
        raise GateError(
            f"{os.fspath(path)}: expected features that differ from kafeat's by at most {agreement.allowed:.1e}, "
            f"got {agreement.largest:.1e}: nothing was written"
        )
    write_file(path, data, overwrite, fsync=fsync)
    return Exported(len(data), opset, agreement)
