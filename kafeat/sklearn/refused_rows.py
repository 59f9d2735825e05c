"""The place of the first entry that scikit-learn's checks refuse, and the step that would take it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from kafeat.errors import DataError, quoted, spell_row
from kafeat.io.readers.memory import reader_of

_REMEDIES = {
    "text": "name it in a one_hot step, leave it out, or take TunedFeatureMap",
    "date": "name it in a date_parts step, leave it out, or take TunedFeatureMap",
    "list": "make a column of each of its numbers",
}


def refuse_other_columns(X: Any) -> None:
    """Refuse a data frame with a column that holds no numbers. The errors of scikit-learn do not name it."""
    for field in reader_of(X).fields if hasattr(X, "__arrow_c_stream__") else ():
        if field.kind != "number":
            kind = "date" if field.kind == "timestamp" else field.kind
            raise DataError(
                f"column {quoted(field.name)}: expected numbers, got {'text' if kind == 'text' else field.spelled}: "
                f"{_REMEDIES.get(kind, 'convert it to numbers, or leave it out')}"
            )


def explained(error: Exception, X: Any) -> str:
    """Return the message of an error of scikit-learn's checks, with the place in X (n, d) and a remedy if known."""
    message = str(error)
    if message.startswith("Input X contains NaN") and not issparse(X):
        row, column = np.argwhere(np.isnan(check_array(X, ensure_all_finite="allow-nan")))[0]
        name = quoted(str(X.columns[column])) if hasattr(X, "columns") else column
        return (
            f"Input X contains NaN: {spell_row(row)}, column {name}: expected a finite number, got nan; impute as the "
            "first step fills in missing values"
        )
    return message
