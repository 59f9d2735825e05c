"""The examples in docstrings of public callables."""

import doctest

import pytest

from kafeat.sklearn import FeatureMap, TunedFeatureMap


@pytest.mark.parametrize("documented", [FeatureMap, TunedFeatureMap])
def test_the_example_of_a_docstring_runs_as_printed(documented):
    (example,) = doctest.DocTestFinder(recurse=False).find(documented, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
