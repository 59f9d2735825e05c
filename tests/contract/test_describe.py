from collections.abc import Sequence
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, create_model

from kafeat.config import Config
from kafeat.contract.describe import expected, spell
from kafeat.registry import kinds, step_class


class Inner(BaseModel):
    a: int
    b: int


FIELDS = [
    (int, {}, "a whole number"), (float, {"gt": 0}, "a number above 0"),
    (float, {"gt": 0, "le": 1}, "a number above 0 and at most 1"),
    (float, {"ge": 0.5, "lt": 2}, "a number of at least 0.5 and below 2"),
    (int, {"ge": 1, "le": 9}, "a whole number from 1 to 9"), (int, {"le": 9}, "a whole number of at most 9"),
    (bool, {}, "true or false"), (str, {}, "text"), (str, {"min_length": 1}, "text that is not empty"),
    (float | None, {"gt": 0}, "a number above 0 or null"), (Literal["a"], {}, "'a'"),
    (Literal["a", "b"], {}, "one of 'a', 'b'"), (Literal["a"] | Literal["b"], {}, "one of 'a', 'b'"),
    (Annotated[float, Field(gt=0)] | Literal["a", "b"], {}, "a number above 0, 'a' or 'b'"),
    (Literal["a"] | int, {}, "a whole number or 'a'"), (tuple[str, ...], {}, "a list of texts"),
    (list[int], {"min_length": 1}, "a non-empty list of whole numbers"),
    (Sequence[Annotated[float, Field(gt=0)]], {"min_length": 2}, "a list of at least 2 numbers above 0"),
    (list[int], {"min_length": 2, "max_length": 3}, "a list of at least 2 and at most 3 whole numbers"),
    (list[Literal["a", "b"]], {}, "a list of entries, each one of 'a', 'b'"),
    (tuple[int, int], {}, "a list of 2 entries"), (list, {}, "a list of entries"),
    (dict[str, int], {}, "a mapping"), (Inner, {}, "a mapping with keys among 'a', 'b'"),
    (Any, {}, "a value"),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "bounds", "text"), FIELDS)
def test_expected(annotation, bounds, text):
    model = create_model("M", x=(annotation, Field(**bounds)))
    assert expected(model.model_fields["x"]) == text


@pytest.mark.parametrize("model", [Config, *map(step_class, kinds())])
def test_every_declaration_of_ours_is_understood(model):
    for field in model.model_fields.values():
        assert not expected(field).startswith("a value")


SPELLED = [
    (None, "null"), (True, "true"), (-1.0, "-1.0"), (float("nan"), ".nan"), (float("-inf"), "-.inf"),
    (10**400, "a huge whole number"), ("a\n", "'a\\n'"), ([], "an empty list"), ((1, 2), "a list of 2"),
    ({}, "an empty mapping"), ({1: 2}, "a mapping"), ({1}, "a value of type set"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), SPELLED)
def test_spell(value, text):
    assert spell(value) == text
