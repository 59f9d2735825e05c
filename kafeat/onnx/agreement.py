"""Compare a graph's features with the map's: they agree but for rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafeat.chain import precision
from kafeat.chain.chain import Chain, FittedStep
from kafeat.chain.program import What
from kafeat.contract.step import DOUBLE
from kafeat.errors import UsageError
from kafeat.io.columns.columns import Columns
from kafeat.model.feature_map import FeatureMap
from kafeat.onnx.columns import coded, numbers_of
from kafeat.onnx.model import INPUT, OUTPUT, PREDICTIONS
from kafeat.onnx.predictor import prediction_rounding
from kafeat.runtime.run import InMemory, RowPolicy, run
from kafeat.types import Floats, Mask

Run = Callable[[Floats], Floats]

# A step at which float64 itself resolves how far the features move, and draws of it.
_STEP = 1e-6
_DRAWS = 2
# Sums of fewer terms are counted as these.
_LEAST_TERMS = 1024


@dataclass(frozen=True)
class Agreement:
    """Of `rows` rows, the largest difference of a feature, and what rounding explains in that row.

    Both refuse `refused` further rows. Without agreement, the row is one where rounding explains less.
    """

    rows: int
    refused: int
    largest: float
    allowed: float
    agrees: bool


def compare(fm: FeatureMap, data: bytes) -> Agreement:
    """Compare the ONNX model with `transform` on probe rows and on an empty table."""
    graph, codes = _session(data), probe_rows(fm)
    Z, G = features(fm, codes), graph(as_given(fm.columns, codes))
    refused: Mask = np.asarray(np.isnan(Z).any(axis=1))
    # Of a row that the map refuses the graph has no features either: NaN, or what has overflown.
    agrees = not np.isfinite(G[refused]).all(axis=1).any()
    agrees &= G.shape == Z.shape and graph(codes[:0]).shape == (0, fm.n_components)
    difference = np.abs(G[~refused].astype(np.float64) - Z[~refused]).max(axis=1, initial=0.0)
    difference[np.isnan(difference)] = np.inf
    allowed = rounding(fm, codes[~refused])
    beyond = difference > allowed
    agrees &= not beyond.any()
    if fm.predictor is not None:
        agrees &= _predictions_agree(fm, _session(data, PREDICTIONS), codes, Z, refused, allowed)
    if not len(difference):
        return Agreement(0, len(codes), 0.0, 0.0, agrees)
    worst = int(np.argmax(np.where(beyond, difference, -1.0) if beyond.any() else difference))
    return Agreement(
        len(difference), int(refused.sum()), float(difference[worst]), float(allowed[worst]), bool(agrees)
    )


def _predictions_agree(
    fm: FeatureMap, graph: Run, codes: Floats, Z: Floats, refused: Mask, allowed: Floats
) -> bool:
    """Compare the predicted numbers of the rows that are not refused; `allowed` is about their features."""
    P, G = features(fm, codes, "predictions"), graph(as_given(fm.columns, codes))
    agrees = G.shape == P.shape and not np.isfinite(G[refused]).all(axis=1).any()
    apart = np.abs(G[~refused] - P[~refused]).max(axis=1, initial=0.0)
    return bool(agrees and (apart <= prediction_rounding(fm, Z[~refused], allowed)).all())


def _session(data: bytes, output: str = OUTPUT) -> Run:
    try:
        import onnxruntime
    except ImportError as error:
        raise UsageError(
            f"export: expected onnxruntime, got: {error}; pip install 'kafeat[onnx]', or --no-check"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what is wrong comes as an exception
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of classes that onnxruntime does not name
        raise UsageError(
            f"opset: expected a model that onnxruntime {onnxruntime.__version__} runs, got: {error}"
        ) from None

    def graph(X: Floats) -> Floats:
        (Z,) = session.run([output], {INPUT: X})
        result: Floats = Z
        return result

    return graph


def features(fm: FeatureMap, codes: Floats, what: What = "features") -> Floats:
    """Return the features or the predicted numbers of rows whose categories are codes; NaN in a row that is refused."""
    read = replace(fm, columns=fm.columns.as_read)
    program, (source, columns) = read.program(what), read.source(codes)
    out = np.empty((len(codes), program.width), program.dtype)
    chunks = source.chunks(columns, (), fm.chunk_rows)
    for _ in run(program, chunks, InMemory(out), 1, RowPolicy(set_aside=True), in_memory=True):
        pass
    return out


def rounding(fm: FeatureMap, codes: Floats) -> Floats:
    """Bound the movement of each row's features by rounding, (n,), from the map's own sensitivity.

    To first order, a stable evaluation in precision ε is the exact one of inputs and of a state that are off by ε each:
    that is measured in float64. Sums of n terms add their roundings as a random walk, √n times one; ε of the row's
    largest feature is for what follows the sums. What comes before the cast of a float32 map is off by float64's ε.
    """
    chain = fm.chain
    X: Floats = codes.astype(np.float64)
    moved = float(np.finfo(DOUBLE).eps) * _moved(chain, X)
    terms = max(_LEAST_TERMS, *(transform.widest for transform in fm.transforms))
    eps = float(np.finfo(fm.dtype).eps)
    after_cast = Chain(chain.steps[chain.cast_after :], chain.outputs)
    if after_cast.steps:
        if chain.cast_after:
            X = _doubles(Chain(chain.steps[: chain.cast_after]), X)
        moved += eps * _moved(after_cast, X)
    size = np.abs(_doubles(chain, codes.astype(np.float64))).max(axis=1, initial=0.0)
    result: Floats = np.sqrt(terms) * (moved + eps * size)
    return result


def _doubles(chain: Chain, X: Floats) -> Floats:
    """The features of rows X in float64; NaN in a row that is refused."""
    return precision.features(chain.bind(DOUBLE), X, np.arange(len(X)), DOUBLE)


def _moved(chain: Chain, X: Floats) -> Floats:
    """Measure the movement of a feature of each row, (n,), per relative change of rows X (n, d) and state."""
    rng = np.random.default_rng(1)
    exact, moved = _doubles(chain, X), np.zeros(len(X))
    for _ in range(_DRAWS):
        steps = tuple(_off(fitted, rng) for fitted in chain.steps)
        other = _doubles(Chain(steps, chain.outputs), _shaken(X, rng))
        moved = np.fmax(moved, np.abs(other - exact).max(axis=1, initial=0.0))
    result: Floats = moved / _STEP
    return result


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
    """Rows (n, d), in the dtype that the map reads: categories are codes. The same for the same map."""
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
    if fm.column_ranges is None:  # older than that: of both signs, and of one
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
    # not low + share·(high − low), which may be more than the dtype holds
    return ((1.0 - share) * low + share * high).astype(fm.input_dtype)


def as_given(columns: Columns, codes: Floats) -> Floats:
    """The same rows as the graph is given them: categories by their numbers, an unknown one by another."""
    X = codes.copy()
    for j, categories in coded(columns).items():
        numbers = numbers_of(categories)
        known = codes[:, j] >= 0.0
        X[~known, j] = numbers.max() + 1.0
        X[known, j] = numbers[codes[known, j].astype(np.intp)]
    return X
