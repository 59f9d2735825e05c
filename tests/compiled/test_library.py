"""The compiled core: built from its source, found, switched off, and missing."""

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kafeat.compiled import library
from tests.zygote import ROOT


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build hook, at work in a folder of its own."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for file in (ROOT / "kafeat/compiled").glob("*.[ch]"):
        shutil.copy(file, tmp_path)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(module, "LIBRARY", tmp_path / "kernels.so")
    monkeypatch.delenv("KAFEAT_COMPILED", raising=False)
    return module


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_without_a_compiler_that_works_no_library_is_left(builder, tmp_path, compiler, monkeypatch):
    (tmp_path / "kernels.so").write_bytes(b"of an older source")
    monkeypatch.setenv("CC", compiler)
    assert not builder.build()
    assert not list(tmp_path.glob("*.so"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_source_compiles_without_a_warning(builder, tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "FLAGS", (*builder.FLAGS, "-Wall", "-Wextra", "-Werror"))
    assert builder.build()
    assert hasattr(ctypes.CDLL(str(tmp_path / "kernels.so")), "kafeat_cos_sin_f32")


def test_a_library_that_cannot_be_loaded_leaves_the_work_to_numpy(tmp_path):
    broken = tmp_path / "kernels.so"
    broken.write_bytes(b"for another machine")
    code = (
        "import pathlib, sys, numpy; from kafeat.compiled import library; library._FILE = pathlib.Path(sys.argv[1]);"
        "print(library.loop('cos_sin', numpy.dtype('f4')), library.describe())"
    )
    for file in (broken, tmp_path / "missing.so"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(file)], cwd=ROOT, capture_output=True, text=True, timeout=60,
            env={"KAFEAT_COMPILED": "1"},
        )  # fmt: skip
        assert done.stdout.startswith("None NumPy (no compiled core"), done.stderr


def test_other_precisions_have_no_loop():
    assert library.loop("cos_sin", np.dtype(np.float16)) is None
