"""`tune` and predictors."""

import numpy as np

import kafeat


def test_tune_chooses_the_map_and_keeps_the_predictor_of_its_base():
    X = np.random.default_rng(0).standard_normal((200, 3))
    base = {"steps": [{"kind": "standardize"}, {"kind": "pca"}, {"kind": "ridge", "penalty": 0.01}]}
    tuning = kafeat.tune(X, X[:, 0] * X[:, 1], base=base, columns=8, trials=3, jobs=1)
    assert [step.kind for step in tuning.config.steps][-1] == "ridge"
    assert tuning.config.predictor.penalty == 0.01
    assert tuning.fit().predict(X).shape == (200,)


def test_the_same_search_names_the_predictor():
    X = np.random.default_rng(0).standard_normal((200, 3))
    for kind, ending in [("ridge", " --predictor ridge"), (None, "--trials 3")]:
        tuning = kafeat.tune(X, X[:, 0], columns=8, trials=3, jobs=1, predictor=kind)
        assert tuning.notes[-1].endswith(ending)
