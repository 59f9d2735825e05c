"""Sweeps: which parameters they set, and what they say of mistakes."""

import pytest

from kafeat.config import load_config
from kafeat.errors import ConfigError, UsageError
from kafeat.study.candidates import Sweep, read_sweep, settings

CONFIG = load_config(
    {"steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 64},
               {"kind": "projection", "n_components": 8}]}
)  # fmt: skip


def widths(config):
    return [step.n_components for step in config.steps if hasattr(step, "n_components")]


@pytest.mark.parametrize(("text", "key", "values"), [
    ("n_components=1,2", "n_components", (1, 2)),
    ("gamma=0.5, 1e-3 ,median", "gamma", (0.5, 1e-3, "median")),
    ("steps[1].weights=uniform", "steps[1].weights", ("uniform",)),
    ("flag=true,false", "flag", (True, False)),
])  # fmt: skip
def test_values_are_numbers_truths_or_text(text, key, values):
    assert read_sweep(text) == Sweep(key, values)


@pytest.mark.parametrize("text", ["n_components", "n_components=", "=1,2", "n_components=1,,2"])
def test_what_is_no_sweep(text):
    with pytest.raises(UsageError, match="expected KEY=a,b,c"):
        read_sweep(text)


def test_every_step_that_has_the_key_or_one_of_them():
    both = [widths(config) for _, config in settings(CONFIG, [Sweep("n_components", (4, 16))], "c")]
    assert both == [[4, 4], [16, 16]]
    one = [widths(config) for _, config in settings(CONFIG, [Sweep("steps[1].n_components", (4,))], "c")]
    assert one == [[4, 8]]


def test_all_combinations_each_with_its_setting():
    sweeps = [Sweep("steps[1].n_components", (4, 6)), Sweep("gamma", (0.5, 1.0))]
    assert [setting for setting, _ in settings(CONFIG, sweeps, "c")] == [
        {"steps[1].n_components": n, "gamma": g} for n in (4, 6) for g in (0.5, 1.0)
    ]


def test_steps_inside_of_a_union():
    maps = [{"steps": [{"kind": "standardize"}, {"kind": "nystroem", "n_components": 8}]}]
    union = load_config({"steps": [{"kind": "union", "maps": maps}]})
    found = [config.to_plain() for _, config in settings(union, [Sweep("n_components", (5,))], "c")]
    assert found[0]["steps"][0]["maps"][0]["steps"][1]["n_components"] == 5


def test_a_mistyped_parameter_is_told_what_was_meant():
    with pytest.raises(UsageError, match=r"got 'n_component'; did you mean 'n_components'\?$"):
        list(settings(load_config({"steps": [{"kind": "nystroem"}]}), [Sweep("n_component", (5,))], "c"))


def test_mistakes_name_the_sweep():
    told = r"--sweep nosuch: expected a parameter of a step of c, one of .*n_components"
    with pytest.raises(UsageError, match=told):
        list(settings(CONFIG, [Sweep("nosuch", (1,))], "c"))
    with pytest.raises(UsageError, match=r"steps\[7\].gamma: expected an index below 3"):
        list(settings(CONFIG, [Sweep("steps[7].gamma", (1,))], "c"))
    with pytest.raises(ConfigError, match=r"c with n_components=3: .*even"):
        list(settings(CONFIG, [Sweep("n_components", (3,))], "c"))
