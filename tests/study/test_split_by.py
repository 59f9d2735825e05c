"""An evaluation holds out whole groups, or the latest rows, if recipes or an option say so."""

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import UsageError

RNG = np.random.default_rng(0)
OF = RNG.permutation(np.repeat(np.arange(50), 12))
X = RNG.normal(size=(50, 4))[OF] + 0.1 * RNG.normal(size=(600, 4))
COLUMNS = [*X.T, [f"p{i}" for i in OF], np.arange(600.0), RNG.normal(size=50)[OF]]
TABLE = pa.table(COLUMNS, names=["x0", "x1", "x2", "x3", "who", "t", "y"])
CONFIG = {
    "columns": {"include": ["x*"]},
    "steps": [{"kind": "standardize"}, {"kind": "nystroem", "n_components": 64, "gamma": 0.3}],
}


def evaluate(config=CONFIG, **options):
    return kafeat.evaluate(data=TABLE, label="y", config=config, jobs=1, **options)


def test_a_property_of_groups_is_not_learned_from_other_groups():
    random, grouped = evaluate(), evaluate(split_by="group:who")
    assert random["score_map"] > 0.6
    assert grouped["score_map"] < 0.2
    assert grouped["score_exact"] < 0.2
    assert evaluate({**CONFIG, "split_by": "group:who"})["score_map"] == grouped["score_map"]


def test_the_noise_of_a_score_is_that_of_the_groups():
    sides = np.random.default_rng(1).integers(0, 2, 50)
    table = TABLE.append_column("side", pa.array(np.where(sides[OF], "left", "right")))
    found = kafeat.evaluate(data=table, label="side", config=CONFIG, jobs=1, split_by="group:who")
    # The rows of a group are right or wrong together, so 10 groups of 12 rows count as 10 coins, or a few more.
    p, n = found["score_map"], found["rows_test"]
    noise, of_rows = found["score_uncertainty_map"], np.sqrt(p * (1 - p) / n)
    assert 1.5 * of_rows < noise < 2.0 * np.sqrt(12) * of_rows
    assert "score_uncertainty_map" not in kafeat.evaluate(data=table, label="side", config=CONFIG, jobs=1)


def test_maps_are_chosen_on_other_groups_too():
    found = evaluate(split_by="group:who", sweep={"n_components": [16, 64]})
    assert all(entry["score_map_validation"]["mean"] < 0.3 for entry in found["summary"])


@pytest.mark.parametrize("way", ["group:who", "time:t"])
def test_a_predictor_chooses_its_penalty_by_the_folds_of_a_fit(way):
    """With the same rows to test on, evaluate scores the model of `fit`."""
    part = np.where(OF % 5 == 0 if way == "group:who" else np.arange(600) >= 480, "test", "train")
    table = TABLE.append_column("part", pa.array(part))
    config = {**CONFIG, "steps": [*CONFIG["steps"], {"kind": "ridge"}]}
    found = kafeat.evaluate(data=table, label="y", config=config, jobs=1, split="part", split_by=way)
    fm = kafeat.fit(config, table, "y", split="part", split_by=way, jobs=1)
    test = part == "test"
    y, predicted = table["y"].to_numpy()[test], fm.predict(table)[test]
    r2 = 1.0 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert found["score_model"] == pytest.approx(r2, rel=1e-6)
    assert fm.predictor.fitted.step.recipe()["penalty"] > 1e-3


def test_splits_differ_by_groups_and_the_latest_rows_are_always_the_same():
    assert evaluate(split_by="time:t")["rows_test"] == 120
    scores = [one["score_map"] for one in evaluate(split_by="group:who", splits=3)["records"]]
    assert len(set(scores)) == 3
    with pytest.raises(UsageError, match="the latest rows do not vary"):
        evaluate(split_by="time:t", splits=3)


def test_recipes_that_hold_out_other_rows_are_not_compared():
    with pytest.raises(UsageError, match="expected the same in all recipes, got None and group:who"):
        evaluate([CONFIG, {**CONFIG, "split_by": "group:who"}])
