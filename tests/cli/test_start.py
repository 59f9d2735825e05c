"""The modules that a short command loads, as half of its time is imports."""

import subprocess
import sys

import numpy as np
import pytest

import kafeat
from tests.recipes import words as words_of


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    X = np.random.default_rng(0).normal(size=(50, 3))
    steps = [{"kind": "fourier", "n_components": 8}, "ridge"]
    kafeat.fit({"steps": steps}, X, X[:, 0]).save(folder / "m.joblib")
    np.savetxt(folder / "in.csv", X, delimiter=",", header="a,b,c", comments="")
    return folder


def test_pandas_and_scikit_learn_are_not_loaded(model):
    pytest.importorskip("pandas")
    words = f"{sys.executable} -X importtime -m kafeat predict --model m.joblib in.csv out.csv".split()
    told = subprocess.run(words, cwd=model, capture_output=True, text=True, check=True).stderr
    lines = [line for line in told.splitlines() if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip() for line in lines}
    assert "kafeat.runtime.run" in loaded
    assert not loaded & {*words_of("pandas._libs sklearn scipy.linalg scipy.sparse joblib yaml ruamel.yaml")}
