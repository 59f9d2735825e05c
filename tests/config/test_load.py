import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kafeat.config import Config, load_config
from kafeat.errors import ConfigError, SystemRefusedError

STEPS = [{"kind": "toy_plain", "n_components": 4}]


def test_defaults_are_written_out(toys):
    step = {"kind": "toy_plain", "n_components": 4, "gamma": "median", "law": "iid", "clip": False}
    step |= {"density": None, "weights": "equal", "label": "x"}
    own = {"seed": 0, "dtype": "float32", "columns": {"exclude": []}, "fit_rows": 100_000, "chunk_rows": 8192}
    assert (
        load_config({"steps": STEPS}).to_plain() == {**own, "steps": [step]} == load_config(STEPS).to_plain()
    )


FULL = """\
seed: 7
dtype: float64
columns: {include: [b, a]}
fit_rows: all
chunk_rows: 16
steps:
  - kind: toy_union
    maps:
      - steps: [{kind: toy_plain, n_components: 2, gamma: 1, weights: [1, 2.5]}]
      - steps: [{kind: toy_plain, n_components: 2, density: 1e-3}, {kind: toy_plain, n_components: 8}]
"""


def test_every_way_in_gives_the_same_config(toys, tmp_path):
    path = tmp_path / "full.yaml"
    path.write_text(FULL)
    config = load_config(path)
    assert config.columns.include == ("b", "a")
    assert config.steps[0].maps[0].steps[0].weights == (1.0, 2.5)
    assert load_config(config) is config
    assert load_config(str(path)) == config
    assert load_config(config.to_plain()) == config
    again = {**config.to_plain(), "steps": list(config.steps), "columns": config.columns}
    assert load_config(again) == config
    assert load_config(json.loads(json.dumps(config.to_plain()))).digest() == config.digest()
    # JSON is YAML
    path.write_text(json.dumps(config.to_plain()))
    assert load_config(path) == config


def test_equal_configs_have_equal_digests(toys):
    config = load_config({"steps": STEPS})
    plain = config.digest()
    # the order in which fields are declared is no part of a config
    canonical = json.dumps(config.to_plain(), sort_keys=True, separators=(",", ":"))
    assert plain == sha256(canonical.encode()).hexdigest()
    step = {"n_components": 4, "gamma": "median", "kind": "toy_plain"}
    spelled = {"steps": [step], "seed": 0, "columns": {}}
    assert load_config(spelled).digest() == plain
    assert load_config({"steps": STEPS, "seed": 1}).digest() != plain
    assert load_config({"steps": STEPS * 2}).digest() != plain


def test_whole_numbers_for_numbers_are_one_config(toys):
    one, same = ({"steps": [{**STEPS[0], "gamma": gamma}]} for gamma in (1, 1.0))
    assert load_config(one).digest() == load_config(same).digest()


def test_a_config_is_frozen(toys):
    config = load_config({"steps": STEPS})
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 1


MAPPING, ADVICE = "expected a mapping with the key 'steps', got ", ": `kafeat config --for DATA` starts one"
NO_CONFIG = [
    ("", f"1:1: {MAPPING}an empty file"), ("---\n", f"2:1: {MAPPING}null{ADVICE}"),
    ("- a\n", f"1:1: {MAPPING}a list of 1{ADVICE}"), ("steps", f"1:1: {MAPPING}'steps'{ADVICE}"),
    ("#" * (1 << 20) + "\n", "1:1: expected a config of at most 1048576 bytes, got more"),
    (b"\xff", "1:1: expected text in UTF-8, got the byte 0xff: save the config as UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), NO_CONFIG, ids=range(len(NO_CONFIG)))
def test_what_is_no_config(problems, text, line):
    assert problems(text) == [f"c.yaml:{line}"]


def test_neither_path_nor_mapping():
    with pytest.raises(ConfigError, match=r"^config: expected a path, a mapping or a list of steps, got 3$"):
        load_config(3)


def test_a_missing_file_is_the_systems_refusal(tmp_path):
    path = tmp_path / "no.yaml"
    told = r"no\.yaml: cannot read the config: No such file or directory$"
    with pytest.raises(SystemRefusedError, match=told):
        load_config(path)
    with pytest.raises(SystemRefusedError, match=r"cannot read the config: Is a directory$"):
        load_config(tmp_path)
    with pytest.raises(SystemRefusedError, match=r"^'a\\x00b': cannot read the config: embedded null byte$"):
        load_config("a\0b")


WORDS = ["steps", "kind", "toy_plain", "toy_union", "maps", "gamma", "n_components", "weights", "columns",
         "include", "exclude", "seed", "fit_rows", "all", "median", "1", "-1", "0.5", "1e-3", "&a", "*a", "!!int",
         "[", "]", "{", "}", ", ", ": ", "- ", "\n", "\n  ", "\n- ", "\n    ", "'", '"', "|", ">", "#", "? ", "%",
         "---\n", "\t", "\r", "\\", "\0", "é", "\u2028", "<<: ", "=", ".nan", "0x1F", "no", "~", "@"]  # fmt: skip
TEXTS = st.one_of(
    st.text(),
    st.binary(),
    st.lists(st.sampled_from(WORDS)).map("".join),
    st.builds("steps: {}".format, st.text()),
)
FAR = settings(
    max_examples=2 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def outcome(source):
    try:
        config, problems = load_config(source), ["none"]
    except ConfigError as error:
        config, problems = None, error.problems
    assert config is None or isinstance(config, Config)
    assert problems
    assert all(problem.isprintable() and len(problem) < 1000 for problem in problems)


@FAR
@given(text=TEXTS)
def test_any_text_is_a_config_or_a_list_of_mistakes(toys, tmp_path, text):
    path = Path(tmp_path / "any.yaml")
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
    outcome(path)


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(WORDS))
KEYS = st.one_of(st.sampled_from(WORDS), st.text(), st.integers())
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=4
)
TOY = st.fixed_dictionaries(
    {"kind": st.sampled_from(["toy_plain", "toy_union", "toy"])},
    optional=dict.fromkeys(("n_components", "gamma", "weights", "maps", "density", "clip", "law"), ANYTHING),
)
MAPPINGS = st.fixed_dictionaries(
    {"steps": st.lists(TOY | ANYTHING, max_size=3)},
    optional=dict.fromkeys(("seed", "dtype", "columns", "fit_rows", "chunk_rows", "x"), ANYTHING),
)


@FAR
@given(mapping=MAPPINGS)
@example(mapping={"steps": [{"kind": "toy_plain", "n_components": {"\x1b[31m": None}}]})
@example(mapping={"steps": [{"kind": "toy_plain", "n_components": {"x" * 2000: None}}]})
def test_any_mapping_is_a_config_or_a_list_of_mistakes(toys, mapping):
    outcome(mapping)
