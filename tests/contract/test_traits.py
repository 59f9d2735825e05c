"""What a step of several chains tells of itself: every trait of its steps, but for those that end with them."""

from dataclasses import fields

import pytest

from kafeat.contract.coding import EVERY_VALUE
from kafeat.contract.traits import ColumnTraits, ExactTraits, LabelTraits, NumberTraits, Traits

# A value of each trait that is not its default, and what it is of a step that holds one with it.
OF_STEP = Traits(
    ColumnTraits(apart=True, coded={"c": EVERY_VALUE}, times={"t": "UTC"}, texts=("w",)),
    LabelTraits({"kind: k": "to learn from"}, uses=True, all_rows=True, crossed=True),
    NumberTraits(missing="fill", spreads="keeps", refuses_negative=True),
    ExactTraits(needs_coordinates=False, none="nothing", own="kind: k"),
    keeps_rows=True,
    given_rows={"rows": "rows.csv"},
    unsaved="a function",
)
# A column of the output depends on several of the input, and each chain has its own spreads.
NOT_MERGED = {"apart": False, "spreads": "ignores"}
MERGED = {**NOT_MERGED, "needs": {"maps[0].steps[0].kind: k": "to learn from"}}


def flat(traits: Traits) -> dict[str, object]:
    groups = (traits.columns, traits.label, traits.numbers, traits.exact, traits)
    found = {one.name: getattr(group, one.name) for group in groups for one in fields(group)}
    return {
        name: value for name, value in found.items() if name not in ("columns", "label", "numbers", "exact")
    }


@pytest.mark.parametrize("trait", flat(Traits()))
def test_every_trait_is_merged(trait: str) -> None:
    assert flat(OF_STEP)[trait] != flat(Traits())[trait], f"{trait}: expected a value in OF_STEP"
    found = flat(Traits.merged([(None, [OF_STEP])]))[trait]
    assert found == MERGED.get(trait, flat(OF_STEP)[trait]), f"{trait}: expected to be merged"


def test_of_several_steps() -> None:
    one, other = Traits(), OF_STEP
    first, second = Traits.merged([(None, [one]), (None, [other])]), Traits.merged([(["a"], [other])])
    assert (first.numbers.missing, first.exact.needs_coordinates) == ("refuse", True)
    assert list(first.label.needs) == ["maps[1].steps[0].kind: k"]
    assert second.exact.needs_coordinates  # of other columns than those of the dot products
