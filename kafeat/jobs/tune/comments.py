"""The comments of the config that is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafeat.errors import counted, quoted
from kafeat.jobs.fit.labels import LabelNames
from kafeat.jobs.tune.search import Trial
from kafeat.jobs.tune.table import TunedTable
from kafeat.jobs.tune.widths import Choice

CHOSEN = "Chosen by kafeat tune"
"""The first words of every config that a search writes."""
_RUNNERS_UP = 5


def comments(
    table: TunedTable,
    labels: LabelNames,
    choice: Choice,
    score_name: str,
    constant: float,
    notes: Sequence[str],
    n_trials: int,
) -> Iterator[str]:
    """Yield the comments of the YAML. They hold no times, so that equal searches give equal files.

    `constant` is the score of a constant prediction.
    """
    chosen, (leader, *others) = choice.chosen, choice.leaders
    named = ", ".join(map(quoted, labels))
    of_label = f" for the {'label' if len(labels) == 1 else 'labels'} {named}" if labels else ""
    yield (
        f"{CHOSEN}{of_label} from {counted(n_trials, 'trial')} on "
        f"{counted(len(table.labels), 'training row')}. {score_name} by ridge on the features, on rows held out "
        f"({counted(chosen.size.splits, 'split')} of {chosen.size.rows:,} rows):"
    )
    yield f"  {_figure(chosen)}  {chosen.candidate}"
    yield f"  {constant:z.4f}           a constant prediction"
    if others:
        best = others[0].outcome.score > leader.outcome.score
        columns = "" if leader is chosen else f" with {leader.size.width:,} columns"
        yield f"Runners-up{columns}" + (
            ", of which the better ones are less simple and better by noise only:" if best else ":"
        )
        yield from (f"  {_figure(trial)}  {trial.candidate}" for trial in others[:_RUNNERS_UP])
    if len(choice.points) > 1:
        yield f"{score_name} over columns, of the chosen map:"
        yield from (f"  {_figure(one)}  {counted(one.outcome.columns, 'column')}" for one in choice.points)
    yield from notes


def _figure(trial: Trial) -> str:
    return f"{trial.outcome.score:.4f} ± {trial.outcome.error:.4f}"
