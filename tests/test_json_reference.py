"""docs/reference/json.md names every key that commands write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from kafeat.registry import step_class

ROOT = Path(__file__).parents[1]
# Names of parameters, arrays, values and versions, which are those of the map and of its libraries.
OPEN = {
    "settings", "fitted", "arrays", "seen", "categories", "importance", "scores", "config", "versions",
    "dates", "timezones",
}  # fmt: skip


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in OPEN:
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def section(name: str) -> set[str]:
    page = (ROOT / "docs/reference/json.md").read_text()
    text = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
    return set(re.findall(r"`([^`]+)`", text))


def test_every_key_is_told(tmp_path: Path, in_process: Callable) -> None:
    data, config = ROOT / "sample_data/rentals.csv", ROOT / "configs/mixed.yaml"
    model, parts = tmp_path / "m.joblib", tmp_path / "parts"

    def run(*words: object) -> str:
        done = in_process(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("fit", "--config", config, data, model, "--label", "income")
    told = json.loads(run("inspect", model, "--json"))
    for step in told.pop("steps"):
        assert set(step) - set(step_class(step["kind"]).model_fields) <= section("kafeat inspect --json")
    assert set(keys(told)) <= section("kafeat inspect --json")

    ending = tmp_path / "ridge.yaml"
    ending.write_text(config.read_text() + "  - kind: ridge\n")
    run("fit", "--config", ending, data, "r.joblib", "--label", "income")
    predictor = json.loads(run("inspect", "r.joblib", "--json"))
    del predictor["steps"], predictor["predictor"]["fitted"]
    own = set(step_class("ridge").model_fields)
    assert set(keys(predictor)) - own <= section("kafeat inspect --json")
    run("predict", "--model", "r.joblib", data, "p.parquet", "--stats", "s.json")
    stats = json.loads((tmp_path / "s.json").read_text())
    stats["drift"]["columns"] = {}
    assert set(keys(stats)) <= section("kafeat transform --stats")

    run("transform", "--model", model, data, "f.parquet", "--stats", "s.json", "--max-drift", "1.0")
    stats = json.loads((tmp_path / "s.json").read_text())
    stats["drift"]["columns"] = {}
    assert set(keys(stats)) <= section("kafeat transform --stats")
    run(
        "transform",
        "--model",
        model,
        data,
        parts,
        "--rows-per-file",
        "8192",
        "--stats",
        "s.json",
        "--max-drift",
        "1.0",
    )
    assert set(keys(json.loads((tmp_path / "s.json").read_text()))) <= section("kafeat transform --stats")

    manifest = json.loads((parts / "_kafeat.json").read_text())
    manifest["machines"] = []
    assert set(keys(manifest)) <= section("The manifest `_kafeat.json`")

    run(
        "tune",
        data,
        "t.yaml",
        "--label",
        "income",
        "--columns",
        "16",
        "--trials",
        "4",
        "--json",
        "t.json",
        "--quiet",
    )
    assert set(keys(json.loads((tmp_path / "t.json").read_text()))) <= section("kafeat tune --json")
