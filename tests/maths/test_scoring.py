"""The names of scores, which the options list without importing the formulas."""

from __future__ import annotations

from typing import get_args

from kafeat.io.options import SCORES
from kafeat.maths.scoring import ScoringName, figure_names


def test_options_and_annotations_name_the_scores_that_have_a_formula():
    known = {*figure_names("classification"), *figure_names("regression")}
    assert set(SCORES) == known
    assert set(get_args(ScoringName)) == {"auto", *known}
