"""The tables and notes of `kafeat evaluate`, laid to fit a terminal.

Texts fold, less important columns are dropped, and numbers are never cut.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table

from kafeat.cli import log
from kafeat.evaluation.costs import cost_rows, findings, spell_megabytes, spell_seconds
from kafeat.evaluation.recommendation import choose
from kafeat.evaluation.records import Estimate, EvaluationRecord, Report, Summary, estimate_of
from kafeat.evaluation.summary import rate_note, scoring_of, spell, spell_briefly, spread_of, stated
from kafeat.maths.scoring import figure_names, spell_score


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
    constant = report["summary"][0].get("score_constant")
    if constant is not None and constant["mean"] is not None:
        name, score = (
            spell_score(scoring_of(report["summary"][0])),
            stated(report["summary"][0], constant["mean"]),
        )
        yield f"{name} of a constant prediction, learned from the same training rows: {score:z.4f}"
    entry = choose(report["summary"]) or report["summary"][0]
    if "score_map" in entry:
        yield from findings(report["summary"], entry)
    if report["recommendation"]:
        yield report["recommendation"]


def _of_records(records: Sequence[EvaluationRecord]) -> Iterator[str]:
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


@dataclass(frozen=True)
class TableColumn:
    """A head and its cells. Columns with the largest `idle` are dropped first, those with 0 never."""

    head: str
    cells: Sequence[str]
    idle: int = 0

    def width(self, folded: bool = False) -> int:
        """Return the width of the widest cell or head; a folded head breaks between its words."""
        heads = self.head.split() if folded else [self.head]
        return max(map(cell_len, [*heads, *self.cells]))


def fitting(
    texts: TableColumn, figures: Sequence[TableColumn], width: int | None, framed: bool = True
) -> tuple[Table, list[str]]:
    """Return a table at most `width` cells wide (None: any width), and the heads of the dropped columns.

    The table is wider if the columns that are never dropped need it. The terminal then wraps its lines.
    """
    kept, left_out, whole = list(figures), [], texts.width()
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
        return [whole, *(one.width() for one in figures)]
    for folded in (False, True):
        taken = [one.width(folded) for one in figures]
        room = width - lines - sum(taken)
        if room >= whole:
            break
    return [min(whole, room), *taken]


# The width of lines in a pipe or a file.
_ENDLESS = 100_000


def show(report: Report, scoring: Sequence[str] = ()) -> None:
    """Print the tables, notes and the recommendation of an evaluation; `scoring` names scores to show beside."""
    width = log.console().width if sys.stdout.isatty() else None
    console = log.console(width=_ENDLESS)
    left_out: list[str] = []
    for title, (table, without) in (
        _one(report, scoring, width) if len(report["summary"]) == 1 else _several(report, scoring, width)
    ):
        if title:
            console.print(title, style="italic", soft_wrap=True)
        console.print(table)
        left_out += [head for head in without if head not in left_out]
    if left_out:
        console.print(_without(left_out), soft_wrap=True)
    for note in notes(report, left_out):
        console.print(note, soft_wrap=True)


def _several(
    report: Report, scoring: Sequence[str], width: int | None
) -> Iterator[tuple[str, tuple[Table, list[str]]]]:
    yield _many(report, scoring, width)
    if "score_map" in report["summary"][0]:
        yield _cost_title(report["summary"][0]), _learning_costs(report, width)


def _without(heads: Sequence[str]) -> str:
    return f"left out, as the terminal is too narrow: {', '.join(heads)}; --json and --report have everything"


def _one(
    report: Report, scoring: Sequence[str], width: int | None
) -> Iterator[tuple[str, tuple[Table, list[str]]]]:
    entry = report["summary"][0]
    rows = [
        (text, _figure(entry, key, ".4g"))
        for key, text in (
            ("relative_frobenius", "relative, Frobenius norm"),
            ("relative_spectral", "relative, spectral norm"),
            ("max_abs_error", "largest, absolute"),
            ("mean_abs_error", "mean, absolute"),
            ("bias", "mean, signed"),
            ("distortion_max", "largest relative error of a squared distance"),
            ("distortion_mean", "mean relative error of a squared distance"),
            ("kernel_pca_error_least", "Frobenius norm, the least of this rank"),
            ("kernel_pca_spectrum", "leading eigenvalues, relative"),
            ("kernel_pca_subspace", "leading eigenvectors, mean cos² of the angles"),
            ("closed_form_error_max", "closed form, largest at a ratio y/x, per (xy)^(γ/2)"),
            ("closed_form_error_mean", "closed form, mean over the ratios"),
        )
        if key in entry
    ]
    if "distortion_bound" in report["records"][0]:
        bound = report["records"][0]["distortion_bound"]
        rows.append(("bound of Johnson and Lindenstrauss", f"{bound:.4g}"))
    compared = f"{entry['rows']:,} rows, D = {entry['n_components']:,}{_repeats(entry)}"
    yield (
        f"{spell(entry)} against the exact kernel, {compared}",
        _listed("error of z(x)·z(y)", rows, width),
    )
    yield "", _listed("cost", list(_costs(entry)), width)
    if "score_raw" in entry:
        record = report["records"][0]
        yield (
            f"{record['learner']}, {record['rows_train']:,} rows to train, {record['rows_test']:,} to test",
            _scores(entry, record, scoring, width),
        )
        if "score_model" in record:
            yield "", _listed("the model's own predictions", list(_model(entry)), width)
        yield _cost_title(entry), _learning_costs(report, width)


def _listed(what: str, rows: Sequence[tuple[str, str]], width: int | None) -> tuple[Table, list[str]]:
    texts, figures = zip(*rows, strict=True)
    return fitting(TableColumn(what, texts), [TableColumn("value", figures)], width)


def _costs(entry: Summary) -> Iterator[tuple[str, str]]:
    if entry["fit_seconds"]["mean"] is not None:
        yield "seconds to fit", _figure(entry, "fit_seconds", ".2f")
    yield "seconds to transform these rows", _figure(entry, "transform_seconds", ".4f")
    yield "bytes per row", f"{entry['bytes_per_row']:,}"


def _scores(
    entry: Summary, record: EvaluationRecord, scoring: Sequence[str], width: int | None
) -> tuple[Table, list[str]]:
    rows = (
        f", trained on {record['rows_exact']:,} rows" if record["rows_exact"] < record["rows_train"] else ""
    )
    names = ["the raw columns", "the map's features", f"the exact kernel{rows}"]
    texts = [_score(entry, f"score_{which}") for which in _MACHINES]
    training = [_score(entry, f"training_score_{which}") for which in _MACHINES]
    counts = [
        f"{estimate_of(entry, f'nonzero_{which}')['mean']:,.0f} {unit}"
        for which, unit in zip(_MACHINES, ("columns", "features", "rows"), strict=True)
    ]
    others = {name: [_figure(entry, f"{name}_{which}", ".4f") for which in _MACHINES] for name in scoring[1:]}
    if rows:
        names.append(f"the map's features{rows}")
        texts.append(_score(entry, "score_map_exact_rows"))
        for column in (training, counts, *others.values()):
            column.append("")
    if "score_model" in record:
        names.append("the model's own predictions")
        texts.append(_score(entry, "score_model"))
        for column in (training, counts):
            column.append("")
        for name, column in others.items():
            column.append(_figure(entry, f"{name}_model", ".4f"))
    figures = [
        TableColumn(_score_name(entry), texts),
        *(TableColumn(spell_score(name), column) for name, column in others.items()),
        TableColumn("on the training rows", training, 2),
        TableColumn("nonzero coefficients", counts, 1),
    ]
    return fitting(TableColumn("on", names), figures, width)


def _model(entry: Summary) -> Iterator[tuple[str, str]]:
    """Yield every score of the predictions of a model."""
    for name in (*figure_names(entry["task"]), "calibration_error"):
        if f"{name}_model" in entry:
            yield spell_score(name), _figure(entry, f"{name}_model", ".4f")


_MACHINES = ("raw", "map", "exact")


def _score_name(entry: Summary) -> str:
    return spell_score(scoring_of(entry))


def _repeats(entry: Summary) -> str:
    seeds = f", {entry['seeds']} seeds" if entry["seeds"] > 1 else ""
    return seeds + (f", {entry['splits']} splits" if entry["splits"] > 1 else "")


def _cost_title(entry: Summary) -> str:
    rows = f"{entry['rows_train']:,} rows to train"
    if entry["rows_exact"] < entry["rows_train"]:
        rows += f" ({entry['rows_exact']:,} with the exact kernel)"
    return f"costs of {rows}, and to predict {entry['rows_test']:,}"


def _learning_costs(report: Report, width: int | None) -> tuple[Table, list[str]]:
    """Return the table of costs: the raw columns, every map and the exact machines."""
    rows, first = cost_rows(report["summary"]), report["summary"][0]
    figures = [
        TableColumn("columns", [f"{row.width:,}" for row in rows], 3),
        TableColumn(_score_name(first), [_stated_mean(first, row.score) for row in rows], 4),
        TableColumn("fit s", [spell_seconds(row.fit) for row in rows], 2),
        TableColumn("Z or K s", [spell_seconds(row.made) for row in rows], 2),
        TableColumn("learn s", [spell_seconds(row.learn) for row in rows], 2),
        TableColumn("total s", [spell_seconds(row.total) for row in rows]),
        *_of_same_rows(report, [row.same_rows for row in rows]),
        TableColumn("search s", [spell_seconds(row.search or None) for row in rows], 5),
        TableColumn("predict s", [spell_seconds(row.predict) for row in rows]),
        TableColumn("peak MB", [spell_megabytes(row.peak_bytes) for row in rows], 1),
        TableColumn("Z or K MB", [spell_megabytes(row.matrix_bytes) for row in rows], 6),
    ]
    return fitting(TableColumn("on", [row.name for row in rows]), figures, width, framed=False)


def _of_same_rows(report: Report, seconds: Sequence[float | None]) -> Iterator[TableColumn]:
    """Yield a column with the total for the training rows of the exact machine, if these are not all."""
    first = report["summary"][0]
    if first["rows_exact"] < first["rows_train"]:
        yield TableColumn(f"{first['rows_exact']:,} rows s", [spell_seconds(one) for one in seconds])


def _many(report: Report, scoring: Sequence[str], width: int | None) -> tuple[str, tuple[Table, list[str]]]:
    records, entries = report["records"], report["summary"]
    held = all(record["rows_seen_in_fit"] == 0 for record in records)
    title = f"{len(entries)} maps on {records[0]['rows']:,} rows{' that were held out' if held else ''}"
    first = entries[0]
    error = TableColumn("error", [_figure(entry, "relative_frobenius", ".4f") for entry in entries])
    scores: list[TableColumn] = []
    if "score_map" in first:
        title += f"; {records[0]['learner']} on {records[0]['rows_train']:,} rows, {_score_name(first)} "
        title += f"{_score(first, 'score_raw')} on the raw columns"
        scores = [
            TableColumn(_score_name(first), [_score(entry, "score_map") for entry in entries]),
            *(
                TableColumn(spell_score(name), [_figure(entry, f"{name}_map", ".4f") for entry in entries])
                for name in scoring[1:]
            ),
            *_predictions(entries),
            TableColumn("exact", [_stated_mean(entry, entry["score_exact"]) for entry in entries], 1),
            TableColumn(
                "on its rows", [_stated_mean(entry, entry["score_map_exact_rows"]) for entry in entries], 2
            ),
        ]
    figures = [
        TableColumn("D", [f"{entry['n_components']:,}" for entry in entries]), error, *scores,
        *([] if scores else [TableColumn("fit s", [_mean(entry["fit_seconds"], ".2f") for entry in entries], 4)]),
        TableColumn("transform s", [_mean(entry["transform_seconds"], ".3f") for entry in entries], 3),
    ]  # fmt: skip
    maps = TableColumn("map", [spell_briefly(entry) for entry in entries])
    return title + _spread_name(first), fitting(maps, figures, width, framed=False)


def _predictions(entries: Sequence[Summary]) -> list[TableColumn]:
    """Return the column of the scores of predictions; none if no map ends in a predictor."""
    texts = [_score(entry, "score_model") if "score_model" in entry else "" for entry in entries]
    return [TableColumn("predictions", texts, 5)] if any(texts) else []


def _spread_name(entry: Summary) -> str:
    seeds, splits = entry["seeds"], entry["splits"]
    if splits > 1:
        return f"; ± is the deviation over {splits} splits{f' and {seeds} seeds' if seeds > 1 else ''}"
    return f"; ± over {seeds} seeds" if seeds > 1 else ""


def _mean(figure: Estimate, form: str) -> str:
    return "" if figure["mean"] is None else format(figure["mean"], form)


def _stated_mean(entry: Summary, score: Estimate) -> str:
    return "" if score["mean"] is None else f"{stated(entry, score['mean']):.4f}"


def _score(entry: Summary, key: str) -> str:
    """Spell a score that decides, as it is usually stated."""
    score = estimate_of(entry, key)
    mean = score["mean"]
    return _spelled(entry, score if mean is None else {**score, "mean": stated(entry, mean)}, ".4f")


def _figure(entry: Summary, key: str, form: str) -> str:
    return _spelled(entry, estimate_of(entry, key), form)


def _spelled(entry: Summary, figure: Estimate, form: str) -> str:
    if figure["mean"] is None:
        return "undefined"
    error = spread_of(entry, figure)
    return format(figure["mean"], form) + (f" ± {error:.1g}" if error else "")
