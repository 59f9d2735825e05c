"""FeatureMap with a step of every kind: scikit-learn's checks, negative values, and sparse rows."""

from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from kafeat.registry import build_step, map_kinds
from kafeat.sklearn import FeatureMap
from tests.recipes import small

STEPS = [small(kind) for kind in map_kinds()]
OF_COLUMNS = [step["kind"] for step in STEPS if build_step(step).traits.columns.named]
NON_NEGATIVE = [
    {"kind": "nystroem", "kernel": "chi2", "n_components": 4},
    {"kind": "union", "maps": [{"steps": [{"kind": "homogeneous"}]}]},
]


def kind_of(step: dict[str, Any]) -> str:
    return str(step["kind"])


# It subtracts a mean from whole numbers, which NumPy refuses.
FAILED = {"check_positive_only_tag_during_fit": "scikit-learn 1.6"} if version("scikit-learn") < "1.7" else {}


# one of the checks calls `fit` and then `partial_fit`; some have few rows
@pytest.mark.filterwarnings("ignore:partial_fit", "ignore:nystroem. expected at least")
@pytest.mark.usefixtures("one_limit")
@pytest.mark.parametrize(
    "step",
    # The estimator is one for all kinds: one that learns from the label, and one that refuses what is negative.
    [
        pytest.param(
            step, marks=[] if step is NON_NEGATIVE[0] or step["kind"] == "metric" else [pytest.mark.slow]
        )
        for step in [*STEPS, *NON_NEGATIVE]
    ],
    ids=kind_of,
)
def test_checks_of_scikit_learn(step: dict[str, Any]) -> None:
    check_estimator(FeatureMap([step]), on_skip=None, expected_failed_checks=FAILED)


def test_steps_that_refuse_negative_values_say_so() -> None:
    X = np.random.default_rng(0).normal(size=(40, 3)) - 2.0
    refusing = []
    for step in [*STEPS, *NON_NEGATIVE]:
        if get_tags(FeatureMap([step])).input_tags.positive_only:
            refusing.append(step["kind"])
            told = r"Negative values in data: .*column 'c\d': expected a value"
            with pytest.raises(ValueError, match=told):
                FeatureMap([step]).fit(X)
            with pytest.raises(ValueError, match="Negative values in data"):
                FeatureMap([step]).fit(np.abs(X)).transform(X)
    assert {"homogeneous", "intersection_bins", "log1p", "nystroem", "skewed", "union"} <= set(refusing)
    assert not get_tags(FeatureMap([{"kind": "homogeneous", "negative": "signed"}])).input_tags.positive_only


@pytest.mark.sampled
@pytest.mark.parametrize("step", [step for step in STEPS if step["kind"] not in OF_COLUMNS], ids=kind_of)
def test_sparse_rows_give_the_features_of_dense_ones(step: dict[str, Any]) -> None:
    X = sparse.random_array((60, 40), density=0.1, rng=np.random.default_rng(0), format="csr")
    y = X.sum(axis=1)
    given, whole = (FeatureMap([step]).fit(rows, y) for rows in (X, X.toarray()))
    expected = whole.transform(X.toarray())
    # sums of a few products, of numbers of at most the largest feature
    tolerance = 1e-12 * max(1.0, float(np.abs(expected).max()))
    for rows in (X, X.tocsc(), sparse.csr_matrix(X), X.toarray()):
        np.testing.assert_allclose(given.transform(rows), expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(whole.transform(X), expected, rtol=0, atol=tolerance)
    parts = FeatureMap([step]).partial_fit(X[:30], y[:30]).partial_fit(X[30:].toarray(), y[30:])
    np.testing.assert_allclose(parts.transform(X), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", OF_COLUMNS)
def test_steps_that_read_columns_take_no_sparse_rows(kind: str) -> None:
    step = next(step for step in STEPS if step["kind"] == kind)
    assert not get_tags(FeatureMap([step])).input_tags.sparse
    with pytest.raises(TypeError, match="Sparse data was passed"):
        FeatureMap([step]).fit(sparse.csr_array(np.eye(30)))
