"""`kafeat fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kafeat.cli import log, options
from kafeat.cli.command import command
from kafeat.cli.overlaps import located
from kafeat.jobs.options import FitOptions

if TYPE_CHECKING:
    from kafeat.io.options import InputOptions


@command(
    "Fit the map of a config on a table, and save it.",
    """Example:
  kafeat fit --config configs/fourier.yaml sample_data/digits.parquet \\
      map.joblib --label label
""",
)
@options.option(
    "--config",
    required=True,
    type=options.CONFIG,
    metavar="CONFIG.yaml",
    help="Recipe of the map. `-` reads stdin.",
)
@click.argument("data", type=options.DATA)
@click.argument("model", type=options.NEW_MODEL)
@options.made_from(FitOptions)
@options.overwrite_model
@options.reading
@options.fsync
@options.messages
def fit(
    config: str,
    data: str,
    model: str,
    overwrite: bool,
    reading: InputOptions,
    fsync: bool,
    **values: Any,
) -> None:
    """Fit the map of CONFIG.yaml on DATA and save it as MODEL. If DATA is `-`, read CSV or Arrow from stdin.

    The steps are fitted on a uniform sample of its rows; `fit_rows` in the config sets the size of the sample. If the
    last step is a predictor, such as `- kind: ridge`, it is fitted on all rows in one more pass, and DATA must be a
    file. The same config and data always give the same bytes.
    """
    from dataclasses import replace

    from kafeat.cli.progress import progress
    from kafeat.jobs.fit.fit import fit_reader, recipe_of

    recipe = recipe_of(
        config, *(values.pop(name) for name in ("class_weight", "split_by", "exclude", "only"))
    )
    with reading.open(located(data)) as source, progress("reading rows") as announce:
        listener = replace(log.listener(), rows=announce(source.rows), phase=announce.phase)
        fm = fit_reader(recipe, source, listener=listener, **values)
    fm.save(model, overwrite, fsync=fsync)
    learned = "" if fm.predictor is None else f"; predictor fitted on {fm.provenance.rows_learned:,} rows"
    log.summarize(
        f"{model}: {len(fm.columns.inputs)} inputs -> {fm.n_components} features, fitted on "
        f"{fm.provenance.rows_fitted:,} of {fm.provenance.sources[0].rows:,} rows{learned}",
        rows=fm.provenance.sources[0].rows, bytes=located(model).size(),
    )  # fmt: skip
