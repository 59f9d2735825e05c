"""Traits: the properties of a recipe that other code reads, in four groups. A union merges those of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from kafeat.contract.coding import Coding, joined_codings
from kafeat.types import Array


@dataclass(frozen=True)
class ColumnTraits:
    """Traits about columns: how a step changes them, and which it reads as categories, times or texts.

    Attributes:
        apart: True if output column j depends on input column j alone, so that a later error can name the column.
        coded: Input columns to read as codes of categories, and how.
        times: Input columns to read as times, in seconds since 1970, with the time zone whose hours they get.
        texts: Input columns to read as the counts of their n-grams.
    """

    apart: bool = False
    coded: Mapping[str, Coding] = field(default_factory=dict)
    times: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        """True if there are input columns that are features only through this step."""
        return bool(self.coded or self.times or self.texts)

    @classmethod
    def merged(cls, every: Sequence[ColumnTraits]) -> Self:
        """Return the traits of steps side by side."""
        return cls(
            coded=joined_codings(one.coded for one in every),
            times={name: zone for one in every for name, zone in one.times.items()},
            texts=tuple(name for one in every for name in one.texts),
        )


@dataclass(frozen=True)
class LabelTraits:
    """Traits about the label: whether `fit` needs or uses one, and which rows it learns from.

    Attributes:
        needs: The parameters that make `fit` need a label, by their place in the step, and what it is for.
        uses: True if `fit` learns from a label where there is one.
        all_rows: True if `fit` learns from all rows, by `Sample.all_rows`.
        crossed: True if the outputs for rows of the fit follow from the labels of other rows alone (cross-fitting).
    """

    needs: Mapping[str, str] = field(default_factory=dict)
    uses: bool = False
    all_rows: bool = False
    crossed: bool = False

    @property
    def taken(self) -> bool:
        """True if `fit` learns from a label, or needs one."""
        return self.uses or bool(self.needs)

    @property
    def own(self) -> bool:
        """True if the outputs for rows of the fit depend on their own labels, unlike those of cross-fitted columns."""
        return self.taken and not self.crossed

    def needing(self, needs: Mapping[str, str]) -> Self:
        """Return the traits with further needs."""
        return replace(self, needs={**self.needs, **needs})

    @classmethod
    def merged(cls, steps: Mapping[str, LabelTraits]) -> Self:
        """Return the traits of steps side by side, by their places."""
        return cls(
            {f"{at}.{place}": purpose for at, one in steps.items() for place, purpose in one.needs.items()},
            any(one.uses for one in steps.values()),
            any(one.all_rows for one in steps.values()),
            all(one.crossed or not one.taken for one in steps.values()),
        )


@dataclass(frozen=True)
class NumberTraits:
    """Traits about numbers: which values a step accepts, and whether the spreads of columns matter.

    Attributes:
        missing: The treatment of NaN: `pass` hands it on where it stands, and after `fill` there is none.
        spreads: The treatment of columns whose spreads differ. It `needs` like ones, as it measures rows as a whole, by
            distances or dot products; it `keeps` them for the next step; or it `ignores` them, as it takes every column
            by itself, with its unit.
        refuses_negative: True if there is a bound, 0 or less, below which `fit` and the transform refuse values.
    """

    missing: Literal["refuse", "pass", "fill"] = "refuse"
    spreads: Literal["needs", "keeps", "ignores"] = "needs"
    refuses_negative: bool = False

    @classmethod
    def merged(cls, chains: Sequence[tuple[Sequence[str] | None, Sequence[Traits]]]) -> Self:
        """Return the traits of chains side by side, each with the columns that it sees; None: all."""
        filled = all(_fills(columns, chain) for columns, chain in chains)
        refuses = any(chain[0].numbers.refuses_negative for _, chain in chains)
        # each chain for itself
        return cls("fill" if filled else "refuse", "ignores", refuses)


def _fills(columns: Sequence[str] | None, chain: Sequence[Traits]) -> bool:
    """Return True if a missing number does a chain no harm: it fills it, or sees only categories and texts."""
    named = {name for one in chain for name in (*one.columns.coded, *one.columns.texts)}
    return takes_missing(chain) or (columns is not None and named.issuperset(columns))


def takes_missing(chain: Iterable[Traits]) -> bool:
    """Return True if a chain of steps accepts NaN: one step fills it and those before pass it."""
    treatments = (one.numbers.missing for one in chain)
    return next((missing == "fill" for missing in treatments if missing != "pass"), False)


@dataclass(frozen=True)
class ExactTraits:
    """Traits about the exact kernel of a step.

    Attributes:
        needs_coordinates: True if `exact` needs coordinates, as dot products of the inputs do not determine it.
        none: The reason why this recipe has no exact kernel, in a kind whose default has one; or None.
        own: The parameter, or `kind: …`, that makes the exact kernel that of the features themselves; or None.
            Their error is only rounding then, and `target_error` is refused. `exact` returns `own_coordinates`.
    """

    needs_coordinates: bool = True
    none: str | None = None
    own: str | None = None

    @classmethod
    def merged(cls, every: Sequence[ExactTraits], picked: bool) -> Self:
        """Return the traits of steps side by side, which see columns of their own if they are `picked`."""
        return cls(
            picked or any(one.needs_coordinates for one in every),
            next((one.none for one in every if one.none), None),
            next((one.own for one in every if one.own), None),
        )


@dataclass(frozen=True)
class Traits:
    """Properties of a recipe that other code reads.

    Attributes:
        columns, label, numbers, exact: The groups.
        keeps_rows: True if the state holds rows of the data that it was fitted on.
        given_rows: Rows that `fit` wants to see besides the sample, by name: the path of a file, or an array.
        unsaved: The reason why a map with this step cannot be saved, or None if it can.
    """

    columns: ColumnTraits = ColumnTraits()
    label: LabelTraits = LabelTraits()
    numbers: NumberTraits = NumberTraits()
    exact: ExactTraits = ExactTraits()
    keeps_rows: bool = False
    given_rows: Mapping[str, str | Array] = field(default_factory=dict)
    unsaved: str | None = None

    @classmethod
    def merged(cls, chains: Sequence[tuple[Sequence[str] | None, Sequence[Traits]]]) -> Self:
        """Return the traits of a step that holds chains, each with the columns that it sees; None: all."""
        placed = {
            f"maps[{i}].steps[{j}]": one for i, (_, chain) in enumerate(chains) for j, one in enumerate(chain)
        }
        every = list(placed.values())
        return cls(
            ColumnTraits.merged([one.columns for one in every]),
            LabelTraits.merged({place: one.label for place, one in placed.items()}),
            NumberTraits.merged(chains),
            ExactTraits.merged(
                [one.exact for one in every], any(columns is not None for columns, _ in chains)
            ),
            any(one.keeps_rows for one in every),
            {name: rows for one in every for name, rows in one.given_rows.items()},
            next((one.unsaved for one in every if one.unsaved), None),
        )
