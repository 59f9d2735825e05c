"""Columns of boosted trees, which find thresholds of single columns, for a linear model after a kernel map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from kafeat.chain.chain import own_coordinates
from kafeat.contract.coding import MOST_CATEGORIES, OF_GROUPS, Coding
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.name_patterns import ColumnNames, places_of
from kafeat.contract.step import (
    GROUP,
    PositiveFloat,
    Sample,
    Transform,
    Width,
    parameter,
)
from kafeat.contract.traits import ColumnTraits, ExactTraits, LabelTraits, NumberTraits, Traits
from kafeat.maths.boosting import TreeRecipe, fit_trees
from kafeat.maths.tree_columns import MOST_LEAVES, TreeColumns, check_trees, tree_shapes
from kafeat.types import ArrayOf, Shapes, State

_AS_RANKS = Coding(lenient=True, most=MOST_CATEGORIES)


class Trees(TreeRecipe):
    """z_j(x) = (Σ_{t in group j} f_t(x) − m_j)·scale/s_j, where f_t are the boosted trees of x's fold, or of all folds.

    Each of `n_folds` ensembles learns the label from the rows of the other folds. A training row goes through the
    ensemble of its own fold, which has not seen its label. A new row gets the mean of all ensembles. A hash of the
    row's numbers gives its fold, and shows whether it is a training row. The trees of each class, or number, are
    divided into groups in the order in which they were grown. Column j is the sum of a group, with the mean m_j and the
    standard deviation s_j on the fit sample.

    If there are fewer than 50 different rows (or, with only categories, fewer than two per category of the largest
    column), rows that repeat at least 5 times on average are spread over all folds. They get the mean of all ensembles.

    Source: Friedman 2001, algorithms 3 to 6 (boosting), by LightGBM; Wolpert 1992 and Chernozhukov et al. 2018
    (cross-fitting); Lucchese et al. 2015 (the transform); folds by content: this project.
    """

    always: ClassVar[Traits] = Traits(
        label=LabelTraits({"kind: trees": "to learn from"}, crossed=True),
        numbers=NumberTraits(missing="fill", spreads="ignores"),
        exact=ExactTraits(own="kind: trees"),
    )

    n_components: Width = parameter(16, "D, the number of outputs, over all classes or numbers of the label")
    n_folds: int = parameter(6, "K, the number of ensembles", ge=2, le=20)
    n_trees: int = parameter(300, "number of trees for each class or number of the label", ge=1, le=5000)
    max_leaves: int = parameter(31, "maximum number of leaves of a tree", ge=2, le=MOST_LEAVES)
    learning_rate: PositiveFloat = parameter(0.05, "factor of each tree", le=1.0)
    min_leaf_rows: int = parameter(10, "least number of rows in a leaf", ge=1)
    scale: PositiveFloat = parameter(
        0.13, "standard deviation of the outputs: 0.13 is three times that of a kernel map of 512 outputs"
    )
    categories: ColumnNames = parameter((), "the columns that hold categories, by name or pattern")
    group: str | None = GROUP

    @property
    def traits(self) -> Traits:
        codes = {**dict.fromkeys(self.categories, _AS_RANKS), **dict.fromkeys(self.group_columns, OF_GROUPS)}
        return replace(super().traits, columns=ColumnTraits(coded=codes))

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        places, sizes = places_of(self.kind, self.categories, sample.names), sample.n_categories
        group = places_of(self.kind, self.group_columns, sample.names)
        categories = {int(j): 0 if sizes is None else sizes[j] for j in places if j not in group}
        return fit_trees(sample.X, sample.needed_label, self, categories, rng, group, sample.jobs)

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        sizes = self.n_folds, self.n_trees, self.max_leaves, self.n_components
        group = ArrayOf((len(self.group_columns),), "int64", below=n_features_in)
        return {**tree_shapes(state, n_features_in, *sizes), "group": group}

    def check_state(self, state: State, n_features_in: int) -> None:
        check_trees(state, self.n_components)

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return TreeColumns(state, n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return own_coordinates(self, state, pair)
