"""The kernel of a product is the product of its maps' kernels."""

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import ConfigError, DataError, InvalidValueError
from tests.recipes import fit_step

EPS = np.finfo(float).eps
X = np.random.default_rng(0).standard_normal((150, 4))
TABLE = pa.table({name: X[:, i] for i, name in enumerate("abcd")})
LINEAR = {"kind": "standardize"}
FOURIER = {"kind": "fourier", "gamma": 0.3, "n_components": 32, "frequencies": "iid", "weights": "uniform"}
SQUARE = {"kind": "polynomial_features", "degree": 2, "gamma": 0.5}
TWO = [{"columns": ["c", "a"], "steps": [FOURIER]}, {"steps": [SQUARE]}]


def fit(maps: list, seed: int = 0, **more: object) -> kafeat.FeatureMap:
    step = {"kind": "product", "maps": maps, **more}
    return kafeat.fit({"seed": seed, "dtype": "float64", "steps": [step]}, TABLE)


def exact(x: np.ndarray) -> np.ndarray:
    rbf = np.exp(-0.3 * ((x[:, None, [2, 0]] - x[None, :, [2, 0]]) ** 2).sum(-1))
    return rbf * (0.5 * x @ x.T + 1.0) ** 2


@pytest.mark.parametrize("n_components", [None, 64])
def test_the_exact_kernel_is_the_product(n_components: int | None) -> None:
    fm = fit(TWO, n_components=n_components)
    np.testing.assert_allclose(fm.exact_kernel(TABLE), exact(X), rtol=1e-12)
    steps = [{"kind": "product", "maps": TWO, "n_components": n_components}, {"kind": "normalize"}]
    behind = kafeat.fit({"dtype": "float64", "steps": steps}, TABLE)
    diagonal = exact(X).diagonal()  # a kernel behind it reads k(x, x)
    want = exact(X) / np.sqrt(np.outer(diagonal, diagonal))
    np.testing.assert_allclose(behind.exact_kernel(TABLE), want, rtol=1e-10)


def test_all_products_have_the_product_of_the_maps_kernels_exactly() -> None:
    maps = [*TWO, {"columns": ["d"], "steps": [LINEAR]}]
    fm = fit(maps)
    assert fm.n_components == 32 * 15
    Z = fm.transform(TABLE)
    want = np.ones((len(X), len(X)))
    state = fm.chain.steps[0].state
    angles = X[:, [2, 0]] @ state["0.0.frequencies"].T
    cosines = np.hstack([np.cos(angles), np.sin(angles)]) / 4.0
    scaled = (X[:, 3:] - X[:, 3:].mean()) / X[:, 3:].std()
    want = (cosines @ cosines.T) * (0.5 * X @ X.T + 1.0) ** 2 * (scaled @ scaled.T)
    # sums of 480 products
    np.testing.assert_allclose(Z @ Z.T, want, rtol=0, atol=480 * EPS * np.abs(want).max())


def test_products_stand_in_unions_and_the_other_way_round() -> None:
    of_a, of_b = ({"columns": [name], "steps": [LINEAR]} for name in "ab")
    product, union = ({"kind": kind, "maps": [of_a, of_b]} for kind in ("product", "union"))
    fm = fit_step(TABLE, "union", maps=[{"steps": [LINEAR]}, {"steps": [product]}])
    S = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(fm.transform(TABLE), np.column_stack([S, S[:, 0] * S[:, 1]]), atol=1e-14)
    both = fit([{"steps": [union]}, {"columns": ["c"], "steps": [LINEAR]}])
    np.testing.assert_allclose(both.transform(TABLE), S[:, :2] * S[:, 2:3], atol=1e-14)


def test_too_many_products_ask_for_a_number() -> None:
    wide = {"steps": [{**FOURIER, "n_components": 1024}]}
    told = "product: n_components: expected a number, as the maps have 1,048,576 products"
    with pytest.raises(DataError, match=told):
        fit([wide, wide])
    assert fit([wide, wide], n_components=50).n_components == 50


def test_columns_and_rows_are_named_in_errors() -> None:
    told = r"product: maps\[1\]\.columns: expected columns of the input, got 'nope'"
    with pytest.raises(DataError, match=told):
        fit([TWO[0], {"columns": ["nope"], "steps": [LINEAR]}])
    with pytest.raises(ConfigError, match=r"maps\[0\]\.weight"):
        fit([{**TWO[0], "weight": 2.0}])
    maps = [{"columns": ["b"], "steps": ["log1p"]}]
    fm = fit_step(pa.table({"a": [1.0, 2.0], "b": [1.0, 2.0]}), "product", maps=maps)
    with pytest.raises((InvalidValueError, DataError), match=r"row 2 .*column 'b'"):
        fm.transform(pa.table({"a": [1.0, 2.0], "b": [1.0, -2.0]}))
