"""Records and summaries of an evaluation from the keys of JSON."""

from kafeat.study.records import Record, Scored, Summary

WHICH = ("constant", "raw", "map", "exact", "boosting", "model")
_ENDINGS = (("validation", "_validation"), ("exact_rows", "_exact_rows"), ("tested", ""))


def figure(mean, error=None):
    return {"mean": mean, "standard_error": error}


def entry(name, **more):
    """The entry of a map in JSON. Costs are 0.1 if no others are given; a float stands for its figure."""
    costs = ("learn_seconds", "search_seconds", "total_seconds", "predict_seconds", "matrix_bytes")
    return {
        "map": name, "setting": {}, "n_components": 64, "columns_raw": 8, "bytes_per_row": 64, "task": "classification",
        "rows": 100, "rows_train": 500, "rows_test": 1000, "rows_exact": 500, "score_raw": figure(0.5),
        "fit_seconds": figure(0.1), "transform_seconds_map": figure(0.02), "kernel_seconds_exact": figure(0.04),
        "total_seconds_map_exact_rows": figure(0.1),
        **{f"{cost}_{which}": figure(0.1) for which in ("raw", "map", "exact") for cost in costs},
        **{key: figure(value) if isinstance(value, float) else value for key, value in more.items()},
    }  # fmt: skip


def _nested(flat):
    """The figures that end in the name of what is scored, and the others: by name if they are means, and about it."""
    scored, others = {name: {} for name, _ in _ENDINGS}, {}
    for key, value in flat.items():
        found = [
            (name, which, key.removesuffix(f"_{which}{ending}"))
            for name, ending in _ENDINGS for which in WHICH
            if key.endswith(f"_{which}{ending}") and not key.startswith(("rows_", "columns_"))
        ]  # fmt: skip
        if found:
            name, which, figure = found[0]
            scored[name].setdefault(which, {})[figure] = value
        else:
            others[key] = value
    return Scored(**scored), others


def summary_of(flat):
    scored, others = _nested(flat)
    counts = {name: others.pop(name, 1) for name in ("seeds", "splits")}
    kernel = {key: value for key, value in others.items() if isinstance(value, dict) and "mean" in value}
    about = {key: value for key, value in others.items() if key not in kernel and key != "parts"}
    return Summary(about=about, kernel=kernel, scored=scored, parts=others.get("parts", []), **counts)


def record_of(flat, kernel=("relative_frobenius",)):
    scored, others = _nested(flat)
    about = {key: value for key, value in others.items() if key not in kernel}
    return Record(about=about, kernel={key: others[key] for key in kernel if key in others}, scored=scored)
