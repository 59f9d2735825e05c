"""The results of an evaluation: records, summaries, the report and tables. They are plain dicts, and become JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast

from kafeat.errors import UsageError
from kafeat.maths.task import Kind


class Named(TypedDict):
    """A map with one setting."""

    map: str
    setting: dict[str, Any]
    """Swept parameters and their values."""


class EvaluationRecord(Named, total=False):
    """The evaluation of one map with one setting, one seed and one split of the rows. `docs/evaluate.md` has every key.

    A key is absent where it has no meaning. With a label, a record has the keys of `OF_MACHINES` and the scores of the
    task by their names (`figure_names` of `kafeat.maths.scoring`) for each of `MACHINES`, whose names they end in, and
    the scores of a predictor with the ending `_model`.
    """

    seed: int
    split_seed: int | None
    kinds: list[str]
    n_components: int
    n_features_in: int
    dtype: str
    bytes_per_row: int
    fit_seconds: float | None
    transform_seconds: float
    exact_seconds: float
    reference: str | None
    rows: int
    data_rows: int
    missing_share: float
    rows_seen_in_fit: int | None
    kernel_mean: float
    relative_frobenius: float | None
    relative_spectral: float | None
    distortion_bound: float
    label: str | list[str] | None
    split: str | None
    task: Kind
    classes: int | None
    learner: str
    scoring: str
    rows_train: int
    rows_test: int
    rows_exact: int
    rows_test_exact: int
    rows_validation: int
    score_constant: float | None
    equivalent_map: str | None
    equivalent_model: str | None
    test_rows_seen_model: int | None


MACHINES = ("raw", "map", "exact")
"""The inputs that a learner is trained on: raw columns, features, and the exact kernel."""

COSTS = ("learn_seconds", "search_seconds", "total_seconds", "predict_seconds", "peak_bytes", "matrix_bytes")
OF_MACHINES = ("score", "training_score", "nonzero", "penalty", "converged", *COSTS)
"""Keys of a learner. `score` is the one that decides, and higher is better: an error is negative."""


class Estimate(TypedDict):
    """A mean over seeds and splits, its standard error, and the standard deviation; None if it is undefined."""

    mean: float | None
    standard_error: float | None
    deviation: float | None


class Summary(Named, total=False):
    """Means over the seeds and splits of a map with one setting; keys that all share stay as in the records.

    Every figure of the records that varies is an `Estimate` under its own key; `estimate_of` reads it.
    """

    n_components: int
    bytes_per_row: int
    rows: int
    n_features_in: int
    task: Kind
    scoring: str
    rows_train: int
    rows_test: int
    rows_exact: int
    rows_validation: int
    seeds: int
    splits: int
    relative_frobenius: Estimate
    kernel_mean: Estimate
    fit_seconds: Estimate
    transform_seconds: Estimate
    score_raw: Estimate
    score_map: Estimate
    score_exact: Estimate
    score_constant: Estimate
    score_map_exact_rows: Estimate


Edge = TypedDict(
    "Edge",
    {
        "parameter": str,
        "value": int | float,
        "end": Literal["largest", "smallest"],
        "from": int | float,
        "gain": float | None,
    },
)
"""A parameter of the recommended setting at the end of the values tried; `gain` is that of the last step, `from`."""


class Rate(Named):
    """Slopes of log error over log D of a map in a sweep over its number of columns D."""

    columns: list[int]
    """The numbers of columns."""
    slope_frobenius: Estimate
    """Of the relative Frobenius error, over seeds and splits."""
    slope_spectral: Estimate
    """Of the relative spectral error."""
    theorem_frobenius: list[float]
    """Slopes that theorems give; a second one holds for a kernel matrix with a large eigengap."""
    theorem_spectral: list[float]


class Budget(TypedDict):
    """The best map within a budget of columns or of seconds."""

    budget: float
    map: str
    setting: dict[str, Any]


class Report(TypedDict):
    """The result of `kafeat.evaluate`."""

    records: list[EvaluationRecord]
    summary: list[Summary]
    """One entry for each map and setting."""
    budgets: dict[str, list[Budget]]
    """The best map for each budget; keys are `columns` and `seconds`."""
    recommendation: str | None
    score_of_choice: Estimate | None
    """Test score of the map that each split chooses by its own rows; None with a single split or map."""
    rates: list[Rate]
    """Slope of the error over the number of columns, for at least three of them."""
    edges: list[Edge]
    """Parameters of the recommended setting that are the largest or smallest value tried."""


def estimate_of(summary: Summary, key: str) -> Estimate:
    """Return the entry of a key that is not known before the run; `Summary` lists the keys."""
    estimate: Estimate = cast(Mapping[str, Any], summary)[key]
    return estimate


def known_mean(estimate: Estimate) -> float:
    """Return the mean of an entry that is never undefined, such as seconds."""
    mean = estimate["mean"]
    if mean is None:
        raise TypeError("expected a mean, got none")
    return mean


class Table(list[dict[str, Any]]):
    """Rows of a table as dicts."""

    def to_pandas(self) -> Any:
        """Return the rows as a data frame of pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(f"to_pandas: expected pandas, got: {error}; pip install pandas") from error
        return pd.DataFrame(self)
