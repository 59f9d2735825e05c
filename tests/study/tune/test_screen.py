"""The exact machine on few rows: which kernels it prefers, and what it must not learn from."""

import numpy as np
import pyarrow as pa
import pytest

from kafeat.config import Config
from kafeat.jobs.fit.messages import SILENT
from kafeat.jobs.fit.reread import rereadable
from kafeat.study.tune.input import read_table
from kafeat.study.tune.options import TuneOptions
from kafeat.study.tune.problem import Problem
from kafeat.study.tune.screen import Screen
from kafeat.study.tune.space import DEFAULT, Candidate
from kafeat.study.tune.trials import Budget

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def enough_rows(monkeypatch):
    """As many rows as it takes to tell kernels apart."""
    monkeypatch.setattr("kafeat.study.tune.screen.EXACT_ROWS", 200)
    monkeypatch.setattr("kafeat.study.tune.screen._PARTS", 3)
    monkeypatch.setattr("kafeat.study.tune.screen._PAIRS", 2)


def screen(columns, jobs=1, split_by=None):
    """A screen of a table with the label y."""
    start = Config(steps=[{"kind": "standardize"}], split_by=split_by)
    with rereadable(pa.table(columns), None) as data:
        table = read_table(data, start, "y", None, SILENT)
    asked = TuneOptions(None, "y")
    budget = Budget(64)
    return Screen(
        Problem(asked=asked, data=None, label="y", start=start, table=table, jobs=jobs, budget=budget)
    )


def columns_of(X, y):
    return {**{f"x{j}": x for j, x in enumerate(X.T)}, "y": y}


def test_the_kernel_of_the_label_leads_whatever_the_jobs():
    """A label of steps of two columns among six: laplacian with a weight for each column before rbf."""
    X = RNG.normal(size=(300, 6))
    y = np.sign(X[:, 0]) + np.sign(X[:, 1]) + 0.1 * RNG.normal(size=300)
    first, second = screen(columns_of(X, y)), screen(columns_of(X, y), jobs=2)
    leaders = first.found(DEFAULT)
    assert second.found(DEFAULT) == leaders
    assert first.errors == second.errors
    assert (leaders[0].map, leaders[0].metric) != ("rbf", "none")
    assert first.errors[leaders[0]] < 0.8 * first.errors[DEFAULT] < 0.8
    assert len({one.map for one in leaders}) > 1


def test_the_gamma_that_made_the_label_is_near_the_best():
    X = RNG.uniform(size=(200, 2))
    found = screen(columns_of(X, np.sin(12.0 * X[:, 0]) * np.sin(12.0 * X[:, 1])))
    best = found.found(DEFAULT)[0]
    assert best.gamma > 1.0
    assert found.errors[best] < 0.2


@pytest.mark.parametrize("group", [None, "group:who"])
def test_a_row_is_not_predicted_from_its_equal_or_its_group(group):
    """A label that is a property of the rows' copies, or of their groups, is noise to others."""
    who = np.repeat(np.arange(40), 5)
    X = RNG.normal(size=(40, 3))[who] + (0.0 if group is None else 0.01) * RNG.normal(size=(200, 3))
    found = screen({**columns_of(X, RNG.normal(size=40)[who]), "who": [f"w{k}" for k in who]}, split_by=group)
    if group is None:
        found = screen(columns_of(X, found.problem.table.labels))
    found._try([DEFAULT, Candidate("standardize", "none", "laplacian", 9.0)])
    assert all(error > 0.8 for error in found.errors.values())


def test_times_are_predicted_from_those_before_them():
    """A label that grows with time is worse than its mean where only later rows are held out."""
    t = np.sort(RNG.uniform(0.0, 200.0, 200))
    table = {"t": t, "a": RNG.normal(size=200), "y": t + RNG.normal(size=200)}
    random, late = screen(table), screen(table, split_by="time:t")
    for one in (random, late):
        one._try([DEFAULT])
    assert random.errors[DEFAULT] < 0.1
    assert late.errors[DEFAULT] > random.errors[DEFAULT] * 3.0


def test_what_learned_from_the_label_is_refitted_without_the_rows_that_it_is_scored_on():
    """Mean labels of categories of one row each say all about the label, and nothing about others."""
    table = {
        "x": RNG.normal(size=300), "name": [f"n{k}" for k in np.arange(300) % 140], "y": RNG.normal(size=300),
    }  # fmt: skip
    found = screen(table)
    assert found.problem.table.groups.many
    found._try([DEFAULT])
    assert found.errors[DEFAULT] > 0.9
    found._try([Candidate("standardize", "metric", "rbf")])
    assert min(found.errors.values()) > 0.9


def test_of_kernels_with_one_error_the_first_goes_on():
    """A metric that finds nothing is the identity."""
    found = screen(columns_of(RNG.normal(size=(100, 2)), RNG.normal(size=100)))
    kernels = [Candidate("standardize", metric, "rbf") for metric in ("none", "metric", "metric (α = 0.5)")]
    found.errors |= dict.fromkeys(kernels, 0.5)
    assert found.ranked == kernels[:1]
