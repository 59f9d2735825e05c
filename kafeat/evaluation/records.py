"""The results of an evaluation: records, summaries, the report and tables. They are plain dicts, and become JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict, cast

from kafeat.errors import UsageError


class Named(TypedDict):
    """A map with one setting."""

    map: str
    setting: dict[str, Any]
    """Swept parameters and their values."""


class KernelError(TypedDict):
    """Errors of K̂ = ZZᵀ against the exact kernel matrix K. A ratio is None if the kernel is 0 on all rows."""

    relative_frobenius: float | None
    """‖K − K̂‖_F/‖K‖_F."""
    relative_spectral: float | None
    """‖K − K̂‖₂/‖K‖₂."""
    max_abs_error: float
    """Largest |K̂ − K| of an entry."""
    mean_abs_error: float
    """Mean |K̂ − K| of the entries."""
    bias: float
    """Mean K̂ − K of the entries."""


class Distortion(TypedDict, total=False):
    """Relative errors of squared distances; only for projections."""

    distortion_max: float
    distortion_mean: float
    distortion_bound: float
    """ε of the lemma of Johnson and Lindenstrauss for these rows and columns; 1 if it promises nothing."""


class KernelPca(TypedDict, total=False):
    """Comparison with exact kernel PCA; only for a map followed by pca. The errors are against its centred kernel."""

    kernel_pca_error_least: float
    """Relative Frobenius error of the best matrix of the same rank."""
    kernel_pca_spectrum: float
    """Σ|λ̂_i − λ_i|/Σλ_i over the leading eigenvalues."""
    kernel_pca_subspace: float
    """Mean cos² of the angles between the spaces of the leading eigenvectors."""


class ClosedForm(TypedDict, total=False):
    """Error of a homogeneous map at the ratios y/x of the data, per (xy)^(γ/2); only with such a map."""

    closed_form_error_max: float
    closed_form_error_mean: float


class Costs(TypedDict, total=False):
    """Costs of a learner; each key ends in `_raw`, `_map` and `_exact`.

    - `learn_seconds`: to learn once, with the penalty that was chosen; `search_seconds`: to choose it.
    - `total_seconds`: to fit the map, make the features or the kernel matrix of the training rows, and learn once.
    - `predict_seconds`: to predict the test rows, from the columns that the map reads.
    - `peak_bytes`: most memory at once until the model is trained; None if that is too long to trace.
    - `matrix_bytes`: size of the columns, features or kernel matrix of all training rows.
    """

    learn_seconds_raw: float
    search_seconds_raw: float
    total_seconds_raw: float
    predict_seconds_raw: float
    peak_bytes_raw: int | None
    matrix_bytes_raw: int
    learn_seconds_map: float
    search_seconds_map: float
    total_seconds_map: float
    predict_seconds_map: float
    peak_bytes_map: int | None
    matrix_bytes_map: int
    learn_seconds_exact: float
    search_seconds_exact: float
    total_seconds_exact: float
    predict_seconds_exact: float
    peak_bytes_exact: int
    matrix_bytes_exact: int
    transform_seconds_map: float
    """Seconds to transform the training rows."""
    kernel_seconds_exact: float
    """Seconds to compute the kernel matrix of the training rows of the exact machine."""
    total_seconds_map_exact_rows: float


class Scores(TypedDict, total=False):
    """Scores of a learner on raw columns, on features, and on the exact kernel; only with a label.

    `score` is the one that decides, and higher is better: an error is negative. Every score and error of the task is
    there by its name too (`figure_names` of `kafeat.maths.scoring`), with `_raw`, `_map` and `_exact`.
    """

    label: str | list[str] | None
    split: str | None
    task: Literal["classification", "regression"]
    classes: int | None
    """Number of classes; None for a number."""
    learner: str
    scoring: str
    """Name of the score that decides."""
    rows_train: int
    rows_test: int
    score_raw: float | None
    training_score_raw: float | None
    """The score on the rows that it was trained on."""
    nonzero_raw: int
    """Number of coefficients that are not 0."""
    penalty_raw: float
    """Penalty that validation chose."""
    converged_raw: bool
    score_map: float | None
    training_score_map: float | None
    nonzero_map: int
    penalty_map: float
    converged_map: bool
    score_exact: float | None
    training_score_exact: float | None
    nonzero_exact: int
    penalty_exact: float
    converged_exact: bool
    rows_exact: int
    """Number of training rows of the exact kernel."""
    rows_test_exact: int
    score_constant: float | None
    score_map_exact_rows: float | None
    """Score on the features, trained on the rows of the exact kernel."""
    equivalent_map: str | None
    """The model of scikit-learn that learns the same from the features; None if there is none."""
    score_uncertainty_map: float
    """Standard error of the score by resampled rows; only for scores without a formula of it."""
    rows_validation: int
    """Number of training rows that the recommendation is chosen on; only with several maps."""
    score_raw_validation: float | None
    score_map_validation: float | None
    """Score on these rows, trained on the other training rows."""
    score_uncertainty_map_validation: float


class ModelScores(TypedDict, total=False):
    """Scores of the predictions of a map that ends in a predictor: each by its name, with `_model`."""

    score_model: float | None
    equivalent_model: str | None
    """The model of scikit-learn on the features with these weights; None if there is none."""
    calibration_error_model: float
    """Expected calibration error in 15 bins; only of classes."""
    test_rows_seen_model: int | None
    """Number of test rows that the predictor may have learned from; None if it was fitted on another file."""


class EvaluationRecord(Named, KernelError, Distortion, KernelPca, ClosedForm, Scores, Costs, ModelScores):
    """The evaluation of one map with one setting, one seed and one split of the rows."""

    seed: int
    split_seed: int | None
    """Seed of the choice of the held-out rows; None if a column names them."""
    kinds: list[str]
    rows: int
    """Number of rows of the kernel matrices."""
    data_rows: int
    """Number of rows of the data."""
    missing_share: float
    """Share of missing entries in the rows of the kernel matrices."""
    rows_seen_in_fit: int | None
    """Number of these rows that the map was fitted on; None if it was fitted on another file."""
    n_components: int
    n_features_in: int
    dtype: str
    bytes_per_row: int
    fit_seconds: float | None
    """None for a map that was fitted before."""
    transform_seconds: float
    exact_seconds: float
    reference: str | None
    kernel_mean: float
    """Mean entry of the exact kernel matrix."""


class Estimate(TypedDict):
    """A mean over seeds and splits, its standard error, and the standard deviation; None if it is undefined."""

    mean: float | None
    standard_error: float | None
    deviation: float | None


class Summary(TypedDict, total=False):
    """Means over the seeds and splits of a map with one setting; keys that all share stay as in the records.

    Every figure of the records that varies is an `Estimate` under its own key; `estimate_of` reads it.
    """

    map: Required[str]
    setting: Required[dict[str, Any]]
    n_components: Required[int]
    bytes_per_row: Required[int]
    rows: Required[int]
    n_features_in: Required[int]
    task: Literal["classification", "regression"]
    scoring: str
    rows_train: int
    rows_test: int
    rows_exact: int
    rows_validation: int
    seeds: Required[int]
    splits: Required[int]
    relative_frobenius: Required[Estimate]
    kernel_mean: Required[Estimate]
    fit_seconds: Required[Estimate]
    transform_seconds: Required[Estimate]
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
