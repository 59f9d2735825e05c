"""docs/reference/json.md names every key that commands write."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import split

from kafeat.registry import step_class
from tests.zygote import ROOT

# Names of parameters, arrays, values and versions, which are those of the map and of its libraries.
OPEN = {
    "settings", "fitted", "arrays", "seen", "categories", "importance", "importance_error", "scores", "config",
    "versions", "dates", "timezones",
}  # fmt: skip

# Words of the page that are values, or keys of other runs.
ELSEWHERE = {
    "kafeat inspect --json": "directions errors importance shape steps target_error weight widths",
    "kafeat transform --stats": "complete failed incomplete interrupted interval keep predict predictions refused "
    "scale transform",
    "The manifest `_kafeat.json`": "complete error exit_code failed incomplete interrupted refused retry running",
    "kafeat tune --json": "accuracy auc balanced_accuracy log_loss bytes_per_row chosen "
    "best best_score elapsed failure left number part rung score_without scoring error verdict",
}


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
    written: dict[str, set[str]] = {}

    def told_of(name: str, found: set[str]) -> None:
        assert found <= section(name)
        written.setdefault(name, set()).update(found)

    data, config = ROOT / "sample_data/rentals.csv", ROOT / "configs/mixed.yaml"
    model, parts = tmp_path / "m.joblib", tmp_path / "parts"

    def run(*words: object) -> str:
        done = in_process(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("fit", "--config", config, data, model, "--label", "income")
    told = json.loads(run("inspect", model, "--json"))
    for step in told.pop("steps"):
        told_of("kafeat inspect --json", set(step) - set(step_class(step["kind"]).model_fields))
    told_of("kafeat inspect --json", set(keys(told)))

    ending = tmp_path / "ridge.yaml"
    ending.write_text(config.read_text() + "  - kind: ridge\n")
    run("fit", "--config", ending, data, "r.joblib", "--label", "income")
    predictor = json.loads(run("inspect", "r.joblib", "--json"))
    del predictor["steps"], predictor["predictor"]["fitted"]
    own = set(step_class("ridge").model_fields)
    told_of("kafeat inspect --json", set(keys(predictor)) - own)
    run("predict", "--model", "r.joblib", data, "p.parquet", "--stats", "s.json")
    stats = json.loads((tmp_path / "s.json").read_text())
    stats["drift"]["columns"] = {}
    told_of("kafeat transform --stats", set(keys(stats)))

    run("transform", "--model", model, data, "f.parquet", "--stats", "s.json", "--max-drift", "1.0")
    stats = json.loads((tmp_path / "s.json").read_text())
    stats["drift"]["columns"] = {}
    told_of("kafeat transform --stats", set(keys(stats)))
    cut = "--rows-per-file 8192 --stats s.json --max-drift 1.0"
    run("transform", "--model", model, data, parts, *split(cut))
    told_of("kafeat transform --stats", set(keys(json.loads((tmp_path / "s.json").read_text()))))

    manifest = json.loads((parts / "_kafeat.json").read_text())
    manifest["machines"] = []
    told_of("The manifest `_kafeat.json`", set(keys(manifest)))

    run("tune", data, *split("t.yaml --label income --columns 16 --trials 4 --json t.json --quiet"))
    told_of("kafeat tune --json", set(keys(json.loads((tmp_path / "t.json").read_text()))))

    promised = (ROOT / "tests/stable.txt").read_text().splitlines()
    for name, found in written.items():
        of_name = f"json: {name.replace('`', '')}: "
        stable = {line.removeprefix(of_name) for line in promised if line.startswith(of_name)}
        gone = stable - found - set(ELSEWHERE[name].split())
        assert not gone, f"docs/stability.md promises the keys {gone} of {name}: write them as before"
