"""Pictures of a sweep: of which setting they are, what they compare, and that legends cover no data."""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import kafeat.study.report.pictures
from kafeat.jobs.fit.messages import SILENT
from kafeat.maths.scoring import rates, score_of
from kafeat.maths.task import task_of
from kafeat.pictures import portraits
from kafeat.pictures.canvas import STYLES
from kafeat.pictures.figure_data import LearningFigures, MapFigures, signature_curves
from kafeat.study.candidates import list_candidates
from kafeat.study.inputs import rereadable
from kafeat.study.measure import Evaluator, choose_rows, request_learner
from kafeat.study.report import comparisons
from kafeat.study.report.comparisons import Axis
from kafeat.study.report.pictures import pictures
from kafeat.study.request import EvaluationRequest
from kafeat.study.scores import Scoring

STYLE = STYLES[0]
T = np.linspace(0.0, 1.0, 5)


def figure_of(value):
    return {"mean": value, "standard_error": 0.0}


def summary(setting, score, exact=0.9, name="m"):
    return {
        "map": name, "setting": setting, "n_components": setting.get("n_components", 64), "rows": 100,
        "rows_test": 1000, "rows_exact": 500, "task": "classification", "relative_frobenius": figure_of(0.1),
        "score_map": figure_of(score), "score_raw": figure_of(0.5), "score_exact": figure_of(exact),
        "transform_seconds": figure_of(0.01 + score), "fit_seconds": figure_of(0.1), "columns_raw": 8,
        "rows_train": 500,
        "transform_seconds_map": figure_of(0.1), "kernel_seconds_exact": figure_of(0.2),
        "total_seconds_map_exact_rows": figure_of(0.1),
        **{f"{cost}_{which}": figure_of(0.1 + score) for which in ("raw", "map", "exact") for cost in (
            "learn_seconds", "search_seconds", "total_seconds", "predict_seconds", "peak_bytes", "matrix_bytes")},
    }  # fmt: skip


def exhibit(record):
    """A map off by 0.01 from its kernel, exp(-gamma·t)."""
    K, pair = np.eye(3), (np.ones(3), np.ones(3))
    exact = np.exp(-record["setting"].get("gamma", 1.0) * T)
    return MapFigures(record, K, K, pair, pair, pair, (T, exact, exact + 0.01), None, None)


@pytest.fixture
def seen(monkeypatch):
    """Find out what would be drawn, without the time that drawing takes: {name: (title, draw)}."""

    def of(summaries):
        monkeypatch.setattr(
            kafeat.study.report.pictures,
            "drawn",
            lambda name, kind, title, caption, draw, columns=1: (name, title, draw),
        )
        found = pictures(summaries, [exhibit(record) for record in summaries])
        return {name: (title, draw) for name, title, draw in found}

    return of


def axes_of(draw):
    figure = Figure(figsize=(4.4, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    draw(axes, STYLE)
    return figure, axes


def dashed(axes, dash):
    return [line for line in axes.lines if line.get_linestyle() == dash and len(line.get_xdata())]


@pytest.mark.parametrize("order", [(0.1, 1.0, 10.0), (10.0, 1.0, 0.1)])
def test_pictures_of_one_map_show_the_setting_that_is_recommended(seen, order):
    scores = {0.1: 0.7, 1.0: 0.95, 10.0: 0.6}
    titles = [
        title for title, _ in seen([summary({"gamma": gamma}, scores[gamma]) for gamma in order]).values()
    ]
    of_one = [title for title in titles if "gamma" in title and " over " not in title]
    assert len(of_one) == 4  # matrices, entries, distances, spectra
    assert all(title.endswith("m (gamma = 1.0)") for title in of_one)


def test_a_map_that_is_not_recommended_shows_what_is_best_of_it(seen):
    titles = [title for title, _ in seen([
        summary({"gamma": 1.0}, 0.95), summary({"gamma": 10.0}, 0.6),
        summary({"gamma": 1.0}, 0.3, name="other"), summary({"gamma": 10.0}, 0.5, name="other"),
    ]).values()]  # fmt: skip
    assert "Spectra: m (gamma = 1.0)" in titles
    assert "Spectra: other (gamma = 10.0)" in titles


def test_a_sweep_that_changes_no_width_is_drawn_over_what_it_changes(seen):
    names = seen([summary({"gamma": gamma}, 0.9) for gamma in (0.1, 1.0)])
    assert [name for name in names if "-over-" in name] == [
        "error-over-gamma", "score-over-gamma", "score-over-time",
    ]  # fmt: skip


def test_the_line_of_each_kernel_stands_beside_its_own_map(seen):
    gammas = (0.1, 1.0, 10.0)
    drawn = seen([summary({"gamma": gamma}, gamma / 20) for gamma in gammas])
    title, draw = drawn["line-m"]
    assert title.endswith(": m")
    _, axes = axes_of(draw)
    maps, exact = dashed(axes, "-"), dashed(axes, "--")
    assert [line.get_label() for line in maps] == [f"gamma = {gamma}" for gamma in gammas]
    for gamma, near, own in zip(gammas, maps, exact, strict=True):
        np.testing.assert_array_equal(own.get_ydata(), np.exp(-gamma * T))
        assert own.get_color() == near.get_color()


def test_one_kernel_of_several_widths_has_one_line(seen):
    drawn = seen([summary({"n_components": D, "gamma": 1.0}, 0.5 + D / 1000) for D in (16, 32, 64)])
    _, axes = axes_of(drawn["line-m"][1])
    (exact,) = dashed(axes, "--")
    assert exact.get_label() == "exact"
    assert [line.get_label() for line in dashed(axes, "-")] == ["D = 16", "D = 32", "D = 64"]


@pytest.mark.parametrize("best", range(9))
def test_of_many_settings_the_recommended_one_is_among_the_lines(seen, best):
    drawn = seen([summary({"gamma": float(i + 1)}, 0.9 if i == best else 0.5) for i in range(9)])
    _, axes = axes_of(drawn["line-m"][1])
    labels = [line.get_label() for line in dashed(axes, "-")]
    assert len(labels) == 4
    assert f"gamma = {float(best + 1)}" in labels


def test_scores_of_exact_kernels_that_differ_follow_the_map():
    entries = [
        summary({"gamma": gamma}, 0.5, exact) for gamma, exact in ((0.1, 0.7), (1.0, 0.9), (10.0, 0.8))
    ]
    _, axes = axes_of(lambda axes, style: comparisons.score_over(axes, style, entries, Axis("gamma")))
    (exact,) = dashed(axes, "-.")
    np.testing.assert_array_equal(exact.get_xdata(), [0.1, 1.0, 10.0])
    np.testing.assert_array_equal(exact.get_ydata(), [0.7, 0.9, 0.8])


def test_scores_of_exact_kernels_of_several_maps_have_the_colour_of_the_map():
    entries = [
        summary({"gamma": gamma, "n_components": D}, score, exact=score + 0.1)
        for gamma, score in ((0.1, 0.6), (1.0, 0.8)) for D in (16, 32)
    ]  # fmt: skip
    _, axes = axes_of(lambda axes, style: comparisons.score_over(axes, style, entries, comparisons.COLUMNS))
    maps, exact = dashed(axes, "-"), dashed(axes, "-.")
    assert len(maps) == len(exact) == 2
    for near, own in zip(maps, exact, strict=True):
        np.testing.assert_allclose(own.get_ydata(), near.get_ydata().astype(float) + 0.1, rtol=1e-12)
        assert own.get_color() == near.get_color()
    assert len({line.get_color() for line in exact}) == 2


@pytest.mark.parametrize("names", [1, 9])
@pytest.mark.parametrize("what", ["error", "score", "times", "lines", "spectra"])
def test_a_legend_covers_no_data(what, names):
    """It stands above the axes whole, inside of the figure, however many names it has and however long these are."""
    name = "a config with a name that is as long as names of files may well be.yaml"
    entries = [
        summary({"gamma": float(i), "n_components": D}, 0.5, name=name)
        for i in range(names)
        for D in (16, 32)
    ]
    shown = [exhibit(record) for record in entries[::2]]
    draw = {
        "error": lambda axes, style: comparisons.error_over(axes, style, entries, comparisons.COLUMNS),
        "score": lambda axes, style: comparisons.score_over(axes, style, entries, comparisons.COLUMNS),
        "times": lambda axes, style: comparisons.times_over_columns(axes, style, entries),
        "lines": lambda axes, style: portraits.lines(axes, style, shown, "gamma"),
        "spectra": lambda axes, style: portraits.spectra(axes, style, shown[0]),
    }[what]
    figure, axes = axes_of(draw)
    figure.canvas.draw()
    (legend,) = figure.legends
    assert axes.get_legend() is None
    box, plot = legend.get_window_extent(), axes.get_window_extent()
    assert box.y0 >= plot.y1
    assert box.y1 <= figure.bbox.y1 + 1.0
    assert box.x1 <= figure.bbox.x1 + 1.0
    assert plot.height > 150.0  # of 340: the figure has grown by the legend's lines


def test_rates_end_at_the_corners_and_their_area_is_the_auc():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=3000)
    predicted = np.round(rng.normal(size=3000) + labels, 1)[:, None]  # with ties
    task = task_of(labels)
    false, true = rates(predicted[:, 0], labels == 1)
    assert (false[0], true[0], false[-1], true[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert np.trapezoid(true, false) == pytest.approx(score_of("auc", task, predicted, labels))
    some = Scoring(task, "auc", False).curve(rng.normal(size=(3000, 1)) + labels[:, None], labels)
    assert len(some[0]) <= 400
    # Its steps are at most 2/399 of the way, so the area is off by less than that.
    assert np.trapezoid(some[1], some[0]) == pytest.approx(0.76, abs=0.03)


@pytest.mark.parametrize("regression", [False, True])
def test_the_plane_of_two_columns_shows_what_is_predicted(regression):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    y = X[:, 0] if regression else (X[:, 0] > 0.0).astype(int)
    data = {"a": X[:, 0], "b": X[:, 1], "y": y}
    gathered = []
    with rereadable(pa.table(data), None) as source:
        request = EvaluationRequest(label=("y",), rows=50, exact_rows=50, jobs=1)
        config = {"steps": [{"kind": "fourier", "n_components": 64}]}
        (candidate,) = list_candidates([], [config], [], 1)
        (rows,) = choose_rows(source, request, [candidate], 1)
        evaluator = Evaluator(source, request, request_learner(request), rows, gathered)
        evaluator.record(candidate, lambda step: None, SILENT)
    learning = gathered[0].learning
    assert set(learning.rates) == (set() if regression else {"raw", "map", "exact"})
    for values in learning.surface.planes.values():
        left, right = values[:, :20].mean(), values[:, -20:].mean()
        assert right > left + 0.8
    figure = Figure()
    portraits.surface(figure.subplots(1, 3), STYLE, learning.surface)


def test_the_spectral_norm_is_beside_the_frobenius_norm():
    entries = [
        {**summary({"n_components": D}, 0.5), "relative_spectral": figure_of(1.0 / D)} for D in (8, 32)
    ]
    _, axes = axes_of(lambda axes, style: comparisons.error_over(axes, style, entries, comparisons.COLUMNS))
    (line,) = dashed(axes, "--")
    np.testing.assert_allclose(line.get_ydata(), [1 / 8, 1 / 32])


def test_errors_over_columns_have_a_line_of_one_over_the_root():
    entries = [summary({"n_components": D}, 0.5) for D in (16, 64)]
    _, axes = axes_of(lambda axes, style: comparisons.error_over(axes, style, entries, comparisons.COLUMNS))
    (line,) = (line for line in axes.lines if line.get_label() == "1/√D")
    np.testing.assert_allclose(line.get_ydata(), [0.1, 0.05])


@pytest.mark.parametrize("kernel", ["chi2", "hellinger"])
def test_a_homogeneous_map_shows_its_signature_spectrum_and_distortion(kernel):
    X = np.random.default_rng(0).gamma(1.0, size=(80, 3))
    curves = signature_curves(kafeat.fit({"steps": [{"kind": "homogeneous", "kernel": kernel}]}, X).chain, X)
    figure = Figure()
    axes = figure.subplots(1, 3)
    portraits.signature(axes, STYLE, curves)
    left, _, right = axes
    exact, near = (line.get_ydata() for line in left.lines)
    np.testing.assert_array_equal(exact, exact[::-1])  # an even function, on both sides of 0
    ratios, error = right.lines[0].get_data()
    assert ratios[0] == pytest.approx(1.0 / ratios[-1])
    np.testing.assert_array_equal(error, near - exact)
    assert [(one.get_xlabel(), one.get_ylabel()) for one in axes] == [
        ("ω = log(y/x)", "signature K(ω)"),
        ("λ", "spectrum κ(λ)"),
        ("y/x", "error / √(xy)"),
    ]


SHOWN = exhibit(summary({"n_components": 64}, 0.5))
TIMED = replace(SHOWN, learning=LearningFigures({"map": [(1, 0.1), (9, 0.2)]}))


@pytest.mark.parametrize(
    ("draw", "count", "labels", "scales"),
    [
        (partial(portraits.entries, exhibit=SHOWN), 2, ["exact", "approximate", "error", "pairs"], "linear linear"),
        (partial(comparisons.predictions_over, exhibits=[TIMED]), 1, ["rows", "seconds to predict"], "log log"),
    ],
)  # fmt: skip
def test_axes_say_what_they_show(draw, count, labels, scales):
    axes = Figure().subplots(1, count, squeeze=False)[0]
    draw(list(axes) if count > 1 else axes[0], STYLE)
    assert [label for one in axes for label in (one.get_xlabel(), one.get_ylabel())] == labels
    assert {f"{one.get_xscale()} {one.get_yscale()}" for one in axes} == {scales}


@pytest.mark.parametrize(
    ("axis", "points"), [(comparisons.COLUMNS, 2), (comparisons.SECONDS, 2), (Axis("gamma"), 0)]
)
def test_machines_are_points_over_columns_and_seconds(axis, points):
    entries = [summary({"gamma": float(i), "n_components": 2**i}, 0.5) for i in (4, 5)]
    _, axes = axes_of(lambda axes, style: comparisons.score_over(axes, style, entries, axis))
    assert (
        sum(one.get_label().startswith(("linear machine", "kernel machine")) for one in axes.collections)
        == points
    )


@pytest.mark.parametrize(("widths", "ticks"), [(8, 8), (9, 5)])
def test_up_to_eight_widths_have_a_tick_each(widths, ticks):
    entries = [summary({"n_components": 2**i}, 0.5) for i in range(1, widths + 1)]
    _, axes = axes_of(lambda axes, style: comparisons.error_over(axes, style, entries, comparisons.COLUMNS))
    assert len(axes.get_xticks()) == ticks
