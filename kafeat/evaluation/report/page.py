"""The HTML page of an evaluation: recommendation, table of maps, budgets and figures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from kafeat.evaluation.recommendation import choose
from kafeat.evaluation.records import EvaluationRecord, Report, estimate_of
from kafeat.evaluation.report.canvas import Picture
from kafeat.evaluation.summary import spell, spell_briefly

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f24; --paper: #fff; --faint: #d8dbe0; --soft: #f3f4f6; --hue: #0b62a4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #16191d; --faint: #3a4048; --soft: #1f242a; --hue: #6bb8f0; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.answer { border-left: 4px solid var(--hue); background: var(--soft); padding: .75rem 1rem; font-size: 1.05rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .35rem .45rem; text-align: right; border-bottom: 1px solid var(--faint); white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; } td { vertical-align: top; } small { display: block; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 9rem; }
tr.best td { background: var(--soft); font-weight: 600; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; } figure.broad { grid-column: 1 / -1; }
img { width: 100%; height: auto; display: block; } img.panels { min-width: 36rem; }
figcaption b { display: block; } figcaption { font-size: .9rem; }
"""

# Columns in the order of a reader's questions: errors, scores, costs.
_WORDS = {
    "relative_frobenius": ("error", ".4f"), "score_map": ("score", ".4f"), "score_exact": ("exact kernel", ".4f"),
    "score_map_exact_rows": ("on its rows", ".4f"), "nonzero_map": ("columns used", ",.0f"),
    "distortion_max": ("distance", ".3f"), "bytes_per_row": ("bytes/row", ",d"), "fit_seconds": ("fit s", ".2f"),
    "transform_seconds": ("transform s", ".3f"), "learn_seconds_map": ("learn s", ".2f"),
    "relative_spectral": ("spectral", ".4f"), "max_abs_error": ("largest", ".3f"),
}  # fmt: skip
_PLAIN = ("exact kernel", "fit s", "transform s", "learn s")
"""Columns without a standard error: that of the exact kernel depends on the split only, and times are rough."""


def page(report: Report, data: str, pictures: Sequence[Picture]) -> str:
    """Return the page, which needs no other file."""
    first = report["records"][0]
    body = [
        f"<h1>What the maps are worth on {escape(data)}</h1>",
        f'<p class="answer">{escape(_answer(report))}</p>',
        f"<p>{escape(_asked(first))}</p>",
        "<h2>Maps</h2>", *_table(report),
        *_budgets(report),
        "<h2>Pictures</h2>", '<div class="pictures">', *map(_figure, pictures), "</div>",
    ]  # fmt: skip
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="kafeat-pictures" content="{escape(" ".join(f"{p.name}.{p.kind}" for p in pictures))}">'
        f"<title>kafeat evaluate: {escape(data)}</title>"
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


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
    if "score_map" in best:
        found = {which: estimate_of(best, f"score_{which}")["mean"] for which in ("map", "raw", "exact")}
        if None not in found.values():
            answer += f" Score: {found['raw']:.4f} on the raw columns, {found['map']:.4f} on the features."
            same, rows = best["score_map_exact_rows"]["mean"], report["records"][0]["rows_exact"]
            if same is not None:
                answer += (
                    f" Trained on the same {rows:,} rows: {found['exact']:.4f} with the exact kernel, {same:.4f} on "
                    "the features."
                )
    return answer


def _asked(first: EvaluationRecord) -> str:
    text = f"Errors: on {first['rows']:,} rows that no map was fitted on here."
    if first["rows_seen_in_fit"]:
        text = f"Errors: on {first['rows']:,} rows; the fit of the map saw {first['rows_seen_in_fit']:,} of them."
    if "task" in first:
        score = "accuracy" if first["task"] == "classification" else "R²"
        held = f"those that {first['split']} names" if first["split"] else "a random fifth"
        text += f" Label: {first['label'] or 'an array'}; test rows: {held}."
        text += (
            f" Scores: {score} of {first['learner']} on {first['rows_test']:,} rows, trained on "
            f"{first['rows_train']:,}; the exact machine on {first['rows_exact']:,} (on its rows: the features "
            "trained on the same). Transform: seconds for the rows that the errors are of."
        )
    return text


def _table(report: Report) -> Iterator[str]:
    entries = report["summary"]
    keys = [key for key in _WORDS if any(_known(entry.get(key)) for entry in entries)]
    heads = ["map", "columns", *(_WORDS[key][0] for key in keys)]
    yield (
        '<div class="wide"><table><thead><tr>'
        + "".join(f"<th>{head}</th>" for head in heads)
        + "</tr></thead><tbody>"
    )
    best = choose(entries)
    for entry in entries:
        cells = [escape(spell_briefly(entry)), f"{entry['n_components']:,}"]
        cells += [_cell(entry.get(key), *_WORDS[key]) for key in keys]
        mark = ' class="best"' if entry is best else ""
        yield f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"


def _known(figure: Any) -> bool:
    return figure is not None and (not isinstance(figure, Mapping) or figure["mean"] is not None)


def _cell(figure: Any, head: str, form: str) -> str:
    if not _known(figure):
        return ""
    if not isinstance(figure, Mapping):
        return format(figure, form)
    error = figure["standard_error"]
    # below the mean, because the table would otherwise be wider than a screen
    beside = f" <small>± {error:.1g}</small>" if error and head not in _PLAIN else ""
    return format(figure["mean"], form) + beside


def _budgets(report: Report) -> Iterator[str]:
    for key, text in (("columns", "columns"), ("seconds", "seconds to transform the rows compared")):
        entries = report["budgets"].get(key, [])
        if len(entries) > 1:
            yield f"<h2>Best at each budget of {text}</h2><ul>"
            for entry in entries:
                budget = f"{entry['budget']:,}" if key == "columns" else f"{entry['budget']:.2g}"
                yield f"<li>{budget}: {escape(spell(entry))}</li>"
            yield "</ul>"


def _figure(picture: Picture) -> str:
    mime = {"svg": "image/svg+xml", "png": "image/png"}[picture.kind]
    urls = {name: f"data:{mime};base64,{b64encode(data).decode()}" for name, data in picture.files.items()}
    broad = ' class="broad"' if picture.panels > 2 else ""
    panels = ' class="panels"' if picture.panels > 1 else ""
    return (
        f'<figure{broad}><div class="wide"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{urls["dark"]}">'
        f'<img{panels} src="{urls["light"]}" alt="{escape(picture.title)}"></picture></div>'
        f"<figcaption><b>{escape(picture.title)}</b>{escape(picture.caption)}</figcaption></figure>"
    )
