"""The HTML page of an evaluation: recommendation, table of maps, budgets and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from kafeat.maths.scoring import spell_score
from kafeat.pictures.canvas import Picture
from kafeat.pictures.figure_data import MapFigures
from kafeat.study.costs import cost_table, findings
from kafeat.study.recommendation import choose
from kafeat.study.records import MACHINES, Record, Report, Summary
from kafeat.study.report.document import document, figures, table, write_page
from kafeat.study.report.pictures import pictures
from kafeat.study.summary import score_name, spell, spell_briefly, spelled_rate, spread_of, stated_mean

# Columns in the order of a reader's questions: errors, scores, costs.
_WORDS = {
    "relative_frobenius": ("error", ".4f"), "score_map": ("score", ".4f"),
    "training_score_map": ("on training rows", ".4f"), "score_exact": ("exact kernel", ".4f"),
    "score_model": ("predictions", ".4f"), "calibration_error_model": ("calibration", ".4f"),
    "score_map_exact_rows": ("on its rows", ".4f"), "nonzero_map": ("columns used", ",.0f"),
    "distortion_max": ("distance", ".3f"), "kernel_pca_error_least": ("least of rank", ".4f"),
    "kernel_pca_spectrum": ("eigenvalues", ".4f"), "kernel_pca_subspace": ("eigenvectors cos²", ".4f"),
    "closed_form_error_max": ("closed form", ".4f"), "bytes_per_row": ("bytes/row", ",d"),
    "fit_seconds": ("fit s", ".2f"), "transform_seconds": ("transform s", ".3f"),
    "relative_spectral": ("spectral", ".4f"), "max_abs_error": ("largest", ".3f"),
}  # fmt: skip
_PLAIN = ("exact kernel", "fit s", "transform s")
"""Columns without a standard error: that of the exact kernel depends on the split only, and times are rough."""


def write_evaluation(folder: str, data: str, report: Report, exhibits: Sequence[MapFigures]) -> None:
    """Write the page of an evaluation, and its pictures."""
    drawn = list(pictures(report["summary"], exhibits, report["rates"]))
    write_page(folder, page(report, data, drawn), drawn)


def page(report: Report, data: str, pictures: Sequence[Picture]) -> str:
    """Return the page, which needs no other file."""
    first = report["records"][0]
    body = [
        f"<h1>What the maps are worth on {escape(data)}</h1>",
        f'<p class="answer">{escape(_answer(report))}</p>',
        f"<p>{escape(_asked(first, report['summary'][0]['splits']))}</p>",
        "<h2>Data</h2>", *_data(report),
        "<h2>Maps</h2>", *_table(report),
        *_rates(report),
        *_costs(report),
        *_budgets(report),
        "<h2>Pictures</h2>", *figures(pictures),
    ]  # fmt: skip
    return document(f"kafeat evaluate: {data}", body, pictures)


def _answer(report: Report) -> str:
    if report["recommendation"]:
        said = str(report["recommendation"])
        answer = said[0].upper() + said[1:] + "."
    else:
        entry = report["summary"][0]
        answer = f"{spell(entry)}: {entry['n_components']:,} columns, {entry['bytes_per_row']:,} bytes a row."
    best = choose(report["summary"])
    if best is None and len(report["summary"]) > 1:
        return answer if report["recommendation"] else "No map can be recommended: none has a score."
    best = best or report["summary"][0]
    lost = best["relative_frobenius"]["mean"]
    if lost is not None:
        answer += f" Against the exact kernel its matrix is off by {100.0 * lost:.2g} %."
    return answer + (_of_scores(best) if "score_map" in best else "")


def _of_scores(best: Summary) -> str:
    """Return the scores on the raw columns, on the features and with the exact kernel; nothing if one is undefined."""
    scores = {which: stated_mean(best, f"score_{which}") for which in MACHINES}
    if None in scores.values():
        return ""
    name = score_name(best)
    said = f" {name[0].upper()}{name[1:]}: {scores['raw']:.4f} on the raw columns, {scores['map']:.4f} on the features"
    constant, same = stated_mean(best, "score_constant"), stated_mean(best, "score_map_exact_rows")
    said += "." if constant is None else f"; a constant prediction has {constant:z.4f}."
    if same is None:
        return said
    return said + (
        f" Trained on the same {best['rows_exact']:,} rows: {scores['exact']:.4f} with the exact kernel, {same:.4f} on "
        "the features."
    )


def _asked(first: Record, splits: int) -> str:
    text = f"Errors: on {first['rows']:,} rows that no map was fitted on here."
    if first["rows_seen_in_fit"]:
        text = f"Errors: on {first['rows']:,} rows; the fit of the map saw {first['rows_seen_in_fit']:,} of them."
    if "task" in first:
        score = spell_score(first["scoring"])
        held = f"those that {first['split']} names" if first["split"] else "a random fifth"
        held += f", in each of {splits} splits; ± is the deviation over these" if splits > 1 else ""
        label = first["label"]
        names = ", ".join(label) if isinstance(label, list) else label or "an array"
        text += f" Label: {names}; test rows: {held}."
        text += (
            f" Scores: {score} of {first['learner']} on {first['rows_test']:,} rows, trained on "
            f"{first['rows_train']:,}; the exact machine on {first['rows_exact']:,} (on its rows: the features "
            "trained on the same). Transform: seconds for the rows that the errors are of."
        )
    return text


def _data(report: Report) -> Iterator[str]:
    """Yield a small table of the data."""
    first = report["records"][0]
    widths = sorted({record["n_features_in"] for record in report["records"]})
    cells = {
        "rows": f"{first['data_rows']:,}",
        "columns": " to ".join(f"{width:,}" for width in dict.fromkeys((widths[0], widths[-1]))),
    }
    if "task" in first:
        classes = first["classes"]
        cells["label"] = "a number" if classes is None else f"{classes:,} classes"
        cells["rows to train"], cells["rows to test"] = f"{first['rows_train']:,}", f"{first['rows_test']:,}"
    missing = max(record["missing_share"] for record in report["records"])
    cells["missing"] = f"{100.0 * missing:.2g} %" if missing else "none"
    yield from table(list(cells), [list(cells.values())])


def _table(report: Report) -> Iterator[str]:
    entries = report["summary"]
    keys = [key for key in _WORDS if any(_known(entry.get(key)) for entry in entries)]
    heads = ["map", "columns", *(_head(entries[0], key) for key in keys)]
    rows = [
        [escape(spell_briefly(entry)), f"{entry['n_components']:,}"] + [_cell(entry, key) for key in keys]
        for entry in entries
    ]
    best = choose(entries)
    yield from table(heads, rows, next((i for i, entry in enumerate(entries) if entry is best), None))


def _rates(report: Report) -> Iterator[str]:
    """Yield a table of how fast the errors fall with the number of columns, if that was swept."""
    if not report["rates"]:
        return
    rows = [
        [escape(spell(rate)), f"{rate['columns'][0]:,} to {rate['columns'][-1]:,}"]
        + [escape(power) for powers in spelled_rate(rate).values() for power in powers]
        for rate in report["rates"]
    ]
    yield "<h2>Rates</h2>"
    yield from table(["map", "columns D", "Frobenius norm", "theorem", "spectral norm", "theorem"], rows)
    yield f"<p>{escape(_OF_RATES)}</p>"


_OF_RATES = (
    "The power of D by which the relative error falls, from a line through the logarithms, with the standard error "
    "over seeds and splits. Beside it what theorems say: 1/√D for averages over random features; for the Nyström "
    "method, beyond the error of the best matrix of a fixed rank, n/√m in the spectral norm and n/m^¼ in that of "
    "Frobenius, which a large eigengap improves towards n/m and n/√m. A map may fall faster than its bound."
)


def _costs(report: Report) -> Iterator[str]:
    """Yield a table of what each machine costs: the raw columns, every map, and the exact machines."""
    entries = report["summary"]
    if "score_map" not in entries[0]:
        return
    columns = cost_table(entries, "on K's rows")
    rows = [list(map(escape, row)) for row in zip(*(column.cells for column in columns), strict=True)]
    yield "<h2>Costs</h2>"
    yield from table([column.head for column in columns], rows)
    said = list(findings(entries, choose(entries) or entries[0]))
    said = [text[0].upper() + text[1:] + "." for text in said]
    yield f"<p>{escape(' '.join([_COSTS, *said]))}</p>"


_COSTS = (
    "Total: to fit the map, to make the features Z or the kernel matrix K of the training rows, and to learn once; the "
    "search for a penalty stands apart. On K's rows: the total with the training rows of the exact machine only. "
    "Predict: from the raw columns to the predictions of the test rows."
)


def _known(figure: Any) -> bool:
    return figure is not None and (not isinstance(figure, Mapping) or figure["mean"] is not None)


def _head(entry: Summary, key: str) -> str:
    return escape(score_name(entry)) if key == "score_map" else _WORDS[key][0]


def _cell(entry: Summary, key: str) -> str:
    figure, (head, form) = entry.get(key), _WORDS[key]
    if not _known(figure):
        return ""
    if not isinstance(figure, Mapping):
        return format(figure, form)
    error = spread_of(entry, entry[key])
    # below the mean, because the table would otherwise be wider than a screen
    beside = f" <small>± {error:.1g}</small>" if error and head not in _PLAIN else ""
    return format(stated_mean(entry, key), form) + beside


def _budgets(report: Report) -> Iterator[str]:
    for key, text in (("columns", "columns"), ("seconds", "seconds to transform the rows compared")):
        entries = report["budgets"].get(key, [])
        if len(entries) > 1:
            yield f"<h2>Best at each budget of {text}</h2><ul>"
            for entry in entries:
                budget = f"{entry['budget']:,}" if key == "columns" else f"{entry['budget']:.2g}"
                yield f"<li>{budget}: {escape(spell(entry))}</li>"
            yield "</ul>"
