"""Tables of results: rows as dicts that convert to pandas, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from kafeat.errors import UsageError


class Table(list[dict[str, Any]]):
    """Rows of a table as dicts."""

    def to_pandas(self) -> Any:
        """Return the rows as a data frame of pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(f"to_pandas: expected pandas, got: {error}; pip install pandas") from error
        return pd.DataFrame(self)


def html_table(caption: str, rows: Iterable[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """Return an HTML table with all text escaped. The first cell of each row is its head."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        f'<tr><th style="text-align:left">{escape(first)}</th>'
        + "".join(f'<td style="text-align:left">{escape(text)}</td>' for text in others)
        + "</tr>"
        for first, *others in rows
    )
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"
