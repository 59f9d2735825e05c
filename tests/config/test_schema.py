"""The JSON Schema: what it refuses, the check refuses; what the configs say, it accepts."""

import json
from functools import cache

import pytest
from ruamel.yaml import YAML

from kafeat.config import load_config
from kafeat.config.template import config_schema, starting_config
from kafeat.errors import ConfigError
from kafeat.registry import SEARCHES, kinds, predictors, step_class

jsonschema = pytest.importorskip("jsonschema")


@cache
def schema():
    return config_schema()


def validator():
    return jsonschema.Draft202012Validator(schema())


def accepts(config):
    return validator().is_valid(config)


def is_sound(config):
    try:
        load_config(config)
    except ConfigError:
        return False
    return True


def test_it_is_sound_itself():
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema())
    assert json.loads(json.dumps(schema(), allow_nan=False)) == schema()


def test_a_kind_alone_is_a_step():
    alone = {
        "steps": [
            "standardize",
            {"kind": "union", "maps": [{"steps": ["fourier"], "weight": 2.0}, {"steps": ["pca"]}]},
            "ridge",
        ]
    }
    assert accepts(alone)
    whole = load_config(alone).to_plain()
    assert [step["kind"] for step in whole["steps"]] == ["standardize", "union", "ridge"]
    assert load_config(whole).digest() == load_config(alone).digest()
    assert not accepts({"steps": ["fuorier"]})


def test_every_config_of_ours_is_accepted(configs):
    paths = sorted(configs.glob("*.yaml"))
    assert paths
    for path in paths:
        errors = [error.message for error in validator().iter_errors(YAML(typ="safe").load(path))]
        assert not errors, path.name


@pytest.mark.parametrize("kind", kinds())
def test_every_started_config_is_accepted(kind):
    assert accepts(YAML(typ="safe").load(starting_config(kind)))


FOURIER = {"kind": "fourier"}
SOUND = {"steps": [FOURIER]}


@pytest.mark.parametrize("config", [
    {}, {"steps": []}, {"steps": FOURIER}, {**SOUND, "sede": 1}, {**SOUND, "seed": -1},
    {**SOUND, "seed": True}, {**SOUND, "dtype": "float16"}, {**SOUND, "fit_rows": "some"},
    {**SOUND, "columns": {"include": []}}, {"steps": [{"kind": "fuorier"}]},
    {"steps": [{**FOURIER, "gama": 1.0}]}, {"steps": [{**FOURIER, "gamma": -1.0}]},
    {"steps": [{**FOURIER, "gamma": "medium"}]}, {"steps": [{**FOURIER, "gamma": {"validate": []}}]},
    {"steps": [{**FOURIER, "n_components": {"target_error": 1}}]},
    {"steps": [{"kind": "standardize", "n_components": 5}]},
    {"steps": [{"kind": "nystroem", "landmarks": {"give": "x.npy"}}]}, {"steps": [{"kind": "union"}]},
    {"steps": [{"kind": "union", "maps": [{"steps": [{"kind": "fourier", "gamma": 0}]}]}]},
    {"steps": [{"kind": "union", "maps": [{"steps": [{"kind": "minmax"}], "weight": 0}]}]},
])  # fmt: skip
def test_planted_mistakes_are_refused_by_both(config):
    assert not accepts(config)
    assert not is_sound(config)


VALUES = [
    -1, 0, 1, 2, 3, 64, 100, 10**7, -0.5, 0.0, 0.5, 1.0, 1.5, 40.0, "no such word", "", True, False, None, [], [1.0],
    [0.0], ["p00"], [""], [1, "a"], {}, {"validate": [0.5, 1]}, {"target_error": 0.1}, {"given": "rows.npy"},
    {"given": ""}, [{"steps": [{"kind": "minmax"}]}], [{"steps": []}],
]  # fmt: skip


def choices_in(part):
    """The words that a schema names."""
    if isinstance(part, dict):
        yield from part.get("enum", ())
        if "const" in part:
            yield part["const"]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from choices_in(one)


@pytest.mark.parametrize("kind", kinds())
def test_it_refuses_nothing_that_the_check_accepts(kind):
    """The check knows more, of two values beside each other; nobody must be told that a sound value is wrong."""
    of_kind = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema()["$defs"]})
    others = {} if kind not in ("product", "union") else {"maps": [{"steps": [{"kind": "minmax"}]}]}
    accepted = 0
    for name in step_class(kind).model_fields:
        choices = list(choices_in(schema()["$defs"][kind]["properties"][name]))
        for value in [*VALUES, *choices]:
            if isinstance(value, bool) and 1 in choices:
                continue  # Python takes true for the choice 1; JSON does not
            step = {"kind": kind, **others, name: value}
            before = [{"kind": "standardize"}] if kind in predictors() else []
            if is_sound({"steps": [*before, step]}):
                accepted += 1
                assert of_kind.is_valid(step), step
    assert accepted or not step_class(kind).model_fields


def test_searches_are_in_it_wherever_a_kind_has_the_parameter():
    for kind in kinds():
        for name in set(SEARCHES) & set(step_class(kind).model_fields):
            text = json.dumps(schema()["$defs"][kind]["properties"][name])
            assert ("validate" if name == "gamma" else "target_error") in text
