"""Columns whose spreads differ by orders of magnitude: told where a step measures rows as a whole, and only there."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import KafeatWarning
from kafeat.jobs.fit.spreads import spread_warnings
from kafeat.registry import build_step, samplers, scalers, step_class
from tests.recipes import small

RNG = np.random.default_rng(0)
N = 500
AGE, INCOME = RNG.normal(40.0, 12.0, N), RNG.lognormal(10.0, 1.0, N)
SEX, RARE = RNG.integers(0, 2, N), (RNG.random(N) < 0.02).astype(int)
COUNTS = RNG.poisson(0.02, N)
MIXED = pa.table({"age": AGE, "income": INCOME, "sex": SEX})
FOURIER = {"kind": "fourier", "n_components": 8, "frequencies": "iid", "weights": "uniform"}


def told(steps: Any, table: Any = MIXED, **more: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KafeatWarning)
        kafeat.fit({"steps": steps, **more}, table)
    return [str(one.message) for one in caught if issubclass(one.category, KafeatWarning)]


NYSTROEM = {"kind": "nystroem", "n_components": 8}
NARROW = [{"kind": kind, "n_components": 2} for kind in ("pca", "projection")]
WIDE = [{"kind": kind, "n_components": 8} for kind in ("tensor_sketch", "arc_cosine")]
SUFFER = [FOURIER, NYSTROEM, {**NYSTROEM, "kernel": "linear"}, *NARROW, *WIDE]


@pytest.mark.parametrize("step", SUFFER)
def test_maps_of_whole_rows(step):
    (said,) = told([step])
    assert said.endswith(
        f": to {step['kind']} the smaller ones hardly count; put a step `kind: standardize` before it"
    )
    assert "('income' " in said
    assert ", 'sex' 0.499)" in said
    for first in ("standardize", "minmax"):
        assert told([{"kind": first}, step]) == []


TAKE = [{"kind": kind} for kind in ("homogeneous", "intersection_bins", "standardize", "normalize")]
TAKE += [{"kind": "skewed", "n_components": 8}, {**NYSTROEM, "kernel": "chi2", "gamma": 1e-6}]


@pytest.mark.parametrize("step", TAKE)
def test_kinds_that_take_columns_as_they_are(step):
    assert told([step], pa.table({"age": np.abs(AGE), "income": INCOME, "sex": SEX})) == []


def test_steps_that_leave_spreads_as_they_are_are_looked_through():
    (said,) = told([{"kind": "impute"}, FOURIER])
    assert "'income' " in said
    coded = MIXED.append_column("town", pa.array(RNG.choice(["a", "b"], N)))
    (said,) = told([{"kind": "one_hot", "columns": ["town"]}, FOURIER], coded)
    # behind one_hot, columns have no names
    assert "spreads of the columns differ by a factor of" in said
    assert "'income'" not in said
    assert told([{"kind": "log1p"}, FOURIER], pa.table({"a": np.abs(AGE), "income": INCOME})) == []
    assert told([{"kind": "homogeneous"}, FOURIER], pa.table({"a": np.abs(AGE), "income": INCOME})) == []


def test_maps_of_a_union_see_their_own_columns():
    def union(*maps: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"kind": "union", "maps": list(maps)}]

    (said,) = told(union({"steps": [FOURIER]}))
    assert "to fourier the smaller ones" in said
    apart = [{"columns": columns, "steps": [FOURIER]} for columns in (["income"], ["sex", "age"])]
    assert told(union(*apart)) == []
    assert told(union({"steps": [{"kind": "standardize"}, FOURIER]})) == []
    nested = union({"columns": ["income", "sex"], "steps": union({"steps": [FOURIER]})})
    assert len(told(nested)) == 1


WITH_INCOME = [{"income": INCOME, "other": other} for other in (COUNTS, np.full(N, 0.1), INCOME)]


@pytest.mark.parametrize(
    "columns", [{"a": AGE, "b": 50.0 * AGE[::-1]}, {"s": SEX, "r": RARE}, {"a": AGE, "r": RARE}, *WITH_INCOME]
)
def test_data_that_are_alike_enough(columns):
    assert told([FOURIER], pa.table(columns)) == []


def test_digits_and_few_rows(digits):
    assert told([FOURIER], digits) == []
    assert told([FOURIER], digits / 16.0) == []
    assert told([{"kind": "projection", "n_components": 1}], MIXED.slice(0, 5)) == []


def test_samplers_need_like_spreads_and_scalers_do_not():
    """But for these: so does a new kind, unless it is named here."""

    def those(kinds: tuple[str, ...], need: bool) -> set[str]:
        return {kind for kind in kinds if (build_step(small(kind)).traits.numbers.spreads == "needs") == need}

    alone = {"homogeneous", "intersection_bins", "product", "skewed", "text", "trees", "union"}
    assert those(samplers(), need=False) == alone
    assert those(scalers(), need=True) == {"metric", "pca"}


@pytest.mark.parametrize(
    ("sizes", "factor"),
    [((1e200, 1e195), "100,000"), ((1e-200, 1e-205), "100,000"), ((1.2, 1e-9), "1e+09"),
     ((1e200, 1e-100), "1e+300"), ((1e200, 1e-200), "inf")],
)  # fmt: skip
def test_spreads_whose_squares_no_number_holds(sizes, factor):
    X = np.where(np.arange(40) % 2, 1.0, -1.0)[:, None] * np.array(sizes)
    (said,) = spread_warnings(step_class("fourier")(n_components=2), X, None)
    assert said.startswith(f"the spreads of the columns differ by a factor of {factor}: ")
