"""Run the compiled core under the sanitizers of addresses and undefined behaviour, over all shapes around its vectors.

    python benchmarks/sanitize.py

Builds the core into a temporary folder, and loads the library of the sanitizer before Python's own (gcc or clang on
Linux). Every function of the core gets arrays of exactly the size it is told, with each number of rows and columns next
to a multiple of its vectors, in both precisions and memory orders, with vectors of 32 and of 64 bytes. Then the tests
that compare the core with NumPy run with it. Ends with 1 at the first access outside of an array.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SANITIZE = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
    "-O1",
)
# Python keeps memory until it ends. The resolver of functions in several machine codes runs before the sanitizer does.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "OPENBLAS_NUM_THREADS": "1",
}
TESTS = (
    "contract/test_casts.py", "contract/test_sparse_product.py", "maths/fourier/test_cosines.py",
    "maths/fourier/test_structured_loop.py", "maths/fourier/test_waves.py", "maths/kernels/test_loops.py",
    "maths/test_content_folds.py", "maths/test_sketch_loop.py", "samplers/test_trees.py", "scalers/test_compiled.py",
)  # fmt: skip
# Next to the number of lanes of each vector, and of a panel of them; a buffer of the core has 256 numbers.
LANES = (4, 8, 16, 64)
SIZES = sorted({1, 2, *(lanes + step for lanes in LANES for step in (-1, 0, 1)), 257})
NYSTROEM = ("rbf", "laplacian", "chi2", "intersection", "rational_quadratic")
STEPS: tuple[dict[str, Any], ...] = (
    *({"kind": "fourier", "frequencies": name} for name in ("orthogonal", "structured", "fastfood")),
    *({"kind": "nystroem", "kernel": name, "landmarks": "uniform"} for name in NYSTROEM),
    *({"kind": "nystroem", "kernel": "matern", "nu": nu, "landmarks": "uniform"} for nu in (0.5, 1.5, 2.5)),
    {"kind": "tensor_sketch"},
    {"kind": "projection", "matrix": "sparse"},
    {"kind": "projection"},
    {"kind": "homogeneous"},
    {"kind": "homogeneous", "negative": "signed"},
    {"kind": "quantile"},
    {"kind": "quantile", "output": "uniform"},
    {"kind": "power"},
    {"kind": "trees", "n_trees": 260, "max_leaves": 4, "min_leaf_rows": 1},
)


def build(folder: Path) -> Path:
    """Build the core with the sanitizers, with the flags of the package otherwise."""
    sys.path.insert(0, str(ROOT))
    import hatch_build

    for source in hatch_build.FOLDER.glob("*.[ch]"):
        shutil.copy(source, folder)
    hatch_build.FOLDER, hatch_build.LIBRARY = folder, folder / "kernels.so"
    hatch_build.FLAGS = (*hatch_build.FLAGS, *SANITIZE)
    if not hatch_build.build():
        raise SystemExit(
            "sanitize: expected a C compiler with -fsanitize=address,undefined, got none (above)"
        )
    return hatch_build.LIBRARY


def run(library: Path, *arguments: str) -> None:
    """Run this file again, with the library of the sanitizer ahead of all others."""
    runtime = re.search(r"=> (\S*asan\S*)", subprocess.check_output(["ldd", str(library)], text=True))
    if runtime is None:
        raise SystemExit(
            "sanitize: expected a shared library of the sanitizer: use gcc, or clang -shared-libasan"
        )
    environment = {**os.environ, **OPTIONS, "LD_PRELOAD": runtime[1]}
    done = subprocess.run([sys.executable, __file__, str(library), *arguments], cwd=ROOT, env=environment)
    if done.returncode:
        raise SystemExit(1)


def load(library: Path, vector: int = 0) -> dict[str, int]:
    """Use this library for the core, with vectors of that size, and return where calls are counted."""
    del os.environ["LD_PRELOAD"]  # commands that tests start have the core of the package
    import numpy as np

    from kafeat.compiled import library as core

    core._FILE = library
    # the package's own are longer than they need to be, so that they begin with a cache line
    core.aligned = np.empty
    if vector:
        core.vector_bytes = lambda: vector
    calls: dict[str, int] = {}
    found = core.function

    def counted(name: str, *arguments: Any, result: Any = None) -> Callable[..., Any]:
        run, calls[name] = found(name, *arguments, result=result), calls.get(name, 0)

        def call(*values: Any) -> Any:
            calls[name] += 1
            return run(*values)

        return call

    core.function = counted
    return calls


def sweep(library: Path, vector: int) -> None:
    """Call every function of the core with every shape."""
    calls = load(library, vector)
    for shapes in (casts, cosines, maps):
        shapes()
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", str(library)], text=True)
    names = set(re.findall(r" kafeat_(\w+?)(?:\.\w+)*$", symbols, re.M)) - {"vector_bytes"}
    other = f"_{96 - vector}_"
    missed = sorted(name for name in names if other not in name and not calls.get(name))
    if missed:
        raise SystemExit(f"sanitize: functions that no shape was tried with: {', '.join(missed)}")
    print(
        f"vectors of {vector} bytes: {sum(calls.values()):,} calls of {len(calls)} functions, clean",
        flush=True,
    )


def casts() -> None:
    import numpy as np

    from kafeat.contract.checks import all_finite, cast_finite

    sources = [np.dtype(name) for name in ("?", *"bhiqBHIQfd")]
    for source in sources:
        for target in map(np.dtype, ("e", "f", "d")):
            for rows in (1, 2, 17):
                for columns in SIZES:
                    values = np.ones((rows, columns), source)
                    wide = np.ones((rows, 2 * columns), source)[:, 1::2]
                    for given in (values, np.asfortranarray(values), wide):
                        for order in "CF":
                            cast_finite(given, np.empty(values.shape, target, order))
                        all_finite(given)


def cosines() -> None:
    import numpy as np

    from kafeat.maths.fourier.transform import CosineFeatures

    for dtype, m in ((np.dtype(name), m) for name in "fd" for m in SIZES):
        features = CosineFeatures(dtype, np.ones(m), np.ones(m))
        for rows in SIZES:
            for order in "CF":
                angles = np.ones((rows, m), dtype, order)
                features.write(angles, np.empty_like(angles))


def maps() -> None:
    import numpy as np

    from kafeat.contract.tile import SparseRows

    for number, (step, d) in enumerate((step, d) for step in STEPS for d in SIZES):
        fitted, D = fit(step, d, SIZES[number % len(SIZES)])
        for dtype in ("float64",) if step["kind"] in ("quantile", "power") else ("float32", "float64"):
            transform = fitted.step.bind(fitted.state, d, np.dtype(dtype))
            for rows in SIZES:
                X = np.random.default_rng(rows).random((rows, d)).astype(dtype)
                for order in "CF":
                    transform.apply(X, np.empty((rows, D), dtype, order), transform.scratch(rows))
                if SparseRows in transform.takes:
                    transform.apply(thin(X), np.empty((rows, D), dtype), transform.scratch(rows))


def fit(step: dict[str, Any], d: int, width: int) -> tuple[Any, int]:
    """Return a fitted step of `width` columns, or one more, for d columns, and its width."""
    import numpy as np

    import kafeat

    if step["kind"] not in ("homogeneous", "quantile", "power"):
        odd = step["kind"] in ("nystroem", "projection")
        step = {**step, "n_components": width + width % 2 * (not odd)}
    X = np.random.default_rng(d).random((width + 1, d))
    label = X[:, 0] if step["kind"] == "trees" else None
    config = {"dtype": "float64", "fit_rows": "all", "steps": [step]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # folds of a few rows are uneven
        (fitted,) = kafeat.fit(config, X, label).chain.steps
    return fitted, fitted.step.n_features_out(fitted.state, d)


def thin(X: Any) -> Any:
    from scipy.sparse import csr_array

    from kafeat.contract.tile import SparseRows

    rows = csr_array(X * (X < 0.3))
    return SparseRows(rows.data, rows.indices, rows.indptr, X.shape[1])


def test(library: Path) -> None:
    load(library)
    import pytest

    # The file in which pytest would hold standard error dies with the process, and the report of the sanitizer in it.
    options = ("-q", "-p", "no:cacheprovider", "--capture=sys")
    raise SystemExit(pytest.main([*options, *(str(ROOT / "tests" / name) for name in TESTS)]))


def main() -> None:
    if sys.argv[1:]:
        library, (*arguments,) = Path(sys.argv[1]), sys.argv[2:]
        return sweep(library, int(arguments[0])) if arguments else test(library)
    from kafeat.compiled.library import vector_bytes

    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        for vector in (32, 64):
            if vector <= vector_bytes():
                run(library, str(vector))
        run(library)


if __name__ == "__main__":
    main()
