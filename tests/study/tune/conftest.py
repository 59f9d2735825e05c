"""Searches as small as what they show: fewer trees than users get."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def few_trees() -> Iterator[None]:
    """A search needs no more trees than these to show its rules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafeat.study.tune.space._TREES", 32)
        patch.setattr("kafeat.study.tune.space._LEARNED", 3.0)
        yield
