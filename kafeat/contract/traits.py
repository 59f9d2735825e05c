"""Traits: the properties of a recipe that other code reads, in four groups. A union merges the traits of its steps."""

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
        apart: True if output column j depends only on input column j, so that a later error can name the column.
        coded: Input columns to read as codes of categories, each with the rules for its codes.
        times: Input columns to read as times, in seconds since 1970, each with the time zone of its hours.
        texts: Input columns to read as the counts of their n-grams.
    """

    apart: bool = False
    coded: Mapping[str, Coding] = field(default_factory=dict)
    times: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        """True if the step reads some columns as categories, times or texts, so that they can be features."""
        return bool(self.coded or self.times or self.texts)

    @classmethod
    def merged(cls, every: Sequence[ColumnTraits]) -> Self:
        """Merge the traits of the steps of a union."""
        return cls(
            coded=joined_codings(one.coded for one in every),
            times={name: zone for one in every for name, zone in one.times.items()},
            texts=tuple(name for one in every for name in one.texts),
        )


@dataclass(frozen=True)
class LabelTraits:
    """Traits about the label: whether `fit` needs or uses one, and which rows it learns from.

    Attributes:
        needs: Why `fit` needs a label: a parameter, such as `kind: ridge`, and the purpose, such as `to predict`.
        uses: True if `fit` learns from a label where there is one.
        all_rows: True if `fit` learns from all rows, by `Sample.all_rows`.
        crossed: True if outputs for training rows depend only on the labels of other rows (cross-fitting).
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
        """True if outputs for training rows depend on the row's own label, unlike those of cross-fitted columns."""
        return self.taken and not self.crossed

    def needing(self, needs: Mapping[str, str]) -> Self:
        """Return a copy of the traits with these needs added."""
        return replace(self, needs={**self.needs, **needs})

    @classmethod
    def merged(cls, steps: Mapping[str, LabelTraits]) -> Self:
        """Merge the traits of the steps of a union, given by their places such as `maps[0].steps[1]`."""
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
        missing: The treatment of NaN: `refuse` raises an error, `pass` leaves NaN, and `fill` replaces it by a number.
        spreads: The treatment of columns whose spreads differ. `needs`: the step measures whole rows, by distances or
            dot products, so that spreads must be similar. `keeps`: the step leaves the spreads to the next step.
            `ignores`: the step treats every column separately.
        refuses_negative: True if `fit` and the transform raise an error for values below some bound, 0 or less.
    """

    missing: Literal["refuse", "pass", "fill"] = "refuse"
    spreads: Literal["needs", "keeps", "ignores"] = "needs"
    refuses_negative: bool = False

    @classmethod
    def merged(cls, chains: Sequence[tuple[Sequence[str] | None, Sequence[Traits]]]) -> Self:
        """Merge the traits of the chains of a union, each with the names of the columns that it sees (None: all)."""
        filled = all(_fills(columns, chain) for columns, chain in chains)
        refuses = any(chain[0].numbers.refuses_negative for _, chain in chains)
        # `ignores`, because each chain treats the spreads of its columns by itself
        return cls("fill" if filled else "refuse", "ignores", refuses)


def _fills(columns: Sequence[str] | None, chain: Sequence[Traits]) -> bool:
    """Return True if a chain tolerates missing numbers: the chain fills these, or sees only categories and texts."""
    named = {name for one in chain for name in (*one.columns.coded, *one.columns.texts)}
    return takes_missing(chain) or (columns is not None and named.issuperset(columns))


def takes_missing(chain: Iterable[Traits]) -> bool:
    """Return True if a chain of steps accepts NaN: one step fills it, and all steps before it pass it on."""
    treatments = (one.numbers.missing for one in chain)
    return next((missing == "fill" for missing in treatments if missing != "pass"), False)


@dataclass(frozen=True)
class ExactTraits:
    """Traits about the exact kernel of a step.

    Attributes:
        needs_coordinates: True if `exact` needs coordinates, because dot products of the inputs do not determine it.
        none: The reason why this recipe has no exact kernel although its kind can have one, or None if there is none.
        own: The parameter that makes the features themselves define the kernel, such as `kind: trees`, or None. If
            `own` is set, errors are only rounding, `target_error` is refused, and `exact` returns `own_coordinates`.
    """

    needs_coordinates: bool = True
    none: str | None = None
    own: str | None = None

    @classmethod
    def merged(cls, every: Sequence[ExactTraits], picked: bool) -> Self:
        """Merge the traits of the steps of a union. `picked` is true if a chain sees only some of the columns."""
        return cls(
            picked or any(one.needs_coordinates for one in every),
            next((one.none for one in every if one.none), None),
            next((one.own for one in every if one.own), None),
        )


@dataclass(frozen=True)
class Traits:
    """Properties of a recipe that other code reads.

    Attributes:
        columns, label, numbers, exact: The four groups of traits.
        keeps_rows: True if the state holds some of the training rows.
        given_rows: Rows that `fit` reads besides the sample, by name: the path of a file, or an array.
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
        """Merge the traits of the chains inside a step, each with the names of its columns (None: all)."""
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
