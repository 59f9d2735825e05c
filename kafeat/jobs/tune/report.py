"""The page of a search: leaderboard, score over columns, weights of columns, config and commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from kafeat.chain.chain import sources_of
from kafeat.errors import DataError
from kafeat.jobs.evaluate.report import write_page
from kafeat.jobs.fit.search import fit_chain, subset_of
from kafeat.jobs.tune.space import Candidate, SearchSpace

if TYPE_CHECKING:
    from kafeat.jobs.tune.tuning import Tuning
    from kafeat.pictures.canvas import Picture


_MOST_LEADERS = 20
_NAMES_OF_MAPS = (
    "A map is named by its scaler, its metric if it has one, its kernel, and γ. A metric weighs the columns by how "
    "much the label depends on them: a diagonal one has a weight for each column, others a matrix, and α &lt; 1 makes "
    "the weights more equal. γ = median follows from the median distance of the rows, and a multiple above 1 makes the "
    "kernel narrower. “fourier, supervised” has frequencies that are trained for the label, and no kernel. Scores are "
    "means over splits, ± their standard errors. The chosen map comes first, even if a less simple one is better by "
    "noise."
)
_NAME_OF_THE_KNEE = (
    "Without --columns the knee is taken: the fewest columns from which every doubling takes away less than 3 % of the "
    "error, or no more than noise."
)


def write_tuning(folder: str, tuning: Tuning, data: str, config: str) -> None:
    """Write the page and its pictures to a folder; `config` is the name of the file of the config."""
    from kafeat.evaluation.report.document import document

    drawn = list(_pictures(tuning))
    title = f"kafeat tune: {data}"
    write_page(folder, document(title, list(_body(tuning, data, config, drawn)), drawn), drawn)


def _body(tuning: Tuning, data: str, config: str, pictures: Sequence[Picture]) -> Iterator[str]:
    from kafeat.evaluation.report.document import figures, table

    yield f"<h1>The best map for {escape(data)}</h1>"
    yield f'<p class="answer">{escape(_answer(tuning))}</p>'
    yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in tuning.notes) + "</ul>"
    yield f"<h2>Leaderboard</h2><p>{_NAMES_OF_MAPS}</p>"
    rows = [
        [
            escape(row["map"]),
            _figure(row["score"], row["standard_error"]),
            f"{row['seconds']:.1f}",
            str(row["trial"]),
        ]
        for row in tuning.table[:_MOST_LEADERS]
    ]
    yield from table(["map", escape(tuning.score_name), "seconds", "trial"], rows, 0)
    if len(tuning.curve) > 1:
        yield f"<h2>Score over columns</h2><p>{_NAME_OF_THE_KNEE}</p>"
        yield from _curve(tuning)
    if pictures:
        yield "<h2>Pictures</h2>"
        yield from figures(pictures)
    yield f"<h2>The config</h2><pre>{escape(tuning.yaml)}</pre>"
    commands = tuning.commands(config)
    if commands:
        yield "<h2>Commands to go on with</h2><pre>" + escape("\n".join(commands)) + "</pre>"


def _answer(tuning: Tuning) -> str:
    """Return what was chosen, and its scores."""
    answer = (
        f"{tuning.table[0]['map']}, with {tuning.columns:,} columns: {tuning.score_name} {tuning.score:.4f} ± "
        f"{tuning.error:.4f} on rows held out to choose by. A constant prediction has {tuning.constant_score:z.4f}."
    )
    test = tuning.test_score
    if test is not None:
        answer += f" On {test.rows:,} test rows, not seen before: {test.value:.4f} ± {test.error:.4f}."
    return answer[0].upper() + answer[1:]


def _curve(tuning: Tuning) -> Iterator[str]:
    """Yield the table of scores over columns."""
    from kafeat.evaluation.report.document import table

    rows = [
        [f"{row['columns']:,}", _figure(row["score"], row["standard_error"]), f"{row['bytes_per_row']:,}"]
        for row in tuning.curve
    ]
    heads = ["columns", escape(tuning.score_name), "bytes/row"]
    yield from table(heads, rows, next((i for i, row in enumerate(tuning.curve) if row["chosen"]), None))


def _figure(value: float, error: float) -> str:
    return f"{value:.4f} <small>± {error:.1g}</small>"


def _pictures(tuning: Tuning) -> Iterator[Picture]:
    from kafeat.jobs.tune.pictures import score_over_columns
    from kafeat.pictures.canvas import drawn
    from kafeat.pictures.portraits import importance

    if len(tuning.curve) > 1:
        yield drawn(
            "score-over-columns", "svg", "Score over columns",
            "The chosen map with several numbers of columns, on rows that were held out; bars are standard errors. The "
            "ring is the number that was chosen.",
            partial(score_over_columns, curve=tuning.curve, name=tuning.score_name),
        )  # fmt: skip
    if tuning.importance is not None:
        yield drawn(
            "importance", "svg", "Columns that weigh most",
            "Their shares in a metric that is learned from the label, after the chosen scaler: how much the label "
            "changes along them. The shares of the outputs of a text column are added.",
            partial(importance, shares=tuning.importance),
        )  # fmt: skip


_MOST_ROWS = 6000


def column_importance(space: SearchSpace, chosen: Candidate, seed: int) -> dict[str, float] | None:
    """Return the shares, the largest first, from the chosen metric, or else from one weight for each column.

    None if too few rows or no difference among the columns say anything.
    """
    if chosen.map == "base":
        chosen = space.default()
    metric = "diagonal" if chosen.metric == "none" else chosen.metric
    recipes = space.steps(replace(chosen, metric=metric, map="rbf", gamma=1.0), 2, 2)[:-1]
    table = space.table
    rows = np.random.default_rng([seed, 8]).permutation(len(table.labels))[:_MOST_ROWS]
    subset = subset_of(table.sample, rows)
    try:
        chain = fit_chain(recipes, subset, np.random.default_rng([seed, 9]))
    except DataError:
        return None
    weights = chain.steps[-1].state["importance"]
    if "error_kept" not in chain.steps[-1].state or not np.ptp(weights) > 0.0:
        return None
    sources = sources_of(chain.steps[:-1])
    if sources is None:
        return None
    names = table.sample.names or tuple(f"column {j}" for j in range(table.sample.X.shape[1]))
    shares = np.bincount(sources, weights, len(names))
    return {str(names[j]): float(shares[j]) for j in np.argsort(-shares, kind="stable")}
