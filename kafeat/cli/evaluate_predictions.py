"""`kafeat evaluate --all-rows`: the scores of the predictions of finished models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kafeat.cli import log
from kafeat.cli.command import long_name
from kafeat.errors import UsageError

if TYPE_CHECKING:
    from kafeat.jobs.transform.options import InputOptions

_TAKEN = (
    "--model", "--label", "--scoring", "--min-score", "--json", "--input-format", "--delimiter", "--no-header",
    "--limit", "--jobs", "--log-format", "--quiet", "--color", "--all-rows",
)  # fmt: skip


def score_all_rows(
    models: Sequence[str],
    data: str,
    labels: Sequence[str],
    scoring: Sequence[str],
    min_score: float | None,
    json_file: str | None,
    reading: InputOptions,
    jobs: int | None,
    quiet: bool,
) -> None:
    """Score the predictions of every model on all rows of the data, print them, and judge them."""
    from kafeat.cli.json_output import write_json
    from kafeat.io.storage.location import Location
    from kafeat.jobs.evaluate.predictions import refuse_low_scores, score_predictions

    _refuse_others()
    if not models:
        raise UsageError("--all-rows: expected --model MODEL, got none")
    first = scoring[0] if scoring else None
    records = score_predictions(models, data, labels, first, reading, jobs)
    write_json(json_file, {"data": str(Location.parse(data)), "records": records})
    if json_file != "-" and not quiet:
        for record in records:
            _show(record)
    if min_score is not None:
        refuse_low_scores(records, min_score)


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


def _show(record: Mapping[str, Any]) -> None:
    from kafeat.cli.tables import TableColumn, fitting

    console = log.console()
    names, figures = zip(*_figures(record), strict=True)
    heading = f"{record['map']}: predictions of {record['rows_test']:,} rows"
    console.print(heading, style="italic", soft_wrap=True)
    console.print(fitting(TableColumn("score", names), [TableColumn("value", figures)], None)[0])
    for note in _notes(record):
        console.print(note, soft_wrap=True)


def _figures(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from kafeat.maths.scoring import figure_names, spell_score

    for name in (*figure_names(record["task"]), "calibration_error"):
        if f"{name}_model" in record:
            yield spell_score(name), f"{record[f'{name}_model']:z.4f}"


def _notes(record: Mapping[str, Any]) -> Iterator[str]:
    from kafeat.maths.scoring import lower_is_better, spell_score

    name = record["scoring"]
    constant = -record["score_constant"] if lower_is_better(name) else record["score_constant"]
    yield f"{spell_score(name)} of the best constant prediction of these rows: {constant:z.4f}"
    if record["test_rows_seen_model"]:
        yield (
            f"note: {record['map']} may have learned from {record['test_rows_seen_model']:,} of these rows: it was "
            "fitted on this file"
        )
