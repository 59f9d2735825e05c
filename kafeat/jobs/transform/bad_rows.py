"""The limit of bad rows in an input: a number of rows, or a percentage of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from kafeat.errors import UsageError

_FORM = re.compile(r"(\d+(?:\.\d+)?)%|\d+", re.ASCII)


@dataclass(frozen=True)
class BadRowsLimit:
    """The largest number, or percentage, of rows that may be bad. `text` is as the user wrote it."""

    text: str
    number: Fraction
    is_percentage: bool

    @classmethod
    def parse(cls, given: object) -> BadRowsLimit:
        """Read a whole number, or a text such as `10` or `0.5%`."""
        text = "" if isinstance(given, bool) else str(given).strip()
        form = _FORM.fullmatch(text)
        percentage = form and form[1]
        if form is None or (percentage and Fraction(percentage) > 100):
            raise UsageError(
                f"--max-bad-rows: expected a number of rows such as 10, or a percentage such as 0.5%, got {given!r}"
            )
        return cls(text, Fraction(percentage or text), bool(percentage))

    def allows(self, bad: int, rows: int) -> bool:
        """Return true if so many of the rows may be bad."""
        return bad <= (self.number * rows / 100 if self.is_percentage else self.number)
