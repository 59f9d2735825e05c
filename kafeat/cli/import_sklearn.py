"""`kafeat import-sklearn`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kafeat.cli import log, options
from kafeat.cli.command import GroupedCommand

if TYPE_CHECKING:
    from kafeat.types import DType


@click.command(
    "import-sklearn",
    cls=GroupedCommand,
    short_help="Convert a fitted map of scikit-learn.",
    epilog="""\b
Example:
  kafeat import-sklearn fitted.skops map.joblib
""",
)
@click.argument("fitted", type=options.FILE, metavar="FITTED.skops")
@click.argument("model", type=options.NEW_MODEL)
@options.option(
    "--dtype", type=click.Choice(["float32", "float64"]), default="float64", show_default=True,
    help="Precision of the map.",
)  # fmt: skip
@options.overwrite_model
@options.fsync
@options.messages
def import_sklearn(fitted: str, model: str, dtype: DType, overwrite: bool, fsync: bool) -> None:
    """Convert a fitted scikit-learn estimator to the kafeat map MODEL, with the same output columns.

    Write FITTED.skops with `skops.io.dump(estimator, "FITTED.skops")`. Supported estimators are RBFSampler, Nystroem,
    AdditiveChi2Sampler, SkewedChi2Sampler, PolynomialCountSketch, GaussianRandomProjection and SparseRandomProjection,
    and Pipelines of these with StandardScaler, MinMaxScaler, Normalizer and PCA. No code in the file is executed.
    Needs the extra kafeat[sklearn].
    """
    from kafeat.errors import UsageError

    try:
        from kafeat.sklearn import import_skops
    except ImportError as error:
        raise UsageError(str(error)) from error

    fm = import_skops(fitted, dtype)
    fm.save(model, overwrite, fsync=fsync)
    log.summarize(
        f"{model}: {fm.n_features_in} inputs -> {fm.n_components} features, imported from {fm.provenance.imported}",
    )
