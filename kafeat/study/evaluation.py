"""The result of `kafeat.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafeat.pictures import LEFT, STYLES, TableColumn, html_table, new_axes, text_table
from kafeat.study.recommendation import answer
from kafeat.study.records import Report, Summary, Table
from kafeat.study.report import comparisons
from kafeat.study.summary import is_scored
from kafeat.study.tables import error_table, score_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Evaluation(dict[str, Any]):
    """The result of `kafeat.evaluate`: a dict, with a table for notebooks, a data frame, and a plot.

    `docs/reference/json.md` lists its keys. It is an ordinary dict for `json.dump`. The keys of a single record are
    also at the top level.
    """

    def __init__(self, report: Report) -> None:
        only = report.records[0].flat() if len(report.records) == 1 else {}
        super().__init__({**only, **report.flat()})
        self.report = report

    def to_pandas(self) -> Any:
        """Return the means of each map and setting as a data frame of pandas.

        Each figure has a column with its name, and a second column, with the suffix `_error`, for its standard error.
        The parameters of the setting are also columns.

        Returns
        -------
        pandas.DataFrame
            One row for each map and setting.

        Raises
        ------
        kafeat.errors.UsageError
            There is no pandas.

        Examples
        --------
        >>> import kafeat, numpy as np, pytest
        >>> _ = pytest.importorskip("pandas")
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> steps = [{"kind": "fourier", "frequencies": "orthogonal"}]
        >>> found = kafeat.evaluate(config={"steps": steps}, data=X, sweep=["n_components=64,256"], jobs=1)
        >>> list(found.to_pandas()["n_components"])
        [64, 256]
        """
        return self._means.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._means.__arrow_c_stream__(requested_schema)

    @property
    def _means(self) -> Table:
        """A table with a row for each map and setting, which holds the means of its figures."""
        return Table(map(_row, self.report.summaries))

    def plot(self) -> Axes:
        """Plot scores of maps, raw columns and exact kernel over the number of columns; without a label, plot errors.

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
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> steps = [{"kind": "fourier", "frequencies": "orthogonal"}]
        >>> found = kafeat.evaluate(config={"steps": steps}, data=X, sweep=["n_components=64,256"], jobs=1)
        >>> found.plot().get_xlabel()
        'columns D'
        """
        summaries = self.report.summaries
        (axes,) = new_axes()
        scored = is_scored(summaries[0])
        draw = comparisons.score_over_columns if scored else comparisons.error_over_columns
        draw(axes, STYLES[0], summaries)
        return axes

    def __repr__(self) -> str:
        return "\n".join([*answer(self.report), text_table(self._columns)])

    def _repr_html_(self) -> str:
        return html_table(self._columns, "; ".join(answer(self.report)), style=LEFT)

    @property
    def _columns(self) -> list[TableColumn]:
        entries = self.report.summaries
        return score_table(entries) if is_scored(entries[0]) else error_table(entries)


def _row(entry: Summary) -> dict[str, Any]:
    """Return a summary as a flat dict. The error of a mean `key` becomes `key_error`."""
    row: dict[str, Any] = {}
    for key, value in entry.flat().items():
        if key == "setting":
            row |= {name: own for name, own in value.items() if name not in entry.about}
        elif isinstance(value, Mapping):
            row |= {key: value["mean"], f"{key}_error": value["standard_error"]}
        else:
            row[key] = value
    return row
