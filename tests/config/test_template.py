"""Configs to start from: sound as they are, with every key and its default."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.config import Config, load_config
from kafeat.config.template import starting_config
from kafeat.config.yaml_reader import read
from kafeat.contract.describe import expected
from kafeat.registry import kinds, predictors, samplers, step_class


def first(kind):
    """The scaler that a template puts before kinds that measure rows as a whole."""
    ignoring = {"homogeneous", "intersection_bins", "product", "skewed", "text", "trees", "union"}
    if kind in predictors():
        return ["standardize", "fourier"]
    return ["standardize"] if kind in {*samplers(), "pca", "metric"} - ignoring else []


def keys_of(node):
    """Every key in a document."""
    found = {key for key in node.children if isinstance(key, str)}
    return found.union(*(keys_of(child) for child in node.children.values())) if node.children else found


@pytest.fixture
def started(tmp_path):
    def started(kind):
        path = tmp_path / f"{kind}.yaml"
        path.write_text(starting_config(kind))
        return path

    return started


@pytest.mark.sampled
@pytest.mark.parametrize("kind", kinds())
def test_every_kind_can_be_fitted_as_started(kind, started, configs):
    if kind == "projection":
        # `auto` refuses a width that reduces nothing: 12 rows within 0.1 need 4 ln 12/(0.1²/2 − 0.1³/3) = 2,130 outputs
        data, label = np.random.default_rng(0).random((12, 2200)), None
    else:
        data = pq.read_table(configs.parent / "sample_data/digits.parquet").slice(0, 600)
        label = np.asarray(data["label"])
        data = data.drop_columns(["label"])
    fm = kafeat.fit(started(kind), data, label if load_config(started(kind)).needs_label else None)
    steps = [*fm.chain.steps, *([] if fm.predictor is None else [fm.predictor.fitted])]
    assert [fitted.step.kind for fitted in steps] == [*first(kind), kind]


@pytest.mark.parametrize("kind", kinds())
def test_it_says_every_default_and_what_is_accepted(kind, started):
    found = load_config(started(kind))
    fields = step_class(kind).model_fields
    if not any(field.is_required() for field in fields.values()):
        assert found == load_config({"steps": [{"kind": one} for one in (*first(kind), kind)]})
    text = starting_config(kind)
    node, mistakes = read(text.encode())
    assert not mistakes
    assert {"kind", *Config.model_fields, *fields} <= keys_of(node)
    said = " ".join(line.strip().removeprefix("#").strip() for line in text.splitlines())
    for name, field in fields.items():
        assert " ".join(field.description.split()) in said, name
        assert expected(field) in said, name
    assert max(map(len, text.splitlines())) <= 104  # comments at 100, and the indent of a step


def test_a_key_left_out_changes_nothing(started):
    path = started("fourier")
    lines = [line for line in path.read_text().splitlines() if not line.strip().startswith(("nu:", "seed:"))]
    whole = load_config(path)
    path.write_text("\n".join(lines))
    assert load_config(path) == whole
