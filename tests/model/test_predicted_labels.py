"""The labels of a predictor in a model file that was made by hand."""

import pytest

from kafeat.model.predictor import PredictedLabels

LOST = [("integer", [0, 10**20], "fit 64 bits"), ("text", ["a", "b\ud800"], "UTF-8")]


@pytest.mark.parametrize(("kind", "classes", "error"), LOST)
def test_classes_that_no_output_can_hold_are_refused(kind, classes, error):
    with pytest.raises(ValueError, match=error):
        PredictedLabels.from_plain({"names": ["y"], "type": kind, "classes": classes})


def test_the_largest_whole_numbers_are_read():
    labels = PredictedLabels.from_plain({"names": ["y"], "type": "integer", "classes": [0, 2**64 - 1]})
    assert labels.classes == (0, 2**64 - 1)
