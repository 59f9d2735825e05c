"""Models of a newer kafeat: whatever is unknown in one, the refusal ends with its version and this one."""

import hashlib
import io
import warnings
from functools import cache
from typing import Any

import joblib
import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import ArtifactError, KafeatWarning
from kafeat.model import artifact, serialize
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import loads
from tests.model.hostile_maps import places, put

ENDING = f": written by kafeat 1.3.0, this is {kafeat.__version__}"


@cache
def content() -> dict[str, Any]:
    """A model with all that a model file can hold: a dialect, categories, times, a union, a predictor, intervals."""
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=60), "b": [f"k{i % 4}" for i in range(60)]}
    table["c"] = [f"{10 + i % 20}.03.2020" for i in range(60)]
    maps = [
        {"steps": [{"kind": "fourier", "n_components": 4, "kernel": "matern"}]},
        {"steps": [{"kind": "nystroem", "n_components": 3}]},
    ]
    days = {"kind": "date_parts", "columns": ["c"], "parts": ["day"]}
    before = [{"kind": "one_hot", "columns": ["b"]}, days]
    steps = [*before, {"kind": "standardize"}, {"kind": "union", "maps": maps}]
    config = {"steps": [*steps, {"kind": "ridge", "penalty": 0.1}]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KafeatWarning)
        fm = kafeat.fit(config, pa.table(table), label=rng.normal(size=60), intervals=True)
    return {**artifact.loads(fm.dumps(), "x"), "kafeat": "1.3.0"}


def refusal(data: bytes) -> str:
    with pytest.raises(ArtifactError, match=r"m\.joblib: ") as caught:
        loads(data, "m.joblib")
    return str(caught.value)


def built(content: dict[str, Any]) -> str:
    """Return the refusal of the content of a file, if there is one: most of the time of a file goes into its bytes."""
    try:
        serialize.build(FeatureMap, content, "m.joblib")
    except ArtifactError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("value", [1, np.ones(3)], ids=["entry", "array"])
def test_an_unknown_entry_of_every_dict(value):
    dicts = [place for place, node in places(content()) if isinstance(node, dict)]
    assert len(dicts) > 20
    for place in dicts:
        assert built(put(content(), (*place, "unknown"), value)).endswith(ENDING), place
    assert refusal(artifact.dumps(put(content(), ("unknown",), value))).endswith(ENDING)


@pytest.mark.parametrize("value", ["unknown", {"unknown": np.ones((2, 2))}])
def test_an_unknown_value_in_every_place(value):
    """Names, words for what is missing, and numbers within bounds may be anything: such a model loads."""
    every = [
        built(put(content(), place, value))
        for place, _ in places(content())
        if place not in ((), ("kafeat",))
    ]
    refusals = [line for line in every if line]
    assert [line for line in refusals if not line.endswith(ENDING)] == []
    assert len(refusals) > 100


@pytest.mark.parametrize("value", [{1, 2}, (1, 2), np.array([1j]), np.array(["a"]), np.float64(1.0), b"x"])
def test_content_that_no_model_of_this_version_has(value):
    buffer = io.BytesIO()
    joblib.dump({**content(), "new": value}, buffer, protocol=4)
    payload = buffer.getvalue()
    data = payload + b"KAFEAT-SHA256\n" + hashlib.sha256(payload).digest()
    assert refusal(data).endswith(ENDING)


def test_a_damaged_model_of_this_version_is_not_called_one_of_another():
    data = artifact.dumps({**content(), "kafeat": kafeat.__version__, "unknown": 1})
    assert "written by" not in refusal(data)


def test_a_version_cannot_control_the_terminal():
    data = artifact.dumps({**content(), "kafeat": "\x1b[31m" + "9" * 500})
    assert refusal(data).endswith(f": written by kafeat \ufffd[31m{'9' * 35}, this is {kafeat.__version__}")
