"""The experiments that this tool grew out of, each by one YAML of benchmarks/experiments.

    python benchmarks/experiments.py DATA [--out FOLDER] [--only PATTERN]

DATA is a folder with the Parquet files that the YAMLs name. For every set an evaluation with its page is written to
FOLDER/EXPERIMENT/SET, and a table to FOLDER/EXPERIMENT.md. A set may name classes (`only`) and a divisor of its
columns (`divide`), and widths of its own (`sweep`); `each` puts steps before the maps of one set.
"""

import argparse
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from ruamel.yaml import YAML

import kafeat

HERE = Path(__file__).parent / "experiments"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("experiments-results"))
    parser.add_argument("--only", default="", metavar="PATTERN", help="of EXPERIMENT/SET")
    asked = parser.parse_args()
    for file in sorted(HERE.glob("*.yaml")):
        plan = YAML(typ="safe").load(file)
        lines: list[str] = []
        for name, chosen in plan["sets"].items():
            if not re.search(asked.only, f"{file.stem}/{name}"):
                continue
            started = time.perf_counter()
            lines += table(name, run(plan, name, chosen, asked.data, asked.out / file.stem / name))
            lines += ["", f"{(time.perf_counter() - started) / 60:.1f} minutes.", ""]
            (asked.out / f"{file.stem}.md").write_text(
                "\n".join([f"## {plan['title']}", "", plan["source"], "", *lines])
            )
        print("\n".join(lines), flush=True)


def run(plan: dict[str, Any], name: str, chosen: dict[str, Any], data: Path, folder: Path) -> dict[str, Any]:
    """One evaluation: every map of the plan on one set."""
    folder.mkdir(parents=True, exist_ok=True)
    recipes = []
    for title, recipe in plan["maps"].items():
        recipe = {**recipe, "steps": [*plan.get("each", {}).get(name, []), *recipe["steps"]]}
        path = folder / f"{title}.yaml"
        YAML(typ="safe").dump(recipe, path)
        recipes.append(str(path))
    source = data / chosen["data"]
    return kafeat.evaluate(
        data=_some(source, chosen) if "only" in chosen else str(source), label=chosen["label"], config=recipes,
        sweep=chosen.get("sweep", plan.get("sweep", {})), seeds=plan.get("seeds", 1), report=str(folder),
        say=lambda step: print(name, step, flush=True),        **plan["question"],
    )  # fmt: skip


def _some(source: Path, chosen: dict[str, Any]) -> pa.Table:
    """Rows of some classes, their columns divided."""
    table = pq.read_table(source)
    table = table.filter(np.isin(table[chosen["label"]].to_numpy(), chosen["only"]))
    kept = (chosen["label"], "split")
    columns = {
        name: column if name in kept else pa.array(column.to_numpy().astype(np.float32) / chosen["divide"])
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


def table(name: str, report: dict[str, Any]) -> list[str]:
    """Markdown: a line for each map and width."""
    first = report["records"][0]
    raw = report["summary"][0]["score_raw"]["mean"]
    score = "accuracy" if first["task"] == "classification" else "R²"
    lines = [
        f"**{name}**: {first['rows_train']:,} rows to train, {first['rows_test']:,} to test; {first['learner']} on "
        f"the raw columns {raw:.4f} ({score}); exact machines on {first['rows_exact']:,} rows.",
        "",
        f"| map | D | {score} | exact | error | fit s | learn s | exact learn s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for entry in report["summary"]:
        means = {
            key: value["mean"] for key, value in entry.items() if isinstance(value, dict) and "mean" in value
        }
        lines.append(
            f"| {entry['map'].removesuffix('.yaml')} | {entry['n_components']:,} | {means['score_map']:.4f} | "
            f"{means['score_exact']:.4f} | {means['relative_frobenius']:.4f} | {means['fit_seconds']:.1f} | "
            f"{means['learn_seconds_map']:.1f} | {means['learn_seconds_exact']:.1f} |"
        )
    return lines


if __name__ == "__main__":
    main()
