"""Shared fixtures: scikit-learn's handwritten digits, read-only, and the command line in this process."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from sklearn.datasets import load_digits

from kafeat.chain.blas import one_blas_thread
from kafeat.cli import log, main
from kafeat.contract.step import Sample, Step
from kafeat.jobs.fit import intervals
from kafeat.maths import metric
from kafeat.maths.fourier import learning as frequency_fit
from kafeat.maths.fourier import supervised
from kafeat.study import boosting
from tests import sizes
from tests.io.object_store import running
from tests.zygote import ROOT

# A machine that does something else is no fault of an example.
settings.register_profile("no deadline", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=25)  # of `make test`
settings.load_profile("no deadline")

HERE = Path(__file__).parent


def pytest_configure() -> None:
    """Give the workers, which begin later, the day as the seed."""
    sizes.seed()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark most of the cases that are marked `sampled` as slow, others every day.

    The case with the first value of every parameter, and that with the last ones, are run always.
    """
    families: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sampled"):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in families.values():
        places = [tuple(item.callspec.indices.values()) for item in cases]
        corners = [tuple(map(end, zip(*places, strict=True))) for end in (min, max)]
        for item, place in zip(cases, places, strict=True):
            if place not in corners and not sizes.drawn(item.nodeid):
                item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"sampled cases: {sizes.SEED}={sizes.seed()} runs the same ones")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Thousands of tests and the libraries that they import are half a million objects: none becomes garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def configs() -> Path:
    """The folder with one config a kind."""
    return ROOT / "configs"


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    """1,797 rows of 64 values from 0 to 16, float64, read-only."""
    X = np.ascontiguousarray(load_digits().data)
    X.flags.writeable = False
    return X


@pytest.fixture(scope="session")
def digits_table(digits: np.ndarray) -> pa.Table:
    """The same with names, p00 ... p63, and the column `label`."""
    columns = {f"p{i:02}": column for i, column in enumerate(digits.T)}
    return pa.table({**columns, "label": load_digits().target})


@pytest.fixture(scope="session")
def features() -> Callable[[Step, np.ndarray, int], np.ndarray]:
    """The features of X by a step fitted on X itself: no chunks, no tiles, no files."""

    def features(step: Step, X: np.ndarray, seed: int = 0) -> np.ndarray:
        state = step.fit(Sample(X, None, len(X)), np.random.default_rng(seed))
        transform = step.bind(state, X.shape[1], X.dtype)
        out = np.empty((len(X), transform.n_features_out), dtype=X.dtype)
        transform.apply(X, out, transform.scratch(len(X)))
        return out

    return features


@pytest.fixture(scope="module")
def one_limit() -> Iterator[None]:
    """One limit on BLAS threads for a whole file: tests that compute without `transform` need it for the same bytes."""
    with one_blas_thread():
        yield


@pytest.fixture(scope="module", autouse=True)
def _short_learning(request: pytest.FixtureRequest) -> Iterator[None]:
    """Learned frequencies and metrics have tests in one room: others do not depend on how long they learn."""
    with pytest.MonkeyPatch.context() as patch:
        room = request.path.relative_to(HERE).parts[0]
        if room != "maths":
            patch.setattr(frequency_fit, "_STEPS", 20)
            patch.setattr(frequency_fit, "_LEAST_STEPS", 20)
            for steps, few in (("_TRIAL_STEPS", 100), ("_STEPS", 100), ("_LEAST_STEPS", 20)):
                patch.setattr(supervised, steps, few)
            patch.setattr(metric, "_FREQUENCIES", 64)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_flushes() -> Iterator[None]:
    """What is not flushed to the disk is read all the same, and a flush waits: there would be thousands.

    Commands in processes of their own flush.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def _short_searches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        sizes.shorten_searches(patch.setattr)
        yield


@pytest.fixture(scope="module", autouse=True)
def _few_interval_folds(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every fit of a predictor refits it for its intervals: twice is enough where intervals are not the point."""
    with pytest.MonkeyPatch.context() as patch:
        if "interval" not in request.path.name:
            patch.setattr(intervals, "_FOLDS_FROM", {0: (2, 1)})
        yield


@pytest.fixture(scope="module", autouse=True)
def _few_rounds(request: pytest.FixtureRequest) -> Iterator[None]:
    """Three quarters of the time of an evaluation are 100 rounds of boosting, which two files test."""
    with pytest.MonkeyPatch.context() as patch:
        if "boosting" not in request.path.name:
            patch.setattr(boosting, "plan", lambda rows, *_: (rows, {"max_iter": 2}))
        yield


@pytest.fixture(scope="module")
def credentials():
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("AWS_"):
                patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "SECRETTEST")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="session")
def server():
    """A real S3 server on this machine, of a package that every worker would import to see if it is there."""
    if find_spec("moto") is None:
        pytest.skip("needs moto")
    with running() as store:
        yield store


@pytest.fixture
def store(credentials, server, tmp_path, monkeypatch):
    """The server, empty, and a temporary folder in which nothing may be left."""
    server.clear()
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setenv("TMPDIR", str(spool))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield server
    assert os.listdir(spool) == []


@pytest.fixture
def pyplot() -> Iterator[Any]:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield pyplot
    pyplot.close("all")


class Done(NamedTuple):
    """The exit code of a command and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def in_process(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run a command in this process: the imports of one of its own take a second.

    Pipes, signals, closed streams and odd encodings need a process of their own.
    """

    def run(*words: object, cwd: Path | None = None, **variables: str) -> Done:
        with monkeypatch.context() as patch:
            if cwd is not None:
                patch.chdir(cwd)
            # Empty is as if they were not set, and what --color makes of them is undone.
            for name, value in {"NO_COLOR": "", "FORCE_COLOR": "", **variables}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["kafeat", *map(str, words)])
            patch.setattr(log, "settings", log.Settings())
            for of_signals in ("listen", "watch_signals"):  # the signals are pytest's
                patch.setattr(main, of_signals, lambda: None)
            patch.setattr(main, "os", SimpleNamespace(**{**vars(os), "_exit": sys.exit}))
            with pytest.raises(SystemExit, match=r"^\d+$") as end:
                main.main()
        return Done(int(str(end.value)), *capfd.readouterr())

    return run


@pytest.fixture
def run(in_process: Callable[..., Done]) -> Callable[..., Done]:
    """Run a command in this process to an expected exit code. Its first words may be one text with blanks."""

    def run(words: object, *more: object, code: int = 0, **options: object) -> Done:
        done = in_process(*str(words).split(), *more, **options)
        assert (done.returncode, "Traceback" in done.stderr) == (code, code == 1), done
        return done

    return run
