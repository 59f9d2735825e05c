"""`kafeat predict`: `kafeat transform` for models that end in a predictor."""

from __future__ import annotations

from copy import copy
from dataclasses import fields
from functools import partial

from kafeat.cli.command import GroupedCommand
from kafeat.cli.transform import run_transform, transform
from kafeat.io.options import FeatureOptions

_NOT_HERE = ("color", *(one.name for one in fields(FeatureOptions)))

HELP = """Write the prediction for every row of IN to OUT. `-` is stdin or stdout, in CSV or Arrow.

MODEL ends in a predictor, such as `- kind: ridge`. OUT has the column `prediction` (`prediction_LABEL` for several
labels) and for classes `probability_CLASS`. NPY holds only probabilities or numbers. `--interval` adds `lower` and
`upper`, or for classes `set_CLASS`. Everything else is as in `kafeat transform`, which writes the same for such a
model.
"""
EPILOG = """\b
Examples:
  kafeat predict --model model.joblib sample_data/digits.parquet \\
      predictions.parquet --keep label
  kafeat predict --model model.joblib - - < sample_data/digits.csv \\
      > predictions.csv
"""


predict = GroupedCommand(
    "predict",
    short_help="Write the predictions for a file or for many files.",
    params=[copy(one) for one in transform.params if one.name not in _NOT_HERE],
    callback=partial(run_transform, needs_predictor=True),
    help=HELP,
    epilog=EPILOG,
)
