"""The results of an evaluation: records, summaries and the report, which are nested until they become JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np

from kafeat.errors import UsageError
from kafeat.io.readers.memory import table_of_rows

Entries = dict[str, Any]
"""Figures by their names. Figures that do not apply are absent."""

FlatRecord = dict[str, Any]
"""Figures under the keys of JSON, which docs/reference/json.md lists."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Scores and costs, such as `tested["raw"]["score"]` of the learner on the raw columns.

    Attributes:
        tested: On test rows: a `constant`, the learner on `raw` columns, on features (`map`) and with the `exact`
            kernel, `boosting`, and the predictor of the map (`model`).
        validation: On validation rows, by which maps are chosen: the learner on `raw` columns and on features (`map`).
        exact_rows: On test rows: the learner on features (`map`), trained only on the rows of the exact kernel machine.
    """

    tested: Mapping[str, Entries] = field(default_factory=dict)
    validation: Mapping[str, Entries] = field(default_factory=dict)
    exact_rows: Mapping[str, Entries] = field(default_factory=dict)

    def flat(self) -> FlatRecord:
        """Return all figures under the keys of JSON, such as `accuracy_map` and `score_map_validation`."""
        return {
            f"{name}_{which}{ending}": value
            for ending, of in (
                ("", self.tested),
                ("_validation", self.validation),
                ("_exact_rows", self.exact_rows),
            )
            for which, entries in of.items()
            for name, value in entries.items()
        }


NO_SCORES = Scored()


@dataclass(frozen=True, kw_only=True)
class Record:
    """The evaluation of one map with one setting, one seed and one split of the rows.

    Attributes:
        about: The map, its setting, kinds and numbers of columns; the rows that are compared; and with a label the
            learner and the rows to train and to test on.
        kernel: Errors against the exact kernel, and the seconds to fit, and to compute features and kernel.
        scored: Scores and costs of everything that is scored.
        parts: The parts of a union, each with the score of the features without this part.
    """

    about: Entries
    kernel: Entries = field(default_factory=dict)
    scored: Scored = NO_SCORES
    parts: list[Entries] = field(default_factory=list)

    def flat(self) -> FlatRecord:
        """Return all figures under the keys of JSON. Figures that are not finite, such as a ratio to 0, become None."""
        flat = {**self.about, **self.kernel, **self.scored.flat()}
        parts = {"parts": self.parts} if self.parts else {}
        return {
            key: None if isinstance(value, float) and not np.isfinite(value) else value
            for key, value in {**flat, **parts}.items()
        }


class Estimate(TypedDict):
    """A mean over seeds and splits, its standard error, and the standard deviation, each None if undefined."""

    mean: float | None
    standard_error: float | None
    deviation: float | None


@dataclass(frozen=True, kw_only=True)
class Summary(Record):
    """Means over the seeds and splits of a map with one setting. Every figure is an `Estimate`.

    `about` holds only the entries that all records share.
    """

    seeds: int
    splits: int

    def flat(self) -> FlatRecord:
        return {**super().flat(), "seeds": self.seeds, "splits": self.splits}

    def mean(self, which: str, name: str = "score") -> float | None:
        """Return the mean of a figure on the test rows; None if the figure is undefined or absent."""
        known = self.scored.tested.get(which, {}).get(name)
        return None if known is None else known["mean"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of `kafeat.evaluate`.

    Attributes:
        summaries: One for each map and setting.
        score_of_choice: The mean test score if each split chooses its own map; None with one split or map.
    """

    records: list[Record]
    summaries: list[Summary]
    recommendation: str | None
    score_of_choice: Estimate | None

    def flat(self) -> dict[str, Any]:
        """Return the report under the keys of JSON."""
        return {
            "records": [one.flat() for one in self.records],
            "summary": [one.flat() for one in self.summaries],
            "recommendation": self.recommendation,
            "score_of_choice": self.score_of_choice,
        }


class Table(list[dict[str, Any]]):
    """A list of rows as dicts. Arrow and pandas can read such a list."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return table_of_rows(self).__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the rows as a data frame of pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(
                f"to_pandas: expected pandas, got: {error}; pip install 'kafeat[evaluate]'"
            ) from error
        return pd.DataFrame(self)
