"""The result of a search."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kafeat.config import Config
from kafeat.errors import UsageError
from kafeat.io.data_set import is_data_set
from kafeat.io.formats import suffix_of
from kafeat.io.options import InputOptions, words_of
from kafeat.io.storage.location import LocalPath, parse_location
from kafeat.jobs.fit import LabelNames
from kafeat.maths import SCORES, Score
from kafeat.model import FeatureMap
from kafeat.pictures import LEFT, STYLES, TableColumn, html_table, new_axes
from kafeat.study.importance import named
from kafeat.study.records import Table
from kafeat.study.report.comparisons import score_of_choice
from kafeat.study.tune.choice import Choice, Compared, compared, with_twice_the_rows
from kafeat.study.tune.space import RAW
from kafeat.study.tune.trials import TestScore, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 6
TERMS = {
    "γ": "how narrow the kernel is, as a multiple of the γ that the median distance between rows gives",
    "metric": "weights of the columns, learned from the label",
    "matern": "a kernel between laplacian, which is rough, and rbf, which is smooth",
    "supervised": "frequencies that are trained for the label",
    "trees": "outputs of boosted trees as more columns; those of training rows come from trees fitted on other rows",
}
"""The meaning of words in the names of maps."""


def no_data() -> FeatureMap:
    """Take the place of `Tuning.fit` in a result without its data, and raise an error."""
    raise UsageError(
        "fit: expected the data of the search, got a result without them: call kafeat.fit with its config and data. A "
        "TunedFeatureMap has its map as feature_map_"
    )


@dataclass(kw_only=True, eq=False)
class Tuning(Choice):
    """The result of `kafeat.tune`. A pickle of it leaves out the data, which only `fit` needs.

    Attributes:
        config: The config that was chosen.
        yaml: The config as YAML, with comments that explain the choice.
        constant_score: The score of a constant prediction: the mean, or the shares of the classes.
        scoring: The score by which the map was chosen.
        trials: The number of trials of the search.
        notes: Sentences about the table and the choice.
        fit_seconds: Estimated seconds to fit the config on all rows.
    """

    config: Config
    yaml: str
    constant_score: float
    scoring: Score
    trials: int
    notes: tuple[str, ...]
    fit_seconds: float
    _words: tuple[str, list[str], list[str], InputOptions] | None
    _labels: LabelNames
    _fit: Callable[[], FeatureMap] = field(repr=False)

    @property
    def columns(self) -> int:
        """The number of output columns of the chosen map."""
        return self.chosen.outcome.columns

    @property
    def score(self) -> float:
        """The score on rows that the map was not fitted on, a mean over the splits; an error is negative."""
        return self.chosen.outcome.score

    @property
    def error(self) -> float:
        """The standard error of the score."""
        return self.chosen.error

    @property
    def figures(self) -> dict[str, float]:
        """Other scores on the same rows, by their names; empty if numbers are predicted."""
        return self.chosen.outcome.figures

    @property
    def boosting(self) -> Compared | None:
        """Gradient boosting on the same rows, compared with the chosen map; None if it was not scored."""
        return None if self.boosted is None else compared(self.chosen, self.boosted)

    @cached_property
    def table(self) -> Table:
        """A row for each map, at the searched number of columns: the chosen map, then the others by their scores."""
        return Table(
            {
                "map": str(trial.candidate),
                **_scored(trial),
                **trial.outcome.figures,
                "columns": trial.outcome.columns,
                "rows": trial.size.rows,
                "microseconds_per_row": round(1e6 * trial.outcome.row_seconds, 2),
                "model_bytes": trial.outcome.model_bytes,
                "seconds": round(trial.outcome.seconds, 3),
                "trial": trial.number,
            }
            for trial in self.leaders
        )

    @cached_property
    def curve(self) -> Table:
        """The scores of the chosen map by its number of columns; empty if only one number was tried."""
        item = np.dtype(self.config.dtype).itemsize
        return Table(
            {
                "columns": point.outcome.columns,
                **_scored(point),
                "bytes_per_row": item * point.outcome.columns,
                "chosen": point is self.chosen,
            }
            for point in self.points
        )

    @cached_property
    def learning_curve(self) -> Table:
        """The scores of the chosen map by the number of training rows; empty if there are too few rows for a curve."""
        return Table({"rows": round(one.size.share * one.size.rows), **_scored(one)} for one in self.learning)

    @property
    def twice_rows(self) -> tuple[float, float] | None:
        """The lowest and the highest score to expect with twice the rows; None without a learning curve."""
        return with_twice_the_rows(self.learning, self.scoring.best)

    def fit(self) -> FeatureMap:
        """Fit the config on the data of the search."""
        return self._fit()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_fit": no_data}

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas."""
        return self.table.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def plot(self) -> Axes:
        """Plot the score of the chosen map over the number of columns, which is a single point if the number was given.

        Returns
        -------
        matplotlib.axes.Axes
            The plot.

        Raises
        ------
        kafeat.errors.UsageError
            There is no matplotlib.

        Examples
        --------
        >>> import kafeat, numpy as np, pytest
        >>> _ = pytest.importorskip("matplotlib").use("agg")
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> tuning = kafeat.tune(X, np.sin(X[:, 0]), columns=32, trials=4, jobs=1)
        >>> tuning.plot().get_xlabel()
        'columns D'
        """
        (axes,) = new_axes()
        only = {"columns": self.columns, "score": self.score, "standard_error": self.error, "chosen": True}
        score_of_choice(axes, STYLES[0], self.curve or [only], self.scoring)
        return axes

    @property
    def score_name(self) -> str:
        """The name of the score."""
        return "R²" if self.scoring.name == "r2" else self.scoring.name

    def _stated(self, score: float) -> str:
        return f"{self.scoring.stated(score):z.4f}"

    def _named(self, score: float | None) -> str:
        return f"{self.scoring} {'undefined' if score is None else self._stated(score)}"

    @property
    def labels(self) -> str:
        """The names of the labels, separated by commas; empty if the labels were an array."""
        return ", ".join(self._labels)

    def answer(self) -> list[str]:
        """Return what was chosen and how well it does, in a few lines."""
        chosen = self.table[0]
        raw = [row for row in self.table if (row["map"], row["rows"]) == (str(RAW), chosen["rows"])]
        beside = [f"raw columns have {self._stated(raw[0]['score'])}"] if raw else []
        beside += [f"a constant prediction has {self._stated(self.constant_score)}"]
        said = [
            f"{chosen['map']}, {self.columns:,} columns",
            f"{self._named(self.score)} ± {self.error:.4f} on rows held out to choose by; {', '.join(beside)}",
        ]
        if self.boosting is not None:
            said.append(f"gradient boosting {self._stated(self.boosting.score)} is {self.boosting.verdict}")
        others = {name: value for name, value in self.figures.items() if name != self.score_name}
        if others:
            said.append(", ".join(f"{SCORES[name]} {value:.4f}" for name, value in others.items()))
        test = self.test_score
        if test is not None:
            error = "" if test.error is None else f" ± {test.error:.4f}"
            said.append(f"{self._named(test.value)}{error} on {test.rows:,} test rows, not seen before")
        return said

    @property
    def terms(self) -> list[str]:
        """Explanations of the words in the name of the chosen map."""
        return [f"{word}: {meaning}" for word, meaning in TERMS.items() if word in self.table[0]["map"]]

    def to_plain(self) -> dict[str, Any]:
        """Return everything except the YAML as builtins, for JSON."""
        own = (
            "score_name",
            "score",
            "constant_score",
            "figures",
            "columns",
            "trials",
            "interrupted",
            "twice_rows",
        )
        tables = ("table", "curve", "learning_curve", "parts", "notes")
        test = self.test_score or TestScore(None, None, 0)
        return {
            **{name: getattr(self, name) for name in own},
            **{name: list(getattr(self, name)) for name in tables},
            "standard_error": self.error,
            "boosting": None if self.boosting is None else self.boosting._asdict(),
            "test_score": test.value,
            "test_standard_error": test.error,
            "config": self.config.to_plain(),
            **named(self.losses),
        }

    @property
    def importance(self) -> dict[str, float] | None:
        """The decrease of the score when a column is shuffled, largest first, or None if it was not requested."""
        return named(self.losses)["importance"]

    def commands(self, config: str = "best.yaml", model: str | None = None) -> list[str]:
        """Return the commands to run next with a file `config`: fit, predict, evaluate; empty if data are in memory.

        The command for new rows needs no label and no dialect, because the model records how text is read.
        """
        if self._words is None:
            return []
        data, divided, task, options = self._words
        predicts = self.config.predictor is not None
        usual, use = ("model.joblib", "predict") if predicts else ("map.joblib", "transform")
        model = model or usual
        ending = "" if is_data_set(parse_location(data)) else ".csv" if predicts else ".parquet"
        output = _beside(data, f"{'predictions' if predicts else 'features'}{ending}")
        label = [word for name in self._labels for word in ("--label", name)]
        new = _beside(data, f"NEW{suffix_of(LocalPath(data))}")
        reading = words_of(options, "input_format", "delimiter", "no_header", *options.dialect_options)
        # Without a split, the model has seen all rows, so `evaluate` must fit the config again.
        judged = ["--model", model] if "--split" in divided else ["--config", config]
        return [
            shlex.join(["kafeat", *words])
            for words in (
                ["fit", "--config", config, data, model, *label, *divided, *reading],
                [use, "--model", model, new, output, *words_of(options, "input_format", "no_header")],
                ["evaluate", *judged, data, *label, *task, *divided, *reading],
            )
        ]

    def __repr__(self) -> str:
        steps = " -> ".join(step.kind for step in self.config.steps)
        return f"Tuning({steps}: {self._named(self.score)} ± {self.error:.4f}, {self.trials} trials)"

    def _repr_html_(self) -> str:
        shown, score = self.table[:_SHOWN], self.scoring
        scores = [f"{score.stated(row['score']):z.4f} ± {row['standard_error']:.4f}" for row in shown]
        columns = [TableColumn("map", [row["map"] for row in shown]), TableColumn(str(score), scores)]
        return html_table(columns, repr(self), style=LEFT)


def _beside(data: str, name: str) -> str:
    """Return the name of an output file, with a prefix if the data have the same name."""
    return f"OTHER_{name}" if PurePath(data).name.casefold() == name.casefold() else name


def _scored(trial: Trial) -> dict[str, float]:
    return {"score": trial.outcome.score, "standard_error": trial.error}
