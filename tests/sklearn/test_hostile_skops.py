"""Files of skops that claim more than they hold are refused at once, before anything of that size is made."""

from __future__ import annotations

import io
import json
import resource
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer
from sklearn.random_projection import SparseRandomProjection

from kafeat.errors import ArtifactError
from kafeat.sklearn import import_skops

sio = pytest.importorskip("skops.io")

MOST_SECONDS = 5.0
"""These files took 18 seconds and more, or all memory. A refusal takes well below one second on an idle machine."""
MOST_BYTES = 400 << 20


def fitted(estimator: Any, **attributes: Any) -> Any:
    estimator.fit(np.random.default_rng(0).random((20, 5)))
    vars(estimator).update(attributes)
    return estimator


def remade(data: bytes, edit: Callable[[str, bytes], bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", method) as new:
        for name in old.namelist():
            new.writestr(name, edit(name, old.read(name)))
    return out.getvalue()


def claiming(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(64)


def arrays(shape: tuple[int, ...]) -> bytes:
    return remade(sio.dumps(fitted(RBFSampler())), lambda n, c: claiming(shape) if n.endswith(".npy") else c)


def sparse(method: int = zipfile.ZIP_STORED, name: str = ".npz") -> bytes:
    """A projection whose matrix claims 10^12 entries; the member may have any name."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", method) as archive:
        archive.writestr("data.npy", claiming((10**12,)))

    def edit(member: str, content: bytes) -> bytes:
        return inner.getvalue() if member.endswith(".npz") else content

    data = remade(sio.dumps(fitted(SparseRandomProjection(3))), edit)
    return data if name == ".npz" else data.replace(b".npz", name.encode())


def nested_lists() -> bytes:
    """A γ of lists of one list twice, which skops would spell out, and files need not."""
    node: dict[str, Any] = part("list", "ListNode", [], 1)
    for i in range(2, 42):
        again = {"__class__": "list", "__module__": "builtins", "__loader__": "CachedNode", "__id__": i - 1}
        node = part("list", "ListNode", [node, again], i)

    def edit(name: str, content: bytes) -> bytes:
        if name != "schema.json":
            return content
        schema = json.loads(content)
        schema["content"]["content"]["gamma"] = node
        return json.dumps(schema).encode()

    return remade(dumped(fitted(RBFSampler())), edit)


def part(kind: str, loader: str, content: Any, number: int) -> dict[str, Any]:
    return {
        "__class__": kind,
        "__module__": "builtins",
        "__loader__": loader,
        "content": content,
        "__id__": number,
    }


def objects() -> bytes:
    """NumPy would unfold lists in lists as an array of objects."""
    return dumped(fitted(RBFSampler(), feature_names_in_=np.array([["a"], ["b"]], dtype=object)))


def masked() -> bytes:
    return dumped(fitted(RBFSampler(), random_offset_=np.ma.masked_array([1.0], [False])))


def lying() -> bytes:
    """The directory tells the member to be 10 bytes long; it holds 8 MiB."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * (8 << 20))
        archive.infolist()[0].file_size = 10
    return out.getvalue()


def dumped(estimator: Any) -> bytes:
    return bytes(sio.dumps(estimator))


TWICE = Pipeline([("a", "passthrough")])

HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    **{
        f"{kind.__name__} of 10^{power} inputs": (
            lambda kind=kind, power=power: dumped(fitted(kind(), n_features_in_=10**power)),
            "n_features_in_: expected",
        )
        for kind in (Normalizer, AdditiveChi2Sampler, MinMaxScaler, RBFSampler)
        for power in (7, 9, 18)
    },
    "steps": (lambda: dumped(fitted(AdditiveChi2Sampler(), sample_steps=10**9, sample_interval=0.1)), "sample_steps"),
    "degree": (lambda: dumped(fitted(PolynomialCountSketch(), degree=10**9)), "indexHash_: expected the shape"),
    "components": (lambda: dumped(fitted(PolynomialCountSketch(), n_components=10**18)), "n_components"),
    "an array": (lambda: arrays((10**12,)), r"claims the shape \(1000000000000,\) of float64"),
    "an array below 0": (lambda: arrays((-1, 8)), "claims the shape"),
    "a short array": (lambda: arrays((2,)), "expected an array of 64 bytes"),
    "a sparse matrix": (sparse, "'data.npy': expected an array of 64 bytes"),
    "a sparse matrix by another name": (lambda: sparse(name=".npy"), "'data.npy': expected an array of 64 bytes"),
    "a sparse matrix in bz2": (lambda: sparse(zipfile.ZIP_BZIP2), "stored or deflated, got method 12"),
    "lzma": (
        lambda: remade(dumped(fitted(RBFSampler())), lambda _, c: c, zipfile.ZIP_LZMA),
        "stored or deflated, got method 14",
    ),
    "lists in lists": (nested_lists, "got one of them twice"),
    "pipelines in pipelines": (lambda: dumped(Pipeline([(n, TWICE) for n in "ab"])), "got one of them twice"),
    "one array in many steps": (
        lambda: dumped(Pipeline([(f"s{i}", fitted(Normalizer())) for i in range(101)])),
        "expected at most 100 of them, got more",
    ),
    "objects in two dimensions": (objects, "expected names in one dimension"),
    "a masked array": (masked, "got a part for 'MaskedArrayNode'"),
    "a directory that lies": (lying, "expected a file of skops, got one that cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_claims_that_the_file_does_not_prove_are_refused_at_once(name: str, tmp_path: Path) -> None:
    make, message = HOSTILE[name]
    path = tmp_path / "bad.skops"
    path.write_bytes(make())
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    started = time.perf_counter()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, hard))
    try:
        with pytest.raises(ArtifactError, match=message) as caught:
            import_skops(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert time.perf_counter() - started < MOST_SECONDS
    assert len(str(caught.value)) < 1000


def test_the_largest_number_of_inputs_that_nothing_proves_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "wide.skops"
    path.write_bytes(dumped(fitted(Normalizer(), n_features_in_=2**16)))
    assert import_skops(path).columns.n_features == 2**16
