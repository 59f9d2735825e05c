"""Public callables have numpydoc docstrings that name all parameters, and their examples run."""

import doctest
import inspect
import re
from collections.abc import Callable
from importlib import import_module

import pytest

import kafeat
from kafeat.sklearn import FeatureMap, TunedFeatureMap

MODULES = [
    "kafeat.config.model", "kafeat.study.evaluation", "kafeat.jobs.dataset.api", "kafeat.study.evaluate",
    "kafeat.study.tune.tune", "kafeat.jobs.fit.fit", "kafeat.model.feature_map",
    "kafeat.pictures.notebook", "kafeat.model.load", "kafeat.model.saved",
]  # fmt: skip
METHODS = [
    kafeat.FeatureMap.transform, kafeat.FeatureMap.exact_kernel, kafeat.FeatureMap.matrix, kafeat.FeatureMap.save,
    kafeat.FeatureMap.dumps, kafeat.FeatureMap.plot_kernel, kafeat.FeatureMap.plot_distances,
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    results = doctest.testmod(import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("documented", [FeatureMap, TunedFeatureMap])
def test_the_example_of_an_estimator_runs(documented: type) -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(documented, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def engine_transforms() -> list[Callable[..., object]]:
    transforms = []
    for name in ("dask", "spark"):
        pytest.importorskip({"dask": "dask.dataframe", "spark": "pyspark"}[name])
        transforms.append(import_module(f"kafeat.{name}").transform)
    return transforms


def check_sections(function: Callable[..., object]) -> None:
    text = inspect.getdoc(function) or ""
    sections = re.findall(r"^(\w+)\n-+$", text, flags=re.M)
    expected = [name for name in inspect.signature(function).parameters if name != "self"]
    _, _, rest = text.partition("Parameters\n----------\n")
    documented = re.findall(r"^(\w+) : .+", rest.partition("\n\n")[0], flags=re.M)
    assert documented == expected, function
    assert "Examples" in sections, function
    assert "Raises" in sections, function
    returns = inspect.signature(function).return_annotation not in (None, "None")
    assert ("Returns" in sections) == returns, function


FUNCTIONS = [
    kafeat.fit, kafeat.load, kafeat.transform, kafeat.predict, kafeat.evaluate, kafeat.tune, *METHODS,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_parameters_are_documented_in_order(function: Callable[..., object]) -> None:
    if function != kafeat.FeatureMap.dumps:
        check_sections(function)
    assert "Any" not in {
        str(one.annotation) for one in inspect.signature(function).parameters.values() if one.name != "self"
    }


def test_all_parameters_of_the_engines_are_documented_in_order() -> None:
    for function in engine_transforms():
        check_sections(function)


def test_the_config_documents_its_keys() -> None:
    documented = re.findall(r"^(\w+) : .+", inspect.getdoc(kafeat.Config) or "", flags=re.M)
    assert documented == list(kafeat.Config.model_fields)
