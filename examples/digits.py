"""Handwritten digits: how many columns does a map need? `digits.py TABLE PICTURE`"""

import sys

import matplotlib

import kafeat

matplotlib.use("agg")

RECIPE = {
    "columns": {"exclude": ["label"]},
    "steps": [{"kind": "standardize"}, {"kind": "nystroem", "kernel": "rbf"}],
}

table, picture = sys.argv[1:]
found = kafeat.evaluate(
    data=table,
    label="label",
    config=RECIPE,
    sweep={"n_components": [16, 32, 64, 128, 256]},
    seeds=3,
)
for entry in found["summary"]:
    score, error = (
        entry["score_map"][key] for key in ("mean", "standard_error")
    )
    print(
        f"{entry['n_components']:4} columns: accuracy {score:.4f} ± {error:.4f}"
    )
print(f" raw columns: accuracy {found['summary'][0]['score_raw']['mean']:.4f}")
print(found["recommendation"])
found.plot().figure.savefig(picture, dpi=110)
