"""`kafeat fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kafeat.cli import log, options

if TYPE_CHECKING:
    from kafeat.jobs.transform.options import InputOptions


@click.command(
    epilog="""\b
Example:
  kafeat fit --config configs/fourier.yaml sample_data/digits.parquet map.joblib --label label
"""
)
@click.option(
    "--config",
    required=True,
    type=options.CONFIG,
    metavar="CONFIG.yaml",
    help="The recipe of the map; - is stdin.",
)
@click.argument("data", type=options.DATA)
@click.argument("model", type=options.NEW_MODEL)
@options.label
@click.option(
    "--split",
    metavar="COL",
    help="A column of train and test: fit on the rows of train alone. It is no feature.",
)
@click.option(
    "--overwrite/--no-clobber", default=True, help="Replace an existing MODEL (default), or refuse to."
)
@options.reading
@options.fsync
@options.log_format
@options.quiet
@options.verbose
def fit(
    config: str,
    data: str,
    model: str,
    label: str | None,
    split: str | None,
    overwrite: bool,
    reading: InputOptions,
    fsync: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Fit the map of CONFIG.yaml on DATA (- is stdin: CSV, or Arrow) and save it as MODEL.

    DATA is read once, and LIBSVM twice. Rows are sampled uniformly from all of it (`fit_rows` in the config), and
    the steps are fitted on them. The same config and the same data give the same bytes.
    """
    from dataclasses import replace

    from kafeat.cli.progress import progress
    from kafeat.cli.summary import summarize
    from kafeat.config import load_config
    from kafeat.jobs.fit.fit import fit_reader

    recipe = load_config(config)
    with reading.open(data) as source, progress("reading rows", quiet) as announce:
        listener = replace(log.listener(quiet), rows=announce(source.rows), phase=announce.phase)
        fm = fit_reader(recipe, source, label, split=split, listener=listener)
    fm.save(model, overwrite, fsync=fsync)
    summarize(
        f"{model}: {fm.n_features_in} inputs -> {fm.n_components} features, fitted on "
        f"{fm.provenance.rows_fitted:,} of {fm.provenance.sources[0].rows:,} rows",
        quiet,
        verbose,
    )
