"""Kernels that a config or a model file has by name, `module:function`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kafeat
from kafeat.cli.main import kafeat as command
from kafeat.config import load_config
from kafeat.contract.imports import allowing_imports
from kafeat.errors import ConfigError, UsageError
from kafeat.jobs.dataset.transform import transform_parts
from kafeat.jobs.inspect import inspect
from kafeat.runtime.engine import Engine

X = np.random.default_rng(0).uniform(size=(120, 4))
MODULE = """
import pathlib
pathlib.Path(__file__).with_name("imported").write_text("yes")
not_a_function = 3
def tanimoto(X, Y):
    dots = X @ Y.T
    return dots / ((X * X).sum(1)[:, None] + (Y * Y).sum(1) - dots)
def broken(X, Y):
    return X @ Y
"""
NEEDED = r"kernel: expected --allow-import .* to import '{name}:tanimoto', got none"


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of a new name, as one that is imported stays."""
    name = f"kernels_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.chdir(tmp_path)
    return name


def config(name: str, **more: object) -> dict[str, object]:
    step = {"kind": "nystroem", "kernel": f"{name}:tanimoto", "n_components": 16, **more}
    return {"dtype": "float64", "steps": [step]}


def imported() -> bool:
    return Path("imported").exists()


def tanimoto(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.array([[x @ y / (x @ x + y @ y - x @ y) for y in Y] for x in X])


def test_it_is_the_kernel_of_that_function(name: str) -> None:
    fm = kafeat.fit(config(name), X, allow_import=True)
    np.testing.assert_allclose(fm.exact_kernel(X[:9]), tanimoto(X[:9], X[:9]), rtol=1e-12)
    Z = fm.transform(X)
    landmarks = fm.chain.steps[0].state["rows"]
    # Nyström features are exact on their landmarks; K_mm of 16 rows is well conditioned
    np.testing.assert_allclose(Z[landmarks] @ Z[landmarks].T, tanimoto(X[landmarks], X[landmarks]), rtol=1e-8)
    with_the_function = kafeat.fit(config(name, kernel=tanimoto), X)
    np.testing.assert_allclose(with_the_function.transform(X), Z, atol=1e-10)


def test_a_union_searches_and_a_config_object_work_too(name: str) -> None:
    steps = [
        {"kind": "union", "maps": [{"steps": config(name)["steps"]}, {"steps": [{"kind": "standardize"}]}]}
    ]
    recipe = kafeat.Config.model_validate({"steps": steps})
    with pytest.raises(UsageError, match=NEEDED.format(name=name)):
        kafeat.fit(recipe, X)
    assert kafeat.fit(recipe, X, allow_import=True).n_components == 20
    searched = config(name, n_components={"validate": [4, 8]})
    assert kafeat.fit(searched, X, label=X[:, 0], allow_import=True).n_components in (4, 8)


def test_evaluate_imports_it_for_recipes_and_models_and_only_with_permission(name: str) -> None:
    with pytest.raises(UsageError, match=NEEDED.format(name=name)):
        kafeat.evaluate(config=config(name), data=X, jobs=1)
    assert not imported()
    found = kafeat.evaluate(
        config=config(name), data=X, jobs=1, allow_import=True, sweep={"n_components": [8]}
    )
    assert found["relative_frobenius"] < 0.1
    kafeat.fit(config(name), X, allow_import=True).save("m.joblib")
    same = kafeat.evaluate("m.joblib", X, jobs=1, allow_import=True)
    assert same["n_components"] == 16


def test_nothing_is_imported_without_permission(name: str) -> None:
    with pytest.raises(UsageError, match=NEEDED.format(name=name)):
        kafeat.fit(config(name), X)
    load_config(config(name))
    assert not imported()
    kafeat.fit(config(name), X, allow_import=True).save("map.joblib")
    assert imported()
    data = Path("map.joblib").read_bytes()
    assert f"{name}:tanimoto".encode() in data
    assert b"dots" not in data


def test_loading_refuses_it_without_permission_and_inspect_shows_it(name: str) -> None:
    fm = kafeat.fit(config(name), X, allow_import=True)
    fm.save("map.joblib")
    os.remove("imported")
    with pytest.raises(UsageError, match=r"map.joblib: steps\[0\]." + NEEDED.format(name=name)):
        kafeat.load("map.joblib")
    assert inspect("map.joblib")["steps"][0]["kernel"] == f"{name}:tanimoto"
    loaded = kafeat.load("map.joblib", allow_import=True)
    assert loaded.transform(X).tobytes() == fm.transform(X).tobytes()
    assert loaded.dumps() == fm.dumps()


def test_commands_need_the_flag(name: str) -> None:
    np.save("x.npy", X)
    Path("c.yaml").write_text(f"steps: [{{kind: nystroem, kernel: '{name}:tanimoto', n_components: 8}}]")

    def run(*arguments: str) -> int:
        return CliRunner().invoke(command, arguments, standalone_mode=False).exit_code

    done = subprocess.run(  # as a user does it: the exit code and the message
        [sys.executable, "-m", "kafeat", "fit", "--config", "c.yaml", "x.npy", "m.joblib"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert (
        f"config: steps[0].kernel: expected --allow-import (in Python: allow_import=True) to import '{name}"
        in done.stderr
    )
    assert not imported()
    assert run("fit", "--allow-import", "--config", "c.yaml", "x.npy", "m.joblib") == 0
    for arguments in (
        ["transform", "--model", "m.joblib", "x.npy", "z.npy"],
        ["evaluate", "--model", "m.joblib", "x.npy"],
        ["evaluate", "--config", "c.yaml", "x.npy"],
    ):
        assert run(*arguments) != 0
        assert run(*arguments, "--allow-import") == 0
    assert run("verify", "--model", "m.joblib", "x.npy", "z.npy", "--allow-import") == 0
    assert run("inspect", "m.joblib") == run("diff", "m.joblib", "m.joblib") == 0


def test_no_operator_computes_it(name: str) -> None:
    pytest.importorskip("onnx")
    from kafeat.onnx import to_model

    with pytest.raises(UsageError, match="expected a kernel by name, got a Python function, which no ONNX"):
        to_model(kafeat.fit(config(name), X, allow_import=True))


def test_parts_in_processes_import_it_too(name: str) -> None:
    os.mkdir("in")
    for part in ("a", "b"):
        np.save(f"in/{part}.npy", X)
    kafeat.fit(config(name), X, allow_import=True).save("map.joblib")
    with allowing_imports(True):
        done = transform_parts("map.joblib", "in", "out", engine=Engine("processes", jobs=1))
    assert (done.parts, done.failed) == (2, ())


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            "no_such_module:f",
            r"expected a function that can be imported, got 'no_such_module:f' \(ModuleNotFoundError",
        ),
        ("math:no_such_function", r"got 'math:no_such_function' \(AttributeError"),
        ("math:pi", "kernel: expected a function, got 'math:pi', which is a float"),
    ],
)
def test_what_cannot_be_imported_is_named(kernel: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kafeat.fit(config("", kernel=kernel), X, allow_import=True)


@pytest.mark.parametrize("kernel", ["a:b:c", ":f", "m:", "../m:f", "m:f()", "1m:f"])
def test_what_is_no_name_is_a_mistake_of_the_config(kernel: str) -> None:
    with pytest.raises(ConfigError, match=r"kernel: expected .*a function by its name \('module:function'\)"):
        kafeat.fit(config("", kernel=kernel), X, allow_import=True)


def test_parameters_of_named_kernels_are_refused_beside_it() -> None:
    with pytest.raises(ConfigError, match="gamma: expected none beside a Python function"):
        kafeat.fit(config("math", gamma=1.0), X)


def test_an_error_of_the_function_tells_its_place(name: str) -> None:
    with pytest.raises(
        UsageError, match=rf"kernel '{name}:broken': expected values .*, got ValueError.*{name}.py, line 9\)"
    ):
        kafeat.fit(config(name, kernel=f"{name}:broken"), X, allow_import=True)
