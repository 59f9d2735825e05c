"""`kafeat import-sklearn` as a user runs it, and the page's example."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kafeat
from tests.conftest import Done

sio = pytest.importorskip("skops.io")
pd = pytest.importorskip("pandas")

ROOT = Path(__file__).parents[2]
KAFEAT = str(Path(sys.executable).with_name("kafeat"))


Run = Callable[..., Done]


@pytest.fixture
def run(in_process: Run) -> Run:
    """A command whose exit code is the expected one."""

    def run(*words: object, cwd: Path, code: int = 0) -> Done:
        done = in_process(*words, cwd=cwd)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sample data and a fitted pipeline, on named columns."""
    path = tmp_path_factory.mktemp("fitted")
    (path / "sample_data").symlink_to(ROOT / "sample_data")
    X = pd.read_csv(path / "sample_data/digits.csv").drop(columns="label")
    model = make_pipeline(
        StandardScaler(), RBFSampler(gamma=0.01, n_components=64, random_state=0), RidgeClassifier()
    )
    model.fit(X, np.arange(len(X)) % 2)
    sio.dump(model, path / "whole.skops")
    sio.dump(model[:-1], path / "fitted.skops")
    np.save(path / "expected.npy", model[:-1].transform(X))
    return path


@pytest.mark.slow
def test_a_fitted_map_becomes_a_model_of_every_command(folder: Path, run: Run) -> None:
    subprocess.run(
        [KAFEAT, "import-sklearn", "fitted.skops", "map.joblib"], cwd=folder, check=True, timeout=120
    )
    run(
        "transform",
        "--model",
        "map.joblib",
        "sample_data/digits.parquet",
        "z.parquet",
        "--keep",
        "label",
        cwd=folder,
    )
    table = pq.read_table(folder / "z.parquet")
    assert table.column_names == ["label", *(f"f{i}" for i in range(64))]
    Z, expected = np.column_stack([table[f"f{i}"] for i in range(64)]), np.load(folder / "expected.npy")
    # an angle is a sum of 64 terms of some units, and a cosine moves by as much as its angle; √(2/64) in front
    np.testing.assert_allclose(Z, expected, rtol=0, atol=64 * 8 * np.finfo(float).eps)
    shown = run("inspect", "map.joblib", cwd=folder).stdout
    assert "imported from scikit-learn: StandardScaler -> RBFSampler\n  fitted.skops\n  sha256 " in shown
    assert "fitted on" not in shown
    asked = [
        "evaluate",
        "--model",
        "map.joblib",
        "sample_data/digits.parquet",
        "--label",
        "label",
        "--rows",
        300,
    ]
    report = json.loads(run(*asked, "--json", "-", cwd=folder).stdout)
    # 64 random features: the error of an entry is some 1/√64
    assert 0.01 < report["relative_frobenius"] < 0.5
    run("verify", "--model", "map.joblib", "sample_data/digits.parquet", "z.parquet", cwd=folder)


def test_float32_and_no_clobber(folder: Path, run: Run) -> None:
    run("import-sklearn", "fitted.skops", "single.joblib", "--dtype", "float32", cwd=folder)
    assert kafeat.load(folder / "single.joblib").dtype == "float32"
    before = (folder / "single.joblib").read_bytes()
    done = run("import-sklearn", "fitted.skops", "single.joblib", "--no-clobber", cwd=folder, code=2)
    assert "single.joblib" in done.stderr
    assert (folder / "single.joblib").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("whole.skops m.joblib", 4, "whole.skops: RidgeClassifier: expected one of AdditiveChi2Sampler, "),
        ("expected.npy m.joblib", 4, "expected.npy: expected a file of skops"),
        ("none.skops m.joblib", 5, "none.skops: No such file"),
        ("fitted.skops fitted.skops", 2, "expected a model apart from the input, got the same file"),
        ("fitted.skops", 2, "Missing argument"),
        ("fitted.skops m.joblib --dtype float16", 2, "float16"),
    ],
)
def test_exit_codes(folder: Path, run: Run, arguments: str, code: int, message: str) -> None:
    done = run("import-sklearn", *arguments.split(), cwd=folder, code=code)
    assert message in done.stderr
    assert not (folder / "m.joblib").exists()


@pytest.mark.parametrize("missing", ["sklearn", "skops"])
def test_a_missing_extra_is_named_with_its_remedy(missing: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / missing).mkdir()
    (tmp_path / missing / "__init__.py").write_text(f'raise ImportError("No module named {missing!r}")')
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [KAFEAT, "import-sklearn", "fitted.skops", "m.joblib"],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert f"No module named '{missing}'; pip install 'kafeat[sklearn]'" in done.stderr


def test_the_examples_of_the_page_run(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/scikit_learn.md").read_text()
    examples = [code for code in re.findall(r"```python\n(.*?)```", page, flags=re.S) if "sklearn" in code]
    assert len(examples) == 5
    work = folder / "readme"
    work.mkdir()
    (work / "sample_data").symlink_to(ROOT / "sample_data")
    monkeypatch.chdir(work)
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
    assert kafeat.load("map.joblib").columns.names[0] == "p00"
    assert kafeat.load("model.joblib").classes.tolist() == list(range(10))
    (line,) = re.findall(r"^    kafeat (import-sklearn [^#\n]*)", page, flags=re.M)
    run(*line.split(), cwd=work)
    assert kafeat.load("map.joblib").n_components == 100


def test_a_transform_does_not_import_scikit_learn() -> None:
    code = "import sys, kafeat.cli.transform, kafeat.jobs.transform.transform; sys.exit('sklearn' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
