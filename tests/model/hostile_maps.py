"""Maps of every kind with states and recipes that no fit gives, as a stranger could write them."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np

import kafeat
from kafeat.errors import ArtifactError, KafeatError
from kafeat.model import artifact, serialize
from kafeat.model.feature_map import FeatureMap
from kafeat.registry import build_step, map_kinds
from tests.recipes import small

Content = dict[str, Any]
Place = tuple[Any, ...]

_SMALL = {"n_components": 8}
_RANDOM = {**_SMALL, "frequencies": "iid", "weights": "uniform"}
STEPS: dict[str, list[dict[str, Any]]] = {
    **{kind: [small(kind)] for kind in map_kinds()},
    "arc_cosine, steps": [{"kind": "arc_cosine", **_SMALL, "order": 0, "features": "plain"}],
    "fourier": [{"kind": "fourier", **_RANDOM}],
    "fourier, fitted": [{"kind": "fourier", **_SMALL, "frequencies": "iid", "features": "offset"}],
    "fourier, structured": [{"kind": "fourier", **_RANDOM, "frequencies": "structured"}],
    "fourier, fastfood": [{"kind": "fourier", **_RANDOM, "frequencies": "fastfood"}],
    "date_parts": [{"kind": "date_parts", "columns": ["c1", "c3"], "cyclic": True}],
    "fourier, scaled": [{"kind": "fourier", **_RANDOM, "kernel": "matern", "length_scale": [1.0, 2.0, 3.0, 4.0]}],
    "homogeneous": [{"kind": "homogeneous", "order": 2}],
    "homogeneous, signed": [{"kind": "homogeneous", "kernel": "intersection", "negative": "signed"}],
    "hellinger": [{"kind": "homogeneous", "kernel": "hellinger", "homogeneity": 0.7}],
    "impute": [{"kind": "impute"}, {"kind": "log1p"}],
    "intersection_bins": [{"kind": "intersection_bins", "n_bins": 3}],
    "metric, diagonal": [{"kind": "metric", "diagonal": True}],
    "metric, rank": [{"kind": "metric", "rank": 2}],
    "minmax": [{"kind": "minmax", "clip": True}],
    "normalize": [{"kind": "normalize", "norm": "homogeneous", "homogeneity": 0.5}],
    "nystroem, matern": [{"kind": "nystroem", "n_components": 5, "kernel": "matern", "root": "symmetric"}],
    "nystroem, chi2": [{"kind": "nystroem", "n_components": 3, "n_landmarks": 5, "kernel": "chi2"}],
    "nystroem, polynomial": [{"kind": "nystroem", "n_components": 5, "kernel": "polynomial"}],
    "nystroem, intersection": [{"kind": "nystroem", "n_components": 5, "kernel": "intersection"}],
    "nystroem, precomputed": [{"kind": "nystroem", "n_components": 5, "kernel": "precomputed"}],
    "missing_indicator": [{"kind": "missing_indicator", "columns": "all"}, {"kind": "impute"}],
    "one_hot": [{"kind": "one_hot", "columns": ["c0", "c2"]}],
    "one_hot, rare": [{"kind": "one_hot", "columns": ["c0", "c2"], "min_frequency": 3}],
    "pca": [{"kind": "pca", "whiten": True}],
    "polynomial_features": [{"kind": "polynomial_features", "degree": 3}],
    "projection, sparse": [{"kind": "projection", **_SMALL, "matrix": "sparse", "density": 0.5}],
    "projection, srht": [{"kind": "projection", **_SMALL, "matrix": "srht"}],
    "quantile": [{"kind": "quantile", "n_quantiles": 5}],
    "random_maclaurin, exponential": [{"kind": "random_maclaurin", "n_components": 3, "kernel": "exponential"}],
    "random_subsets, all": [{"kind": "random_subsets", "n_components": 9, "kernel": "all_subsets"}],
    "skewed": [{"kind": "skewed", **_RANDOM}],
    "tensor_sketch, time": [{"kind": "tensor_sketch", **_SMALL, "domain": "time", "degree": 3}],
    "tensor_srht, real": [{"kind": "tensor_srht", **_SMALL, "complex_to_real": False, "coef0": 0.0}],
    "product": [{"kind": "product", "maps": [{"steps": [{"kind": "standardize"}]}] * 2}],
    "product, signs": [{"kind": "product", "maps": [{"steps": [{"kind": "standardize"}]}] * 2, "n_components": 3}],
    "trees, categories": [{**small("trees"), "categories": ["c0"]}],
    "union": [
        {
            "kind": "union",
            "maps": [
                {"columns": ["c1", "c3"], "steps": [{"kind": "standardize"}, {"kind": "fourier", **_RANDOM}]},
                {"weight": 2.0, "steps": [{"kind": "projection", **_SMALL, "matrix": "sparse", "density": 0.5}]},
            ],
        }
    ],
}  # fmt: skip


def rows(name: str) -> np.ndarray:
    """Rows that the map of that name is fitted on; of a precomputed kernel as many as columns."""
    X = np.random.default_rng(0).exponential(size=(12, 12 if "precomputed" in name else 4))
    if name.startswith("one_hot"):
        return X.round()
    return X @ X.T if "precomputed" in name else X


@cache
def _good(name: str, dtype: str) -> bytes:
    steps = STEPS[name]
    label = np.arange(12) % 2 if any(build_step(step).traits.label.needs for step in steps) else None
    return kafeat.fit({"dtype": dtype, "fit_rows": "all", "steps": steps}, rows(name), label=label).dumps()


def good(name: str, dtype: str = "float32") -> Content:
    """The content of the file of a fitted map."""
    return artifact.loads(_good(name, dtype), name)


_KINDS = ("bool", "int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64")
_VALUES = (0, 1, -1, 2**31, -(2**63), 0.5, 1e-300, 1e30, 1e300, -1e300, np.nan, np.inf, -np.inf)


def of_array(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array with other kinds of numbers, other values and other shapes, each once."""
    _, *changed = {(one.dtype, one.shape, one.tobytes()): one for one in (array, *_of_array(array))}.values()
    yield from changed


def _of_array(array: np.ndarray) -> Iterator[np.ndarray]:
    with np.errstate(all="ignore"):
        yield from map(array.astype, _KINDS)
        for value in _VALUES:  # whole numbers that have no such value get another
            every = np.full(array.shape, value).astype(array.dtype)
            yield every
            yield np.append(array.reshape(-1)[:-1], every.reshape(-1)[-1:]).reshape(array.shape)
    yield np.asarray(~array if array.dtype.kind == "b" else -array)
    yield array[:0] if array.ndim else np.empty(0, array.dtype)
    yield from (array.reshape(-1), array[None], np.zeros((), array.dtype), np.tile(array.reshape(-1), 2))
    if array.ndim:
        yield from (array[:-1], array.T[::-1].copy())


def of_states(content: Content) -> Iterator[Content]:
    """The map with each array of its steps changed, left out, or beside another."""
    for i, step in enumerate(content["steps"]):
        for name, array in step["state"].items():
            for changed in of_array(array):
                yield _with_state(content, i, {**step["state"], name: changed})
            yield _with_state(content, i, {key: value for key, value in step["state"].items() if key != name})
        yield _with_state(content, i, {**step["state"], "more": np.zeros(2)})


def _with_state(content: Content, i: int, state: dict[str, Any]) -> Content:
    steps = list(content["steps"])
    steps[i] = {**steps[i], "state": state}
    return {**content, "steps": steps}


VALUES = (
    None, True, -1, 0, 3, 10**18, 1e-300, float("nan"), "auto", [1.0], {"validate": [1.0]}, np.zeros((2, 3)),
)  # fmt: skip
"""One of every sort."""


def places(node: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every place of a content, and what is there."""
    yield place, node
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in inside:
        yield from places(inner, (*place, key))


def put(content: Content, place: Place, value: Any) -> Content:
    """The content with another value in this place."""
    edited = deepcopy(content)
    _holder(edited, place)[place[-1]] = deepcopy(value)
    return edited


def of_entries(content: Content) -> Iterator[Content]:
    """The map with each of its entries, but for arrays, changed or left out."""
    for place, entry in places(content):
        if place and not isinstance(entry, np.ndarray):
            yield from (put(content, place, value) for value in VALUES)
            missing = deepcopy(content)
            del _holder(missing, place)[place[-1]]
            yield missing


def _holder(content: Content, path: Place) -> Any:
    value: Any = content
    for key in path[:-1]:
        value = value[key]
    return value


def outcome(content: Content, X: np.ndarray) -> str:
    """`refused`, or what the map makes of rows: `numbers`, or `an error` of kafeat. Anything else is raised."""
    try:
        fm = serialize.build(FeatureMap, content, "x")
    except ArtifactError as error:
        if len(str(error)) > 1000 or not str(error).isprintable():
            raise ValueError("expected a short line") from error
        return "refused"
    try:
        Z = fm.chain.transform(X.astype(fm.dtype))
        if not fm.chain.steps[0].step.traits.exact.none:
            fm.exact_kernel(X)
    except KafeatError:
        return "an error"
    if not np.isfinite(Z).all():
        raise ArithmeticError(f"features that are no finite numbers: {Z[~np.isfinite(Z)][0]}")
    return "numbers"


def _step(kind: str, width: int, state: dict[str, np.ndarray] | None = None, **parameters: Any) -> Content:
    recipe = build_step({"kind": kind, **parameters}).recipe()
    return {"recipe": recipe, "n_features_in": width, "state": state or {}}


def _map(*steps: Content) -> Content:
    """A map of these steps, on one list column of the width that the first has."""
    width = steps[0]["n_features_in"]
    columns = {"features": [["x", width]], "positional": False, "input_width": None, "missing": False}
    rest = {key: value for key, value in good("normalize").items() if key != "seen"}
    return {**rest, "columns": columns, "steps": list(steps)}


_ONE = np.array(1.0)


def _tensor_sketch(degree: int, n_components: int) -> Content:
    shape = (degree, 5)
    state = {"buckets": np.zeros(shape, np.int64), "signs": np.ones(shape, np.int8), "gamma": _ONE}
    content = _map(_step("tensor_sketch", 4, state, degree=degree))
    content["steps"][0]["recipe"]["n_components"] = n_components
    return content


def _structured(m: int, width: int) -> Content:
    signs = np.ones((-(-m // width), 3, width), np.int8)
    state = {"signs": signs, "radii": np.ones(m), "phases": np.ones(m), "gamma": _ONE}
    more = {"frequencies": "structured", "features": "offset", "weights": "uniform", "n_components": m}
    return _map(_step("fourier", width, state, **more))


def _homogeneous(width: int) -> Content:
    state = {"frequencies": np.ones(1000), "coefficients": np.ones(1001)}
    return _step("homogeneous", width, state, order=1000)


def _sparse(width: int) -> Content:
    state = {"values": np.ones(1), "columns": np.zeros(1, np.int64), "starts": np.array([0, 1])}
    return _map(_step("projection", width, state, matrix="sparse", n_components=1))


def _one_hot(width: int) -> Content:
    state = {"columns": np.zeros(1, np.int64), "sizes": np.ones(1, np.int64)}
    return _map(_step("one_hot", width, state, columns=["x"]))


def _nested(levels: int) -> Content:
    recipe: Content = {"kind": "normalize"}
    for _ in range(levels):
        recipe = {"kind": "union", "maps": [{"steps": [recipe]}]}
    return _map(_step(width=4, **recipe))


def _chain_of_config(n: int) -> Content:
    return {**_map(_step("normalize", 4)), "config": {"steps": [{"kind": "normalize"}] * n}}


CLAIMS: dict[str, Callable[[], Content]] = {
    "sketches of the largest size": lambda: _tensor_sketch(64, 156_250),
    "sketches beyond it": lambda: _tensor_sketch(64, 10**6),
    "frequencies to be written out": lambda: _structured(10**6, 256),
    "monomials of many inputs": lambda: _map(_step("polynomial_features", 99_999, {"gamma": _ONE}, degree=1)),
    "monomials of a high degree": lambda: _map(_step("polynomial_features", 2, {"gamma": _ONE}, degree=64)),
    "monomials without end": lambda: _map(_step("polynomial_features", 10**6, {"gamma": _ONE}, degree=64)),
    "maps that multiply": lambda: _map(*(_homogeneous(4 * 2001**i) for i in range(4))),
    "inputs of a step without state": lambda: _map(_step("normalize", 10**18)),
    "inputs of a sparse matrix": lambda: _sparse(10**18),
    "inputs of categories": lambda: _one_hot(10**18),
    "inputs of a union": lambda: _map(_step("union", 10**18, maps=[{"steps": [{"kind": "normalize"}]}])),
    "a power of the kernel": lambda: _with_recipe("nystroem, polynomial", degree=10**18),
    "unions in unions": lambda: _nested(11),
    "a config of many steps": lambda: _chain_of_config(2000),
}
"""Maps of some bytes, or some megabytes at most, that claim to be large."""


def _with_recipe(name: str, **parameters: Any) -> Content:
    content = good(name)
    content["steps"][0]["recipe"].update(parameters)
    return content
