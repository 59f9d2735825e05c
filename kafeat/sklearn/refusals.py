"""kafeat's errors as scikit-learn's users expect them: ValueErrors as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafeat.errors import DataError, UsageError


class ValuesRefusedError(DataError, ValueError):
    """Rows that a map cannot be fitted on or cannot take."""


class ParametersRefusedError(UsageError, ValueError):
    """Parameters that make no map."""


@contextmanager
def as_value_errors(rows: int | None = None) -> Iterator[None]:
    """What kafeat refuses inside of the block is a ValueError too. It tells if there was one row only."""
    try:
        yield
    except UsageError as error:
        raise ParametersRefusedError(str(error)) from error
    except DataError as error:
        alone = " (n_samples = 1)" if rows == 1 else ""
        raise ValuesRefusedError(f"{error}{alone}") from error
