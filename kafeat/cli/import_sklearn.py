"""`kafeat import-sklearn`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kafeat.cli import options

if TYPE_CHECKING:
    from kafeat.types import DType


@click.command(
    "import-sklearn",
    epilog="""\b
Example:
  kafeat import-sklearn fitted.skops map.joblib
""",
)
@click.argument("fitted", type=options.FILE, metavar="FITTED.skops")
@click.argument("model", type=options.NEW_MODEL)
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), default="float64", show_default=True,
    help="The precision of the map.",
)  # fmt: skip
@click.option(
    "--overwrite/--no-clobber", default=True, help="Replace an existing MODEL (default), or refuse to."
)
@options.fsync
@options.log_format
@options.quiet
@options.verbose
def import_sklearn(
    fitted: str, model: str, dtype: DType, overwrite: bool, fsync: bool, quiet: bool, verbose: bool
) -> None:
    """Save a fitted map of scikit-learn as MODEL, whose features are the same, column for column.

    FITTED.skops is what `skops.io.dump(estimator, "FITTED.skops")` has written. The estimator is an RBFSampler,
    Nystroem, AdditiveChi2Sampler, SkewedChi2Sampler, PolynomialCountSketch, GaussianRandomProjection or
    SparseRandomProjection, or a Pipeline of StandardScaler, MinMaxScaler, Normalizer, PCA and these. Nothing in the
    file runs. It needs the extra `sklearn`.
    """
    from kafeat.cli.summary import summarize
    from kafeat.errors import UsageError

    try:
        from kafeat.sklearn import import_skops
    except ImportError as error:
        raise UsageError(str(error)) from error

    fm = import_skops(fitted, dtype)
    fm.save(model, overwrite, fsync=fsync)
    summarize(
        f"{model}: {fm.n_features_in} inputs -> {fm.n_components} features, imported from {fm.provenance.imported}",
        quiet,
        verbose,
    )
