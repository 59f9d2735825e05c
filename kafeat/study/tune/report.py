"""The page of a search: leaderboard, score over columns, importance, config and commands. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from kafeat.pictures import Picture, TableColumn, drawn
from kafeat.study.importance import named
from kafeat.study.report.comparisons import score_of_choice
from kafeat.study.report.document import document, figures, importance, table, write_page
from kafeat.study.tune.result import TERMS, Tuning

_MOST_LEADERS = 20
_NAME_OF_THE_KNEE = (
    "Without --columns, a search with a predictor takes the most columns within noise of the best score. "
    "Without a predictor the knee is taken: the fewest columns from which every doubling takes away less than 3 % of "
    "the error, or no more than noise."
)


def write_tuning(folder: str, tuning: Tuning, data: str, config: str) -> None:
    """Write the page and its pictures to a folder. `config` is the name of the config's file."""
    pictures = list(_pictures(tuning))
    body = list(_body(tuning, data, config, pictures))
    write_page(folder, document(f"kafeat tune: {data}", body, pictures), pictures)


def _body(tuning: Tuning, data: str, config: str, pictures: Sequence[Picture]) -> Iterator[str]:
    label = f" and its label {tuning.labels}" if tuning.labels else ""
    yield f"<h1>The best map for {escape(data + label)}</h1>"
    yield f'<p class="answer">{"<br>".join(map(escape, tuning.answer()))}</p>'
    yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in tuning.notes) + "</ul>"
    terms = "; ".join(f"{word}: {meaning}" for word, meaning in TERMS.items())
    yield f"<h2>Leaderboard</h2><p>{escape(terms)}. The chosen map comes first; ± is the standard error.</p>"
    leaders = tuning.table[:_MOST_LEADERS]
    yield from table([
        TableColumn("map", [row["map"] for row in leaders]),
        _scores(tuning, leaders),
        TableColumn("columns", [f"{row['columns']:,}" for row in leaders]),
        TableColumn("rows", [f"{row['rows']:,}" for row in leaders]),
        TableColumn("µs/row", [f"{row['microseconds_per_row']:.3g}" for row in leaders]),
        TableColumn("model, MB", [f"{row['model_bytes'] / 1e6:.2g}" for row in leaders]),
        TableColumn("seconds", [f"{row['seconds']:.1f}" for row in leaders]),
        TableColumn("trial", [str(row["trial"]) for row in leaders]),
    ], 0)  # fmt: skip
    if len(tuning.curve) > 1:
        yield from _curve(tuning)
    if tuning.learning_curve:
        yield "<h2>Score over rows to learn from</h2>"
        rows = [f"{row['rows']:,}" for row in tuning.learning_curve]
        yield from table([TableColumn("rows", rows), _scores(tuning, tuning.learning_curve)])
    if tuning.parts:
        yield "<h2>What each part is worth</h2>"
        score, first = tuning.scoring, [part["part"] for part in tuning.parts]
        yield from table([
            TableColumn("", [f"without {part}" if part else "all parts" for part in first]),
            TableColumn("columns of it", [f"{one['columns']:,}" if one["part"] else "" for one in tuning.parts]),
            TableColumn(str(score), [f"{score.stated(one['score_without']):z.4f}" for one in tuning.parts]),
        ])  # fmt: skip
    losses = named(tuning.losses)
    if losses["importance"] and losses["importance_error"]:
        yield from importance(
            tuning.table[0]["map"], losses["importance"], losses["importance_error"], tuning.scoring
        )
    if pictures:
        yield "<h2>Pictures</h2>"
        yield from figures(pictures)
    yield f"<h2>The config</h2><pre>{escape(tuning.yaml)}</pre>"
    commands = tuning.commands(config)
    if commands:
        yield "<h2>Commands to go on with</h2><pre>" + escape("\n".join(commands)) + "</pre>"


def _curve(tuning: Tuning) -> Iterator[str]:
    """Yield the HTML section with the scores of the chosen map for several numbers of columns."""
    yield f"<h2>Score over columns</h2><p>{_NAME_OF_THE_KNEE}</p>"
    chosen = next((i for i, row in enumerate(tuning.curve) if row["chosen"]), None)
    yield from table([
        TableColumn("columns", [f"{row['columns']:,}" for row in tuning.curve]),
        _scores(tuning, tuning.curve),
        TableColumn("bytes/row", [f"{row['bytes_per_row']:,}" for row in tuning.curve]),
    ], chosen)  # fmt: skip


def _scores(tuning: Tuning, rows: Sequence[Mapping[str, Any]]) -> TableColumn:
    scores = [f"{tuning.scoring.stated(row['score']):z.4f} ± {row['standard_error']:.1g}" for row in rows]
    return TableColumn(str(tuning.scoring), scores)


def _pictures(tuning: Tuning) -> Iterator[Picture]:
    if len(tuning.curve) > 1:
        yield drawn(
            "score-over-columns", "svg", "Score over columns",
            "The chosen map with several numbers of columns, on rows that were held out; bars are standard errors. The "
            "ring is the number that was chosen.",
            partial(score_of_choice, curve=tuning.curve, score=tuning.scoring),
        )  # fmt: skip
