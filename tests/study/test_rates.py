"""Slopes of errors over the number of columns, against errors that fall with a known power."""

import numpy as np
import pytest

from kafeat.study.summary import rate_note, rates


def records(powers, widths=(16, 64, 256), kinds=("standardize", "nystroem"), dtype="float32", scale=1.0):
    """Errors that fall with these powers, one for each seed."""
    return [
        {
            "map": "m.yaml", "setting": {"gamma": 0.1, "n_components": D}, "n_components": D, "seed": seed,
            "split_seed": 0, "kinds": list(kinds), "dtype": dtype,
            "relative_frobenius": scale * D**power, "relative_spectral": scale * D ** (2.0 * power),
        }
        for seed, power in enumerate(powers)
        for D in widths
    ]  # fmt: skip


def test_the_slope_of_a_power_is_the_power_and_its_error_is_over_the_seeds():
    (rate,) = rates(records([-0.5, -0.7]))
    assert rate["setting"] == {"gamma": 0.1}
    assert rate["columns"] == [16, 64, 256]
    assert rate["slope_frobenius"]["mean"] == pytest.approx(-0.6)
    assert rate["slope_spectral"]["mean"] == pytest.approx(-1.2)
    # deviation 0.2/√2 of two numbers, over √2
    assert rate["slope_frobenius"]["standard_error"] == pytest.approx(0.1)
    assert (rate["theorem_frobenius"], rate["theorem_spectral"]) == ([-0.25, -0.5], [-0.5, -1.0])
    assert rate_note(rate) == (
        "error of m.yaml (gamma = 0.1) from 16 to 256 columns: falls like D^-0.60 ± 0.10 in the Frobenius norm "
        "(theorem: D^-0.25, with a large eigengap up to D^-0.5), D^-1.20 ± 0.20 in the spectral norm "
        "(theorem: D^-0.5, with a large eigengap up to D^-1)"
    )


def test_one_seed_has_a_slope_without_an_error_and_a_scaler_no_theorem():
    (rate,) = rates(records([-0.5], kinds=["standardize"]))
    assert rate["slope_frobenius"]["standard_error"] is None
    assert "theorem" not in rate_note(rate)


def test_the_last_step_with_a_theorem_counts():
    (rate,) = rates(records([-0.5], kinds=["nystroem", "projection", "standardize"]))
    assert rate["theorem_spectral"] == [-0.5]


def test_each_other_setting_has_a_rate_of_its_own():
    one, other = records([-0.5]), records([-1.0])
    for record in other:
        record["setting"] = {**record["setting"], "gamma": 1.0}
    assert [round(rate["slope_frobenius"]["mean"], 6) for rate in rates(one + other)] == [-0.5, -1.0]


def test_two_widths_have_no_rate_and_rounding_is_no_error():
    assert rates(records([-0.5], widths=(16, 64))) == []
    # below the rounding of float32, above that of float64
    scale = 10.0 * np.finfo(np.float32).eps
    assert rates(records([-0.5], scale=scale)) == []
    assert len(rates(records([-0.5], scale=scale, dtype="float64"))) == 1
