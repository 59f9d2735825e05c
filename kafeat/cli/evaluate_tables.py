"""The tables and notes of `kafeat evaluate`, laid to fit a terminal.

Texts fold, less important columns are dropped, and numbers are never cut.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table

from kafeat.cli import log
from kafeat.maths.scoring import figure_names, lower_is_better, spell_score
from kafeat.maths.task import Kind
from kafeat.study.costs import TableColumn, cost_table, findings, spell_score_of
from kafeat.study.recommendation import choose
from kafeat.study.records import MACHINES, Estimate, Record, Report, Summary
from kafeat.study.summary import rate_note, score_name, spell, spell_briefly, spread_of, stated_mean


def notes(report: Report, left_out: Sequence[str]) -> Iterator[str]:
    """Yield the notes; `left_out` are the columns that a narrow terminal does not show."""
    yield from _of_records(report["records"])
    for which, text in (("raw", "the raw columns"), ("map", "the features"), ("exact", "the exact kernel")):
        if not all(record.get(f"converged_{which}", True) for record in report["records"]):
            yield f"note: on {text} the solver stopped before it converged: the score may be too low"
    yield from _of_models(report, left_out)
    for rate in report["rates"]:
        yield rate_note(rate)
    yield from _of_budgets(report)
    first = report["summary"][0]
    constant = stated_mean(first, "score_constant") if "score_constant" in first else None
    if constant is not None:
        name = score_name(first)
        yield f"{name} of a constant prediction, learned from the same training rows: {constant:z.4f}"
    entry = choose(report["summary"]) or first
    if "score_map" in entry:
        yield from findings(report["summary"], entry)
    if report["recommendation"]:
        yield report["recommendation"]


def _of_records(records: Sequence[Record]) -> Iterator[str]:
    """Yield what each record says about its rows and its reference, which other records do not repeat."""
    said = set()
    for record in records:
        if record["rows_seen_in_fit"]:
            yield (
                f"note: {record['map']} was fitted on this file, and {record['rows_seen_in_fit']:,} of these rows "
                "were in the fit sample"
            )
        if record["rows_seen_in_fit"] is None and record["map"] not in said:
            said.add(record["map"])
            yield f"note: {record['map']} was fitted on another file; it is unknown whether it saw these rows"
        if record.get("test_rows_seen_model"):
            seen = f"{record['test_rows_seen_model']:,}"
            yield (
                f"note: the predictor of {record['map']} may have learned from {seen} of the test rows: "
                "its scores are of new rows only if it was fitted with the same --split"
            )
        if record["reference"] and record["reference"] not in said:
            said.add(record["reference"])
            yield f"note: {record['reference']}"


def _of_models(report: Report, left_out: Sequence[str]) -> Iterator[str]:
    """Yield the equivalent model of scikit-learn, and the rows that the exact machine was trained on."""
    first = report["records"][0]
    same = first.get("equivalent_model") or first.get("equivalent_map")
    if same and len(report["records"]) == 1:
        yield f"the same model of scikit-learn on the features: {same}"
    fewer = first.get("rows_exact", 0) < first.get("rows_train", 0)
    if len(report["summary"]) > 1 and fewer and "exact" not in left_out:
        note = f"note: the exact machine was trained on {first['rows_exact']:,} rows (--exact-rows)"
        if "on its rows" not in left_out:
            note += "; `on its rows` is the score of the features trained on the same rows"
        yield note


def _of_budgets(report: Report) -> Iterator[str]:
    """Yield the best map within each budget."""
    for budget in report["budgets"].get("columns", []):
        yield f"best with at most {budget['budget']:,} columns: {spell(budget)}"
    for budget in report["budgets"].get("seconds", []):
        yield f"best within {budget['budget']:.2g} s to transform these rows: {spell(budget)}"


# Columns are dropped before texts fold to less than _ENOUGH; texts never fold to less than _LEAST.
_ENOUGH, _LEAST = 24, 12


def fitting(
    texts: TableColumn, figures: Sequence[TableColumn], width: int | None, framed: bool = True
) -> tuple[Table, list[str]]:
    """Return a table at most `width` cells wide (None: any width), and the heads of the dropped columns.

    The table is wider if the columns that are never dropped need it. The terminal then wraps its lines.
    """
    kept, left_out, whole = list(figures), [], _width(texts)
    widths = _widths(kept, whole, width, framed)
    while widths[0] < min(whole, _ENOUGH) and any(one.idle for one in kept):
        idlest = max(kept, key=lambda one: one.idle)
        kept.remove(idlest)
        left_out.append(idlest.head)
        widths = _widths(kept, whole, width, framed)
    table = Table(box=HEAVY_HEAD if framed else SIMPLE_HEAD, show_edge=framed, pad_edge=framed)
    for one, cells in zip([texts, *kept], [max(widths[0], _LEAST), *widths[1:]], strict=True):
        table.add_column(one.head, justify="left" if one is texts else "right", width=cells, overflow="fold")
    for row in zip(texts.cells, *(one.cells for one in kept), strict=True):
        table.add_row(*row)
    return table, left_out


def _widths(figures: Sequence[TableColumn], whole: int, width: int | None, framed: bool) -> list[int]:
    """Return the width of the texts, limited by the room, and of the figures, with heads folded if necessary."""
    lines = 3 * len(figures) + (4 if framed else 0)
    if width is None:
        return [whole, *map(_width, figures)]
    for folded in (False, True):
        taken = [_width(one, folded) for one in figures]
        room = width - lines - sum(taken)
        if room >= whole:
            break
    return [min(whole, room), *taken]


def _width(column: TableColumn, folded: bool = False) -> int:
    """Return the width of the widest cell or head; a folded head breaks between its words."""
    heads = column.head.split() if folded else [column.head]
    return max(map(cell_len, [*heads, *column.cells]))


# The width of lines in a pipe or a file.
_ENDLESS = 100_000


class _Printer:
    """Prints tables and lines, and collects the heads of the columns that the terminal has no room for."""

    def __init__(self) -> None:
        self._width = log.console().width if sys.stdout.isatty() else None
        self._console = log.console(width=_ENDLESS)
        self.left_out: list[str] = []

    def line(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, soft_wrap=True)

    def table(
        self, title: str, texts: TableColumn, figures: Sequence[TableColumn], framed: bool = True
    ) -> None:
        if title:
            self.line(title, "italic")
        table, without = fitting(texts, figures, self._width, framed)
        self._console.print(table)
        self.left_out += [head for head in without if head not in self.left_out]

    def pairs(self, title: str, what: str, rows: Iterable[tuple[str, str]]) -> None:
        """Print a table of names and values."""
        texts, values = zip(*rows, strict=True)
        self.table(title, TableColumn(what, texts), [TableColumn("value", values)])


def show(report: Report, scoring: Sequence[str] = ()) -> None:
    """Print the tables, notes and the recommendation of an evaluation; `scoring` names scores to show beside."""
    printer = _Printer()
    (_one if len(report["summary"]) == 1 else _several)(printer, report, scoring)
    if "score_map" in report["summary"][0]:
        _learning_costs(printer, report)
    if printer.left_out:
        heads = ", ".join(printer.left_out)
        printer.line(f"left out, as the terminal is too narrow: {heads}; --json and --report have everything")
    for note in notes(report, printer.left_out):
        printer.line(note)


def show_predictions(record: Mapping[str, Any]) -> None:
    """Print the scores of the predictions of a finished model."""
    printer, name = _Printer(), record["scoring"]
    names = [one for one in _names_of_model(record["task"]) if f"{one}_model" in record]
    scores = [(spell_score(one), f"{record[f'{one}_model']:z.4f}") for one in names]
    printer.pairs(f"{record['map']}: predictions of {record['rows_test']:,} rows", "score", scores)
    constant = -record["score_constant"] if lower_is_better(name) else record["score_constant"]
    printer.line(f"{spell_score(name)} of the best constant prediction of these rows: {constant:z.4f}")
    if record["test_rows_seen_model"]:
        printer.line(
            f"note: {record['map']} may have learned from {record['test_rows_seen_model']:,} of these rows: it was "
            "fitted on this file"
        )


def _names_of_model(kind: Kind) -> list[str]:
    return [*figure_names(kind), "calibration_error"]


_ERRORS = {
    "relative_frobenius": "relative, Frobenius norm",
    "relative_spectral": "relative, spectral norm",
    "max_abs_error": "largest, absolute",
    "mean_abs_error": "mean, absolute",
    "bias": "mean, signed",
    "distortion_max": "largest relative error of a squared distance",
    "distortion_mean": "mean relative error of a squared distance",
    "kernel_pca_error_least": "Frobenius norm, the least of this rank",
    "kernel_pca_spectrum": "leading eigenvalues, relative",
    "kernel_pca_subspace": "leading eigenvectors, mean cos² of the angles",
    "closed_form_error_max": "closed form, largest at a ratio y/x, per (xy)^(γ/2)",
    "closed_form_error_mean": "closed form, mean over the ratios",
}


def _one(printer: _Printer, report: Report, scoring: Sequence[str]) -> None:
    """Print the errors, costs and scores of a single map."""
    entry, record = report["summary"][0], report["records"][0]
    rows = [(text, _figure(entry, key, ".4g")) for key, text in _ERRORS.items() if key in entry]
    if "distortion_bound" in record:
        rows.append(("bound of Johnson and Lindenstrauss", f"{record['distortion_bound']:.4g}"))
    repeats = "".join(f", {entry[what]} {what}" for what in ("seeds", "splits") if entry[what] > 1)
    compared = f"{entry['rows']:,} rows, D = {entry['n_components']:,}{repeats}"
    printer.pairs(f"{spell(entry)} against the exact kernel, {compared}", "error of z(x)·z(y)", rows)
    printer.pairs("", "cost", _costs(entry))
    if "score_raw" in entry:
        _scores(printer, entry, record, scoring)
        if "score_model" in record:
            known = [name for name in _names_of_model(entry["task"]) if f"{name}_model" in entry]
            printer.pairs("", "the model's own predictions", [
                (spell_score(name), _figure(entry, f"{name}_model")) for name in known
            ])  # fmt: skip


def _costs(entry: Summary) -> Iterator[tuple[str, str]]:
    if entry["fit_seconds"]["mean"] is not None:
        yield "seconds to fit", _figure(entry, "fit_seconds", ".2f")
    yield "seconds to transform these rows", _figure(entry, "transform_seconds", ".4f")
    yield "bytes per row", f"{entry['bytes_per_row']:,}"


def _scores(printer: _Printer, entry: Summary, record: Record, scoring: Sequence[str]) -> None:
    """Print the scores on the raw columns, on the features, and with the exact kernel."""
    fewer = record["rows_exact"] < record["rows_train"]
    rows = f", trained on {record['rows_exact']:,} rows" if fewer else ""
    endings = {"raw": "the raw columns", "map": "the map's features", "exact": f"the exact kernel{rows}"}
    if fewer:
        endings["map_exact_rows"] = f"the map's features{rows}"
    if "score_model" in record:
        endings["model"] = "the model's own predictions"

    def column(head: str, key: str, idle: int = 0) -> TableColumn:
        known = (f"{key}_{ending}" for ending in endings)
        return TableColumn(head, [_figure(entry, one) if one in entry else "" for one in known], idle)

    counts = [
        f"{entry[f'nonzero_{which}']['mean']:,.0f} {unit}"
        for which, unit in zip(MACHINES, ("columns", "features", "rows"), strict=True)
    ]
    printer.table(
        f"{record['learner']}, {record['rows_train']:,} rows to train, {record['rows_test']:,} to test",
        TableColumn("on", list(endings.values())),
        [
            column(score_name(entry), "score"),
            *(column(spell_score(name), name) for name in scoring[1:]),
            column("on the training rows", "training_score", 2),
            TableColumn("nonzero coefficients", counts + [""] * (len(endings) - len(counts)), 1),
        ],
    )


def _learning_costs(printer: _Printer, report: Report) -> None:
    """Print the costs of the raw columns, of every map and of the exact machines."""
    entry = report["summary"][0]
    fewer = entry["rows_exact"] < entry["rows_train"]
    exact = f" ({entry['rows_exact']:,} with the exact kernel)" if fewer else ""
    names, *figures = cost_table(report["summary"], f"{entry['rows_exact']:,} rows s" if fewer else None)
    title = f"costs of {entry['rows_train']:,} rows to train{exact}, and to predict {entry['rows_test']:,}"
    printer.table(title, names, figures, framed=False)


def _several(printer: _Printer, report: Report, scoring: Sequence[str]) -> None:
    """Print a row for each map."""
    records, entries = report["records"], report["summary"]
    first = entries[0]
    held = all(record["rows_seen_in_fit"] == 0 for record in records)
    title = f"{len(entries)} maps on {records[0]['rows']:,} rows{' that were held out' if held else ''}"
    if "score_map" in first:
        title += f"; {records[0]['learner']} on {records[0]['rows_train']:,} rows, {score_name(first)} "
        title += f"{_figure(first, 'score_raw')} on the raw columns"
        others = [
            TableColumn(score_name(first), [_figure(entry, "score_map") for entry in entries]),
            *(
                TableColumn(spell_score(name), [_figure(entry, f"{name}_map") for entry in entries])
                for name in scoring[1:]
            ),
            *_predictions(entries),
            TableColumn("exact", [spell_score_of(entry, "score_exact") for entry in entries], 1),
            TableColumn("on its rows", [spell_score_of(entry, "score_map_exact_rows") for entry in entries], 2),
        ]  # fmt: skip
    else:
        others = [TableColumn("fit s", [_mean(entry["fit_seconds"], ".2f") for entry in entries], 4)]
    figures = [
        TableColumn("D", [f"{entry['n_components']:,}" for entry in entries]),
        TableColumn("error", [_figure(entry, "relative_frobenius") for entry in entries]),
        *others,
        TableColumn("transform s", [_mean(entry["transform_seconds"], ".3f") for entry in entries], 3),
    ]
    maps = TableColumn("map", [spell_briefly(entry) for entry in entries])
    printer.table(title + _spread_name(first), maps, figures, framed=False)


def _predictions(entries: Sequence[Summary]) -> list[TableColumn]:
    """Return the column of the scores of predictions; none if no map ends in a predictor."""
    texts = [_figure(entry, "score_model") if "score_model" in entry else "" for entry in entries]
    return [TableColumn("predictions", texts, 5)] if any(texts) else []


def _spread_name(entry: Summary) -> str:
    seeds, splits = entry["seeds"], entry["splits"]
    if splits > 1:
        return f"; ± is the deviation over {splits} splits{f' and {seeds} seeds' if seeds > 1 else ''}"
    return f"; ± over {seeds} seeds" if seeds > 1 else ""


def _mean(figure: Estimate, form: str) -> str:
    return "" if figure["mean"] is None else format(figure["mean"], form)


def _figure(entry: Summary, key: str, form: str = ".4f") -> str:
    """Spell a mean, a score as it is usually stated, and what stands behind ±."""
    mean, error = stated_mean(entry, key), spread_of(entry, entry[key])
    if mean is None:
        return "undefined"
    return format(mean, form) + (f" ± {error:.1g}" if error else "")
