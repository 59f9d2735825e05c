"""Parameters that no sampler takes are refused with their place, and with what is expected."""

import re

import pytest

from kafeat.config import load_config
from kafeat.errors import ConfigError

NUMBER, WHOLE = "expected a number above 0", "expected a whole number of at least 1, got 0"
POLYNOMIAL = {"coef0": -0.1, "gamma": 0.0, "degree": 0}
SERIES = {"kernel": "series", "coefficients": [1.0]}
PRECOMPUTED, SYMMETRIC = {"kernel": "precomputed"}, {"root": "symmetric"}
# The parameter that is told comes first; the text of what is told begins behind its name.
REFUSED: list[tuple[str, dict[str, object], str]] = [
    *((kind, {name: value}, "expected") for kind in ("tensor_sketch", "tensor_srht", "random_maclaurin",
      "polynomial_features") for name, value in [*POLYNOMIAL.items(), ("gamma", "median"), ("degree", 2.5)]),
    *(("fourier", {"gamma": value}, NUMBER) for value in (0, -1.0, float("inf"), "wide")),
    ("fourier", {"n_components": 7}, "expected an even number for paired features (6 or 8), got 7"),
    ("arc_cosine", {"n_components": 7}, "expected an even number for paired features (6 or 8), got 7"),
    ("arc_cosine", {"order": 2}, "expected"),
    ("arc_cosine", {"directions": "qmc"}, "expected"),
    ("positive_exponential", {"n_components": 7}, "expected an even number for hyperbolic features (6 or 8), got 7"),
    ("positive_exponential", {"tilt": "best"}, "expected"),
    ("tensor_srht", {"n_components": 7}, "expected an even number with complex_to_real (6 or 8)"),
    ("tensor_sketch", {"n_components": 10**6, "degree": 64},
     "expected at most 156,250 for the degree 64, got 1000000"),
    ("intersection_bins", {"n_bins": 0}, "expected a whole number"),
    ("random_subsets", {"kernel": "rbf"}, "expected"),
    ("random_subsets", {"gamma": 0.0}, "expected"),
    ("random_subsets", {"degree": 0}, "expected"),
    ("random_subsets", {"degree": 3, "kernel": "all_subsets"}, "expected none with kernel: all_subsets, got 3"),
    ("random_maclaurin", {"kernel": "rbf"}, "expected"),
    ("random_maclaurin", {"coefficients": [1.0]}, "expected kernel: series with them, got 'polynomial'"),
    *(("random_maclaurin", {"coefficients": value, "kernel": "series"}, said) for value, said in (
        (None, "expected at least one number above 0 for a series, got null"),
        ([0.0], "expected at least one number above 0"), ([], "expected"))),
    ("random_maclaurin", {"coefficients[1]": 0, "kernel": "series", "coefficients": [1.0, -1.0]},
     "expected a number of at least 0"),
    ("random_maclaurin", {"degree": 3, **SERIES}, "expected none with coefficients, got 3"),
    ("random_maclaurin", {"coef0": 0.5, **SERIES}, "expected none with coefficients"),
    ("homogeneous", {"order": -1}, "expected"),
    ("homogeneous", {"homogeneity": 0}, "expected"),
    ("homogeneous", {"period": 0.5}, "expected"),
    ("homogeneous", {"window": "hann"}, "expected"),
    ("homogeneous", {"order": 2, "kernel": "hellinger"}, "expected 0 for hellinger, whose one feature √x is exact"),
    ("homogeneous", {"period": 9, "kernel": "hellinger"}, "expected none for hellinger"),
    ("nystroem", {"nu": 0.0}, "expected a number above 0 and at most 30, got 0.0"),
    ("nystroem", {"alpha": -1.0}, "expected a number above 0, got -1.0"),
    ("nystroem", {"degree": 0}, WHOLE),
    ("nystroem", {"coef0": -1.0}, "expected a number of at least 0, got -1.0"),
    ("nystroem", {"dual_l1": 1.0}, "expected a number of at least 0 and below 1, got 1.0"),
    ("nystroem", {"rcond": 1.0}, "expected a number of at least 0 and below 1, got 1.0"),
    ("nystroem", {"landmarks": "kmean"}, "got 'kmean'; did you mean 'kmeans'?"),
    ("nystroem", {"kernel": "rbff"}, "got 'rbff'; did you mean 'rbf'?"),
    ("nystroem", {"weights": "fitted", **SYMMETRIC}, "expected exact, for a symmetric root, got 'fitted'"),
    ("nystroem", {"weights": "fitted", **PRECOMPUTED}, "expected exact, for a precomputed kernel"),
    ("nystroem", {"n_landmarks": 3, "n_components": 2, **SYMMETRIC}, "expected as many as n_components,"),
    ("nystroem", {"n_landmarks": 4, "n_components": 5}, "expected at least n_components = 5, got 4"),
    ("nystroem", {"n_landmarks": 9, "n_components": 5, "landmarks": "greedy", "tolerance": 0.1},
     "expected none with a tolerance"),
    ("nystroem", {"tolerance": 0.1}, "expected landmarks: rpcholesky or greedy with it, got 'kmeans'"),
    *(("nystroem", {"landmarks": landmarks, **PRECOMPUTED}, "expected landmarks that are columns of the input")
      for landmarks in ("kmeans", "dual_kmeans", {"given": "rows.npy"})),
    *(("nystroem", {name: 3, "kernel": kernel}, f"expected none with a {said}, got 3")
      for kernel, said in (("precomputed", "precomputed kernel"), (abs, "Python function"))
      for name in ("gamma", "degree", "coef0", "nu", "alpha")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "parameters", "told"), REFUSED)
def test_parameters_that_no_sampler_takes_are_refused(kind, parameters, told):
    place = next(iter(parameters))
    step = {"kind": kind, **{name: value for name, value in parameters.items() if "[" not in name}}
    with pytest.raises(ConfigError, match=rf"steps\[0\]\.{re.escape(place)}: .*{re.escape(told)}"):
        load_config({"steps": [step]})
