"""The place of the first entry that scikit-learn's checks refuse, and the step that would take it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from kafeat.errors import quoted, spell_row


def explained(error: ValueError, X: Any) -> str:
    """Return the message of an error of scikit-learn's checks, with the place in X (n, d) and a remedy if known."""
    message = str(error)
    if message.startswith("could not convert string"):
        names = _text_columns(X)
        if names:
            return (
                f"column {quoted(names[0])}: expected numbers, got text: name it in a one_hot step, leave it out, or "
                f"take TunedFeatureMap ({message})"
            )
    if message.startswith("Input X contains NaN") and not issparse(X):
        row, column = np.argwhere(np.isnan(check_array(X, ensure_all_finite="allow-nan")))[0]
        name = quoted(str(X.columns[column])) if hasattr(X, "columns") else column
        return (
            f"Input X contains NaN: {spell_row(row)}, column {name}: expected a finite number, got nan; impute as the "
            "first step fills in missing values"
        )
    return message


def _text_columns(X: Any) -> list[str]:
    """Return the names of the columns of a data frame that hold no numbers."""
    if not hasattr(X, "columns"):
        return []
    return [str(name) for name in X.columns if np.asarray(X[name]).dtype.kind not in "iufb"]
