"""What a decoder stumbles over is the fault of the data, and is said of their place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafeat.errors import DataError, KafeatError, first_line


@contextmanager
def damage(place: str, expected: str, kinds: tuple[type[Exception], ...]) -> Iterator[None]:
    """Exceptions of these kinds in the block mean that what is there is not what was `expected`."""
    try:
        yield
    except (KafeatError, GeneratorExit):
        raise
    except kinds as error:
        raise DataError(f"{place}: expected {expected}, got: {first_line(error)}") from error
