"""`kafeat tune`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from kafeat.cli import log, options
from kafeat.cli.command import GroupedCommand
from kafeat.cli.overlaps import journal_of, located

if TYPE_CHECKING:
    from kafeat.io.storage.base import Location
    from kafeat.study.tune.tuning import Tuning

_SCORINGS = click.Choice(
    ["auto", "accuracy", "error_rate", "balanced_accuracy", "f1", "auc", "log_loss", "r2", "mae", "mse"]
)


@click.command(
    cls=GroupedCommand,
    short_help="Choose the best map for a table and its label.",
    epilog="""\b
Example:
  kafeat tune sample_data/digits.parquet best.yaml --label label \\
      --columns 256 --time 1m
  kafeat fit --config best.yaml sample_data/digits.parquet map.joblib \\
      --label label
""",
)
@click.argument("data", type=options.DATA)
@click.argument("config", type=options.SEARCHED, metavar="CONFIG.yaml")
@click.option(
    "--label", "labels", type=options.COLUMN, multiple=True, required=True, metavar="COL",
    help="Column to predict. It is not a feature. Repeatable for labels that are numbers.",
)  # fmt: skip
@click.option(
    "--columns", type=options.number(2, 1 << 20), metavar="D",
    help="Number of output columns of the map (default: with --predictor the best of up to 1,024, else the knee of the "
    "score over columns).",
)  # fmt: skip
@click.option(
    "--max-bytes-per-row", type=options.number(1), metavar="N",
    help="Largest number of bytes of the features of a row.",
)  # fmt: skip
@click.option(
    "--time", metavar="TIME", help="Time after which the search ends: 90s, 10m, 1h (default: all trials)."
)
@click.option(
    "--trials", type=options.number(1), metavar="N", help="Number of trials after which the search ends."
)
@click.option(
    "--split", metavar="COL",
    help="Column with the values train and test. Choose on the train rows, and score the test rows once at the end.",
)  # fmt: skip
@options.task
@click.option(
    "--scoring", type=_SCORINGS, default="auto", show_default=True,
    help="Score to maximize. With auto, the log loss for classes and R² for numbers.",
)  # fmt: skip
@click.option(
    "--from", "base", type=options.CONFIG, metavar="BASE.yaml",
    help="Config to start from: keep its seed and columns, and try its steps, if it has some, as well.",
)  # fmt: skip
@click.option(
    "--predictor", type=click.Choice(["ridge", "logistic"]),
    help="End the config in this predictor, so that `kafeat fit` makes a model for `kafeat predict` of it. A predictor "
    "of BASE.yaml is kept.",
)  # fmt: skip
@click.option(
    "--seeds", type=options.number(1, 1000), default=2, show_default=True, metavar="N",
    help="Number of splits, with draws of their own, that the last candidates are scored on.",
)  # fmt: skip
@click.option(
    "--json", "json_file", type=options.OUTPUT, metavar="FILE",
    help="Write the result and the trials as JSON. `-` writes them to stdout.",
)  # fmt: skip
@click.option(
    "--report",
    type=options.PAGES,
    metavar="DIR",
    help="Write an HTML page about the choice. Needs the extra kafeat[evaluate].",
)
@click.option(
    "--overwrite/--no-clobber",
    default=False,
    help="Replace an existing CONFIG.yaml, or fail if it exists (default).",
)
@click.option(
    "--resume", is_flag=True, help="Take the trials of a killed run from its journal, if there is one."
)
@options.reading
@options.jobs
@options.log_format
@options.quiet
def tune(
    data: str,
    config: str,
    labels: tuple[str, ...],
    time: str | None,
    trials: int | None,
    json_file: str | None,
    report: str | None,
    overwrite: bool,
    resume: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Choose the best map of DATA for a label, and write its config, which `kafeat fit` takes; `-` is stdout.

    Scaler, metric, kernel, γ and map are chosen by the score of ridge on the features, on rows that they were not
    fitted on. Without --columns the number of columns is chosen, too. Text, times and missing values are read as they
    are. The same data, seed and number of trials give the same config. Ctrl-C ends the search, and the best config so
    far is written.
    """
    from contextlib import ExitStack

    from kafeat.cli.json_output import write_json
    from kafeat.cli.main import Interrupted, forget
    from kafeat.cli.progress import watching
    from kafeat.errors import UsageError
    from kafeat.io.storage.atomic import check_place, write_bytes
    from kafeat.study.tune.space import seconds_of
    from kafeat.study.tune.tune import tune as job

    seconds = seconds_of(time)
    place = located(config)
    journal = journal_of(place)
    if resume and journal is None:
        raise UsageError(
            f"--resume: expected an output on this machine, beside which the journal is, got {place}"
        )
    replace = overwrite or (resume and _chosen_before(place))
    for name, may_replace in ((config, replace), (json_file, True)):
        if name not in (None, "-"):
            check_place(located(name), may_replace)

    def write(result: Tuning) -> None:
        progress.close()  # which would take what goes to standard output
        if result.interrupted:
            forget()
        if config == "-":
            click.echo(result.yaml, nl=False)
        else:
            write_bytes(place, result.yaml.encode(), replace)
        write_json(json_file, result.to_plain(), ensure_ascii=False)

    with ExitStack() as progress:
        show = progress.enter_context(watching(quiet, seconds, trials))
        result = job(
            data, labels, **options, time=seconds, trials=trials, progress=show, listener=log.listener(quiet),
            report=report, journal=journal, resume=resume, config_name=config, stops=(Interrupted,), write=write,
        )  # fmt: skip
    if not quiet:
        _report(result, config, report, "-" in (config, json_file))
    return 130 if result.interrupted else 0


def _chosen_before(place: Location) -> bool:
    """Return true for a config that a search has written."""
    from kafeat.study.tune.notes import CHOSEN

    if place.kind() != "file":
        return False
    with place.open() as file:
        return bool(file.read(len(CHOSEN) + 2) == f"# {CHOSEN}".encode())


def _report(result: Tuning, config: str, report: str | None, to_stderr: bool) -> None:
    """Write what was chosen, and the command to go on with."""
    from kafeat.errors import counted
    from kafeat.maths.scoring import spell_score, stated

    first, *scores = result.answer()
    lines = [f"{config}: {first}", *scores]
    if len(result.curve) > 1:
        lines.append(f"{spell_score(result.score_name)} over columns:")
        lines += [
            f"  {row['columns']:>6,}  {stated(result.score_name, row['score']):z.4f} ± "
            f"{row['standard_error']:.4f}{'  <' * row['chosen']}"
            for row in result.curve
        ]
    lines += [f"note: {note}" for note in result.notes[:-1]]
    if result.interrupted:
        lines.append(f"interrupted after {counted(result.trials, 'trial')}; --resume goes on")
    if report is not None:
        lines.append(f"page: {os.path.join(report, 'index.html')}")
    lines += [
        f"next: {command}"
        for command in result.commands(config)[: 1 if result.config.predictor is None else 2]
    ]
    for line in lines:
        if to_stderr:
            log.say(line)
        else:
            click.echo(line)
