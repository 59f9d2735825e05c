"""Run every case of `golden.py` with the code on the path, and keep in a folder all that it writes.

A case is some commands, or a function that uses the Python API. Each runs in a fork of this process, which has imported
everything and computed nothing, so that a thousand commands take a minute.
"""

from __future__ import annotations

import json
import os
import pkgutil
import re
import shlex
import sys
import threading
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np

DIGITS, RENTALS = "sample_data/digits.parquet", "sample_data/rentals.csv"
COMMANDS = (
    "tune", "fit", "transform", "predict", "evaluate", "inspect", "verify", "diff", "export", "kinds",
    "config", "demo",
)  # fmt: skip
FORMATS = {
    "csv": "f.csv", "gz": "f.csv.gz", "zst": "f.csv.zst", "tsv": "f.tsv", "parquet": "f.parquet", "npy": "f.npy",
    "arrow": "f.arrow", "stream": "f.arrows", "jsonl": "f.jsonl", "libsvm": "f.libsvm", "npz": "f.npz",
}  # fmt: skip
Case = tuple[str, list[str]] | tuple[str, Callable[[], None]]


def cases() -> Iterator[Case]:
    """Yield all cases: a name, and the lines of a shell or a function."""
    yield from _of_help()
    yield from _of_configs()
    yield from _of_formats()
    yield from _of_rows()
    yield from _of_parts()
    yield from _of_predictors()
    yield from _of_studies()
    yield from _of_mistakes()
    yield from ((f"python/{name}", run) for name, run in _python())


def _of_help() -> Iterator[Case]:
    yield "help", ["kafeat --help", "kafeat --version", *(f"kafeat {name} --help" for name in COMMANDS)]
    yield "kinds", ["kafeat kinds", *(f"kafeat kinds {kind}" for kind in _kinds())]
    yield (
        "config",
        [
            *("kafeat config", "kafeat config --schema", "kafeat config --check configs/*.yaml"),
            *(f"kafeat config --kind {kind}" for kind in _kinds()),
        ],
    )
    yield "demo", ["kafeat demo here", "kafeat demo here"]


def _kinds() -> list[str]:
    folders = (Path("kafeat", room) for room in ("samplers", "scalers", "predictors"))
    root = Path(import_module("kafeat").__file__ or "").parents[1]
    names = (file.stem for folder in folders for file in (root / folder).glob("*.py") if file.stem[0] != "_")
    return sorted({*names} & {file.stem for file in Path("configs").glob("*.yaml")})


def _of_configs() -> Iterator[Case]:
    """Every config in both precisions: the model file, its features in three formats, its graph, its errors."""
    for file, dtype in product(sorted(Path("configs").glob("*.yaml")), ("float32", "float64")):
        data, label = (RENTALS, "income") if file.stem == "mixed" else (DIGITS, "label")
        text = re.sub(r"(?m)^dtype:.*\n", "", file.read_text()) + f"\ndtype: {dtype}\n"
        yield (
            f"configs/{file.stem}-{dtype}",
            [
                f"write config.yaml {shlex.quote(text)}",
                f"kafeat fit -v --config config.yaml {data} m.joblib --label {label}",
                "kafeat inspect m.joblib",
                "kafeat inspect --json m.joblib",
                *(
                    f"kafeat transform --features --model m.joblib {data} {out}"
                    for out in ("f.parquet", "f.npy", "f.npz")
                ),
                f"kafeat transform --features --model m.joblib {data} s.npy --unit-variance --jobs 1",
                f"kafeat verify --model m.joblib {data} f.parquet",
                "kafeat export m.joblib m.onnx",
                f"kafeat evaluate --model m.joblib {data} --label {label} --rows 300 --json e.json",
            ],
        )


# Fitted in milliseconds: the default frequencies take seconds.
_SMALL = "steps: [{kind: standardize}, {kind: fourier, n_components: 48, frequencies: orthogonal, weights: uniform}]\n"
_FIT = f"kafeat fit --config small.yaml {DIGITS} m.joblib --label label"
_TRANSFORM = "kafeat transform --model m.joblib"


def _of_formats() -> Iterator[Case]:
    """Every format that is written, in every layout and type, and every format that is read."""
    of_types = product(FORMATS.items(), ("columns", "list"), ("float16", "float32", "float64"))
    for (name, out), layout, dtype in of_types:
        yield (
            f"formats/{name}-{layout}-{dtype}",
            [
                _FIT,
                f"{_TRANSFORM} {DIGITS} {out} --layout {layout} --output-dtype {dtype}{_kept(out)} --stats s.json "
                "--limit 700",
                f"kafeat verify --model m.joblib {DIGITS} {out} --stats s.json --limit 700",
            ],
        )
    for name, compression in product(
        ("parquet", "arrow", "csv", "jsonl"), ("none", "snappy", "lz4", "zstd", "gzip")
    ):
        yield f"formats/{name}-{compression}", [
            _FIT, f"{_TRANSFORM} {DIGITS} f.{name} --compression {compression} --prefix z --keep all"
        ]  # fmt: skip
    for name, made in FORMATS.items():
        identity = (
            "write id.yaml 'columns: {exclude: [label]}\nsteps: [{kind: clip, low: -1e9, high: 1e9}]\n'"
        )
        yield f"read/{name}", [
            identity, f"kafeat fit --config id.yaml {DIGITS} id.joblib", _FIT,
            f"kafeat transform --model id.joblib {DIGITS} {made}{_kept(made)}",
            f"kafeat fit --config small.yaml {made} other.joblib",
            f"kafeat transform --model other.joblib {made} g.csv",
        ]  # fmt: skip
    for name in ("csv", "parquet", "npy", "csv.gz"):
        yield f"read/digits-{name}", [_FIT, f"{_TRANSFORM} sample_data/digits.{name} f.npy"]


def _kept(out: str) -> str:
    return "" if out.endswith((".npy", ".npz")) else " --keep label"


def _of_rows() -> Iterator[Case]:
    """Streams, bad rows, drift, sparse rows, columns that are copied."""
    table = "a,b,c\\n" + "".join(f"{i},{i * i % 17},{'x' if i % 5 == 3 else i / 8}\\n" for i in range(40))
    fit = [
        f"write bad.csv {shlex.quote(table.encode().decode('unicode_escape'))}",
        "kafeat fit --config configs/standardize.yaml sample_data/digits.parquet d.joblib --label label",
        "write good.csv 'a,b,c\n1,2,3\n4,5,7\n3,8,2\n'",
        "write c.yaml 'steps: [{kind: standardize}, {kind: fourier, n_components: 8}]\n'",
        "kafeat fit --config c.yaml good.csv m.joblib",
    ]
    for mode, out in product(("error", "drop", "null"), ("f.csv", "f.parquet", "f.npy", "-")):
        yield f"rows/{mode}-{out}", [
            *fit, f"{_TRANSFORM} bad.csv {out} --on-bad-rows {mode} --rejects r.csv --keep a --stats s.json",
            f"kafeat verify --model m.joblib bad.csv {out} --on-bad-rows {mode}",
        ]  # fmt: skip
    yield "rows/limits", [
        *fit, f"{_TRANSFORM} bad.csv f.csv --on-bad-rows drop --max-bad-rows 3",
        f"{_TRANSFORM} bad.csv f.csv --on-bad-rows drop --max-bad-rows 50%",
        f"{_TRANSFORM} good.csv f.csv --max-drift 0.1 --drift-test 0.01",
        f"{_TRANSFORM} bad.csv f.csv --on-bad-rows null --max-drift 0.1",
        f"{_TRANSFORM} good.csv - --limit 2 -v",
    ]  # fmt: skip
    yield "rows/streams", [
        _FIT, f"{_TRANSFORM} - - --limit 20 < sample_data/digits.csv > f.csv",
        f"{_TRANSFORM} - - --output-format arrow < sample_data/digits.csv > f.arrows",
        f"{_TRANSFORM} - f.npy < f.arrows", f"{_TRANSFORM} - f.npy --input-format arrow < f.arrows",
        f"{_TRANSFORM} sample_data/digits.csv f.npy -j 1", f"{_TRANSFORM} sample_data/digits.csv g.npy -j 2",
    ]  # fmt: skip
    yield "rows/keep", [
        "kafeat fit --config configs/mixed.yaml sample_data/rentals.csv m.joblib --label income",
        *(f"{_TRANSFORM} {RENTALS} f.{name} --keep all --limit 99" for name in ("csv", "parquet", "arrow", "jsonl")),
        f"{_TRANSFORM} {RENTALS} f.libsvm --keep income", f"{_TRANSFORM} {RENTALS} f.npz --keep income",
        f"{_TRANSFORM} {RENTALS} g.parquet --keep time,station", f"{_TRANSFORM} {RENTALS} g.parquet --keep nothing",
    ]  # fmt: skip
    for config in ("homogeneous", "tensor_sketch", "projection", "one_hot", "intersection_bins", "ridge"):
        yield (
            f"rows/sparse-{config}",
            [
                f"kafeat fit --config configs/{config}.yaml {DIGITS} m.joblib --label label",
                f"kafeat transform --features --model m.joblib {DIGITS} f.npz --keep label",
                f"kafeat transform --features --model m.joblib {DIGITS} f.libsvm --keep label -j 1",
                f"kafeat transform --features --model m.joblib {DIGITS} g.npy",
            ],
        )


def _of_parts() -> Iterator[Case]:
    split = f"{_TRANSFORM} {DIGITS} parts --rows-per-file 512 --keep label"
    for engine in ("threads", "processes"):
        yield f"parts/{engine}", [
            _FIT, split, f"{split} --engine {engine} -j 2 --stats s.json",
            f"{split} --engine {engine} --resume", f"{split} --engine {engine} --overwrite -v",
            f"kafeat verify --model m.joblib {DIGITS} parts", f"{_TRANSFORM} parts again",
        ]  # fmt: skip
    yield "parts/folder", [
        _FIT, "kafeat transform --model m.joblib sample_data/digits.csv a/one.csv --limit 100",
        *("mkdir a", "mkdir b", "copy sample_data/digits.csv a/one.csv", "copy sample_data/digits.csv a/two.csv"),
        f"{_TRANSFORM} a out --output-format parquet", f"{_TRANSFORM} a out --output-format parquet --resume",
        f"{_TRANSFORM} 'a/*.csv' out2 --keep label --rejects r.csv --on-bad-rows drop",
        "kafeat verify --model m.joblib a out2",
        "kafeat fit --config small.yaml a n.joblib --label label", "kafeat diff m.joblib n.joblib",
        f"{_TRANSFORM} b out3", "kafeat evaluate --model m.joblib a --label label --rows 200 --json e.json",
    ]  # fmt: skip


def _of_predictors() -> Iterator[Case]:
    """Predictions of numbers, classes and several labels, in every format, and their other uses."""
    ridge = "write c.yaml 'steps: [{kind: standardize}, {kind: fourier, n_components: 64}, {kind: KIND}]\n'"
    for kind, out in product(("ridge", "logistic"), FORMATS.values()):
        yield f"predict/{kind}-{out}", [
            ridge.replace("KIND", kind), f"kafeat fit --config c.yaml {DIGITS} m.joblib --label label",
            f"kafeat predict --model m.joblib {DIGITS} {out}{_kept(out)}",
            f"kafeat verify --model m.joblib {DIGITS} {out}",
            f"kafeat predict --model m.joblib {DIGITS} {out} --output-dtype float32 --limit 9",
        ]  # fmt: skip
    yield "predict/several", [
        "write c.yaml 'steps: [{kind: standardize}, {kind: nystroem, n_components: 64}, {kind: ridge}]\n'",
        "write n.yaml 'columns: {include: [temperature, wind_mean]}\nsteps: [{kind: impute}, {kind: standardize}, "
        "{kind: nystroem, n_components: 32, validate: {gamma: [0.1, 1.0]}}, {kind: ridge}]\n'",
        f"kafeat fit --config n.yaml {RENTALS} m.joblib --label income --label wind_gust -v",
        f"kafeat predict --model m.joblib {RENTALS} f.csv --keep income", "kafeat inspect m.joblib",
        f"kafeat evaluate --model m.joblib {RENTALS} --label income --label wind_gust --all-rows",
        f"kafeat fit --config n.yaml {RENTALS} w.joblib --label income --weight wind_gust",
        "kafeat diff m.joblib w.joblib", "kafeat diff m.joblib w.joblib --json",
        "kafeat diff m.joblib w.joblib --exit-code",
        f"kafeat fit --config c.yaml {RENTALS} t.joblib --label weather",
        f"kafeat evaluate --model w.joblib {RENTALS} --label income --json e.json", "kafeat export m.joblib m.onnx -v",
        f"kafeat predict --model m.joblib {RENTALS} parts --rows-per-file 512 --jobs 2",
    ]  # fmt: skip


def _of_studies() -> Iterator[Case]:
    tune = f"kafeat tune {DIGITS} best.yaml --label label --trials 9 --columns 64"
    yield "tune/digits", [
        f"{tune} --json t.json --report page", f"kafeat fit --config best.yaml {DIGITS} m.joblib --label label"
    ]  # fmt: skip
    yield "tune/predictor", [
        f"kafeat tune {RENTALS} best.yaml --label income --predictor ridge --trials 12 --json t.json",
        f"kafeat fit --config best.yaml {RENTALS} m.joblib --label income",
        f"kafeat predict --model m.joblib {RENTALS} f.csv",
        f"kafeat tune {RENTALS} - --label weather --trials 5 --columns 32 --scoring balanced_accuracy --seeds 1",
        f"kafeat tune {RENTALS} best.yaml --label income --from configs/mixed.yaml --trials 3",
        f"kafeat tune {RENTALS} other.yaml --label income --from configs/mixed.yaml --trials 3 --max-bytes-per-row 512",
    ]  # fmt: skip
    evaluate = f"kafeat evaluate {DIGITS} --label label --rows 400"
    compared = "--config small.yaml --config configs/nystroem.yaml"
    for name, words in {
        "two": f"{compared} --json e.json --report page", "seeds": f"{compared} --seeds 2 --splits 2 --json e.json",
        "sweep": "--config small.yaml --sweep n_components=16,32,64 --json e.json --report page",
        "scoring": f"{compared} --scoring balanced_accuracy --json -",
        "gate": "--config small.yaml --min-score 0.99 --max-error 0.01",
        "learners": "--config small.yaml --learner logistic --penalty validate --json e.json",
    }.items():  # fmt: skip
        yield f"evaluate/{name}", [f"{evaluate} {words}"]
    yield "evaluate/numbers", [
        f"kafeat evaluate --config configs/mixed.yaml {RENTALS} --label income --rows 400 --json e.json --report page",
        f"kafeat evaluate --config configs/mixed.yaml {RENTALS} --rows 300",
    ]  # fmt: skip


def _of_mistakes() -> Iterator[Case]:
    """Mistakes in configs and commands: each line is refused, with its message and code."""
    configs = """\
steps: []
steps: [{kind: fourrier}]
steps: [{kind: fourier, gama: 1}]
steps: [{kind: fourier, gamma: -1}]
steps: [{kind: ridge}, {kind: fourier}]
steps: [{kind: fourier, kernel: cauchi}]
{seed: x, steps: [{kind: clip}]}
{columns: {include: [nothing]}, steps: [{kind: standardize}]}
steps: [{kind: one_hot, columns: [nothing]}]
steps: [{kind: fourier, n_components: 1e-3}]
{a: 1, a: 2}
steps: [{kind: nystroem, kernel: 'os:getcwd'}]
steps: [{kind: homogeneous}]
steps: [{kind: metric}]
steps: [{kind: fourier, validate: {gamma: []}}]
"""
    check = ["kafeat config --check c.yaml", f"kafeat fit --config c.yaml {RENTALS} m.joblib"]
    lines = ((f"write c.yaml {shlex.quote(text)}", *check) for text in ["", *configs.splitlines()])
    yield "mistakes/configs", [line for three in lines for line in three]
    commands = f"""\
{_FIT}
write text.csv 'a b'
write empty.csv ''
write head.csv 'a,b'
write broken.joblib nothing
kafeat
kafeat fits
kafeat fit
kafeat fit --config small.yaml {DIGITS}
kafeat fit --config small.yaml nothing.parquet m.joblib
kafeat fit --config small.yaml empty.csv e.joblib
kafeat fit --config small.yaml head.csv e.joblib
kafeat fit --config small.yaml text.csv e.joblib
kafeat fit --config small.yaml {DIGITS} {DIGITS}
kafeat fit --config small.yaml {DIGITS} n.joblib --label no
{_FIT} --no-clobber
{_FIT} --limit 0
{_FIT} --split label
{_FIT} --weight label
{_FIT} --jobs x
{_TRANSFORM} text.csv f.csv
{_TRANSFORM} {DIGITS} f.xyz
{_TRANSFORM} {DIGITS} m.joblib
{_TRANSFORM} - f.csv
{_TRANSFORM} {DIGITS} no/f.csv
{_TRANSFORM} {DIGITS} f.csv --keep f0
{_TRANSFORM} {DIGITS} f.npy --rejects f.npy
{_TRANSFORM} {DIGITS} f.csv --on-bad-row drop
{_TRANSFORM} {DIGITS} f.csv --engine loky
{_TRANSFORM} {DIGITS} f.csv --max-drift 2
kafeat inspect broken.joblib
kafeat inspect nothing
kafeat predict --model m.joblib {DIGITS} f.csv
kafeat kinds fourir
kafeat verify --model m.joblib {RENTALS} f.csv
kafeat tune {RENTALS} b.yaml --label time
kafeat tune {RENTALS} b.yaml --label income --time x
kafeat evaluate {RENTALS}
kafeat export broken.joblib m.onnx
"""
    yield "mistakes/commands", commands.splitlines()


def _python() -> Iterator[tuple[str, Callable[[], None]]]:
    """The Python API: maps of arrays, frames and sparse rows, estimators, kernels."""
    for file in sorted(Path("configs").glob("*.yaml")):
        if file.stem not in ("mixed", "date_parts", "one_hot"):
            yield f"map-{file.stem}", lambda file=file: _map(str(file))
    yield "frames", _frames
    yield "estimators", _estimators
    yield "evaluate", _evaluate


def _map(config: str) -> None:
    import scipy.sparse

    import kafeat

    X, label = np.load("sample_data/digits.npy"), _labels()
    recipe = kafeat.Config.model_validate(_plain(config))
    fm = kafeat.fit(recipe, X, label=label)
    print(
        repr(fm),
        fm.n_components,
        fm.get_feature_names_out()[:3] if hasattr(fm, "get_feature_names_out") else "",
    )
    for dtype in ("uint8", "float32", "float64"):
        np.save(f"{dtype}.npy", fm.transform(X[:300].astype(dtype)))
    np.save("one.npy", fm.transform(X[:1]))
    np.save("sparse.npy", np.asarray(fm.transform(scipy.sparse.csr_array(X[:50].astype(float)))))
    np.save("kernel.npy", fm.exact_kernel(X[:20].astype(float)))
    if "logistic" in config or "ridge" in config:
        np.save("predictions.npy", fm.predict(X[:50]))


def _plain(config: str) -> dict[str, object]:
    from ruamel.yaml import YAML

    plain = dict(YAML(typ="safe").load(Path(config).read_text()))
    plain.pop("columns", None)
    return json.loads(re.sub(r'"p(\d\d)"', r'"c\1"', json.dumps(plain)).replace('"c0', '"c'))


def _labels() -> np.ndarray:
    import pyarrow.parquet as pq

    return pq.read_table(DIGITS).column("label").to_numpy()


def _frames() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow.csv

    import kafeat

    table = pyarrow.csv.read_csv(RENTALS)
    fm = kafeat.fit("configs/mixed.yaml", table, label="income")
    for name, frame in {"arrow": table, "pandas": table.to_pandas(), "polars": pl.from_arrow(table)}.items():
        np.save(f"{name}.npy", fm.transform(frame))
    fm.save("m.joblib")
    print(kafeat.load("m.joblib"), kafeat.transform(RENTALS, "f.parquet", model="m.joblib", keep="income"))
    print(pd.read_parquet("f.parquet").dtypes.to_string())


def _estimators() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import kafeat.sklearn as ks

    X, y = np.load("sample_data/digits.npy").astype(float), _labels()
    for name in sorted(ks.__all__):
        print(name, getattr(ks, name)().get_params() if isinstance(getattr(ks, name), type) else "")
    steps = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 64}]
    pipeline = make_pipeline(ks.FeatureMap(steps), LogisticRegression(C=0.1, max_iter=50, tol=1e-1))
    np.save("pipeline.npy", pipeline.fit(X[:500], y[:500]).predict(X[500:600]))
    model = ks.FeatureMapClassifier(steps).fit(X[:500], y[:500])
    np.save("probabilities.npy", model.predict_proba(X[500:600]))


def _evaluate() -> None:
    import kafeat

    evaluation = kafeat.evaluate(data=DIGITS, config="small.yaml", label="label", rows=300)
    print(json.dumps(evaluation, indent=1, default=str))
    tuning = kafeat.tune(DIGITS, "label", 32, trials=4)
    print(tuning.yaml, json.dumps(tuning.to_plain(), indent=1, default=str))


def main() -> None:
    """Run the cases whose names match, in forks of this process; the current folder has sample_data and configs."""
    out, pattern = Path(sys.argv[1]).resolve(), re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    time.perf_counter = _ticks
    tracemalloc.get_traced_memory = lambda: (1 << 20, 1 << 24)
    import kafeat

    for module in pkgutil.walk_packages(kafeat.__path__, "kafeat."):
        if not re.search(r"__main__|compiled\.kernels|\.dask|\.spark", module.name):
            import_module(module.name)
    for other in (
        "pandas",
        "polars",
        "sklearn.linear_model",
        "sklearn.pipeline",
        "matplotlib.figure",
        "onnxruntime",
        "scipy.sparse",
    ):
        import_module(other)
    sys.modules["matplotlib"].rcParams["svg.hashsalt"] = "golden"
    here = Path.cwd()

    def run(case: Case) -> None:
        name, what = case
        folder = out / name
        folder.mkdir(parents=True)
        for shared in ("sample_data", "configs"):
            (folder / shared).symlink_to(here / shared)
        (folder / "small.yaml").write_text(_SMALL)
        if callable(what):
            _fork(folder, "python", what)
            return
        for number, line in enumerate(what):
            _line(folder, f"{number:02}", line)

    chosen = [case for case in cases() if pattern.search(case[0])]
    workers = [_forked(lambda k=k: [run(case) for case in chosen[k::2]]) for k in range(2)]
    sys.exit(max(_code(worker) for worker in workers))


_OF_THREAD = threading.local()


def _ticks() -> float:
    """Return a time that depends on the number of calls alone, so that costs are the same in every run."""
    _OF_THREAD.calls = getattr(_OF_THREAD, "calls", 0) + 1
    return _OF_THREAD.calls / 20.0


def _line(folder: Path, number: str, line: str) -> None:
    """Run a command, with files as its streams, or one of three words for files."""
    (word, *words), source, target = shlex.split(line), "/dev/null", f"{number}.out"
    if word == "write":
        (folder / words[0]).write_text(words[1])
    elif word == "mkdir":
        (folder / words[0]).mkdir()
    elif word == "copy":
        (folder / words[1]).write_bytes((folder / words[0]).read_bytes())
    else:
        if ">" in words:
            *words, _, target = words
        if "<" in words:
            *words, _, source = words
        words = [one for word in words for one in _spread(folder, word)]
        _fork(folder, number, lambda: _command(words), source, target, f"{line}\n")


def _spread(folder: Path, word: str) -> list[str]:
    """Spread `configs/*.yaml`, as a shell does; patterns of other files are the tool's own."""
    return (
        sorted(str(file.relative_to(folder)) for file in folder.glob(word))
        if word == "configs/*.yaml"
        else [word]
    )


def _command(words: list[str]) -> None:
    from kafeat.__main__ import main as kafeat

    sys.argv = ["kafeat", *words]
    kafeat()


def _fork(
    folder: Path,
    name: str,
    run: Callable[[], None],
    source: str = "/dev/null",
    target: str = "",
    line: str = "",
) -> None:
    """Run a function in a fork, in the folder, and write its exit code to a file beside its streams."""

    def with_streams() -> None:
        os.chdir(folder)
        os.environ["COLUMNS"] = "100"
        written = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
        places = ((source, os.O_RDONLY), (target or f"{name}.out", written), (f"{name}.err", written))
        for number, (path, flags) in enumerate(places):
            os.dup2(os.open(path, flags, 0o644), number)
        run()

    (folder / f"{name}.code").write_text(f"{line}{_code(_forked(with_streams))}\n")


def _forked(run: Callable[[], object]) -> int:
    """Run a function in a fork of this process, and return the number of the fork."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            run()
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return child


def _code(child: int) -> int:
    """Wait for a fork, and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
