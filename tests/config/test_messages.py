"""A table of mistakes and the exact line for each."""

from textwrap import dedent

import pytest

KEYS = "'kind', 'n_components', 'gamma', 'law', 'clip', 'density', 'weights', 'label'"
GAMMA = "a number above 0, 'scale' or 'median', or {validate: [values]}"
WIDTH = "a whole number of at least 1, or {target_error: a number above 0 and below 1}"
TOP = "'seed', 'dtype', 'columns', 'fit_rows', 'chunk_rows', 'search', 'split_by', 'steps'"
GOOD = "steps: [{kind: toy_plain, n_components: 4}]\n"

TOP_LEVEL = [
    ("seed: 99999999999999999999", "1:7: seed: expected a whole number from 0 to 2^63 - 1, got 1e+20"),
    ("seed:", "1:5: seed: expected a whole number from 0 to 2^63 - 1, got null"),
    ("dtype: Float32", "1:8: dtype: expected one of 'float32', 'float64', got 'Float32'; did you mean 'float32'?"),
    ("fit_rows: al", "1:11: fit_rows: expected a whole number of at least 1 or 'all', got 'al'; did you mean 'all'?"),
    ("chunk_rows: 1000001", "1:13: chunk_rows: expected a whole number from 1 to 1000000, got 1000001"),
    ("chunk_rows: 1_000", "1:13: chunk_rows: expected a whole number from 1 to 1000000, got '1_000'"),
    ("Seeds: 1", f"1:1: Seeds: expected one of the keys {TOP}, got 'Seeds'; did you mean 'seed'?"),
    ('"a\\n\\e": 1', f"1:1: 'a\\n\\x1b': expected one of the keys {TOP}, got 'a\\n\\x1b'"),
    ("columns: [a]", "1:10: columns: expected a mapping with keys among 'include', 'exclude', got a list of 1"),
    ("columns: {include: a}", "1:20: columns.include: expected a non-empty list of names, got 'a'"),
    ("columns: {include: }", "1:18: columns.include: expected a non-empty list of names, got null"),
    ("columns: {exclude: [a, '']}", "1:24: columns.exclude[1]: expected a name (text, not empty), got ''"),
    ("columns: {exclude: [a, a]}", "1:20: columns.exclude: expected every name once, got 'a'"),
    ("columns: {include: [a], exclude: []}",
     "1:34: columns.exclude: expected no exclude with include, got an empty list"),
    ("columns: {includes: [a]}",
     "1:11: columns.includes: expected one of the keys 'include', 'exclude', got 'includes'; "
     "did you mean 'include'?"),
    ("1: x", "1:1: expected a key that is text, got 1"),
    ("seed: 1\nseed: 2", "2:1: seed: expected each key once, got it again (first in line 1)"),
    ("seed: !!int 1", "1:7: seed: expected no tag, got 'tag:yaml.org,2002:int'"),
]  # fmt: skip

PARAMETERS = [
    ("n_components: 0", f"n_components: expected {WIDTH}, got 0"),
    ("n_components: 4, gamma: -1.0", f"gamma: expected {GAMMA}, got -1.0"),
    ("n_components: 4, gamma: .inf", f"gamma: expected {GAMMA}, got .inf"),
    ("n_components: 4, law: orthogon",
     "law: expected one of 'iid', 'orthogonal', got 'orthogon'; did you mean 'orthogonal'?"),
    ("n_components: 4, clip: no", "clip: expected true or false, got 'no'"),
    ("n_components: 4, density: 2", "density: expected a number above 0 and at most 1 or null, got 2"),
    ("n_components: 4, weights: [1, 0]", "weights[1]: expected a number above 0, got 0"),
    ("n_components: 4, weights: 1", "weights: expected a list of numbers above 0 or 'equal', got 1"),
    ("n_components: 4, label: long!", "label: expected at most 3 letters, got 'long!'"),
    ("n_components: 5, law: orthogonal",
     "n_components: expected an even number if law is orthogonal, got 5"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), TOP_LEVEL)
def test_top_level(toys, problems, text, line):
    assert problems(f"{text}\n{GOOD}") == [f"c.yaml:{line}"]


@pytest.mark.parametrize(("text", "line"), PARAMETERS)
def test_parameters(toys, problems, text, line):
    text = f"steps:\n- {{kind: toy_plain, {text}}}\n"
    wrong = line.partition(":")[0].partition("[")[0]
    column = text.splitlines()[1].index(f"{wrong}: ") + len(wrong) + 3
    if "[" in line.partition(":")[0]:
        column += len("[1, ")
    assert problems(text) == [f"c.yaml:2:{column}: steps[0].{line}"]


STEPS = [
    ("steps: []", "1:8: steps: expected a non-empty list of steps, got an empty list"),
    ("steps: {kind: toy_plain}", "1:8: steps: expected a non-empty list of steps, got a mapping"),
    ("seed: 1", "1:1: steps: expected a non-empty list of steps, got nothing"),
    ("steps: [1]", "1:9: steps[0]: expected a step (a kind, or a mapping with a kind), got 1"),
    ("steps: [toy_plain]", f"1:9: steps[0].n_components: expected {WIDTH}, got nothing"),
    ("steps: [{n_components: 1}]", "1:9: steps[0].kind: expected one of 'toy_plain', 'toy_union', got nothing"),
    ("steps: [{kind: [1]}]", "1:16: steps[0].kind: expected one of 'toy_plain', 'toy_union', got a list of 1"),
    ("steps:\n- {kind: toy_plain, n_components: 4, clip: true}",
     "2:3: steps[0].density: expected a number if clip is true, got null"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), STEPS)
def test_steps(toys, problems, text, line):
    assert problems(text) == [f"c.yaml:{line}"]


def test_all_at_once_in_order_of_place(toys, problems):
    text = """\
        seed: -1
        steps:
          - kind: toy_plain
            gamma: 0
            gamma: 1
            lav: iid
          - kind: toy_union
            maps:
              - steps:
                  - kind: toy_plane
                  - {kind: toy_plain, n_components: 1.5}
              - stepz: []
        dtype: half
        """
    assert problems(dedent(text)) == [
        "c.yaml:1:7: seed: expected a whole number from 0 to 2^63 - 1, got -1",
        f"c.yaml:3:5: steps[0].n_components: expected {WIDTH}, got nothing",
        f"c.yaml:4:12: steps[0].gamma: expected {GAMMA}, got 0",
        "c.yaml:5:5: steps[0].gamma: expected each key once, got it again (first in line 4)",
        f"c.yaml:6:5: steps[0].lav: expected one of the keys {KEYS}, got 'lav'; did you mean 'law'?",
        "c.yaml:10:19: steps[1].maps[0].steps[0].kind: expected one of 'toy_plain', 'toy_union', "
        "got 'toy_plane'; did you mean 'toy_plain'?",
        f"c.yaml:11:45: steps[1].maps[0].steps[1].n_components: expected {WIDTH}, got 1.5",
        "c.yaml:12:9: steps[1].maps[1].steps: expected a non-empty list of steps, got nothing",
        "c.yaml:12:9: steps[1].maps[1].stepz: expected the key 'steps', got 'stepz'; did you mean 'steps'?",
        "c.yaml:13:8: dtype: expected one of 'float32', 'float64', got 'half'",
    ]


def test_a_mapping_has_no_lines(toys, problems):
    step = {"kind": "toy_plain", "n_components": 10**5000, "gamma": -1.0, 3: 4}
    config = {"seed": {1, 2}, 5: 0, "steps": [step]}
    assert problems(config) == [
        "config: seed: expected a whole number from 0 to 2^63 - 1, got a value of type set",
        f"config: steps[0].gamma: expected {GAMMA}, got -1.0",
        f"config: steps[0].'3': expected one of the keys {KEYS}, got 3",
        f"config: '5': expected one of the keys {TOP}, got 5",
    ]


def test_long_values_are_cut(toys, problems):
    (line,) = problems({"dtype": "x" * 1000, "steps": [{"kind": "toy_plain", "n_components": 4}]})
    assert line == f"config: dtype: expected one of 'float32', 'float64', got '{'x' * 59}…'"


def test_an_alias_is_as_wrong_as_what_it_stands_for(toys, problems):
    text = "steps:\n- &a {kind: toy_plain, n_components: 0}\n- *a\n"
    tail = f"n_components: expected {WIDTH}, got 0"
    assert problems(text) == [f"c.yaml:2:38: steps[0].{tail}", f"c.yaml:2:38: steps[1].{tail}"]
