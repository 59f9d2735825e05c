"""A score that is one object more in `SCORES` is everywhere: in options, records, JSON, tables, and the page."""

import json

import numpy as np
import pytest

from kafeat.maths.scoring import SCORES, Score

NAME = "margin_error"


def measure(predicted, truth):
    """The mean of 1 − p of the true class; what judges probabilities gets the true ones, (n, k)."""
    return float(1.0 - (predicted * truth).sum(axis=1).mean())


@pytest.fixture(autouse=True)
def table(monkeypatch, tmp_path):
    score = Score(NAME, "classification", measure, title="margin", is_error=True, judges="probabilities")
    monkeypatch.setitem(SCORES, NAME, score)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    names = np.where(X[:, 0] + 0.3 * rng.normal(size=200) > 0.0, "high", "low")
    rows = [f"{a},{b},{name}" for (a, b), name in zip(X, names, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]))
    steps = [{"kind": "fourier", "n_components": 8, "frequencies": "iid"}]
    for name, last in (("c", []), ("m", [{"kind": "logistic"}])):
        config = {"columns": {"exclude": ["y"]}, "steps": [*steps, *last]}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(config))
    return tmp_path


def test_evaluate_has_it_in_json_tables_and_page(table, run):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    words = f"evaluate --config c.yaml t.csv --label y --scoring {NAME}"
    told = run(f"{words} --learner logistic --json r.json --report page", cwd=table).stdout
    found = json.loads((table / "r.json").read_text())
    assert found["scoring"] == NAME
    for which in ("map", "raw", "exact", "constant", "boosting"):
        assert found["summary"][0][f"{NAME}_{which}"]["mean"] == pytest.approx(-found[f"score_{which}"])
    assert f"c.yaml: margin {found[f'{NAME}_map']:.4f} ± " in told
    assert "<th>margin</th>" in (table / "page" / "index.html").read_text()
    refused = run(words, cwd=table, code=2).stderr
    assert f"expected a score of what ridge predicts, got {NAME}, which needs probabilities" in refused


def test_a_finished_model_and_a_search_have_it(table, run):
    run("fit --config m.yaml t.csv m.joblib --label y", cwd=table)
    words = f"evaluate --model m.joblib t.csv --all-rows --scoring {NAME} --json -"
    [record] = json.loads(run(words, cwd=table).stdout)["records"]
    assert record[f"{NAME}_model"] == pytest.approx(-record["score_model"])
    words = f"tune t.csv best.yaml --label y --scoring {NAME} --trials 2 --columns 8"
    assert "margin 0." in run(words, cwd=table).stdout
    assert NAME in run("evaluate --help", cwd=table).stdout
