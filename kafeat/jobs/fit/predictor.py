"""Fit the predictor of a config on all rows, in a second pass over the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import FittedStep
from kafeat.config import Config
from kafeat.contract.predictor import Learned, Predictor
from kafeat.errors import DataError, UsageError, quoted
from kafeat.io.readers.base import Reader
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.labelled_rows import TrainingSource
from kafeat.jobs.fit.labels import label_names
from kafeat.jobs.fit.messages import Listener
from kafeat.jobs.fit.training import Training
from kafeat.maths.linear_system import FOLDS
from kafeat.model.feature_map import WITH_PREDICTOR, FeatureMap
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import Provenance, Search, printable
from kafeat.runtime.environment import count_jobs


def check_rereadable(source: Reader, step: Predictor) -> None:
    """Refuse a pipe, as a predictor needs a second pass."""
    if not source.rereadable:
        raise UsageError(
            f"{source.location}: expected a file by its name, as {step.kind} is fitted in a second pass over all rows, "
            "got standard input or a pipe, which can be read only once: save it to a file first"
        )


def check_weight(config: Config, weight: str | None, others: Sequence[str | None]) -> None:
    """Refuse weights without a predictor, as they would have no effect, and a column that has another role."""
    if weight is not None and weight in others:
        raise UsageError(
            f"--weight: expected another column than those of the label and the split, got {quoted(weight)}"
        )
    if weight is not None and config.predictor is None:
        raise UsageError(
            "--weight: expected a config that ends in a predictor, such as ridge, got a map: its steps know no weights"
        )


def fit_predictor(
    fm: FeatureMap, data: TrainingSource, summary: LabelSummary, jobs: int | None, listener: Listener
) -> FeatureMap:
    """Return the map with the predictor of its config, fitted on all rows; `summary` is that of their labels."""
    step, place = fm.config.predictor, data.source.location
    if step is None:
        raise TypeError("the config has no predictor")
    jobs = count_jobs(jobs)
    try:
        task = summary.task(step.task)
        training = Training.begin(step, fm.n_components, fm.config.seed, task, summary, jobs)
        listener.phase(f"fitting {step.kind} on {summary.rows:,} rows")
        with one_blas_thread(linalg=True):
            for rows in data.rows(fm, jobs):
                training.add(rows)
                listener.rows(rows.done.chunk.rows)
            if data.weight is not None and len(training.folds) < 2:
                raise DataError(
                    f"weight {quoted(data.weight)}: expected numbers above 0 in rows of two or three of the {FOLDS} "
                    f"random parts that a penalty is chosen on, got them in {len(training.folds)}: give more rows a "
                    "weight above 0"
                )
            learned = training.learned()
    except DataError as error:
        raise error if str(error).startswith(place) else DataError(f"{place}: {error}") from None
    data.source.check_unchanged()
    rows_learned = training.rows if learned.rows is None else learned.rows
    if rows_learned < training.rows:
        listener.warn(
            f"{place}: {step.kind} was fitted on a random sample of {rows_learned:,} of {training.rows:,} rows, as it "
            "keeps their features in memory; ridge takes all of them"
        )
    names = tuple(map(printable, label_names(data.label)))
    fitted = FittedStep(learned.step, learned.state, fm.n_components)
    predictor = FittedPredictor(fitted, summary.labels(task, names))
    provenance = _provenance(fm, learned, rows_learned, data.weight)
    return replace(fm, predictor=predictor, format=WITH_PREDICTOR, provenance=provenance)


def _provenance(fm: FeatureMap, learned: Learned, rows: int, weight: str | None) -> Provenance:
    searches = list(fm.provenance.searches)
    if learned.scores:
        searches.append(
            Search(
                parameter=f"steps[{len(fm.config.steps) - 1}].penalty",
                chosen=learned.step.recipe()["penalty"],
                values=list(learned.penalties),
                scores=list(learned.scores),
            )
        )
    changes = {"searches": searches, "rows_learned": rows, "weight": weight and printable(weight)}
    return fm.provenance.model_copy(update=changes)
