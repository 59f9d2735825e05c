"""`kafeat evaluate`, which evaluates maps, repeats an experiment or, with --all-rows, scores finished models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from kafeat.cli import log, options
from kafeat.cli.command import command, long_name
from kafeat.cli.overlaps import FileName
from kafeat.errors import DataError, UsageError, without_secrets
from kafeat.study.request import EvaluationRequest, NamedRecipe

if TYPE_CHECKING:
    from kafeat.study.evaluation import Evaluation
    from kafeat.study.records import Record


_ALLOWED = (
    "label", "split", "task", "learner", "tau", "penalty", "sweep", "seeds", "splits", "scoring", "interval", "rows",
    "exact_rows", "output_dtype", "limit", "jobs",
)  # fmt: skip
"""The options that an experiment may set: they decide what is computed. None of them writes a file or runs code."""


class ExperimentName(FileName):
    """The name of a built-in experiment, or the path of a YAML file with an experiment of the user."""

    def __init__(self) -> None:
        super().__init__("config", "the experiment")

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from kafeat.config.experiment import experiment_names

        names = [CompletionItem(name) for name in experiment_names() if name.startswith(incomplete)]
        return names or super().shell_complete(ctx, param, incomplete)


def _use_options(context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """Make the options of the experiment the defaults of the command, and return its name."""
    if name is None or context.resilient_parsing:
        return name
    from kafeat.config.experiment import load_experiment

    defaults = checked_options(context, name, load_experiment(name).options)
    context.default_map = {**(context.default_map or {}), **defaults}
    return name


def checked_options(context: click.Context, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an experiment by their names in click, after checking them as on the command line.

    `context` is a context of `kafeat evaluate`.
    """
    from kafeat.contract.describe import nearest
    from kafeat.errors import ConfigError

    options = [one for one in context.command.params if isinstance(one, click.Option)]
    known = {long_name(one)[2:].replace("-", "_"): one for one in options}
    defaults: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in given.items():
        if key not in _ALLOWED:
            problems.append(
                f"{name}: options: expected one of {', '.join(_ALLOWED)}, got {key!r}{nearest(key, _ALLOWED)}"
            )
            continue
        option = known[key]
        try:
            text = _as_typed(value, option.multiple)
            option.process_value(context, text)
        except (click.BadParameter, ValueError) as error:
            said = error.message if isinstance(error, click.BadParameter) else str(error)
            problems.append(f"{name}: options.{key}: {said}")
            continue
        defaults[option.name or ""] = text
    if problems:
        raise ConfigError(problems)
    return defaults


def _as_typed(value: Any, multiple: bool) -> str | list[str]:
    """Return a value as on the command line: text, or a list of texts for an option that may be repeated."""
    from kafeat.contract.describe import spell

    values = value if isinstance(value, list) and multiple else [value]
    if not values or not all(isinstance(one, str | int | float) for one in values):
        expected = "a number or text, or a list of these" if multiple else "a number or text"
        raise ValueError(f"expected {expected}, got {spell(value)}")
    words = [str(one) for one in values]
    return words if multiple else words[0]


def _list(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    """Print the built-in experiments."""
    if not asked or context.resilient_parsing:
        return
    from kafeat.config.experiment import experiment_names, load_experiment

    for name in experiment_names():
        experiment = load_experiment(name)
        click.echo(f"{click.style(name, bold=True)}\n    {experiment.about}\n    DATA: {experiment.data}")
    context.exit()


experiment = options.option(
    "--experiment", rare=True, type=ExperimentName(), is_eager=True, callback=_use_options, metavar="NAME|FILE.yaml",
    allow_from_autoenv=False,
    help="Evaluate the maps of a built-in experiment, or of your own YAML file of the same form. Other options "
    "override those of the experiment.",
)  # fmt: skip
list_experiments = options.option(
    "--list-experiments", rare=True, is_flag=True, is_eager=True, expose_value=False, callback=_list,
    allow_from_autoenv=False, help="List the experiments, with the table that each needs, and exit.",
)  # fmt: skip


@command(
    "Test a map or a model on held-out rows.",
    """Examples:
  kafeat evaluate --model map.joblib sample_data/digits.parquet --label label
  kafeat evaluate --config configs/fourier.yaml --sweep n_components=32,128 \\
      --seeds 2 sample_data/digits.parquet
  kafeat evaluate --list-experiments
""",
)
@options.option(
    "--json", "json_file", group="Output", type=options.OUTPUT, metavar="FILE",
    help="Write the results as JSON. `-` writes them to stdout in place of the table.",
)  # fmt: skip
@options.made_from(EvaluationRequest)
@experiment
@list_experiments
@click.argument("data", type=options.DATA)
@options.option(
    "--all-rows", rare=True, is_flag=True, allow_from_autoenv=False,
    help="Only score the predictions of finished models, on all rows of DATA, which they have not seen.",
)  # fmt: skip
@options.option(
    "--details", is_flag=True, allow_from_autoenv=False,
    help="Show kernel errors, costs and all scores too. --json and --report always have them.",
)  # fmt: skip
@options.option(
    "--max-error", rare=True, type=click.FloatRange(min=0), callback=options.finite, metavar="E",
    help="Exit with code 6 if the relative Frobenius error of a map is larger.",
)  # fmt: skip
@options.option(
    "--min-score", type=float, callback=options.finite, metavar="S",
    help="Exit with code 6 if the score of a map is lower. Errors, such as mae, count as negative: -0.35.",
)  # fmt: skip
@options.option(
    "--min-coverage", rare=True, type=click.FloatRange(0.0, 1.0), metavar="C",
    help="With --all-rows: exit with code 6 if the intervals or sets of --interval hold a smaller share of labels.",
)  # fmt: skip
@options.reading
@options.log_format
@options.quiet
def evaluate(
    data: str,
    all_rows: bool,
    details: bool,
    experiment: str | None,
    max_error: float | None,
    min_score: float | None,
    min_coverage: float | None,
    json_file: str | None,
    **values: Any,
) -> None:
    """Test a map or a model on held-out rows of DATA: fitted models, and recipes with every setting and seed.

    With --label, a learner is trained on the features and compared with a constant, the raw columns, gradient boosting
    and the exact kernel. Without it, the dot products of the features are compared with the exact kernel. With
    --all-rows nothing is trained: the predictions of a finished model are scored.
    """
    from kafeat.cli.evaluate_tables import show, show_predictions
    from kafeat.cli.json_output import check_json, write_json
    from kafeat.study.evaluate import gate
    from kafeat.study.models import refuse_low_scores

    check_json(json_file)
    _drop_idle_defaults(values, experiment)
    shown = json_file != "-" and not log.settings.quiet
    if all_rows:
        records = _score(data, values)
        write_json(
            json_file, {"data": without_secrets(data), "records": [record.flat() for record in records]}
        )
        log.settings.figures = {"rows": records[0].about["rows_test"]}
        for record in records if shown else ():
            show_predictions(record)
        refuse_low_scores(records, min_score, min_coverage, values["interval"])
        return
    if min_coverage is not None:
        raise UsageError("--min-coverage: expected --all-rows with it, because it is about finished models")
    source = _named(data, experiment, values["model"], values["config"])
    _refuse_idle(values["label"], values["learner"], min_score)
    report = _evaluate(data, experiment, values)
    write_json(json_file, {**source, **report})
    log.settings.figures = {"rows": report.report.records[0].about["data_rows"]}
    if shown:
        show(report.report, values["scoring"], details or max_error is not None)
    gate(report.report, max_error, min_score)


def _named(
    data: str, experiment: str | None, models: Sequence[str], configs: Sequence[str]
) -> dict[str, str]:
    """Return the entries of the JSON file that name the input: `data`, and `experiment` or a single `model`."""
    if experiment is not None:
        return {"experiment": experiment, "data": without_secrets(data)}
    model = {"model": without_secrets(models[0])} if len(models) == 1 and not configs else {}
    return {**model, "data": without_secrets(data)}


def _score(data: str, values: Mapping[str, Any]) -> list[Record]:
    """Score the predictions of finished models on all rows."""
    from kafeat.study.models import score_predictions

    _refuse_others()
    if not values["model"]:
        raise UsageError("--all-rows: expected --model MODEL, got none")
    names = ("label", "reading", "jobs", "drop_unlabelled", "interval")
    scoring = next(iter(values["scoring"]), None)
    return score_predictions(values["model"], data, scoring=scoring, **{name: values[name] for name in names})


def _evaluate(data: str, experiment: str | None, values: dict[str, Any]) -> Evaluation:
    """Evaluate models, the recipes of --config and the recipes of the experiment."""
    from kafeat.cli.progress import progress
    from kafeat.study.evaluate import evaluate as job

    recipes, expected = _recipes(values.pop("config"), experiment)
    if not (values["model"] or recipes):
        raise UsageError(
            "evaluate: expected --model MODEL, --config CONFIG.yaml or --experiment NAME, got none of them"
        )
    with progress("evaluate") as announce, expected:
        return job(data=data, config=recipes, say=announce.phase, listener=log.listener(), **values)


def _drop_idle_defaults(values: dict[str, Any], experiment: str | None) -> None:
    """Ignore KAFEAT_MODEL or KAFEAT_CONFIG, which are meant for other commands, if the command line names maps."""
    source_of = click.get_current_context().get_parameter_source
    given = {name: bool(values[name]) for name in ("model", "config")}
    from_variables = [name for name in given if source_of(name) is ParameterSource.ENVIRONMENT]
    for name in from_variables:
        if experiment or any(given[other] for other in given if other not in from_variables):
            values[name] = ()


def _recipes(
    configs: tuple[str, ...], experiment: str | None
) -> tuple[list[NamedRecipe | str], AbstractContextManager[None]]:
    """Return the recipes of experiment and --config, and a context that adds the experiment's table to errors."""
    if experiment is None:
        return list(configs), nullcontext()
    from kafeat.config.experiment import load_experiment

    read = load_experiment(experiment)
    named = [NamedRecipe(name, config) for name, config in read.maps.items()]
    return [*named, *configs], _expecting(experiment, read.data)


@contextmanager
def _expecting(experiment: str, table: str) -> Iterator[None]:
    """Append the name of the table that the experiment needs to an error about the data."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{error}\n--experiment {experiment} needs this table: {table}") from None


def _refuse_idle(labels: tuple[str, ...], learner: str, min_score: float | None) -> None:
    """Refuse options that have no effect without --label, or --tau with a learner other than dual_l1."""
    if min_score is not None and not labels:
        raise UsageError("--min-score: expected --label, because there is no score without one")
    for name in options.given(("learner", "task", "tau", "penalty", "scoring", "interval")):
        if not labels:
            raise UsageError(f"--{name}: expected --label, because nothing is learned without one")
        if name == "tau" and learner != "dual_l1":
            raise UsageError(f"--tau: expected --learner dual_l1 with it, got {learner}")


_TAKEN = (
    "--model", "--label", "--scoring", "--interval", "--min-score", "--min-coverage", "--json", "--input-format",
    "--delimiter", "--no-header", "--encoding", "--null-values", "--decimal", "--thousands", "--unit", "--date-format",
    "--text", "--drop-unlabelled", "--limit", "--jobs", "--log-format", "--quiet", "--color", "--all-rows",
)  # fmt: skip


def _refuse_others() -> None:
    """Refuse options that have no effect together with --all-rows."""
    every = click.get_current_context().command.params
    named = {one.name or "": long_name(one) for one in every if isinstance(one, click.Option)}
    other = next((name for name in map(named.get, options.given(named)) if name not in _TAKEN), None)
    if other is not None:
        raise UsageError(
            f"--all-rows: expected no {other} with it, got one: only the predictions of finished models are scored"
        )
