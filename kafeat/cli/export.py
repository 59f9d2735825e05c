"""`kafeat export`."""

from __future__ import annotations

import click

from kafeat.cli import log, options
from kafeat.cli.command import command


@command(
    "Write a map as an ONNX graph.",
    """Examples:
  kafeat export map.joblib features.onnx
  kafeat export map.joblib features.onnx --opset 21 -v
""",
)
@click.argument("model", type=options.MODEL)
@click.argument("out", type=options.OUTPUT, metavar="OUT.onnx")
@options.option(
    "--opset", type=int, default=17, show_default=True, help="Version of the ONNX operators, at least 13."
)
@options.option(
    "--check/--no-check", default=True,
    help="Run the graph in onnxruntime and compare its features with those of MODEL (default), or skip this.",
)  # fmt: skip
@options.option(
    "--overwrite/--no-clobber",
    default=True,
    help="Replace an existing OUT.onnx (default), or fail if it exists.",
)
@options.fsync
@options.messages
def export(model: str, out: str, opset: int, check: bool, overwrite: bool, fsync: bool) -> None:
    """Write the map MODEL as an ONNX graph with input X, float32 (N, d), and output Z, (N, D).

    A model that ends in a predictor also has the output P: float64 (N, k), predicted numbers or probabilities.

    A row that `transform` refuses gives NaN. If the features of onnxruntime differ from those of MODEL by more than
    rounding, nothing is written and the exit code is 6. -v shows the largest difference. Needs the extra kafeat[onnx].
    """
    from kafeat.errors import UsageError

    try:
        from kafeat.onnx import export as job
    except ImportError as error:
        raise UsageError(str(error)) from error

    done = job(model, out, opset=opset, check=check, overwrite=overwrite, fsync=fsync)
    agreement = done.agreement
    compared = (
        "not compared"
        if agreement is None
        else f"{agreement.rows:,} rows differ by at most {agreement.largest:.1e}, "
        f"rounding explains {agreement.allowed:.1e}"
    )
    log.summarize(f"{out}: ONNX opset {done.opset}, {done.bytes:,} bytes; {compared}", bytes=done.bytes)
