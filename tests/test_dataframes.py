"""A map on its way to other processes."""

import hashlib
import importlib
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.dataframes import Frame
from kafeat.errors import ArtifactError, DataError, SystemRefusedError, UsageError
from kafeat.io.readers.memory import BatchReader
from kafeat.io.storage.local_path import LocalPath
from kafeat.model import shared as sharing
from kafeat.model.feature_map import FeatureMap
from kafeat.model.shared import SharedMap, shared

X = np.random.default_rng(0).standard_normal((300, 5))


def fitted(seed: int = 0) -> FeatureMap:
    step = {"kind": "fourier", "n_components": 8, "frequencies": "iid"}
    return kafeat.fit({"seed": seed, "steps": [step]}, X)


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has loaded no map yet."""
    monkeypatch.setattr(sharing, "_loaded", {})


def travelled(sent: SharedMap) -> SharedMap:
    """To another process: pickled, and what is loaded there forgotten."""
    sharing._loaded.clear()
    there = pickle.loads(pickle.dumps(sent))
    assert there == sent
    return there


def test_a_map_travels_as_its_bytes():
    fm = fitted()
    sent = shared(fm)
    assert sent.digest == fm.digest
    assert sent.map is fm  # nothing is read again where it was made
    there = travelled(sent)
    assert there.map is not fm
    assert there.map.transform(X).tobytes() == fm.transform(X).tobytes()
    assert there.map is there.map
    assert shared(there) is there


def test_a_path_travels_with_the_digest_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    fm = fitted()
    fm.save("map.joblib")
    sent = shared("map.joblib")
    assert sent == SharedMap(
        hashlib.sha256(Path("map.joblib").read_bytes()).hexdigest(), LocalPath(str(tmp_path / "map.joblib"))
    )
    assert len(pickle.dumps(sent)) < 500
    monkeypatch.chdir("/")
    assert travelled(sent).map.transform(X).tobytes() == fm.transform(X).tobytes()


def test_another_file_is_refused_and_a_loaded_map_is_not_read_again(tmp_path: Path):
    place = tmp_path / "map.joblib"
    fitted(0).save(place)
    sent = shared(place)
    fitted(1).save(place)
    assert sent.map.digest == sent.digest
    told = rf"expected the map with the SHA-256 {sent.digest}, got \w+: every"
    with pytest.raises(ArtifactError, match=told):
        _ = travelled(sent).map
    place.unlink()
    with pytest.raises(SystemRefusedError, match="map.joblib: No such file"):
        _ = travelled(sent).map


def test_threads_load_a_map_once(monkeypatch: pytest.MonkeyPatch):
    sent, calls = travelled(shared(fitted())), []

    def loads(data: bytes, place: str) -> FeatureMap:
        calls.append(place)
        return kafeat.model.load.loads(data, place)

    monkeypatch.setattr(sharing, "loads", loads)
    with ThreadPoolExecutor(8) as pool:
        maps = list(pool.map(lambda _: sent.map, range(32)))
    assert calls == ["<map>"]
    assert all(fm is maps[0] for fm in maps)


def test_the_maps_used_last_are_kept():
    sent = [shared(fitted(seed)) for seed in range(4)]
    first = sent[0].map
    shared(fitted(4))
    assert sent[0].map is first
    assert set(sharing._loaded) == {s.digest for s in (sent[2], sent[3], sent[0])} | {
        shared(fitted(4)).digest
    }


def test_a_column_that_is_there_twice_cannot_be_kept():
    twice = BatchReader("<DataFrame>", pa.schema([("a", pa.null()), ("b", pa.null()), ("a", pa.null())]))
    with pytest.raises(DataError, match="column 'a': expected one column of that name, got 2"):
        Frame(keep=["a"]).checked(twice, fitted(), ["float32"])


def test_what_is_no_map_is_refused():
    with pytest.raises(UsageError, match="model: expected a path or a FeatureMap, got list"):
        shared([])  # type: ignore[arg-type]
    own = kafeat.fit({"steps": [{"kind": "nystroem", "kernel": linear, "n_components": 4}]}, X)
    with pytest.raises(UsageError, match="such a map cannot be saved"):
        shared(own)


def linear(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x @ y.T


@pytest.mark.parametrize(("extra", "needs"), [("dask", "dask"), ("spark", "pyspark")])
def test_a_missing_extra_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, extra: str, needs: str):
    monkeypatch.setitem(sys.modules, needs, None)
    monkeypatch.delitem(sys.modules, f"kafeat.{extra}", raising=False)
    with pytest.raises(ImportError, match=rf"expected {needs}, got: .*; pip install 'kafeat\[{extra}\]'"):
        importlib.import_module(f"kafeat.{extra}")


def test_unit_variance_of_a_map_that_does_not_know_it_is_refused_before_anything_runs():
    table = BatchReader("<DataFrame>", pa.schema([(f"c{i}", pa.float64()) for i in range(5)]))
    older = replace(fitted(), feature_mean=None)
    told = "unit variance: expected a map that stores the variance of its features"
    with pytest.raises(UsageError, match=told):
        Frame(content="unit variance").checked(table, older, ("float32", "float64"))
    assert Frame().checked(table, older, ("float32", "float64")).outputs(older).width == 8
