"""`kafeat evaluate`, and with --all-rows the scores of the predictions of finished models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from kafeat.cli import experiments, log, options
from kafeat.cli.command import GroupedCommand, long_name
from kafeat.errors import DataError, UsageError, without_secrets

if TYPE_CHECKING:
    from kafeat.io.options import InputOptions
    from kafeat.study.candidates import NamedRecipe
    from kafeat.study.records import Report


_LEARNERS = click.Choice(
    ["ridge", "linear_svc", "linear_svc_hinge", "linear_svc_l1", "dual_l1", "logistic", "sgd"]
)
_SCORES = click.Choice(
    ["accuracy", "error_rate", "balanced_accuracy", "f1", "auc", "log_loss", "r2", "mae", "mse"]
)


@click.command(
    cls=GroupedCommand,
    short_help="Compare maps: kernel errors, scores and costs.",
    epilog="""\b
Examples:
  kafeat evaluate --model map.joblib sample_data/digits.parquet --label label
  kafeat evaluate --config configs/fourier.yaml --sweep n_components=32,128 \\
      --seeds 2 sample_data/digits.parquet
  kafeat evaluate --list-experiments
""",
)
@click.option(
    "--model",
    "models",
    type=options.MODEL,
    multiple=True,
    metavar="MODEL",
    help="Map made by `kafeat fit`. Repeatable.",
)
@click.option(
    "--config", "configs", type=options.CONFIG, multiple=True, metavar="CONFIG.yaml",
    help="Recipe to fit on the rows that are not held out. Repeatable.",
)  # fmt: skip
@experiments.experiment
@experiments.list_experiments
@click.argument("data", type=options.DATA)
@options.label
@click.option(
    "--all-rows",
    is_flag=True,
    allow_from_autoenv=False,
    help="Only score the predictions of models that end in a predictor, on all rows of DATA, which they have not seen.",
)
@click.option(
    "--split",
    metavar="COL",
    help="Column with the values train and test (default: hold out a random fifth of the rows).",
)
@options.task
@click.option(
    "--learner", type=_LEARNERS, default="ridge", show_default=True,
    help="Model used to predict the label. All but ridge need the extra kafeat[evaluate].",
)  # fmt: skip
@click.option(
    "--tau", type=click.FloatRange(min=0, max=1, max_open=True), callback=options.finite, default=0.1,
    show_default=True, help="Parameter τ of the learner dual_l1.",
)  # fmt: skip
@click.option(
    "--penalty", type=click.FloatRange(min=0, min_open=True), callback=options.finite, metavar="P",
    help="Penalty of the learner: λ of ridge, 1/C of the other machines, α of sgd (default: the best of each, by "
    "3-fold cross-validation).",
)  # fmt: skip
@click.option(
    "--sweep", "sweeps", multiple=True, metavar="KEY=a,b,c",
    help="Try these values of a parameter in every step that has it, or of steps[i].KEY. Repeatable.",
)  # fmt: skip
@click.option(
    "--seeds",
    type=options.number(1, 1000),
    default=1,
    show_default=True,
    help="Number of seeds to fit each recipe with.",
)
@click.option(
    "--splits",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Number of random splits into rows to train and to test on. Recipes are fitted anew in each.",
)
@click.option(
    "--scoring", multiple=True, type=_SCORES,
    help="Score of the predictions; the first decides. Repeatable (default: accuracy for classes, r2 for numbers).",
)  # fmt: skip
@click.option(
    "--rows", type=options.number(2), default=2000, show_default=True, metavar="N",
    help="Number of held-out rows to compare kernels on.",
)  # fmt: skip
@click.option(
    "--exact-rows", type=options.number(2), default=2000, show_default=True, metavar="N",
    help="Maximum number of rows to train the exact kernel machine on.",
)  # fmt: skip
@options.output_dtype
@click.option("--max-error", type=click.FloatRange(min=0), callback=options.finite, metavar="E",
              help="Exit with code 6 if the relative Frobenius error of a map is larger.")  # fmt: skip
@click.option(
    "--min-score",
    type=float,
    callback=options.finite,
    metavar="S",
    help="Exit with code 6 if the score of a map is lower.",
)
@click.option(
    "--json",
    "json_file",
    type=options.OUTPUT,
    metavar="FILE",
    help="Write the results as JSON. `-` writes them to stdout in place of the table.",
)
@click.option(
    "--report",
    type=options.PAGES,
    metavar="DIR",
    help="Write an HTML page with figures. Needs the extra kafeat[evaluate].",
)
@options.reading
@options.jobs
@options.log_format
@options.quiet
def evaluate(
    models: tuple[str, ...],
    configs: tuple[str, ...],
    experiment: str | None,
    data: str,
    labels: tuple[str, ...],
    all_rows: bool,
    sweeps: tuple[str, ...],
    max_error: float | None,
    min_score: float | None,
    json_file: str | None,
    jobs: int | None,
    reading: InputOptions,
    quiet: bool,
    **choices: Any,
) -> None:
    """Evaluate maps on DATA: fitted models, and recipes with every setting and seed.

    The dot products of the features are compared with the exact kernel of the whole chain on held-out rows. With
    --label, a learner is trained and tested on the raw columns, on the features, and with the exact kernel. With
    --all-rows nothing is trained: the predictions of a finished model are scored.
    """
    from kafeat.cli.evaluate_tables import show, show_predictions
    from kafeat.cli.json_output import check_json, write_json
    from kafeat.cli.progress import steps_of
    from kafeat.study.evaluate import evaluate as job
    from kafeat.study.evaluate import gate
    from kafeat.study.scores import refuse_low_scores, score_predictions

    models, configs = _without_idle_defaults(models, configs, experiment)
    check_json(json_file)
    source, scoring = {"data": without_secrets(data)}, choices["scoring"]
    shown = json_file != "-" and not quiet
    if all_rows:
        _refuse_others()
        if not models:
            raise UsageError("--all-rows: expected --model MODEL, got none")
        records = score_predictions(models, data, labels, scoring[0] if scoring else None, reading, jobs)
        write_json(json_file, {**source, "records": records})
        for record in records if shown else ():
            show_predictions(record)
        refuse_low_scores(records, min_score)
        return
    recipes, expected = _recipes(configs, experiment)
    if not (models or recipes):
        raise UsageError(
            "evaluate: expected --model MODEL, --config CONFIG.yaml or --experiment NAME, got none of them"
        )
    if min_score is not None and not labels:
        raise UsageError("--min-score: expected --label, as without one there is no score")
    _refuse_idle(labels, choices["learner"])
    with steps_of(quiet) as say, expected:
        results = job(
            list(models), data, labels, reading=reading, config=recipes, sweep=sweeps, jobs=jobs, say=say,
            listener=log.listener(quiet), **choices,
        )  # fmt: skip
    named = {"model": without_secrets(models[0])} if len(models) == 1 and not recipes else {}
    repeated = {} if experiment is None else {"experiment": experiment}
    write_json(json_file, {**named, **repeated, **source, **results})
    if shown:
        show(cast("Report", results), scoring)
    gate(cast("Report", results), max_error, min_score)


def _without_idle_defaults(
    models: tuple[str, ...], configs: tuple[str, ...], experiment: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ignore KAFEAT_MODEL or KAFEAT_CONFIG if the command line names others: they are defaults of other commands."""
    context = click.get_current_context()
    from_environment = [
        context.get_parameter_source(name) is ParameterSource.ENVIRONMENT for name in ("models", "configs")
    ]
    match from_environment:
        case [True, False] if configs or experiment:
            return (), configs
        case [False, True] if models or experiment:
            return models, ()
        case [True, True] if experiment:
            return (), ()
    return models, configs


def _recipes(
    configs: tuple[str, ...], experiment: str | None
) -> tuple[list[NamedRecipe | str], AbstractContextManager[None]]:
    """Return the recipes of the experiment and of --config, and a context that adds to errors what data is needed."""
    if experiment is None:
        return list(configs), nullcontext()
    from kafeat.config.experiment import load_experiment
    from kafeat.study.candidates import NamedRecipe

    read = load_experiment(experiment)
    named = [NamedRecipe(name, config) for name, config in read.maps.items()]
    return [*named, *configs], _expecting(experiment, read.data)


@contextmanager
def _expecting(experiment: str, table: str) -> Iterator[None]:
    """Add to errors in the data which table the experiment needs."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{error}\n--experiment {experiment} needs this table: {table}") from None


def _refuse_idle(labels: tuple[str, ...], learner: str) -> None:
    """Refuse options that would have no effect."""
    context = click.get_current_context()
    for name in ("learner", "task", "tau", "penalty", "scoring"):
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if not labels:
            raise UsageError(f"--{name}: expected --label, as without one nothing is learned")
        if name == "tau" and learner != "dual_l1":
            raise UsageError(f"--tau: expected --learner dual_l1 with it, got {learner}")


_TAKEN = (
    "--model", "--label", "--scoring", "--min-score", "--json", "--input-format", "--delimiter", "--no-header",
    "--limit", "--jobs", "--log-format", "--quiet", "--color", "--all-rows",
)  # fmt: skip


def _refuse_others() -> None:
    """Refuse options that have no effect beside --all-rows."""
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and isinstance(option, click.Option) and long_name(option) not in _TAKEN:
            raise UsageError(
                f"--all-rows: expected no {long_name(option)} with it, got one: only the predictions of finished "
                "models are scored"
            )
