import sys

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError

import kafeat.predictors
import kafeat.samplers
import kafeat.scalers
from kafeat.errors import UsageError
from kafeat.registry import AnyStep, build_step, kinds, samplers, scalers, step_class

TOY = """
from kafeat.contract.step import Step, PositiveInt
class TwoWords(Step):
    size: PositiveInt = 3
    def fit(self, *_): ...
    def state_shapes(self, *_): ...
    def n_features_out(self, *_): ...
    def bind(self, *_): ...
    def exact(self, *_): ...
"""


@pytest.fixture
def two_words(tmp_path, monkeypatch):
    """The only sampler, in a file; beside it what is none."""
    (tmp_path / "two_words.py").write_text(TOY)
    (tmp_path / "_hidden.py").write_text("raise AssertionError")
    (tmp_path / "never_imported.py").write_text("raise AssertionError")
    (tmp_path / "notes.txt").write_text("")
    monkeypatch.setattr(kafeat.samplers, "__path__", [str(tmp_path)])
    monkeypatch.setattr(kafeat.scalers, "__path__", [])
    monkeypatch.setattr(kafeat.predictors, "__path__", [])
    yield
    sys.modules.pop("kafeat.samplers.two_words", None)


def test_kinds_are_found_by_the_names_of_files_and_imported_one_at_a_time(two_words):
    assert samplers() == ("never_imported", "two_words")
    assert scalers() == ()
    assert kinds() == ("never_imported", "two_words")
    assert step_class("two_words").__name__ == "TwoWords"
    assert "kafeat.samplers.never_imported" not in sys.modules


@pytest.mark.parametrize("kind", ["two", "_hidden", "", "os", "..step", "notes"])
def test_only_kinds_are_imported(two_words, kind):
    with pytest.raises(KeyError, match=r"^'"):
        step_class(kind)


def test_a_recipe_and_its_step(two_words):
    step = build_step({"kind": "two_words", "size": 5})
    assert step.recipe() == {"kind": "two_words", "size": 5}
    assert build_step(step.recipe()) == step
    assert build_step(step) is step


IMPORTS = r"expected a module that Python imports, got"
NONE = r"two_words\.py: expected a class TwoWords\(Step\), got none$"
BROKEN = [
    ("class TwoWords(Step:\n", rf"/two_words\.py:1: {IMPORTS} SyntaxError: "),
    ("import os\nimport kafeat_has_none\n", rf"/two_words\.py:2: {IMPORTS} ModuleNotFoundError: "),
    ("\n\nStep\n", rf"/two_words\.py:3: {IMPORTS} NameError: name 'Step'"),
    ("import json\njson.loads('{')\n", rf"/two_words\.py:2: {IMPORTS} JSONDecodeError: "),
    ("\0", rf"two_words(\.py:\S+)?: {IMPORTS} (SyntaxError|ValueError): "),
    ("class Twowords: ...\n", NONE),
    ("class TwoWords: ...\n", NONE),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_mistake_in_the_file_of_a_kind_names_file_and_line(two_words, tmp_path, text, message):
    (tmp_path / "two_words.py").write_text(text)
    with pytest.raises(UsageError, match=message) as refused:
        step_class("two_words")
    assert "\n" not in str(refused.value)


REFUSED = [
    (3, (), "expected a step (a kind, or a mapping with a kind), got 3"),
    ({}, ("kind",), "expected one of 'never_imported', 'two_words', got nothing"),
    ({"kind": "{got}"}, ("kind",), "expected one of 'never_imported', 'two_words', got '{got}'"),
    ({"kind": "two_word"}, ("kind",),
     "expected one of 'never_imported', 'two_words', got 'two_word'; did you mean 'two_words'?"),
    ({"kind": "two_words", "size": 0}, ("size",), "Input should be greater than or equal to 1"),
]  # fmt: skip


class Nested(BaseModel):
    rows: list[dict[str, AnyStep]]


@pytest.mark.parametrize(("recipe", "loc", "message"), REFUSED)
def test_refusals_keep_their_place_at_any_depth(two_words, recipe, loc, message):
    with pytest.raises(ValidationError, match="validation error") as alone:
        build_step(recipe)
    assert [(e["loc"], e["msg"]) for e in alone.value.errors()] == [(loc, message)]
    with pytest.raises(ValidationError, match="validation error") as nested:
        Nested.model_validate({"rows": [{}, {"a": recipe}]})
    assert [(e["loc"], e["msg"]) for e in nested.value.errors()] == [(("rows", 1, "a", *loc), message)]


@pytest.mark.parametrize("value", [10**400, float("inf"), float("nan"), True, "1", 0, "3*mean", None])
def test_a_search_refuses_values_that_the_parameter_does_not_take(value):
    with pytest.raises(ValidationError, match=r"for Fourier\ngamma"):
        build_step({"kind": "fourier", "gamma": {"validate": [1.0, value]}})


def test_a_search_refuses_values_that_do_not_go_together():
    build_step({"kind": "fourier", "kernel": {"validate": ["rbf", "matern"]}, "frequencies": "orthogonal"})
    choices = {
        "kernel": {"validate": ["rbf", "laplacian"]},
        "frequencies": {"validate": ["iid", "orthogonal"]},
    }
    with pytest.raises(ValidationError, match="for the kernel laplacian, got 'orthogonal'"):
        build_step({"kind": "fourier", **choices})


COLUMNS = {"kind": "one_hot", "columns": {"validate": [["a"], ["b"]]}}
MAPS = {"kind": "union", "maps": {"validate": [[{"steps": [{"kind": "fourier"}]}]]}}


@pytest.mark.parametrize("recipe", [COLUMNS, MAPS])
def test_what_is_read_cannot_be_chosen(recipe):
    with pytest.raises(ValidationError, match="expected a value: it selects the columns, got a search"):
        build_step(recipe)


def test_a_search_holds_plain_values():
    step = build_step({"kind": "fourier", "gamma": {"validate": [np.float64(1.5), "3*median"]}})
    assert step.recipe()["gamma"] == {"validate": [1.5, "3*median"]}
    assert type(step.recipe()["gamma"]["validate"][0]) is float
