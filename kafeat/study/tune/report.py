"""The page of a search: leaderboard, score over columns, weights of columns, config and commands. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from kafeat.maths.scoring import spell_score, stated
from kafeat.pictures.canvas import Picture, drawn
from kafeat.pictures.portraits import importance
from kafeat.study.importance import SHUFFLES
from kafeat.study.report.comparisons import score_over_columns
from kafeat.study.report.document import document, figures, table, write_page
from kafeat.study.tune.result import Tuning

_MOST_LEADERS = 20
_NAMES_OF_MAPS = (
    "A map is named by its scaler, its metric if it has one, its kernel, and γ. A metric weighs the columns by how "
    "much the label depends on them: a diagonal one has a weight for each column, others a matrix, and α &lt; 1 makes "
    "the weights more equal. γ = median follows from the median distance of the rows, and a multiple above 1 makes the "
    "kernel narrower. “fourier, supervised” has frequencies that are trained for the label, and no kernel. Scores are "
    "means over splits, ± their standard errors. The chosen map comes first."
)
_NAME_OF_THE_KNEE = (
    "Without --columns, a search with a predictor takes the most columns within noise of the best score. "
    "Without a predictor the knee is taken: the fewest columns from which every doubling takes away less than 3 % of "
    "the error, or no more than noise."
)


def write_tuning(folder: str, tuning: Tuning, data: str, config: str) -> None:
    """Write the page and its pictures to a folder; `config` is the name of the file of the config."""
    pictures = list(_pictures(tuning))
    body = list(_body(tuning, data, config, pictures))
    write_page(folder, document(f"kafeat tune: {data}", body, pictures), pictures)


def _body(tuning: Tuning, data: str, config: str, pictures: Sequence[Picture]) -> Iterator[str]:
    yield f"<h1>The best map for {escape(data)}</h1>"
    yield f'<p class="answer">{"<br>".join(map(escape, tuning.answer()))}</p>'
    yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in tuning.notes) + "</ul>"
    name = escape(spell_score(tuning.score_name))
    yield f"<h2>Leaderboard</h2><p>{_NAMES_OF_MAPS}</p>"
    rows = [
        [
            escape(row["map"]),
            _figure(tuning, row),
            f"{row['columns']:,}",
            f"{row['rows']:,}",
            f"{row['microseconds_per_row']:.3g}",
            f"{row['model_bytes'] / 1e6:.2g}",
            f"{row['seconds']:.1f}",
            str(row["trial"]),
        ]
        for row in tuning.table[:_MOST_LEADERS]
    ]
    yield from table(["map", name, "columns", "rows", "µs/row", "model, MB", "seconds", "trial"], rows, 0)
    if len(tuning.curve) > 1:
        yield from _curve(tuning)
    if tuning.learning_curve:
        yield "<h2>Score over rows to learn from</h2>"
        rows = [[f"{row['rows']:,}", _figure(tuning, row)] for row in tuning.learning_curve]
        yield from table(["rows", name], rows, None)
    if tuning.parts:
        yield "<h2>What each part is worth</h2>"
        rows = [
            [
                escape(f"without {row['part']}" if row["part"] else "all parts"),
                f"{row['columns']:,}" if row["part"] else "",
                f"{stated(tuning.score_name, row['score_without']):z.4f}",
            ]
            for row in tuning.parts
        ]
        yield from table(["", "columns of it", name], rows, None)
    if pictures:
        yield "<h2>Pictures</h2>"
        yield from figures(pictures)
    yield f"<h2>The config</h2><pre>{escape(tuning.yaml)}</pre>"
    commands = tuning.commands(config)
    if commands:
        yield "<h2>Commands to go on with</h2><pre>" + escape("\n".join(commands)) + "</pre>"


def _curve(tuning: Tuning) -> Iterator[str]:
    """Yield the scores over columns of the chosen map."""
    yield f"<h2>Score over columns</h2><p>{_NAME_OF_THE_KNEE}</p>"
    rows = [
        [f"{row['columns']:,}", _figure(tuning, row), f"{row['bytes_per_row']:,}"] for row in tuning.curve
    ]
    chosen = next((i for i, row in enumerate(tuning.curve) if row["chosen"]), None)
    yield from table(["columns", escape(spell_score(tuning.score_name)), "bytes/row"], rows, chosen)


def _figure(tuning: Tuning, row: Mapping[str, Any]) -> str:
    score = stated(tuning.score_name, row["score"])
    return f"{score:z.4f} <small>± {row['standard_error']:.1g}</small>"


def _pictures(tuning: Tuning) -> Iterator[Picture]:
    if len(tuning.curve) > 1:
        yield drawn(
            "score-over-columns", "svg", "Score over columns",
            "The chosen map with several numbers of columns, on rows that were held out; bars are standard errors. The "
            "ring is the number that was chosen.",
            partial(score_over_columns, curve=tuning.curve, name=tuning.score_name),
        )  # fmt: skip
    if tuning.losses is not None:
        yield drawn(
            "importance", "svg", "Columns that weigh most",
            f"What the score of rows held out loses when a column is shuffled: mean of {SHUFFLES} times, with standard "
            "error. Columns that tell the same share their worth.",
            partial(importance, losses=(tuning.losses, tuning.score_name)),
        )  # fmt: skip
