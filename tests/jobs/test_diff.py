"""`kafeat diff` tells each difference by values that people can read."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.jobs.diff import differences

N = 40
FOURIER = {"kind": "fourier", "n_components": 4, "frequencies": "iid", "weights": "uniform"}


def rows(words: int = 3, **columns: Any) -> pa.Table:
    x = np.random.default_rng(0).normal(size=(N, 2))
    return pa.table({"x": x[:, 0], "w": x[:, 1], "c": [f"it's {i % words}" for i in range(N)], **columns})


def fitted(*steps: Any, table: pa.Table | None = None, label: Any = None, **config: Any) -> kafeat.FeatureMap:
    coded = [{"kind": "one_hot", "columns": ["c"]}, {"kind": "standardize"}]
    return kafeat.fit({"steps": [*coded, *steps], **config}, rows() if table is None else table, label=label)


def told(a: kafeat.FeatureMap, b: kafeat.FeatureMap) -> dict[str, str]:
    """Each place and its values; every line is short, and has neither Python's words nor a cut value."""
    found = differences(a, b)
    for one in found:
        line = str(one)
        assert not any(word in line for word in ("None", "True", "False", "array(", "{'", "...")), line
        assert len(line) < 600, line
    assert len({one.where for one in found}) == len(found)
    return {one.where: str(one).removeprefix(f"{one.where}: ") for one in found}


def test_equal_maps_have_none():
    assert told(fitted(FOURIER), fitted(FOURIER)) == {}


def test_plain_values():
    lines = told(fitted(FOURIER), fitted({**FOURIER, "kernel": "laplacian", "gamma": 0.5}, seed=3))
    assert lines["config.seed"] == "0 -> 3"
    assert lines["config.steps[2].kernel"] == lines["steps[2].parameters.kernel"] == "'rbf' -> 'laplacian'"
    assert lines["config.steps[2].gamma"] == "'median' -> 0.5"
    assert lines["steps[2].learned.gamma"].endswith(" -> 0.5")
    differ = "2 x 5 float64 -> 100.0% of entries differ, by up to "
    assert lines["steps[2].learned.frequencies"].startswith(differ)


def test_booleans_and_missing_values():
    clipping, plain = ({"kind": "minmax", "clip": clip} for clip in (True, False))
    assert told(fitted(clipping), fitted(plain))["config.steps[2].clip"] == "true -> false"
    lines = told(fitted(), fitted(clipping))
    assert lines["config.steps[2]"].startswith("nothing -> {kind: 'minmax', ")
    assert ", clip: true" in lines["config.steps[2]"]
    assert lines["steps[2].learned.low"].startswith("nothing -> [")


def test_columns_and_categories():
    lines = told(fitted(), fitted(table=rows(4), columns={"exclude": ["w"]}))
    assert lines["columns"] == "3 entries -> 2 entries: without ['w']"
    assert lines["categories.c"] == """3 entries -> 4 entries: with ["it's 3"]"""
    assert lines["config.columns.exclude"] == "0 entries -> 1 entry: with ['w']"
    assert lines["steps[0].learned.sizes"] == "[3] -> [4]"
    many = told(fitted(table=rows(20)), fitted(table=rows(9)))["categories.c"]
    assert many.startswith('20 entries -> 9 entries: without ["it\'s 10", ')
    assert many.endswith(", and 3 more]")


def test_a_dialect(tmp_path):
    for mark in ".,":
        (tmp_path / f"{mark}.csv").write_text("a;b\n" + "".join(f"{i}{mark}5;{i}\n" for i in range(9)))
    reading = kafeat.io.options.InputOptions(delimiter=";")
    files = [tmp_path / f"{mark}.csv" for mark in ".,"]
    a, b = (kafeat.fit({"steps": ["standardize"]}, file, reading=reading) for file in files)
    assert told(a, b)["dialect.decimal_commas"] == "0 entries -> 2 entries: with ['a', 'b']"


def test_whole_steps_maps_and_predictors_are_told_part_by_part():
    maps = [{"steps": [FOURIER]}, {"steps": [{"kind": "nystroem", "n_components": 3}]}]
    union = {"kind": "union", "maps": maps}
    label = ["no", "yes"] * (N // 2)
    a, b = fitted(FOURIER), fitted(union, {"kind": "ridge"}, label=label)
    lines = told(a, b)
    assert lines["config.steps[2].kind"] == "'fourier' -> 'union'"
    assert "n_components: 3, " in lines["config.steps[2].maps[1].steps[0]"]
    assert lines["predictor.parameters"].startswith("nothing -> {kind: 'ridge', ")
    assert lines["predictor.labels"] == "nothing -> {names: [], type: 'text', classes: ['no', 'yes']}"
    assert lines["predictor.learned.weights"] == "nothing -> 7 x 2 float64"
    assert "values: [1e-09, " in lines["fitted_from.searches[0]"]
    assert {where: line.split(" -> ") for where, line in told(b, a).items()}.keys() == lines.keys()
    numbers = fitted({"kind": "ridge", "penalty": 0.1}, label=np.arange(N) + 0.5)
    classes = fitted({"kind": "ridge", "penalty": 0.1}, label=label)
    assert told(numbers, classes)["predictor.labels.type"] == "'number' -> 'text'"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_difference_below_what_is_shown_is_still_told(dtype):
    config = {"dtype": dtype, "steps": [{"kind": "standardize"}]}
    a, b = (kafeat.fit(config, np.array([[0.0], [1.0 + tiny]])) for tiny in (0.0, 1e-9))
    assert "% of entries differ, by up to " in told(a, b)["steps[0].learned.mean"]
