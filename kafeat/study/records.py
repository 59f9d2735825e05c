"""The results of an evaluation: records, summaries, the report and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np

from kafeat.errors import UsageError

Entries = dict[str, Any]
"""Figures by their names. A name is absent where it has no meaning."""

FlatRecord = dict[str, Any]
"""A record under the keys of JSON, which docs/reference/json.md lists."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The evaluation of one map with one setting, one seed and one split of the rows.

    Attributes:
        map: Its name, setting, kinds and numbers of columns.
        rows: The rows that are compared.
        kernel: Its errors against the exact kernel, and the seconds of both.
        task: The label, the learner, and the rows to train and to test on.
        scored: Scores and costs of everything that is scored, as `SCORED` names it, and of the rows to choose on.
        parts: The parts of a union, with the score without each.
    """

    map: Entries
    rows: Entries
    kernel: Entries
    task: Entries = field(default_factory=dict)
    scored: Mapping[str, Entries] = field(default_factory=dict)
    parts: list[Entries] = field(default_factory=list)

    def flat(self) -> FlatRecord:
        """Return all figures under the keys of JSON."""
        parts = {"parts": self.parts} if self.parts else {}
        return finite({**self.map, **self.rows, **self.kernel, **self.task, **flat(self.scored), **parts})


def flat(scored: Mapping[str, Entries]) -> FlatRecord:
    """Return figures of everything that is scored under the keys of JSON, as `accuracy_map`."""
    return {f"{name}_{which}": value for which, of in scored.items() for name, value in of.items()}


def finite(record: FlatRecord) -> FlatRecord:
    """Return a record without infinite numbers: a ratio to zero has no value, and is null in JSON."""
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in record.items()
    }


Summary = dict[str, Any]
"""Means over the seeds and splits of a map with one setting; keys that all share stay as in the records.

Every figure of the records that varies is an `Estimate` under its own key.
"""

MACHINES = ("raw", "map", "exact")
"""The inputs that a learner is trained on: raw columns, features, and the exact kernel."""

SCORED = ("constant", *MACHINES, "boosting", "model")
"""All that is scored: a constant, the learner on its inputs, gradient boosting, and the predictor of a model."""

COSTS = ("learn_seconds", "search_seconds", "total_seconds", "predict_seconds", "matrix_bytes")


class Estimate(TypedDict):
    """A mean over seeds and splits, its standard error, and the standard deviation; None if it is undefined."""

    mean: float | None
    standard_error: float | None
    deviation: float | None


class Report(TypedDict):
    """The result of `kafeat.evaluate`."""

    records: list[FlatRecord]
    summary: list[Summary]
    """One entry for each map and setting."""
    recommendation: str | None
    score_of_choice: Estimate | None
    """Test score of the map that each split chooses by its own rows; None with a single split or map."""


class Table(list[dict[str, Any]]):
    """Rows of a table as dicts."""

    def to_pandas(self) -> Any:
        """Return the rows as a data frame of pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(f"to_pandas: expected pandas, got: {error}; pip install pandas") from error
        return pd.DataFrame(self)
