import pytest

from kafeat.contract.name_patterns import expand, feature_places, is_pattern

NAMES = ["x1", "x2", "X3", "id", "x*", "a[0]", "a[1]", "b"]


@pytest.mark.parametrize(("request_", "found"), [
    ("x?", ["x1", "x2", "x*"]),
    ("x*", ["x*"]),  # the column of that name
    ("[!xXa]*", ["id", "b"]),
    ("x[0-9]", ["x1", "x2"]),
    ("X?", ["X3"]),  # capitals count
    ("id", ["id"]),
    ("i", []),
    ("y*", []),
    ("[x", []),  # an open bracket stands for itself
    ("*", NAMES),
])  # fmt: skip
def test_a_request_stands_for_the_names_that_match(request_: str, found: list[str]) -> None:
    assert dict(expand([request_], NAMES)) == {request_: found}


def test_repeated_names_are_found_once() -> None:
    assert list(expand(["x*", "b"], ["x1", "b", "x1"])) == [("x*", ["x1"]), ("b", ["b"])]


def test_features_of_list_columns_and_features_without_names() -> None:
    names = ["a[0]", "b", None, "a[1]", "a"]
    assert list(feature_places(["a", "b"], names)) == [("a", [4]), ("b", [1])]
    assert list(feature_places(["a", "*", "c"], names[:4])) == [("a", [0, 3]), ("*", [0, 1, 3]), ("c", [])]


def test_what_is_a_pattern() -> None:
    assert [is_pattern(name) for name in ("a*", "a?", "[ab]", "a]", "a.b", "")] == [True] * 3 + [False] * 3
