"""The tables of `kafeat evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kafeat.cli import color
from kafeat.evaluation.summary import spell, spell_briefly

_WIDE = 200


def show(report: Mapping[str, Any]) -> None:
    """Print what was found."""
    # what is not read on a terminal has no width: nothing is cut off
    console = color.console(width=None if sys.stdout.isatty() else _WIDE)
    if len(report["summary"]) == 1:
        for table in _one(report):
            console.print(table)
    else:
        console.print(_many(report))
    for note in _notes(report):
        console.print(note, highlight=False, soft_wrap=True)


def _one(report: Mapping[str, Any]) -> Iterator[Table]:
    entry = report["summary"][0]
    seeds = f", {entry['seeds']} seeds" if entry["seeds"] > 1 else ""
    title = f"{spell(entry)} against the exact kernel, {entry['rows']:,} rows, D = {entry['n_components']:,}{seeds}"
    table = Table(title=title, title_justify="left", min_width=len(title))
    table.add_column("error of z(x)·z(y)")
    table.add_column("value", justify="right")
    for key, text in (
        ("relative_frobenius", "relative, Frobenius norm"),
        ("relative_spectral", "relative, spectral norm"),
        ("max_abs_error", "largest of an entry"),
        ("mean_abs_error", "mean of an entry"),
        ("bias", "mean with its sign"),
        ("distortion_max", "largest of a squared distance, relative"),
        ("distortion_mean", "mean of a squared distance, relative"),
    ):
        if key in entry:
            table.add_row(text, _figure(entry[key], ".4g"))
    if "distortion_bound" in report["records"][0]:
        table.add_row(
            "what Johnson and Lindenstrauss promise", f"{report['records'][0]['distortion_bound']:.4g}"
        )
    yield table
    yield _costs(entry)
    if "score_raw" in entry:
        yield _scores(entry, report["records"][0])


def _costs(entry: Mapping[str, Any]) -> Table:
    table = Table("what it costs", title_justify="left")
    table.add_column("value", justify="right")
    if entry["fit_seconds"]["mean"] is not None:
        table.add_row("seconds to fit", _figure(entry["fit_seconds"], ".2f"))
    table.add_row("seconds to transform these rows", _figure(entry["transform_seconds"], ".4f"))
    table.add_row("bytes a row", f"{entry['bytes_per_row']:,}")
    return table


def _scores(entry: Mapping[str, Any], record: Mapping[str, Any]) -> Table:
    title = f"{record['learner']}, {record['rows_train']:,} rows to train, {record['rows_test']:,} to test"
    table = Table(title=title, title_justify="left", min_width=len(title))
    score = "accuracy" if record["task"] == "classification" else "R²"
    for name in ("on", score, "seconds to learn", "coefficients that are not 0"):
        table.add_column(name, justify="left" if name == "on" else "right")
    rows = (
        f", trained on {record['rows_exact']:,} rows" if record["rows_exact"] < record["rows_train"] else ""
    )
    for key, name, unit in (
        ("raw", "the raw columns", "columns"), ("map", "the map's features", "features"),
        ("exact", f"the exact kernel{rows}", "rows"),
    ):  # fmt: skip
        counted = f"{entry[f'nonzero_{key}']['mean']:,.0f} {unit}"
        table.add_row(
            name,
            _figure(entry[f"score_{key}"], ".4f"),
            _figure(entry[f"learn_seconds_{key}"], ".3f"),
            counted,
        )
    if rows:
        table.add_row(f"the map's features{rows}", _figure(entry["score_map_exact_rows"], ".4f"))
    return table


def _many(report: Mapping[str, Any]) -> Table:
    records, entries = report["records"], report["summary"]
    scored = "score_map" in entries[0]
    held = all(record["rows_seen_in_fit"] == 0 for record in records)
    title = f"{len(entries)} maps on {records[0]['rows']:,} rows{' that were held out' if held else ''}"
    columns = ["map", "D", "error"]
    if scored:
        score = "accuracy" if records[0]["task"] == "classification" else "R²"
        raw = _figure(entries[0]["score_raw"], ".4f")
        title += f"; {records[0]['learner']} on {records[0]['rows_train']:,} rows, {score} {raw} on the raw columns"
        columns += [score, "exact", "on its rows"]
    seeds = entries[0]["seeds"]
    table = Table(
        title=title + (f"; ± over {seeds} seeds" if seeds > 1 else ""), title_justify="left", box=SIMPLE_HEAD
    )
    for name in [*columns, "fit s", "transform s"]:
        table.add_column(
            name,
            justify="left" if name == "map" else "right",
            no_wrap=name != "map",
            min_width=14 if name == "map" else None,
            overflow="fold",
        )
    for entry in entries:
        figures = [_figure(entry["relative_frobenius"], ".4f")]
        if scored:
            figures += [_figure(entry["score_map"], ".4f"), _mean(entry["score_exact"], ".4f")]
            figures.append(_mean(entry["score_map_exact_rows"], ".4f"))
        figures += [_mean(entry["fit_seconds"], ".2f"), _mean(entry["transform_seconds"], ".3f")]
        table.add_row(spell_briefly(entry), f"{entry['n_components']:,}", *figures)
    return table


def _mean(figure: Mapping[str, float | None], form: str) -> str:
    return "" if figure["mean"] is None else format(figure["mean"], form)


def _figure(figure: Mapping[str, float | None], form: str) -> str:
    if figure["mean"] is None:
        return "undefined"
    error = figure["standard_error"]
    return format(figure["mean"], form) + (f" ± {error:.1g}" if error else "")


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    said = set()
    for record in report["records"]:
        if record["rows_seen_in_fit"]:
            yield (
                f"note: {record['map']} was fitted on this file, and {record['rows_seen_in_fit']:,} of these rows "
                "were among those it saw"
            )
        if record["rows_seen_in_fit"] is None and record["map"] not in said:
            said.add(record["map"])
            yield f"note: {record['map']} was fitted on another file: nobody knows whether it saw these rows"
        if record["reference"] and record["reference"] not in said:
            said.add(record["reference"])
            yield f"note: {record['reference']}"
    for which, text in (("raw", "the raw columns"), ("map", "the features"), ("exact", "the exact kernel")):
        if not all(record.get(f"converged_{which}", True) for record in report["records"]):
            yield f"note: on {text} the solver stopped before it converged: the score may be too low"
    first = report["records"][0]
    if len(report["summary"]) > 1 and first.get("rows_exact", 0) < first.get("rows_train", 0):
        yield (
            f"note: the exact machine was trained on {first['rows_exact']:,} rows (--exact-rows); `on its rows` is "
            "what the features give when trained on the same"
        )
    for budget in report["budgets"].get("columns", []):
        yield f"best with at most {budget['budget']:,} columns: {spell(budget)}"
    for budget in report["budgets"].get("seconds", []):
        yield f"best within {budget['budget']:.2g} s to transform these rows: {spell(budget)}"
    if report["recommendation"]:
        yield report["recommendation"]
