"""Searches as small as what they show: fewer trees and splits than users get."""

from collections.abc import Iterator

import pytest

from tests.sizes import SCORED, TREES


@pytest.fixture(scope="module", autouse=True)
def small_searches() -> Iterator[None]:
    """A search needs no more trees and no more splits of its last trials than these to show its rules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafeat.study.tune.space._TREES", TREES)
        patch.setattr("kafeat.study.tune.space._LEARNED", 0.1 * TREES)
        patch.setattr("kafeat.study.tune.trials._SCORED", SCORED)
        yield


@pytest.fixture
def whole_last_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The splits of the last trials are those that users get."""
    monkeypatch.setattr("kafeat.study.tune.trials._SCORED", 3000)
