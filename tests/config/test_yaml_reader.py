import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafeat.config import yaml_reader as reader
from kafeat.config.yaml_reader import MOST_NODES, Place, read, resolve

SCALARS = [
    ("1e-3", 1e-3), ("1E3", 1000.0), (".5", 0.5), ("1.", 1.0), ("-0.0", -0.0), ("+7", 7), ("012", 12),
    ("0o17", 15), ("0x1F", 31), ("no", "no"), ("yes", "yes"), ("on", "on"), ("1:30", "1:30"),
    ("2020-01-01", "2020-01-01"), ("1_000", "1_000"), ("0b11", "0b11"), ("True", True), ("FALSE", False),
    ("", None), ("~", None), ("NULL", None), ("nil", "nil"), (".inf", math.inf), ("-.INF", -math.inf),
    ("inf", "inf"), ("1e999", math.inf), ("٣", "٣"), ("=", "="), ("<<", "<<"), ("-", "-"), ("1e", "1e"),
    (str(2**63 - 1), 2**63 - 1), (str(2**63), float(2**63)), (f"-{2**63}", -float(2**63)),
    ("0" * 30 + "7", 7), ("9" * 5000, math.inf), ("0x" + "f" * 5000, math.inf), ("0x" + "f" * 16, float(2**64)),
    ("0x" + "f" * 256, math.inf),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_scalars_of_yaml_1_2(text, value):
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_not_a_number():
    assert math.isnan(resolve(".nan"))


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_whole_numbers_stay_whole(number):
    assert resolve(str(number)) == number
    assert type(resolve(str(number))) is int


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_round_trip(number):
    assert resolve(repr(number)) == number


def test_every_value_and_key_has_its_place():
    node, mistakes = read("a: 1\nb:\n  - x: 'é'\n    yy: [2, {z: 3}]\n".encode())
    assert mistakes == []
    assert node.value == {"a": 1, "b": [{"x": "é", "yy": [2, {"z": 3}]}]}
    assert node.place(()) == Place(1, 1)
    assert node.place(("b",)) == Place(3, 3)
    assert node.place(("b", 0, "x")) == Place(3, 8)
    assert node.place(("b", 0, "yy", 1, "z")) == Place(4, 17)
    assert node.key_place(("b", 0, "yy")) == Place(4, 5)
    assert node.key_place(("b", 0, "yy", 1, "z")) == Place(4, 14)


def test_the_place_of_what_is_missing_is_around_it():
    node, _ = read(b"a: 1\nb:\n  - x: 2\n")
    assert node.place(("b", 0, "gone", "deeper")) == Place(3, 5)
    assert node.key_place(("b", 0, "gone")) == Place(3, 5)
    assert node.key_place(("gone", "deeper")) == Place(1, 1)


def test_a_byte_order_mark_is_no_character():
    node, mistakes = read(b"\xef\xbb\xbfa: 1")
    assert (node.value, mistakes) == ({"a": 1}, [])
    assert node.key_place(("a",)) == Place(1, 1)


def test_aliases_stand_for_their_anchor():
    node, mistakes = read(b"a: &x {k: 1}\nb: *x\nc: [*x, *x]\n&y d: *y\n")
    assert mistakes == []
    assert node.value == {"a": {"k": 1}, "b": {"k": 1}, "c": [{"k": 1}, {"k": 1}], "d": "d"}
    assert node.place(("b",)) == Place(2, 4)


def test_the_first_of_two_equal_keys_counts():
    node, mistakes = read(b"a: 1\nb: 2\na: 3\n")
    assert node.value == {"a": 1, "b": 2}
    [mistake] = mistakes
    assert mistake.line("f") == "f:3:1: a: expected each key once, got it again (first in line 1)"


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x]\n"
BOMB += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]\n" for i in range(1, 20))
LADDER = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200))
WITH_RUNGS = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [x, *a{i - 1}]\n" for i in range(1, 200))

UNREADABLE = [
    ("a:\n\t- b", "2:1: expected spaces, got a tab"),
    ("a: 1\n---\nb: 2", "2:1: expected one document, got another"),
    ("a: *x", "1:4: a: expected the name of an anchor further up, got 'x'"),
    ("a: &x [*x]", "1:8: a[0]: expected the name of an anchor further up, got 'x'"),
    ('a: "\\ud800"', "1:4: expected characters of Unicode, got '\\ud800'"),
    ("a: 1\nb: \x00", "2:4: expected text, got the character '\\x00', which YAML does not allow"),
    (b"a: \xc3\xa9\nb: x\xff", "2:5: expected text in UTF-8, got the byte 0xff: save the config as UTF-8"),
    ("[" * 60, "1:52: expected at most 50 levels, got more"),
    (LADDER, "50:12: expected at most 50 levels, got more"),
    (WITH_RUNGS, "50:15: expected at most 50 levels, got more"),
    (BOMB, f"6:10: expected at most {MOST_NODES} values, aliases spelled out, got more"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_unreadable(text, line):
    node, mistakes = read(text if isinstance(text, bytes) else text.encode())
    assert node is None
    assert [mistake.line("f") for mistake in mistakes] == [f"f:{line}"]


def test_values_are_counted_without_aliases_too(monkeypatch):
    monkeypatch.setattr(reader, "MOST_NODES", 10)
    assert read(b"[1, 2, 3, 4, 5, 6, 7, 8, 9]")[1] == []
    _, (mistake,) = read(b"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")
    assert mistake.line("f") == "f:1:29: expected at most 10 values, aliases spelled out, got more"


BROKEN = {"a: [1\n": "2:1", "a: b: c": "1:5", "- a\nb: 1": "2:1", "@x": "1:1", "%YAML 9.9\n--- a": "1:1"}


@pytest.mark.parametrize(("text", "place"), BROKEN.items())
def test_syntax_errors_have_their_place(text, place):
    _, (mistake,) = read(text.encode())
    assert mistake.line("f").startswith(f"f:{place}: expected YAML, got a mistake: ")


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!x", "!!set", "!!binary", "!!str", "!"])
def test_tags_are_refused_and_nothing_is_built(tag):
    node, mistakes = read(f"a: {tag} [1]\n".encode())
    assert node.value == {"a": [1]}
    assert [mistake.at for mistake in mistakes] == [Place(1, 4)]


def test_an_older_yaml_is_read_by_the_same_rules():
    node, _ = read(b"%YAML 1.1\n---\na: no\nb: 1:30\n")
    assert node.value == {"a": "no", "b": "1:30"}


def test_yaml_is_not_imported_before_a_config_is_read():
    import subprocess

    check = "import kafeat.config, sys; assert not [m for m in sys.modules if m.startswith('ruamel')]"
    subprocess.run([sys.executable, "-c", check], check=True)
