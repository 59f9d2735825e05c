"""Medians, quartiles and ratios of runs, as a Markdown table."""

import statistics
from collections.abc import Mapping, Sequence

from speed.contest import Line, Sample

HEAD = (
    "| job | against | ours | theirs | ratio | target | reached |",
    "|---|---|---|---|---|---|---|",
)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median, third quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    first, median, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, median, third


def measured(runs: Mapping[str, Sequence[Sample]], side: str, quantity: str) -> list[float]:
    return [sample[quantity] for sample in runs[side]]


def result(line: Line, runs: Mapping[str, Sequence[Sample]]) -> dict[str, object]:
    """The figures of a line."""
    ours = quartiles(measured(runs, line.ours, line.quantity))
    found: dict[str, object] = {"job": line.job, "against": line.against, "ours": ours}
    if line.theirs is None:
        ratio, at_most = ours[1], True
    else:
        theirs = found["theirs"] = quartiles(measured(runs, line.theirs, line.quantity))
        ratio, at_most = (ours[1] / theirs[1], True) if line.share else (theirs[1] / ours[1], False)
        found["ratio"] = ratio
    found |= {"target": line.target, "at_most": at_most, "quantity": line.quantity}
    if line.target is not None:
        found["reached"] = bool(ratio <= line.target if at_most else ratio >= line.target)
    return found


def row(found: Mapping[str, object]) -> str:
    """A line of the table."""
    ratio, target = found.get("ratio"), found.get("target")
    sign = "≤" if found["at_most"] else "≥"
    cells = [
        found["job"],
        found["against"],
        spread(found["ours"], found["quantity"]),
        spread(found["theirs"], found["quantity"]) if "theirs" in found else "",
        "" if ratio is None else f"{ratio:.2f}",
        "" if target is None else f"{sign} {target:g}",
        {True: "yes", False: "NO"}.get(found.get("reached"), ""),
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def spread(values: tuple[float, float, float], quantity: str) -> str:
    """Median and quartiles in their unit."""
    digits, unit = (0, "MB") if quantity == "peak_mb" else (3 if values[1] < 1.0 else 2, "s")
    first, median, third = (f"{value:.{digits}f}" for value in values)
    return f"{median} {unit} ({first}–{third})"
