"""inspect: the categories that a map knows."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import kafeat
from kafeat.cli.inspect import _show_step
from kafeat.jobs.inspect import inspect
from kafeat.registry import build_step, kinds
from tests.recipes import NEEDED

CONFIG = {"steps": [{"kind": "one_hot", "columns": ["town", "size"]}, {"kind": "standardize"}]}


@pytest.fixture
def model(tmp_path: Path) -> str:
    table = pa.table({"x": [1.0, 2.0, 3.0], "town": ["Ulm", "Bern", "Ulm"], "size": [10, 9, 10]})
    path = str(tmp_path / "map.joblib")
    kafeat.fit(CONFIG, table).save(path)
    return path


def test_the_categories_of_each_column_are_shown(run, model):
    found = run("inspect", model).stdout
    assert "\ncategories of 'town' (2): 'Bern', 'Ulm'\ncategories of 'size' (2): '9', '10'\n" in found
    plain = json.loads(run("inspect", model, "--json").stdout)
    assert plain["categories"] == {"town": ["Bern", "Ulm"], "size": ["9", "10"]}


def test_many_categories_fill_no_terminal_and_a_hostile_one_does_not_command_it(run, tmp_path):
    names = [f"n{i:04d}" for i in range(2000)] + ["a\x1b[2Jb"]
    steps = [{"kind": "one_hot", "columns": ["k"]}]
    kafeat.fit({"steps": steps}, pa.table({"k": names})).save(tmp_path / "m.joblib")
    found = run("inspect", tmp_path / "m.joblib").stdout
    (line,) = (line for line in found.splitlines() if line.startswith("categories"))
    assert line.startswith("categories of 'k' (2,001): ")
    assert line.endswith("'n1998', 'n1999'")
    assert len(line) < 200
    assert "\x1b" not in found


def test_the_split_of_a_fit_is_shown(run, tmp_path):
    table = pa.table({"x": [1.0, 2.0, 3.0], "part": ["train", "train", "test"]})
    kafeat.fit({"steps": ["standardize"]}, table, split="part").save(tmp_path / "m.joblib")
    found = run("inspect", tmp_path / "m.joblib").stdout
    assert "fitted on 2 of 3 rows of " in found
    assert "\nsplit: part (fitted only on the rows that it marks as train)\n" in found
    assert json.loads(json.dumps(inspect(tmp_path / "m.joblib")))["fitted_from"]["split"] == "part"
    kafeat.fit({"steps": ["standardize"]}, table.select(["x"])).save(tmp_path / "m.joblib")
    assert "split" not in inspect(tmp_path / "m.joblib")["fitted_from"]


def test_internals_and_defaults_are_shown_only_with_verbose(run, tmp_path):
    steps = [{"kind": "standardize"}, {"kind": "nystroem", "n_components": 3, "landmarks": "uniform"}]
    table = pa.table({"x": [float(i) for i in range(9)]})
    kafeat.fit({"steps": steps}, table).save(tmp_path / "m.joblib")
    plain, every = (run("inspect", tmp_path / "m.joblib", *more).stdout for more in ((), ("--verbose",)))
    gamma = f"    gamma = {inspect(tmp_path / 'm.joblib')['steps'][1]['fitted']['gamma']:.10g}"
    shown = "steps[1] nystroem (kernel: rbf, gamma: median, n_components: 3, landmarks: uniform)"
    assert plain.splitlines()[3:6] == ["steps[0] standardize", shown, gamma]
    assert "contains training rows: yes" in plain
    for inside in ("sha256", "float64, ", "rank = ", "rcond", "chunks of ", "format "):
        assert inside not in plain
        assert inside in every


@pytest.mark.parametrize("kind", kinds())
def test_a_step_of_every_kind_is_shown_and_its_defaults_are_not(kind, capsys):
    recipe = build_step({"kind": kind, **NEEDED.get(kind, {})}).recipe()
    for verbose in (False, True):
        _show_step(0, {**recipe, "fitted": {}, "arrays": {}}, verbose)
    plain, *maps, every = capsys.readouterr().out.splitlines()
    assert every == f"steps[0] {kind}" + (f" ({inside(recipe)})" if len(recipe) > 1 else "")
    chains = [[one["kind"] for one in part["steps"]] for part in recipe.get("maps", ())]
    assert maps == [f"    {' -> '.join(chain)}" for chain in chains]
    always = {"kernel", *NEEDED.get(kind, {})} - {"maps"}
    given = {name: value for name, value in recipe.items() if name in always}
    assert plain == f"steps[0] {kind}" + (f" ({inside(given)})" if given else "")


def inside(recipe: dict[str, object]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in recipe.items() if name != "kind")
