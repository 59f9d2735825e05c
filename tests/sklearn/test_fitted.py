"""scikit-learn's fitted maps as maps of kafeat: the same columns, and nothing but numbers from a stranger's file."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.metrics import pairwise
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

import kafeat
from kafeat.chain.chain import Chain, FittedStep
from kafeat.chain.tiles import TileLoop
from kafeat.errors import ArtifactError, DataError
from kafeat.jobs.inspect import inspect
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import loads
from kafeat.sklearn import import_fitted, import_skops
from kafeat.sklearn.fitted import MAPS

sio = pytest.importorskip("skops.io")

MAPS_TO_TRY = [
    RBFSampler(n_components=30),
    RBFSampler(gamma="scale", n_components=7),
    SkewedChi2Sampler(skewedness=0.5, n_components=30),
    *[AdditiveChi2Sampler(sample_steps=steps) for steps in (1, 2, 3)],
    AdditiveChi2Sampler(sample_steps=6, sample_interval=0.3),
    AdditiveChi2Sampler(sample_steps=2, sample_interval=6.28),
    PolynomialCountSketch(degree=3, coef0=1.5, gamma=0.1, n_components=41),
    PolynomialCountSketch(degree=1, n_components=3),
    GaussianRandomProjection(9),
    SparseRandomProjection(9),
    SparseRandomProjection(9, density=1.0),
    *[
        Nystroem(kernel, gamma=gamma, n_components=20)
        for kernel, gamma in [
            ("rbf", None), ("rbf", 0.01), ("laplacian", None), ("linear", None), ("cosine", None), ("chi2", None),
            ("chi2", 0.2), ("sigmoid", None), ("poly", None),
        ]
    ],
    Nystroem("polynomial", gamma=0.3, degree=2, coef0=0.5, n_components=20),
    Nystroem("sigmoid", gamma=0.01, coef0=0.1, n_components=20),
    Nystroem(n_components=300),
]  # fmt: skip
PIPELINES = [
    make_pipeline(StandardScaler(), PCA(6, whiten=True), RBFSampler()),
    make_pipeline(MinMaxScaler((1, 3)), Normalizer("l1"), AdditiveChi2Sampler()),
    make_pipeline(MinMaxScaler(clip=True), Normalizer("max"), SkewedChi2Sampler()),
    make_pipeline("passthrough", StandardScaler(with_mean=False), StandardScaler(with_std=False), PCA(), Nystroem()),
    make_pipeline(StandardScaler(), Nystroem(n_components=30), GaussianRandomProjection(5)),
    Pipeline([("inner", make_pipeline(StandardScaler(), Normalizer())), ("map", RBFSampler())]),
]  # fmt: skip


def rows(dtype: str = "float64", n: int = 400) -> np.ndarray:
    """Histogram-like: not below 0, some entries 0."""
    X = np.random.default_rng(0).exponential(size=(n, 12))
    return np.where(X < 0.2, 0.0, X).astype(dtype)


def fitted(estimator: Any, X: Any) -> Any:
    seeds = {name: 3 for name in estimator.get_params() if name.endswith("random_state")}
    return clone(estimator).set_params(**seeds).fit(X)


def rounding(fm: FeatureMap, X: np.ndarray, dtype: str) -> np.ndarray:
    """Bound the difference of two evaluations in `dtype`, for each entry: see `rounding` in tests/test_contract.py.

    A stable evaluation in precision eps is the exact one of inputs and state that are off by eps each: that is seen
    in float64, at a larger step. Sums of n ≤ 300 products add roundings as a random walk, 18 times one; some more
    for what follows the sums; two evaluations may be off to both sides. Of an entry the mean over the rows is taken,
    since a single one may happen not to move.
    """
    seen, rng = 1e-6, np.random.default_rng(1)

    def off(values: np.ndarray) -> np.ndarray:
        return values * (1.0 + seen * rng.choice([-1.0, 1.0], size=values.shape))

    def run(chain: Chain, X: np.ndarray) -> np.ndarray:
        out = np.empty((len(X), fm.n_components))
        TileLoop(chain.bind(np.dtype("float64")), np.dtype("float64"))(X, out)
        return out

    X = X.astype(np.float64)
    exact, moved = run(fm.chain, X), np.zeros(fm.n_components)
    for _ in range(3):
        steps = [
            FittedStep(
                f.step, {k: off(v) if v.dtype.kind == "f" else v for k, v in f.state.items()}, f.n_features_in
            )
            for f in fm.chain.steps
        ]
        moved = np.maximum(moved, np.abs(run(Chain(tuple(steps)), off(X)) - exact).max(axis=0))
    return 64.0 * np.finfo(dtype).eps * (moved / seen + np.abs(exact).max())


@pytest.mark.parametrize("estimator", MAPS_TO_TRY + PIPELINES, ids=lambda e: " ".join(str(e).split()))
def test_columns_are_equal(estimator: Any) -> None:
    for dtype in ("float64", "float32"):
        X = rows(dtype)
        theirs = fitted(estimator, X)
        fm = import_fitted(theirs, dtype)
        assert fm.dtype == dtype
        expected = theirs.transform(X)
        expected = expected.toarray() if hasattr(expected, "toarray") else expected
        tolerance = rounding(fm, X, dtype)
        assert (np.abs(fm.transform(X) - expected) <= tolerance).all()
        # and a column is nobody else's: neighbours differ by more than that
        if dtype == "float64" and fm.n_components > 1:
            assert (
                np.abs(np.diff(expected, axis=1)).max(axis=0) > 1e3 * (tolerance[1:] + tolerance[:-1])
            ).all()
        # what is saved is what is read back by the guard, which trusts no state
        assert loads(fm.dumps()).transform(X).tobytes() == fm.transform(X).tobytes()


def test_all_seven_are_tried() -> None:
    assert {type(estimator) for estimator in MAPS_TO_TRY} == set(MAPS)
    assert len(MAPS) == 7


@pytest.mark.parametrize(
    ("estimator", "kernel"),
    [
        (RBFSampler(gamma=0.2), lambda X: pairwise.rbf_kernel(X, gamma=0.2)),
        (RBFSampler(gamma="scale"), lambda X: pairwise.rbf_kernel(X, gamma=1.0 / (12 * rows().var()))),
        # 2xy/(x + y) = (x + y)/2 − (x − y)²/(2(x + y))
        (
            AdditiveChi2Sampler(),
            lambda X: (pairwise.additive_chi2_kernel(X) + X.sum(1)[:, None] + X.sum(1)) / 2.0,
        ),
        (PolynomialCountSketch(gamma=0.5, coef0=2, degree=3), lambda X: pairwise.polynomial_kernel(X, None, 3, 0.5, 2)),
        (GaussianRandomProjection(5), pairwise.linear_kernel),
        (Nystroem("laplacian"), pairwise.laplacian_kernel),
        (Nystroem("chi2"), pairwise.chi2_kernel),
        (Nystroem("poly"), pairwise.polynomial_kernel),
        (Nystroem("sigmoid", coef0=0.3), lambda X: pairwise.sigmoid_kernel(X, coef0=0.3)),
    ],
    ids=lambda value: str(value) if isinstance(value, BaseEstimator) else "",
)  # fmt: skip
def test_the_exact_kernel_is_known(estimator: Any, kernel: Callable[[np.ndarray], np.ndarray]) -> None:
    X = rows(n=40)
    fm = import_fitted(fitted(estimator, rows()))
    # sums of d = 12 terms and a function of them
    np.testing.assert_allclose(fm.exact_kernel(X), kernel(X), rtol=1e-12, atol=1e-13)


def test_columns_are_found_by_the_names_that_the_estimator_has_met() -> None:
    pd = pytest.importorskip("pandas")
    names = [f"x{i}" for i in range(12)]
    theirs = fitted(make_pipeline(StandardScaler(), RBFSampler()), pd.DataFrame(rows(), columns=names))
    fm = import_fitted(theirs)
    table = pa.table({"id": range(400), **dict(zip(names[::-1], rows().T[::-1], strict=True))})
    tolerance = rounding(fm, rows(), "float64")
    assert (
        np.abs(fm.transform(table) - theirs.transform(pd.DataFrame(rows(), columns=names))) <= tolerance
    ).all()
    without = import_fitted(fitted(RBFSampler(), rows()))
    assert without.columns.positional
    with pytest.raises(DataError, match="expected 12 feature columns, got 13"):
        without.transform(table)


def test_the_map_says_where_it_comes_from(tmp_path: Path) -> None:
    sio.dump(fitted(make_pipeline(StandardScaler(), Nystroem()), rows()), tmp_path / "map.skops")
    fm = import_skops(tmp_path / "map.skops")
    fm.save(tmp_path / "map.joblib")
    found = inspect(kafeat.load(tmp_path / "map.joblib"))
    assert found["fitted_from"]["imported"] == "scikit-learn: StandardScaler -> Nystroem"
    assert [(o["name"], o["rows"]) for o in found["fitted_from"]["sources"]] == [("map.skops", 0)]
    assert found["contains_training_rows"]
    assert not inspect(import_fitted(fitted(RBFSampler(), rows())))["contains_training_rows"]


# --- what is refused


class OtherSampler(RBFSampler):
    """No RBFSampler: it may do anything."""


def dot(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y)


def with_attributes(estimator: Any, **attributes: Any) -> Any:
    estimator = fitted(estimator, rows())
    for name, value in attributes.items():
        setattr(estimator, name, value)
    return estimator


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "not fitted": (RBFSampler, "RBFSampler: n_features_in_: expected a fitted estimator"),
    "another": (FunctionTransformer, "FunctionTransformer: expected one of AdditiveChi2Sampler, Gaussian"),
    "a subclass": (OtherSampler, "OtherSampler: expected one of"),
    "no estimator": (lambda: 3, "int: expected one of"),
    "a model behind": (
        lambda: make_pipeline(RBFSampler(), FunctionTransformer()),
        r"of a pipeline that ends in a model, import pipeline\[:-1\]",
    ),
    "nothing in it": (lambda: Pipeline([("a", "passthrough")]), "Pipeline: expected at least one step"),
    "steps of another type": (lambda: Pipeline(3), "Pipeline: steps: expected pairs"),
    "precomputed": (
        lambda: fitted(Nystroem("precomputed", n_components=12), np.eye(12)),
        "Nystroem: kernel: expected one of rbf, .*, got 'precomputed'",
    ),
    "a kernel that is not positive": (
        lambda: fitted(Nystroem("additive_chi2", n_components=5), rows()),
        "Nystroem: kernel: expected one of .*, got 'additive_chi2'",
    ),
    "a function": (lambda: fitted(Nystroem(dot), rows()), "Nystroem: kernel: expected one of"),
    "kernel_params": (
        lambda: fitted(Nystroem(kernel_params={"gamma": 3.0}), rows()),
        "Nystroem: kernel_params: expected none",
    ),
    "a broken degree": (
        lambda: fitted(Nystroem("poly", degree=2.5), rows()),
        "Nystroem: degree: expected a whole number, .*, got 2.5",
    ),
    "a negative c0": (lambda: fitted(Nystroem("poly", coef0=-1), rows()), r"coef0: expected a number of at least 0"),
    "a negative skewedness": (
        lambda: fitted(SkewedChi2Sampler(skewedness=-0.0), rows()),
        r"skewedness: expected a number above 0",
    ),
    "gamma 0": (lambda: fitted(RBFSampler(gamma=0), rows()), r"steps\[0\]\.gamma: expected a number above 0"),
    "interval": (
        lambda: fitted(AdditiveChi2Sampler(sample_interval=7), rows()),
        "sample_interval: expected a number above 0, at most 2π, got 7.0",
    ),
    "clip elsewhere": (
        lambda: fitted(MinMaxScaler((0, 2), clip=True), rows()),
        "MinMaxScaler: clip: expected False",
    ),
    "a width of another": (
        lambda: with_attributes(RBFSampler(), n_features_in_=11),
        r"RBFSampler: random_weights_: expected the shape \(11, any\), got \(12, 100\)",
    ),
    "widths that do not follow": (
        lambda: Pipeline([("a", fitted(GaussianRandomProjection(5), rows())), ("b", fitted(RBFSampler(), rows()))]),
        r"GaussianRandomProjection -> RBFSampler: steps\[1\]\.state\.frequencies: expected the shape \(100, 5\)",
    ),
    "NaN": (
        lambda: with_attributes(RBFSampler(), random_offset_=np.full(100, np.nan)),
        r"steps\[0\]\.state\.phases: expected finite numbers",
    ),
    "objects": (
        lambda: with_attributes(RBFSampler(), random_offset_=np.full(100, None)),
        "random_offset_: expected a dense array of numbers",
    ),
    "an array of another class": (
        lambda: with_attributes(RBFSampler(), random_offset_=np.ma.ones(100)),
        "random_offset_: expected a dense array of numbers, got 'MaskedArray'",
    ),
    "text for gamma": (lambda: with_attributes(RBFSampler(), gamma="wide"), "gamma: expected a finite number"),
    "a number of some hundred digits": (
        lambda: with_attributes(PolynomialCountSketch(), n_components=10**400),
        "PolynomialCountSketch: n_components: expected a finite number, got 10000",
    ),
    "signs": (
        lambda: with_attributes(PolynomialCountSketch(), bitHash_=np.full((2, 12), 300)),
        "bitHash_: expected signs",
    ),
    "a bucket out of range": (
        lambda: with_attributes(PolynomialCountSketch(), indexHash_=np.full((2, 12), 100)),
        r"state\.buckets: expected whole numbers from 0 to 99",
    ),
    "names": (
        lambda: with_attributes(RBFSampler(), feature_names_in_=["a"] * 12),
        "columns.features: expected every name once",
    ),
    "too few names": (lambda: with_attributes(RBFSampler(), feature_names_in_=["a"]), "feature_names_in_: expected 12"),
    "rows that share entries": (
        lambda: edited_sparse(lambda matrix: matrix.indptr.__setitem__(1, 10**6)),
        r"state\.starts: expected",
    ),
    "an index out of range": (
        lambda: edited_sparse(lambda matrix: matrix.indices.__setitem__(0, 12)),
        r"state\.columns: expected whole numbers from 0 to 11",
    ),
    "no CSR": (
        lambda: with_attributes(SparseRandomProjection(3), components_=fitted(
            SparseRandomProjection(3), rows()).components_.tocsc()),
        "components_: expected a CSR matrix of 12 columns",
    ),
}  # fmt: skip


def edited_sparse(edit: Callable[[Any], object]) -> Any:
    estimator = fitted(SparseRandomProjection(3), rows())
    edit(estimator.components_)
    return estimator


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_is_refused_by_name(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(DataError, match=message) as caught:
        import_fitted(make())
    assert isinstance(caught.value, ValueError)


# --- files


def dumped(estimator: Any) -> bytes:
    data: bytes = sio.dumps(estimator)
    return data


def refused(data: bytes, tmp_path: Path, message: str) -> None:
    path = tmp_path / "bad.skops"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=message) as caught:
        import_skops(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 1000


def edited_schema(data: bytes, edit: Callable[[dict[str, Any]], object]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                edit(schema)
                content = json.dumps(schema).encode()
            new.writestr(name, content)
    return out.getvalue()


class Run:
    """Would touch a file when it is made again."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __setstate__(self, state: dict[str, Any]) -> None:
        Path(state["path"]).touch()


def test_nothing_of_a_strangers_file_runs(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    good = fitted(RBFSampler(), rows())
    good.random_state = Run(canary)
    refused(
        dumped(good), tmp_path, r"expected scikit-learn's maps and scalers only, got '.*test_fitted\.Run'"
    )
    refused(dumped(OtherSampler()), tmp_path, "maps and scalers only, got '.*OtherSampler'")
    refused(dumped(FunctionTransformer(print)), tmp_path, "builtins.print")
    kernel = fitted(Nystroem(dot), rows())
    refused(dumped(kernel), tmp_path, r"got '.*test_fitted\.dot'")

    def system(schema: dict[str, Any]) -> None:
        schema["__module__"], schema["__class__"] = "os", "system"

    refused(edited_schema(dumped(fitted(RBFSampler(), rows())), system), tmp_path, "os.system")
    assert not canary.exists()


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    good = dumped(fitted(RBFSampler(), rows()))
    for data in (b"", b"PK", good[: len(good) // 2], b"\x80\x04N.", edited_schema(good, dict.clear)):
        refused(data, tmp_path, "expected a file of skops, got one that cannot be read")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * (8 << 20))
    refused(bomb.getvalue(), tmp_path, "that unfold to 8388608")
    nested = io.BytesIO()
    with zipfile.ZipFile(nested, "w") as archive:
        archive.writestr("1.npz", bomb.getvalue())
    refused(nested.getvalue(), tmp_path, "that unfold to")
    refused(dumped(FunctionTransformer()), tmp_path, "FunctionTransformer: expected one of")
    refused(dumped(RBFSampler()), tmp_path, "RBFSampler: n_features_in_: expected a fitted estimator")


@pytest.mark.parametrize("estimator", [RBFSampler(), SparseRandomProjection(4), Nystroem("chi2"), PIPELINES[0]],
                         ids=lambda e: type(e).__name__)  # fmt: skip
def test_a_file_gives_the_same_map(estimator: Any, tmp_path: Path) -> None:
    theirs = fitted(estimator, rows())
    sio.dump(theirs, tmp_path / "map.skops")
    fm, direct = import_skops(tmp_path / "map.skops", "float32"), import_fitted(theirs, "float32")
    assert replace(fm, provenance=direct.provenance).dumps() == direct.dumps()
