"""Maps that no fit gives: they are refused, or they compute numbers; nothing else may come of them."""

import time
import tracemalloc
from contextlib import suppress

import pytest

from kafeat.errors import ArtifactError
from kafeat.model import serialize
from kafeat.model.feature_map import FeatureMap
from tests.model.hostile_maps import CLAIMS, STEPS, good, of_entries, of_states, outcome, rows

# Of numbers that overflow on the way; features that are no numbers in the end are an error.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
    pytest.mark.usefixtures("one_limit"),
]


@pytest.mark.sampled
@pytest.mark.parametrize("name", STEPS)
def test_a_fit_is_accepted_as_it_is(name):
    for dtype in ("float32", "float64"):
        assert outcome(good(name, dtype), rows(name)) == "numbers"


@pytest.mark.sampled
@pytest.mark.parametrize("name", STEPS)
def test_states_that_no_fit_gives(name):
    met = [outcome(content, rows(name)) for content in of_states(good(name))]
    assert "refused" in met


@pytest.mark.sampled
@pytest.mark.parametrize("name", STEPS)
def test_recipes_that_the_state_does_not_fit(name):
    content, X = good(name), rows(name)
    rest = {key: value for key, value in content.items() if key != "steps"}
    for steps in of_entries({"steps": content["steps"]}):
        outcome({**rest, **steps}, X)


def test_entries_of_other_types():
    content, X = good("normalize"), rows("normalize")
    for edited in of_entries(content):
        outcome(edited, X)


@pytest.mark.parametrize("name", CLAIMS)
def test_what_a_map_claims_costs_little_to_refuse_or_to_load(name):
    content = CLAIMS[name]()
    tracemalloc.start()
    began = time.process_time()
    with suppress(ArtifactError):
        serialize.build(FeatureMap, content, "x")
    seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    # a second of a free core, and tracing that makes it several times as long
    assert seconds < 10.0
