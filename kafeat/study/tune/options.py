"""Options of `kafeat tune`, each declared once.

The command line imports this file for its help, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass
from typing import TYPE_CHECKING

from kafeat.io.options import (
    CLASS_WEIGHT,
    DROP_UNLABELLED,
    EXCLUDE,
    JOBS,
    LABEL,
    ONLY,
    SPLIT_BY,
    TASK,
    WEIGHT,
    InputOptions,
    option,
)
from kafeat.study.request import score_names

if TYPE_CHECKING:
    from kafeat.jobs.fit import Listener
    from kafeat.jobs.options import ClassWeight, Data, Label, Recipe
    from kafeat.maths import ScoringName, TaskKind
    from kafeat.study.tune.result import Tuning
    from kafeat.study.tune.rungs import Search
    from kafeat.study.tune.space import PredictorKind
    from kafeat.study.tune.trials import Trial


@dataclass(frozen=True)
class TuneOptions:
    """Arguments of `kafeat.tune`."""

    data: Data
    label: Label = option(MISSING, LABEL)
    columns: int | None = option(
        None, "Number of output columns of the map (default: chosen by the score).",
        python="Number of output columns of the map. None tries the best map with several numbers, at most 1,024, and "
        "chooses the most within noise of the best score or, without a predictor, the knee of the curve.",
        metavar="D", least=2, most=1 << 20,
    )  # fmt: skip
    _: KW_ONLY
    max_bytes_per_row: int | None = option(
        None, "Largest number of bytes of the features of a row.", metavar="N", rare=True
    )
    time: float | str | None = option(
        None, "Time after which the search ends: 90s, 10m, 1h (default: all trials).",
        python='Seconds, or a duration such as "90s", "10m" or "1h", after which the search ends; it takes longer only '
        "for the default map and raw columns, which are always tried. None makes all trials.",
        metavar="TIME",
    )  # fmt: skip
    trials: int | None = option(None, "Number of trials after which the search ends.", metavar="N", rare=True)
    split: str | None = option(
        None,
        "Column with the values train and test. Choose on the train rows, and score the test rows once at the end.",
        use="column", metavar="COL",
    )  # fmt: skip
    task: TaskKind = option("auto", TASK)
    scoring: ScoringName = option(
        "auto", "Score to choose by. With auto, the log loss for classes (with balanced classes the balanced accuracy) "
        "and R² for numbers.",
        choices=lambda: ("auto", *score_names()),
    )  # fmt: skip
    base: Recipe | None = option(
        None,
        "Config to start from: keep its seed and columns, and also try its steps.",
        names=("--from",), use="config", metavar="BASE.yaml", rare=True,
    )  # fmt: skip
    predictor: PredictorKind | None = option(
        None,
        "End the config in this predictor, so that `kafeat fit` makes a model for `kafeat predict`.",
        python="Predictor to end the config in, if `base` has none. The search itself is the same.",
        choices=("ridge", "logistic"),
    )
    class_weight: ClassWeight | None = option(None, CLASS_WEIGHT)
    split_by: str | None = option(None, SPLIT_BY)
    exclude: str | Sequence[str] = option((), EXCLUDE)
    only: str | Sequence[str] = option((), ONLY, rare=True)
    rows: int | None = option(
        None,
        "Maximum number of rows in the last stage (rung) of the search (default: all).",
        metavar="N",
        least=20,
        rare=True,
    )
    seeds: int = option(
        2, "Number of splits of a trial.",
        metavar="N", most=1000, rare=True,
    )  # fmt: skip
    jobs: int | None = option(None, JOBS)
    weight: str | None = option(
        None, WEIGHT, rare=True, python="Column of numbers of at least 0, not a feature: how often a row counts "
        "for the predictor. The search counts every row once.",
    )  # fmt: skip
    boosting: bool = option(
        True,
        "Also score gradient boosting with its defaults (default). Needs the extra kafeat[evaluate].",
        python="True scores gradient boosting on the rows of the chosen map.", names=("--boosting/--no-boosting",),
        rare=True,
    )  # fmt: skip
    drop_unlabelled: bool = option(False, DROP_UNLABELLED)
    reading: InputOptions | None = None
    progress: Callable[[Search, Trial], None] | None = None
    listener: Listener | None = None
    report: str | None = option(
        None, "Write an HTML page about the choice to this folder. Needs the extra kafeat[evaluate].",
        group="Output", use="pages", metavar="DIR",
    )  # fmt: skip
    journal: str | None = None
    resume: bool = option(
        False, "Resume an interrupted run from its journal, if there is one.",
        python="True uses the trials in the journal, if data and arguments are the same.", rare=True,
    )  # fmt: skip
    config_name: str = "best.yaml"
    stops: tuple[type[BaseException], ...] = (KeyboardInterrupt,)
    write: Callable[[Tuning], None] | None = None
