"""Notes on what is unusual in the table or in the result, and the comments of the chosen config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import join

import numpy as np

from kafeat.errors import counted, quoted, shell_word
from kafeat.io.columns.fields import excluding, listed
from kafeat.jobs.fit import label_names
from kafeat.maths import PROPER, PredictionTask
from kafeat.study.recommendation import COMMON
from kafeat.study.tune.choice import Choice, of_rows
from kafeat.study.tune.input import ID, TunedTable
from kafeat.study.tune.problem import Problem
from kafeat.study.tune.rungs import Search
from kafeat.study.tune.space import FIXED, RAW
from kafeat.study.tune.trials import Size
from kafeat.types import Array, Floats, Mask


def notes(problem: Problem, search: Search, choice: Choice, constant: float) -> Iterator[str]:
    """Yield the notes, most important first. The last one explains how to repeat the search.

    `constant` is the score of a constant prediction.
    """
    table, goal, best = problem.table, problem.task, choice.chosen.outcome
    left_out = table.groups.left_out
    split_by, noise = problem.start.split_by or "", 2.0 * choice.chosen.error
    no_better = (
        f"The score is no better than a constant prediction ({search.scoring.stated(constant):z.4f}) by more "
        f"than noise (two standard errors, {noise:.4f})."
        if best.score - constant <= noise
        else ""
    )
    if split_by.startswith("time:"):
        yield f"Rows held out: {_held_out(choice.chosen.size, split_by)}. {no_better}".rstrip()
        if no_better:
            yield (
                "This holds only for the held-out times. If they are another season than the rows before them, the map "
                "may still help at other times. A search on a table that ends at another time can show this."
            )
    elif no_better:
        yield no_better
    yield from _alone(table, goal)
    yield from _better_without_a_map(search, choice)
    if not split_by:
        yield from _not_at_random(table, goal.targets(table.labels))
    for reason in dict.fromkeys(left_out.values()):
        yield f"Left out: {listed([name for name, why in left_out.items() if why == reason])} ({reason})."
    # Checking for LightGBM takes seconds, so it is skipped after a signal.
    if not choice.interrupted and search.space.without_library is not None:
        yield f"No columns of trees were tried: {search.space.without_library}."
    if choice.untested_seconds is not None:
        yield (
            "The test rows were not scored, as fitting on all training rows takes about "
            f"{choice.untested_seconds:.0f} s more; `kafeat evaluate` with --split scores them."
        )
    if choice.without_boosting:
        yield f"Gradient boosting was not tried: {choice.without_boosting}."
    yield from _common_class(goal, table.labels)
    chosen = choice.chosen
    if chosen.candidate.map not in FIXED and chosen.size.width > len(table.labels):
        yield f"A Nyström map has at most as many columns as there are training rows: {len(table.labels):,}."
    yield from choice.reasons
    yield from of_rows(search.scoring, choice.learning)
    learned, every = chosen.size.learned, table.sampled.n_rows
    if learned < _MOST_OF_ROWS * every:
        yield (
            f"The scores come from models that learned from {learned:,} of the {every:,} rows. A model that is fitted "
            "on all rows is likely better."
        )
    if search.ended_early:
        yield (
            "The search ended before all maps of its plan were tried: more time or trials may find a better one."
        )
    if problem.start.predictor is None:
        kind = "ridge" if goal.classes is None else "logistic"
        step = f"{{kind: {kind}, task: soft}}" if problem.asked.task == "soft" else f"kind: {kind}"
        yield (
            f"The config makes a map. For predictions, add `- {step}` to its steps, or search with "
            f"--predictor {kind}."
        )
    again = join(problem.spelled(len(search.trials)))
    if search.cut_by_time:
        yield f"Trials for which the time was too short were left out. To search without a time limit: {again}"
    else:
        yield f"The same search again: {again}"


def _better_without_a_map(search: Search, choice: Choice) -> Iterator[str]:
    """Yield a note if the raw columns exceed the budget, but scored better than the chosen map on the same rows."""
    made = {(one.candidate, one.size): one for one in search.trials if one.outcome.failure is None}
    for trial in made.values():
        chosen = made.get((choice.chosen.candidate, trial.size))
        if trial.candidate != RAW or search.budget.allows(trial) or chosen is None:
            continue
        if trial.outcome.score > chosen.outcome.score:
            yield (
                f"The {trial.outcome.columns:,} raw columns scored {search.stated(trial)}, and the chosen map "
                f"{search.stated(chosen)} on the same rows. They are more columns than you asked for, so they were not "
                "chosen; a linear model on them needs no map."
            )


# A column explains the label if R² is 1.0000, or if ranges of classes with at least so many rows do not overlap.
_ALL, _LEAST_CLASS, _SOME = 0.99995, 10, 1000


def _alone(table: TunedTable, goal: PredictionTask) -> Iterator[str]:
    """Yield a note on columns of which each explains the label: on a line, or by a range of values for each class."""
    X, names, labels = table.without_texts.X, table.without_texts.names or (), table.labels
    if labels.ndim > 1 or len(labels) < _LEAST_GROUPS:
        return
    y = labels if goal.classes is None else goal.numbers(labels)
    if goal.classes is not None and np.unique(y, return_counts=True)[1].min() < _LEAST_CLASS:
        return
    some = slice(None, None, max(1, len(y) // _SOME))  # most columns fail on these rows
    likely = np.flatnonzero(_explains(X[some], y[some], goal))
    found = [str(names[j]) for j in likely[_explains(X[:, likely], y, goal)] if j < len(names)]
    if found:
        enough = f"One column is enough to predict the label without error: {' or '.join(found[:8])}."
        yield f"{enough} What follows from the label must not be a feature{excluding(found)}."


def _explains(X: Floats, y: Array, goal: PredictionTask) -> Mask:
    """Return which columns (d,) of X (n, d) determine numbers y by a line, or have a range of values for each class."""
    with np.errstate(all="ignore"):
        if goal.classes is None:
            A, y = X - X.mean(axis=0), y - y.mean(dtype=np.float64)
            return np.square(y @ A) > _ALL * np.square(A).sum(axis=0) * np.square(y).sum()
        rows = [X[y == one] for one in np.unique(y)]
        low, high = (np.sort([end(one, axis=0) for one in rows], axis=0) for end in (np.min, np.max))
        return np.asarray((low[1:] > high[:-1]).all(axis=0))


# If trials learned from a smaller share of the rows than this, a note explains that more rows are probably better.
_MOST_OF_ROWS = 0.6


def _not_at_random(table: TunedTable, Y: Floats) -> Iterator[str]:
    """Yield notes on columns of times or ids, because of which scores of random rows may be too optimistic."""
    groups, sample = table.groups, table.without_texts
    if groups.times:
        yield (
            f"The table has times ({', '.join(groups.times)}). If later rows are to be predicted from earlier ones, "
            f"scores of random rows may be too good: --split-by time:{shell_word(groups.times[0])} "
            f"holds the latest out."
        )
    names = sample.names or ()
    found = [str(name) for j, name in enumerate(names) if _groups_rows(str(name), sample.X[:, j].copy(), Y)]
    ids = list(dict.fromkeys([*groups.ids, *found]))
    if ids:
        yield (
            f"Values repeat in {', '.join(ids)}. If the rows to predict have new ones, scores of random rows may be "
            f"too good: --split-by group:{shell_word(ids[0])} holds whole groups out."
        )


# A column with fewer different values than this holds categories, not groups. A label is a property of groups if the
# groups explain more than this share of its variance.
_LEAST_GROUPS, _OF_GROUP = 30, 0.95


def _groups_rows(name: str, values: Floats, Y: Floats) -> bool:
    """Return true for whole numbers that repeat, and are named like an id or almost determine the targets Y (n, k)."""
    if np.isnan(values).any() or (values != np.round(values)).any():
        return False
    n, first = len(values), values.min()
    # Counting is much faster than sorting, but needs memory for every number from the smallest to the largest.
    dense = values.max() - first < n
    own = (values - first).astype(np.intp) if dense else np.unique(values, return_inverse=True)[1]
    sizes = np.bincount(own)
    k = np.count_nonzero(sizes)
    if not _LEAST_GROUPS <= k <= n / 2:
        return False
    if ID.search(name) is not None:
        return True
    apart = Y - Y.mean(axis=0)
    every = np.square(apart).sum()
    between = sum((np.square(np.bincount(own, one)) / np.maximum(sizes, 1)).sum() for one in apart.T)
    return bool(1.0 - (every - between) / (n - k) / (every / (n - 1)) > _OF_GROUP)


def _common_class(goal: PredictionTask, labels: Array) -> Iterator[str]:
    """Yield a note on what a constant prediction scores, if most rows have one class."""
    if goal.classes is None:
        return
    shares = np.bincount(goal.numbers(labels)) / len(labels)
    if shares.max() > COMMON:
        proper = PROPER["classification"]
        loss = proper.stated(proper.of_constant(goal, labels, labels))
        yield (
            f"{100.0 * shares.max():.3g} % of the rows have the label {quoted(str(goal.classes[shares.argmax()]))}: "
            f"always predicting it scores accuracy {shares.max():.4f} and balanced accuracy "
            f"{1.0 / len(shares):.4f}; predicting the shares of the classes scores {proper} {loss:.4f}."
        )


CHOSEN = "Chosen by kafeat tune"
"""The first words of every config that a search writes."""
_RUNNERS_UP = 5


def comments(
    problem: Problem, search: Search, choice: Choice, constant: float, notes: Sequence[str]
) -> Iterator[str]:
    """Yield the comments of the YAML. They include no durations, so that equal searches give equal files.

    `constant` is the score of a constant prediction.
    """
    chosen, (leader, *others) = choice.chosen, choice.leaders
    labels, rows = label_names(problem.label), len(problem.table.labels)
    named = ", ".join(map(quoted, labels))
    of_label = f" for the {'label' if len(labels) == 1 else 'labels'} {named}" if labels else ""
    name = str(search.scoring)
    score_name = name[0].upper() + name[1:]
    yield (
        f"{CHOSEN}{of_label} from {counted(len(search.trials), 'trial')} on "
        f"{counted(rows, 'training row')}. {score_name} by ridge on the features, on rows "
        f"held out ({_held_out(chosen.size, problem.start.split_by)}):"
    )
    yield f"  {search.stated(chosen)}  {chosen.candidate}"
    yield f"  {search.scoring.stated(constant):z.4f}           a constant prediction"
    if others:
        columns = "" if leader is chosen else f" with {leader.size.width:,} columns"
        yield f"Runners-up{columns}:"
        yield from (f"  {search.stated(trial)}  {trial.candidate}" for trial in others[:_RUNNERS_UP])
    if len(choice.points) > 1:
        yield f"{score_name} over columns, of the chosen map:"
        yield from (
            f"  {search.stated(one)}  {counted(one.outcome.columns, 'column')}" for one in choice.points
        )
    yield from notes


def _held_out(size: Size, split_by: str | None) -> str:
    """Return which rows are held out, such as `3 times 25% of 3,000 rows`."""
    if split_by is not None and split_by.startswith("time:"):
        parts, n = size.parts + 1, min(size.splits, size.parts)
        latest = "the latest" if n == 1 else f"each of the {n} latest"
        return f"{latest} of {parts} parts of {size.rows:,} rows, by {split_by}, learned from those before it"
    times = "" if size.splits == 1 else f"{size.splits} times "
    said = f"{times}{size.held:.0%} of {size.rows:,} rows"
    return said if split_by is None else f"{said}, by {split_by}"
