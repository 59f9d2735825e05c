"""The options of an evaluation, each declared once for the command and for the keywords of Python.

The command line imports this file for its help, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from kafeat.io.options import (
    DROP_UNLABELLED,
    EXCLUDE,
    JOBS,
    LABEL,
    ONLY,
    OUTPUT_DTYPE,
    SPLIT_BY,
    TASK,
    WEIGHT,
    InputOptions,
    option,
)

if TYPE_CHECKING:
    from kafeat.config import Config
    from kafeat.jobs.fit import LabelNames, Listener
    from kafeat.jobs.options import Data, Path, Recipe
    from kafeat.maths import TaskKind
    from kafeat.model import FeatureMap

    Model: TypeAlias = FeatureMap | Path
    AnyRecipe: TypeAlias = Recipe | "NamedRecipe"

Say = Callable[[str], None]


def score_names() -> tuple[str, ...]:
    """Return the names of all scores of kafeat."""
    from kafeat.maths import SCORES

    return tuple(SCORES)


LEARNERS = ("ridge", "linear_svc", "linear_svc_hinge", "linear_svc_l1", "dual_l1", "logistic", "sgd")


@dataclass(frozen=True)
class NamedRecipe:
    """A recipe and its name in the results."""

    name: str
    config: Config


@dataclass(frozen=True)
class EvaluationRequest:
    """Arguments of `kafeat.evaluate`."""

    model: Model | Sequence[Model] | None = option(
        None, "Map made by `kafeat fit`. Repeatable.", use="model", multiple=True, metavar="MODEL"
    )
    data: Data | None = None
    label: str | Sequence[str] | None = option(None, LABEL)
    rows: int = option(
        2000, "Number of held-out rows to compare kernels on.", metavar="N", least=2, rare=True
    )
    reading: InputOptions | None = None
    _: KW_ONLY
    config: AnyRecipe | Sequence[AnyRecipe] = option(
        (), "Recipe to fit on the rows that are not held out. Repeatable.",
        use="config", multiple=True, metavar="CONFIG.yaml",
    )  # fmt: skip
    sweep: Sequence[str] | Mapping[str, Sequence[Any]] = option(
        (), "Try these values of a parameter in every step that has it, or of steps[i].KEY. Repeatable.",
        multiple=True, metavar="KEY=a,b,c", rare=True,
    )  # fmt: skip
    seeds: int = option(1, "Number of seeds to fit each recipe with.", most=1000, rare=True)
    # At most 100, because a mask of all rows is in memory for each split, and more splits barely change a mean.
    splits: int = option(
        1,
        "Number of random splits into rows to train and to test on. Recipes are fitted again in each.",
        most=100, rare=True,
    )  # fmt: skip
    split: str | None = option(
        None, "Column with the values train and test (default: hold out a random fifth of the rows).",
        use="column", metavar="COL",
    )  # fmt: skip
    split_by: str | None = option(None, SPLIT_BY, rare=True)
    exclude: str | Sequence[str] = option((), EXCLUDE, rare=True)
    only: str | Sequence[str] = option((), ONLY, rare=True)
    task: TaskKind = option("auto", TASK)
    learner: str = option(
        "ridge", "Model used to predict the label. All but ridge need the extra kafeat[evaluate].", choices=LEARNERS
    )  # fmt: skip
    tau: float = option(
        0.1, "Parameter τ of the learner dual_l1.", least=0, most=1, most_open=True, rare=True
    )
    penalty: float | None = option(
        None,
        "Penalty of the learner: λ of ridge, 1/C of the other machines, α of sgd (default: the best of each, by "
        "3-fold cross-validation).",
        metavar="P", least=0, least_open=True, rare=True,
    )  # fmt: skip
    scoring: str | Sequence[str] = option(
        (),
        "Score of the predictions; the first decides. Repeatable (default: accuracy for classes, r2 for numbers).",
        python="Scores of the predictions; the first decides. Without any: accuracy for classes, r2 for numbers.",
        multiple=True, choices=score_names,
    )  # fmt: skip
    interval: float = option(
        0.9, "Probability of the intervals whose coverage is measured and that --scoring pinball judges.",
        metavar="P", least=0, most=1, least_open=True, most_open=True, rare=True,
    )  # fmt: skip
    exact_rows: int = option(
        2000, "Maximum number of rows to train the exact kernel machine on.", metavar="N", least=2, rare=True
    )
    jobs: int | None = option(None, JOBS)
    output_dtype: str | None = option(None, OUTPUT_DTYPE, rare=True)
    weight: str | None = option(None, WEIGHT, rare=True)
    drop_unlabelled: bool = option(False, DROP_UNLABELLED)
    report: str | None = option(
        None, "Write an HTML page with figures to this folder. Needs the extra kafeat[evaluate].",
        group="Output", use="pages", metavar="DIR",
    )  # fmt: skip
    say: Say | None = None
    listener: Listener | None = None

    @cached_property
    def labels(self) -> LabelNames:
        """The label columns."""
        from kafeat.jobs.fit import label_names

        return label_names(self.label)

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of the requested scores. The first one decides."""
        return (self.scoring,) if isinstance(self.scoring, str) else tuple(self.scoring)

    @property
    def reserved(self) -> list[str]:
        """The columns that are not features: the labels, the split and the weights."""
        return [*self.labels, *(name for name in (self.split, self.weight) if name is not None)]
