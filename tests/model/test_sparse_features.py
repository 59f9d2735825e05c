"""Sparse features are the features that are not 0, and no dense ones are made for them."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.random_projection import SparseRandomProjection

import kafeat
from kafeat.errors import DataError, KafeatWarning, UsageError
from kafeat.samplers.intersection_bins import _BinsTransform
from kafeat.samplers.projection import _SparseTransform
from kafeat.sklearn import FeatureMap

RNG = np.random.default_rng(0)
SPARSE = sp.random_array((500, 300), density=0.01, format="csr", rng=RNG)
DENSE = SPARSE.toarray()
BINS = {"kind": "intersection_bins", "n_bins": 7}
PROJECTION = {"kind": "projection", "matrix": "sparse", "n_components": 40}
HOMOGENEOUS = {"kind": "homogeneous"}
OWN_WAY = [(BINS, _BinsTransform), (PROJECTION, _SparseTransform)]


def fit(
    *steps: dict[str, object], dtype: str = "float64", data: object = SPARSE, **more: object
) -> kafeat.FeatureMap:
    return kafeat.fit({"dtype": dtype, "chunk_rows": 128, "steps": list(steps), **more}, data)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("X", [SPARSE, DENSE, DENSE.astype(np.float32)], ids=["csr", "dense", "float32"])
@pytest.mark.parametrize("steps", [[BINS], [{"kind": "minmax"}, BINS], [{"kind": "normalize"}, BINS]])
def test_bins_are_those_of_transform(steps, X, dtype):
    fm = fit(*steps, dtype=dtype)
    Z, want = fm.transform_sparse(X), fm.transform(X)
    assert Z.format == "csr"
    assert Z.has_sorted_indices
    assert Z.dtype == want.dtype == dtype
    np.testing.assert_array_equal(Z.toarray(), want)
    assert Z.nnz == np.count_nonzero(want)


KEEP_ZEROS = {
    "homogeneous": [HOMOGENEOUS],
    "hellinger": [{"kind": "homogeneous", "kernel": "hellinger"}],
    "signed": [{"kind": "homogeneous", "negative": "signed", "homogeneity": 1.5, "order": 2}],
    "after a scaler": [{"kind": "normalize", "norm": "l1"}, HOMOGENEOUS],
    "normalize": [{"kind": "normalize"}],
    "log1p": [{"kind": "log1p"}],
    "minmax": [{"kind": "minmax"}],  # of columns whose least number is 0
    "clip": [{"kind": "clip"}],
    "missing_indicator and impute": [{"kind": "missing_indicator", "columns": "all"}, {"kind": "impute"}],
    "union": [{"kind": "union", "maps": [{"steps": [HOMOGENEOUS]}, {"steps": [BINS], "weight": 2.0}]}],
    "product": [{"kind": "product", "maps": [{"steps": [BINS]}, {"steps": [{"kind": "projection", "matrix": "sparse",
                 "n_components": 3}]}]}],
}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("X", [SPARSE, DENSE], ids=["csr", "dense"])
@pytest.mark.parametrize("steps", KEEP_ZEROS.values(), ids=KEEP_ZEROS)
def test_whatever_keeps_zeros_gives_sparse_rows(steps, X, dtype):
    fm = fit(*steps, dtype=dtype)
    Z, want = fm.transform_sparse(X), fm.transform(X)
    assert Z.nnz == np.count_nonzero(want) < 0.2 * want.size
    np.testing.assert_array_equal(Z.toarray(), want)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_homogeneous_is_scikit_learns_sampler_of_sparse_rows(steps, monkeypatch):
    sampler = AdditiveChi2Sampler(sample_steps=steps).fit(SPARSE)
    period = 2 * np.pi / (sampler.sample_interval or {1: 0.8, 2: 0.5, 3: 0.4}[steps])
    config = {**HOMOGENEOUS, "window": "uniform", "order": steps - 1, "period": period}
    fm, peer = fit(config), sampler.transform(SPARSE)
    monkeypatch.setattr("kafeat.contract.tile.SparseRows.dense", lambda *_: pytest.fail("dense rows"))
    Z = fm.transform_sparse(SPARSE)
    assert Z.nnz == peer.nnz == SPARSE.nnz * (2 * steps - 1)
    # a logarithm of at most 40 that is rounded once, times 2, in a cosine
    np.testing.assert_allclose(Z.toarray(), peer.toarray(), rtol=0, atol=100 * np.finfo(float).eps)


def test_categories_give_sparse_rows():
    table = pa.table({"c": ["a", "b", "a", "c"]})
    fm = kafeat.fit({"steps": [{"kind": "one_hot", "columns": ["c"]}]}, table)
    np.testing.assert_array_equal(fm.transform_sparse(table).toarray(), np.eye(3)[[0, 1, 0, 2]])


def test_monomials_give_sparse_rows():
    fm = fit({"kind": "polynomial_features", "coef0": 0.0}, data=SPARSE[:, :20])
    Z, want = fm.transform_sparse(SPARSE[:, :20]), fm.transform(SPARSE[:, :20])
    np.testing.assert_array_equal(Z.toarray(), want)
    assert Z.nnz == np.count_nonzero(want) < 0.01 * want.size


@pytest.mark.parametrize("X", [SPARSE, DENSE], ids=["csr", "dense"])
def test_a_projection_of_sparse_rows_is_that_of_transform_and_of_scikit_learn(X):
    fm = fit(PROJECTION)
    Z, state = fm.transform_sparse(X), fm.chain.steps[0].state
    # at most 300 products a sum, in another order
    np.testing.assert_allclose(Z.toarray(), fm.transform(X), rtol=0, atol=300 * np.finfo(float).eps)
    peer = SparseRandomProjection(40).fit(DENSE)
    peer.components_ = sp.csr_array((state["values"], state["columns"], state["starts"]), shape=(40, 300))
    want, near = peer.transform(SPARSE).toarray(), 300 * np.finfo(float).eps
    np.testing.assert_allclose(Z.toarray(), want, rtol=0, atol=near)
    # three entries a row, of which a column of the matrix has 40/√300 others
    assert Z.nnz < 0.3 * Z.shape[0] * Z.shape[1]


@pytest.mark.parametrize(("step", "transform"), OWN_WAY)
def test_nothing_dense_is_made(step, transform, monkeypatch):
    fm = fit(step)
    monkeypatch.setattr(transform, "apply", lambda *_: pytest.fail("a dense chunk"))
    monkeypatch.setattr("kafeat.contract.tile.SparseRows.dense", lambda *_: pytest.fail("dense rows"))
    assert fm.transform_sparse(SPARSE).shape == (500, fm.n_components)


def test_no_rows():
    fm = fit(BINS)
    assert fm.transform_sparse(SPARSE[:0]).shape == (0, 2100)


@pytest.mark.parametrize("step", [BINS, HOMOGENEOUS, {"kind": "log1p"}], ids=lambda step: step["kind"])
@pytest.mark.parametrize("form", [sp.csr_array, np.asarray], ids=["csr", "dense"])
def test_a_value_that_is_refused_is_named(form, step):
    fm, bad = fit(step), DENSE.copy()
    bad[200, 3] = -1.0
    told = r"row 201 .*column .*expected a value (of at least 0|above -1), got -1"
    with pytest.raises(DataError, match=told):
        fm.transform_sparse(form(bad))
    bad[200, 3] = np.nan
    with pytest.raises(DataError, match="row 201"):
        fm.transform_sparse(form(bad))


UNION = {"kind": "union", "maps": [{"steps": [BINS]}, {"steps": [{"kind": "standardize"}]}]}
GIVE_DENSE = [{"kind": "fourier", "n_components": 4}, {**PROJECTION, "matrix": "gaussian"}]


@pytest.mark.parametrize("step", [*GIVE_DENSE, {"kind": "standardize"}, UNION])
def test_maps_with_dense_features_are_refused(step):
    with pytest.raises(UsageError, match="sparse features: expected a last step that keeps zeros"):
        fit(step).transform_sparse(SPARSE)


@pytest.mark.parametrize("step", [BINS, HOMOGENEOUS], ids=lambda step: step["kind"])
def test_the_estimator_gives_them_where_asked_for(step):
    model = FeatureMap(step, sparse_output=True).fit(SPARSE)
    assert sp.issparse(model.transform(SPARSE))
    found = FeatureMap(step).fit(SPARSE).transform(SPARSE)
    np.testing.assert_array_equal(model.transform(SPARSE).toarray(), found)
    assert isinstance(FeatureMap(step).fit(SPARSE).transform(SPARSE), np.ndarray)


@pytest.mark.filterwarnings("default")
def test_the_estimator_warns_of_a_projection_wider_than_its_input():
    with pytest.warns(KafeatWarning, match="301 outputs are more than 300 inputs"):
        FeatureMap({**PROJECTION, "n_components": 301}).fit(SPARSE)
