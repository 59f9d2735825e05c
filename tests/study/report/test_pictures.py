"""Pictures of a sweep: of which setting they are, what they compare, and that legends cover no data."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import kafeat.study.report.pictures
from kafeat.pictures.canvas import STYLES
from kafeat.pictures.portraits import MapFigures
from kafeat.study.report import comparisons
from kafeat.study.report.pictures import pictures
from tests.study.summaries import entry, summary_of

STYLE = STYLES[0]


def summary(setting, score, exact=0.9, name="m"):
    return summary_of(entry(
        name, setting=setting, n_components=setting.get("n_components", 64), relative_frobenius=0.1, score_map=score,
        score_exact=exact, score_constant=0.5, transform_seconds=0.01 + score,
    ))  # fmt: skip


def exhibit(entry):
    return MapFigures(entry.about, np.eye(3), np.eye(3), (np.ones(3), np.ones(3)))


@pytest.fixture
def seen(monkeypatch):
    """Find out what would be drawn, without the time that drawing takes: {name: (title, draw)}."""

    def of(summaries):
        of_one = lambda name, kind, title, caption, draw, columns=1: (name, title, draw)  # noqa: E731
        monkeypatch.setattr(kafeat.study.report.pictures, "drawn", of_one)
        found = pictures(summaries, [exhibit(record) for record in summaries])
        return {name: (title, draw) for name, title, draw in found}

    return of


def axes_of(draw):
    figure = Figure(figsize=(4.4, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    draw(axes, STYLE)
    return figure, axes


@pytest.mark.parametrize("order", [(0.1, 1.0, 10.0), (10.0, 1.0, 0.1)])
def test_pictures_of_one_map_show_the_setting_that_is_recommended(seen, order):
    scores = {0.1: 0.7, 1.0: 0.95, 10.0: 0.6}
    drawn = seen([summary({"gamma": gamma}, scores[gamma]) for gamma in order])
    titles = [title for title, _ in drawn.values()]
    of_one = [title for title in titles if "gamma" in title and " over " not in title]
    assert len(of_one) == 2  # matrices, distances
    assert all(title.endswith("m (gamma = 1.0)") for title in of_one)


def test_a_map_that_is_not_recommended_shows_what_is_best_of_it(seen):
    titles = [title for title, _ in seen([
        summary({"gamma": 1.0}, 0.95), summary({"gamma": 10.0}, 0.6),
        summary({"gamma": 1.0}, 0.3, name="other"), summary({"gamma": 10.0}, 0.5, name="other"),
    ]).values()]  # fmt: skip
    assert "Distances: m (gamma = 1.0)" in titles
    assert "Distances: other (gamma = 10.0)" in titles


def test_only_numbers_of_columns_are_compared_in_pictures(seen):
    of_one = ["gram-m", "distances-m"]
    assert list(seen([summary({"gamma": gamma}, 0.9) for gamma in (0.1, 1.0)])) == of_one
    over = [f"{what}-over-columns" for what in ("error", "score", "time")]
    assert list(seen([summary({"n_components": D}, 0.9) for D in (16, 32)])) == [*over, *of_one]


def test_errors_over_columns_have_a_line_of_one_over_the_root():
    entries = [summary({"n_components": D}, 0.5) for D in (16, 64)]
    _, axes = axes_of(partial(comparisons.error_over_columns, summaries=entries))
    (line,) = (line for line in axes.lines if line.get_label() == "1/√D")
    np.testing.assert_allclose(line.get_ydata(), [0.1, 0.05])


def test_machines_are_points_at_their_own_width():
    entries = [summary({"n_components": 2**i}, 0.5) for i in (4, 5)]
    _, axes = axes_of(partial(comparisons.score_over_columns, summaries=entries))
    points = {one.get_label(): one.get_offsets().tolist() for one in axes.collections}
    assert points["raw columns, linear"] == [[8, 0.5]]
    assert points["exact kernel, 500 rows"] == [[500, 0.9]]
