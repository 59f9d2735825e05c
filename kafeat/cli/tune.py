"""`kafeat tune`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from kafeat.cli import log, options
from kafeat.cli.command import command
from kafeat.cli.overlaps import journal_of, located
from kafeat.study.tune.options import TuneOptions

if TYPE_CHECKING:
    from kafeat.io.storage.base import Location
    from kafeat.study.tune.result import Tuning


@command(
    "Choose the best map for a table and its label.",
    """Example:
  kafeat tune sample_data/digits.parquet best.yaml --label label \\
      --columns 256 --time 1m
  kafeat fit --config best.yaml sample_data/digits.parquet map.joblib \\
      --label label
""",
)
@click.argument("data", type=options.DATA)
@click.argument("config", type=options.SEARCHED, metavar="CONFIG.yaml")
@options.option(
    "--json", "json_file", group="Output", type=options.OUTPUT, metavar="FILE",
    help="Write the result and the trials as JSON. `-` writes them to stdout.",
)  # fmt: skip
@options.made_from(TuneOptions)
@options.option(
    "--model", group="Output", type=options.NEW_MODEL, metavar="MODEL.joblib",
    help="Fit the choice on all rows after the search, as `kafeat fit` does, and save it.",
)  # fmt: skip
@options.option(
    "--overwrite/--no-clobber", group="Output", default=False,
    help="Replace an existing CONFIG.yaml or MODEL.joblib, or fail if it exists (default).",
)  # fmt: skip
@options.reading
@options.log_format
@options.quiet
def tune(
    data: str, config: str, json_file: str | None, model: str | None, overwrite: bool, **options: Any
) -> int:
    """Choose the best map of DATA for a label, and write its config for `kafeat fit`; `-` is stdout.

    It tries scalers, metrics, kernels, γ and maps, and keeps those with which ridge scores best on held-out rows.
    Without --columns, it also chooses their number. Text, times and missing values need no preparation. Ctrl-C or
    SIGTERM ends the search at once, and the best config so far is written.
    """
    from contextlib import ExitStack

    from kafeat.cli.json_output import write_json
    from kafeat.cli.main import NAMES, Interrupted, Terminated, forget
    from kafeat.cli.progress import watching
    from kafeat.study.tune.space import seconds_of
    from kafeat.study.tune.tune import tune as job

    signalled = 0
    seconds, journal = seconds_of(options["time"]), journal_of(located(config))
    replace = _may_replace(config, json_file, model, overwrite, options["resume"])

    def write(result: Tuning) -> None:
        progress.close()  # the live table captures standard output
        nonlocal signalled
        if result.interrupted:
            signalled = forget()
        _write_config(config, result, replace)
        write_json(json_file, result.to_plain(), ensure_ascii=False)

    with ExitStack() as progress:
        show = progress.enter_context(watching(seconds, options["trials"]))
        result = job(
            data, **options, progress=show, listener=log.listener(), journal=journal, config_name=config,
            stops=(Interrupted, Terminated), write=write,
        )  # fmt: skip
    log.settings.figures = {"rows": result.table[0]["rows"]}
    if model is not None and not signalled:
        result.fit().save(model, overwrite)
    if not log.settings.quiet:
        _report(result, config, model, options["report"], NAMES.get(signalled), "-" in (config, json_file))
    return 128 + signalled if signalled else 0


def _may_replace(
    config: str, json_file: str | None, model: str | None, overwrite: bool, resume: bool
) -> bool:
    """Return True if an existing config may be replaced. Refuse outputs that cannot be written."""
    from kafeat.cli.json_output import check_json
    from kafeat.errors import UsageError
    from kafeat.io.storage.atomic import check_place

    place = located(config)
    if resume and journal_of(place) is None:
        raise UsageError(f"--resume: expected a local file, because the journal lies next to it, got {place}")
    replace = overwrite or (resume and _chosen_before(place))
    if config != "-":
        check_place(place, replace)
    if model is not None:
        check_place(located(model), overwrite)
    check_json(json_file)
    return replace


def _write_config(config: str, result: Tuning, replace: bool) -> None:
    from kafeat.io.storage.atomic import write_bytes

    if config == "-":
        click.echo(result.yaml, nl=False)
    else:
        write_bytes(located(config), result.yaml.encode(), replace)


def _chosen_before(place: Location) -> bool:
    """Return True if the first line of the file shows that `kafeat tune` has written it."""
    from kafeat.study.tune.notes import CHOSEN

    if place.kind() != "file":
        return False
    with place.open() as file:
        return bool(file.read(len(CHOSEN) + 2) == f"# {CHOSEN}".encode())


_MOST_NOTES = 3


def _report(
    result: Tuning, config: str, model: str | None, report: str | None, ended: str | None, to_stderr: bool
) -> None:
    """Write the chosen map with its scores, and the command to run next."""
    from kafeat.errors import counted

    first, *scores = result.answer()
    lines = [f"{config}: {first}", *scores]
    if len(result.curve) > 1:
        lines.append(f"{result.scoring} over columns:")
        lines += [
            f"  {row['columns']:>6,}  {result.scoring.stated(row['score']):z.4f} ± "
            f"{row['standard_error']:.4f}{'  <' * row['chosen']}"
            for row in result.curve
        ]
    lines += [f"terms: {'; '.join(result.terms)}"] if result.terms else []
    notes = result.notes[
        1:-1
    ]  # the first note was shown before the search; the last, on how to repeat it, is for the config
    lines += [f"note: {note}" for note in notes[:_MOST_NOTES]]
    lines += [f"{counted(len(notes) - _MOST_NOTES, 'more note')} in {config}"] if notes[_MOST_NOTES:] else []
    if ended is not None:
        lines.append(f"{ended} after {counted(result.trials, 'trial')}; --resume goes on")
    if report is not None:
        lines.append(f"page: {os.path.join(report, 'index.html')}")
    fitted = model is not None and ended is None
    commands = result.commands(config, model if fitted else None)[fitted:2]
    lines += [f"model: {model}"] if fitted else []
    lines += [f"next: {command}" for command in commands]
    lines += [f"The fit takes about {max(1.0, result.fit_seconds):.0f} s."] if commands and not fitted else []
    for line in lines:
        if to_stderr:
            log.say(line)
        else:
            log.show(line)
