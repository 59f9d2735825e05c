"""The table of `make bench`: what is a median, a ratio, and a figure that was reached."""

import importlib

import pytest

from tests.zygote import ROOT


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("speed.contest"), importlib.import_module("speed.table")


RUNS = {
    "ours": [{"seconds": seconds} for seconds in (1.0, 2.0, 3.0, 4.0, 90.0)],
    "theirs": [{"seconds": seconds} for seconds in (6.0, 5.0, 7.0)],
}


@pytest.mark.parametrize(
    ("target", "share", "ratio", "reached"),
    [(2.0, False, 2.0, True), (2.1, False, 2.0, False), (0.5, True, 0.5, True), (0.4, True, 0.5, False)],
)
def test_a_ratio_is_of_medians_and_a_share_is_to_be_small(modules, target, share, ratio, reached):
    contest, table = modules
    line = contest.Line("job", "peer", "ours", "theirs", target, share=share)
    found = table.result(line, RUNS)
    # the medians are 3 and 6, whatever one slow run took
    assert (found["ratio"], found["reached"]) == (ratio, reached)
    assert f"| {ratio:.2f} | {'≤' if share else '≥'} {target:g} | {'yes' if reached else 'NO'} |" in (
        table.row(found)
    )


def test_a_line_without_a_peer_is_judged_by_itself(modules):
    contest, table = modules
    runs = {"ours": [{"peak_mb": 400.0}]}
    line = contest.Line("job", "450 MB", "ours", None, 450.0, quantity="peak_mb")
    assert table.result(line, runs)["reached"]
    assert table.row(table.result(line, runs)) == "| job | 450 MB | 400 MB (400–400) |  |  | ≤ 450 | yes |"


def test_all_sides_take_turns_and_the_first_runs_do_not_count(modules):
    contest, _ = modules
    seen = []

    def side(name):
        return lambda: seen.append(name) or {"seconds": len(seen)}

    runs = contest.take_turns({"a": side("a"), "b": side("b")}, 2)
    assert seen == ["a", "b"] * 3
    assert runs == {"a": [{"seconds": 3}, {"seconds": 5}], "b": [{"seconds": 4}, {"seconds": 6}]}


def test_a_wrong_result_stops_the_run(modules):
    contest, _ = modules
    contest.require(0.1, 0.1, "a side")
    for wrong in (0.2, float("nan")):
        with pytest.raises(AssertionError, match="a side: expected an error of at most 0.1"):
            contest.require(wrong, 0.1, "a side")
