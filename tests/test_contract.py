"""The contract of a kind. No kind is named here, and one without test, config or docstring fails."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

import kafeat
from kafeat.chain import tiles
from kafeat.chain.chain import Chain, FittedStep
from kafeat.chain.tiles import LEAST_ROWS, MOST_ROWS, TileLoop
from kafeat.config import Config, load_config
from kafeat.contract.describe import purpose
from kafeat.contract.kernel_inputs import Coordinates
from kafeat.contract.step import Sample, Step, Transform
from kafeat.contract.tile import Rows, SparseRows
from kafeat.errors import ConfigError, DataError, InvalidValueError
from kafeat.model.feature_map import FeatureMap
from kafeat.registry import map_kinds, samplers, step_class
from kafeat.runtime.run import InMemory, run

HERE = Path(__file__).parent
Fit = Callable[..., FeatureMap]
# What differs by precision is tested in both, but for the kinds that are drawn for the day in float32 alone.
DTYPES = ("float32", pytest.param("float64", marks=pytest.mark.sampled))

# Rows that are transformed: a full tile, and a part of another.
ROWS = LEAST_ROWS + 88

pytestmark = [pytest.mark.parametrize("kind", map_kinds()), pytest.mark.usefixtures("one_limit")]


@pytest.fixture(autouse=True)
def _low_tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of narrow maps are four times as high, and rows that are not there cost as much as others."""
    if "other_rows" not in request.node.name:
        monkeypatch.setattr(tiles, "MOST_ROWS", LEAST_ROWS)


class Untouchable:
    """In the place of a generator: shows whether a step draws."""

    def __getattr__(self, name: str) -> None:
        raise LookupError(f"the step draws: {name}")


def more_ink_above(digits: np.ndarray) -> np.ndarray:
    """Return a label of two classes, for steps that learn from one: whether the upper half of a digit has more ink."""
    return digits[:, :32].sum(axis=1) > digits[:, 32:].sum(axis=1)


@pytest.fixture(scope="module")
def fitted(configs: Path, digits: np.ndarray, digits_table: pa.Table) -> Fit:
    def fitted(kind: str, dtype: str) -> FeatureMap:
        plain = load_config(configs / f"{kind}.yaml").to_plain()
        config = load_config({**plain, "dtype": dtype, "seed": 1})
        return kafeat.fit(
            config, digits_table.slice(0, 900), more_ink_above(digits)[:900] if config.needs_label else None
        )

    return fitted


@pytest.fixture(scope="module")
def fitted_once(fitted: Fit) -> Fit:
    return cache(fitted)


@pytest.fixture
def config(kind: str, configs: Path) -> Config:
    return load_config(configs / f"{kind}.yaml")


@pytest.fixture
def step(kind: str, config: Config) -> Step:
    """The step of that kind in its config."""
    return next(step for step in config.steps if step.kind == kind)


@pytest.fixture
def fit(kind: str, fitted_once: Fit) -> Fit:
    def fit(dtype: str = "float32", chunk_rows: int | None = None) -> FeatureMap:
        fm = fitted_once(kind, dtype)
        return fm if chunk_rows is None else replace(fm, chunk_rows=chunk_rows)

    return fit


def rounding(fm: FeatureMap, X: np.ndarray, dtype: str) -> float:
    """Bound the effect of rounding in `dtype` on an output, by the map's own sensitivity.

    To first order, a stable evaluation in precision eps is the exact one of inputs and state that are off by
    eps each: that is measured in float64. Sums of up to n products, n ≤ 1,024 in these configs, add their
    roundings as a random walk, √n ≤ 32 times one; 32 eps of the largest output is for what follows the sums.
    """
    eps = float(np.finfo(dtype).eps)
    # seen at a larger step and scaled back, so that float64 itself resolves it
    seen = 1e-6
    rng = np.random.default_rng(0)

    def off(values: np.ndarray) -> np.ndarray:
        return values * (1.0 + seen * rng.choice([-1.0, 1.0], size=values.shape))

    def run(chain: Chain, X: np.ndarray) -> np.ndarray:
        out = np.empty((len(X), fm.n_components))
        TileLoop(chain.bind(np.dtype("float64")), np.dtype("float64"))(X, out)
        return out

    X = (X if X.shape[1] == fm.n_features_in else fm.matrix(X))[:LEAST_ROWS].astype(np.float64)
    exact, moved = run(fm.chain, X), 0.0
    for _ in range(2):
        steps = [
            FittedStep(
                f.step, {k: off(v) if v.dtype.kind == "f" else v for k, v in f.state.items()}, f.n_features_in
            )
            for f in fm.chain.steps
        ]
        moved = max(moved, float(np.abs(run(Chain(tuple(steps)), off(X)) - exact).max()))
    return 32.0 * eps * (moved / seen + float(np.abs(exact).max()))


def whole_sample(fm: FeatureMap, digits: np.ndarray) -> Sample:
    """The digits as the first step sees them, with the names that the configs are written for."""
    X = fm.matrix(digits).astype(np.float64)
    X.flags.writeable = False
    return Sample(X, more_ink_above(digits), len(digits), names=fm.columns.names)


def test_has_a_test_and_a_config_of_its_own(kind: str, configs: Path) -> None:
    folder = "samplers" if kind in samplers() else "scalers"
    test = HERE / folder / f"test_{kind}.py"
    assert test.is_file(), f"a kind needs a test of its own: write {test.relative_to(HERE.parent)}"
    assert "def test_" in test.read_text()
    path = configs / f"{kind}.yaml"
    assert path.is_file(), f"a kind needs an example: write configs/{path.name}"
    assert kind in {step.kind for step in load_config(path).steps}
    assert path.read_text().splitlines()[1].startswith("# "), (
        f"configs/{path.name}: expected a comment that says what it is for"
    )


def test_is_documented(kind: str) -> None:
    cls = step_class(kind)
    text = cls.__doc__ or ""
    formula = text.split("\n\n")[0]
    assert any(sign in formula for sign in ("≈", "=", "/", "√")), f"{kind}: expected a formula"
    words = purpose(cls)
    assert 20 < len(words) <= 110, f"{kind}: expected a docstring of the file that says what the kind is for"
    assert not set("≈=ΣΠ") & set(words), f"{kind}: expected words, got the formula {words!r}"
    if kind in samplers():
        assert "Source: " in text, f"{kind}: expected the source of the method"
    for name, field in cls.model_fields.items():
        assert field.description, f"{kind}: {name}: expected a description"


@pytest.mark.sampled
def test_other_seed_other_state_where_something_is_drawn(step: Step, fit: Fit, digits: np.ndarray) -> None:
    sample = whole_sample(fit(), digits[:300])  # which is read-only
    try:
        step.fit(sample, Untouchable())
        draws = False
    except LookupError:
        draws = True
    first, again, other = (step.fit(sample, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert _bytes(first) == _bytes(again)
    assert (_bytes(first) != _bytes(other)) == draws


def _bytes(state) -> dict:
    return {name: (value.dtype.str, value.shape, value.tobytes()) for name, value in state.items()}


def test_state_and_width_are_as_declared(fit: Fit) -> None:
    for fitted_step in fit("float32").chain.steps:
        state = fitted_step.state
        assert all(type(value) is np.ndarray for value in state.values())
        checked = FittedStep.checked(fitted_step.step, state, fitted_step.n_features_in)
        assert checked.n_features_out == checked.bind(np.dtype("float32")).n_features_out


def test_dtype_and_width_are_as_stated(fit: Fit, digits: np.ndarray) -> None:
    fm = fit()
    Z = fm.transform(digits[:ROWS])
    assert Z.dtype == "float32"
    assert Z.shape == (ROWS, fm.n_components)
    assert np.isfinite(Z).all()
    assert fm.transform(digits[:0]).shape == (0, fm.n_components)


@pytest.mark.sampled
def test_input_is_left_alone_and_its_layout_does_not_matter(fit: Fit, digits: np.ndarray) -> None:
    fm, dtype = fit(), "float32"
    X = digits[:ROWS].astype(dtype)
    X.flags.writeable = False
    before, Z = X.tobytes(), fm.transform(X)
    assert X.tobytes() == before
    wide = np.full((2 * ROWS, 128), np.nan, dtype=dtype)
    wide[::2, ::2] = X
    for same in (np.asfortranarray(X), wide[::2, ::2], X.astype(np.float64), X.astype(np.uint8)):
        same.flags.writeable = False
        assert fm.transform(same).tobytes() == Z.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_bytes_of_a_row_do_not_depend_on_other_rows(fit: Fit, dtype: str, digits: np.ndarray) -> None:
    n = MOST_ROWS + 88
    X = digits[:n]
    edges = [n + i for n in (LEAST_ROWS, MOST_ROWS) for i in (-1, 0, 1)]
    for chunk_rows, ends in ((8192, edges), (150, [1, 2, 100, 149, 151, 299, 301])):
        fm = fit(dtype, chunk_rows=chunk_rows)
        Z = fm.transform(X)
        for rows in ends:
            assert fm.transform(X[:rows]).tobytes() == Z[:rows].tobytes(), rows
        for first, stop in ((1, 2), (149, 150), (LEAST_ROWS - 1, 300), (301, 309)):
            source, columns = fm.source(X[first:stop])
            part = np.empty_like(Z[first:stop])
            chunks = (replace(chunk, above=first % chunk_rows) for chunk in source.chunks(columns, (), n))
            for _ in run(fm.program(), chunks, InMemory(part), 1, in_memory=True):
                pass
            assert part.tobytes() == Z[first:stop].tobytes(), (first, stop)
    others = digits[-n:].copy()
    here = np.arange(0, n, 7)
    others[here] = X[here]
    assert fm.transform(others)[here].tobytes() == Z[here].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_row_law(fit: Fit, dtype: str, digits: np.ndarray) -> None:
    fm = fit(dtype)
    X = digits[:ROWS]
    Z, tolerance = fm.transform(X), rounding(fm, X, dtype)
    order = np.random.default_rng(3).permutation(ROWS)
    # another place in a tile may round the last bit otherwise, and no more
    np.testing.assert_allclose(fm.transform(X[order]), Z[order], rtol=0, atol=tolerance)
    kept = np.sort(order[: ROWS // 3])
    np.testing.assert_allclose(fm.transform(X[kept]), Z[kept], rtol=0, atol=tolerance)
    single = np.concatenate([fm.transform(X[i : i + 1]) for i in range(8)])
    np.testing.assert_allclose(single, Z[:8], rtol=0, atol=tolerance)


def test_bytes_do_not_depend_on_jobs(fit: Fit, digits: np.ndarray) -> None:
    fm = fit(chunk_rows=150)
    one, four = (fm.transform(digits[:ROWS], jobs=jobs).tobytes() for jobs in (1, 4))
    assert one == four


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_rows_give_what_dense_rows_give(kind, fit, dtype, digits, monkeypatch) -> None:
    fm = fit(dtype)
    fitted = next(one for one in fm.chain.steps if one.step.kind == kind)
    # Behind other steps a width is not that of the digits; entries of theirs are in every domain.
    X = np.resize(digits[:ROWS], (ROWS, fitted.n_features_in)).astype(dtype)
    # rows for the sparse way, and for the dense one
    share = np.where(np.arange(ROWS) % 5, 0.01, 0.5)[:, None]
    X *= np.random.default_rng(2).random(X.shape) < share
    monkeypatch.setattr(tiles, "LEAST_SPARSE", 1)
    chain = Chain((fitted,))
    transform = chain.bind(np.dtype(dtype))
    (whole, Z), (refused, S) = _tiles(transform, X), _tiles(transform, _sparse(X))
    assert whole == refused
    if whole is None:
        alone = replace(fm, chain=chain)
        np.testing.assert_allclose(S, Z, rtol=0, atol=rounding(alone, X, dtype))
        for rows in (1, 100, LEAST_ROWS + 1):
            assert _tiles(transform, _sparse(X)[:rows])[1].tobytes() == S[:rows].tobytes()
            below = _tiles(transform, _sparse(X)[rows:], above=rows % tiles.tile_rows(transform))[1]
            assert below.tobytes() == S[rows:].tobytes()


def _sparse(X: np.ndarray) -> SparseRows:
    rows, columns = np.nonzero(X)
    starts = np.append(0, np.cumsum(np.count_nonzero(X, axis=1)))
    return SparseRows(X[rows, columns], columns, starts, X.shape[1])


def _tiles(transform: Transform, X: Rows, above: int = 0) -> tuple[str | None, np.ndarray]:
    """The image, or what is refused."""
    out = np.empty((len(X), transform.n_features_out), X.dtype)
    try:
        TileLoop(transform, X.dtype)(X, out, above)
    except InvalidValueError as refused:
        return str(refused), out
    return None, out


def test_survives_saving(fit: Fit, digits: np.ndarray, tmp_path: Path) -> None:
    fm = fit()
    path = tmp_path / "map.joblib"
    fm.save(path)
    loaded = kafeat.load(path)
    assert path.read_bytes() == fm.dumps() == loaded.dumps()
    assert loaded.transform(digits[:ROWS]).tobytes() == fm.transform(digits[:ROWS]).tobytes()
    assert loaded.exact_kernel(digits[:50]).tobytes() == fm.exact_kernel(digits[:50]).tobytes()


def test_exact_kernel_is_symmetric_and_positive_semidefinite(fit: Fit, digits: np.ndarray) -> None:
    K = fit().exact_kernel(digits[:150])
    assert K.shape == (150, 150)
    assert K.dtype == np.float64
    # An entry is a sum of d = 64 terms (logarithms, for the products): its rounding is below d eps of the largest
    # sum of moduli, which for a positive semi-definite matrix is its largest diagonal entry times a few.
    entry = 4 * 64 * np.finfo(float).eps * np.abs(K).max()
    np.testing.assert_allclose(K, K.T, rtol=0, atol=entry)
    # Weyl: a perturbation of `entry` in each of n² places moves an eigenvalue by at most n times it.
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] >= -len(K) * entry
    np.testing.assert_allclose(fit().exact_kernel(digits[:9], digits[:150]), K[:9], rtol=0, atol=entry)


def test_exact_norms_are_the_diagonals(fit: Fit, digits: np.ndarray) -> None:
    """k(x, x) and k(y, y), which the exact kernel of a step behind this one reads."""
    chain = fit().chain
    x, y = (fit().matrix(rows).astype(float) for rows in (digits[:20], digits[20:35] + 1.0))
    pair = chain.exact_pair(Coordinates(x, y))
    for rows, norms in zip((x, y), pair.squared_norms, strict=True):
        own = chain.exact_pair(Coordinates(rows, rows)).dots.diagonal()
        # the same sums of d = 64 terms as above, in another order
        np.testing.assert_allclose(norms, own, rtol=0, atol=4 * 64 * np.finfo(float).eps * own.max())


@pytest.mark.sampled
def test_float32_is_close_to_float64(fit: Fit, digits: np.ndarray) -> None:
    fm, X = fit("float32"), digits[:ROWS]
    # the same state in both precisions: the values of the digits are whole, so they are the same too
    wide = FeatureMap(fm.chain, fm.columns, "float64", fm.chunk_rows, fm.config, fm.provenance)
    np.testing.assert_allclose(fm.transform(X), wide.transform(X), rtol=0, atol=rounding(fm, X, "float32"))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_output_may_be_in_either_memory_order(fit: Fit, dtype: str, digits: np.ndarray) -> None:
    fm = fit(dtype)
    X = fm.matrix(digits[:ROWS]).astype(dtype)
    outs = [np.full((ROWS, fm.n_components), np.nan, dtype=dtype, order=order) for order in "CF"]
    with threadpool_limits(limits=1, user_api="blas"):  # as `transform` has it: the last bit may depend on it
        for out in outs:
            TileLoop(fm.chain.bind(np.dtype(dtype)), np.dtype(dtype))(X, out)
    assert outs[0].tobytes() == fm.transform(digits[:ROWS].astype(dtype)).tobytes()
    np.testing.assert_allclose(*outs, rtol=0, atol=rounding(fm, X, dtype))


@pytest.mark.sampled
def test_one_input_column_is_enough(config: Config, digits: np.ndarray, digits_table: pa.Table) -> None:
    plain = {**config.to_plain(), "columns": {}}
    for part in (part for step in plain["steps"] for part in step.get("maps", ())):
        part["columns"] = None
    label = np.asarray(digits_table["label"]) if config.needs_label else None
    fm = kafeat.fit(plain, digits_table.select(["p20"]), label)
    assert np.isfinite(fm.transform(digits[:10, 20:21])).all()


def test_a_missing_number_is_refused_with_its_place(fit: Fit, digits: np.ndarray) -> None:
    X = digits[:300].copy()
    X[270, 5] = np.nan
    if fit().columns.missing:  # by declaration, and only a NaN
        assert np.isfinite(fit().transform(X)).all()
        X[270, 5] = np.inf
    with pytest.raises(DataError, match=r"row 271 \(index 270\), column 'c5': expected a finite number"):
        fit().transform(X)


def test_unknown_parameter_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"steps\[0\]\.no_such_parameter: "):
        load_config({"steps": [{"kind": kind, "no_such_parameter": 1}]})


def test_defaults_are_valid(kind: str) -> None:
    if any(field.is_required() for field in step_class(kind).model_fields.values()):
        with pytest.raises(ConfigError, match="got nothing"):
            load_config({"steps": [{"kind": kind}]})
        return
    step = step_class(kind)()
    assert step.kind == kind
    assert load_config({"steps": [step.recipe()]}).steps == (step,)
