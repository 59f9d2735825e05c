"""`kafeat fit` with a predictor, and `kafeat predict`."""

import json
import os
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import Ridge

import kafeat
from tests.zygote import ROOT

DIGITS, RENTALS = ROOT / "sample_data/digits.parquet", ROOT / "sample_data/rentals.csv"
CONFIG = """
columns: {exclude: [label]}
steps:
  - kind: standardize
  - kind: fourier
    n_components: 128
    frequencies: orthogonal
    weights: uniform
  - kind: ridge
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    (folder / "ridge.yaml").write_text(CONFIG)
    kafeat.fit(folder / "ridge.yaml", DIGITS, label="label").save(folder / "model.joblib")
    return folder / "model.joblib"


def test_fit_makes_the_model_and_says_what_it_is(run, model, tmp_path):
    done = run("fit --label label -v --config", model.with_name("ridge.yaml"), DIGITS, tmp_path / "m.joblib")
    assert "64 inputs -> 128 features, fitted on 1,797 of 1,797 rows; predictor fitted on" in done.stderr
    assert (tmp_path / "m.joblib").read_bytes() == model.read_bytes()


def test_predict_scores_as_the_same_ridge_of_scikit_learn(run, model, tmp_path):
    out = tmp_path / "predictions.parquet"
    done = run("predict --model", model, DIGITS, out, "--keep", "label", "-v")
    assert "1,797 rows x 10 predictions in" in done.stderr
    table, fm = pq.read_table(out), kafeat.load(model)
    Z, y = fm.transform(pq.read_table(DIGITS)).astype(float), table["label"].to_numpy()
    state = fm.predictor.fitted.state
    theirs = Ridge(alpha=float(state["lambda"])).fit(Z, (y[:, None] == range(10)).astype(float))
    # The intercept has the biases of the calibration, which are not scikit-learn's.
    classes = (Z @ theirs.coef_.T + state["intercept"]).argmax(axis=1)
    # An accuracy is a count: equal predictions of all rows, or a difference of 1/1,797.
    assert (table["prediction"].to_numpy() == y).mean() == pytest.approx((classes == y).mean(), rel=1e-6)


def test_inspect_and_diff_show_the_predictor(in_process, run, model):
    done = in_process("inspect", model)
    assert "steps[2] ridge (penalty: " in done.stdout
    assert "    predicts 10 classes (0, 1, 2, 3, 4, 5, 6, 7, 8, 9), fitted on 1,797 rows" in done.stdout
    run("diff", model, model)


@pytest.mark.timeout(60)  # a pipe that is opened again waits for another writer
@pytest.mark.parametrize("more", [(), ("--rows-per-file", "8192")])
def test_a_model_from_a_pipe_is_read_once(run, model, tmp_path, more):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    Thread(target=pipe.write_bytes, args=(Path(model).read_bytes(),), daemon=True).start()
    done = run("predict --model", pipe, DIGITS, tmp_path / ("out" if more else "out.csv"), *more)
    assert done.stderr == ""


def test_the_drift_test_of_predictions(run, model, tmp_path):
    """The test of the mean is that of the features."""
    bytes_of, tests = [], []
    for number, more in enumerate([[], ["--drift-test", "0.5"]]):
        out, stats = tmp_path / f"{number}.parquet", tmp_path / f"{number}.json"
        run("predict --model", model, DIGITS, out, "--stats", stats, *more)
        run("verify --model", model, DIGITS, out, "--stats", stats)
        assert '"content": "predictions"' in stats.read_text()
        assert '"command": "predict"' in stats.read_text()
        bytes_of.append(out.read_bytes())
        tests.append(json.loads(stats.read_text())["drift_test"])
    assert bytes_of[0] == bytes_of[1]
    assert tests[0] is None
    features = ["--features", "--drift-test", "0.5", "--stats", tmp_path / "f.json"]
    run("transform --model", model, DIGITS, tmp_path / "z.npy", *features)
    expected = json.loads((tmp_path / "f.json").read_text())["drift_test"]
    assert tests[1] == pytest.approx(expected, abs=1e-6)  # features of norm 1, each rounded in float32
