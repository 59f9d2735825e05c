"""Model files: the same bytes, readable by joblib, and nothing that a stranger writes is run."""

import copy
import hashlib
import io
import os
import pickle
import pickletools
import re
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import joblib
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib.numpy_pickle import NumpyArrayWrapper

import kafeat
from kafeat.errors import ArtifactError
from kafeat.io.readers.base import damage
from kafeat.model import artifact
from kafeat.model.feature_map import FeatureMap
from kafeat.model.serialize import FORMAT, WITH_INTERVALS
from tests.recipes import words

MAGIC = b"KAFEAT-SHA256\n"


def rows() -> np.ndarray:
    return np.random.default_rng(0).exponential(size=(40, 4))


@pytest.fixture(scope="module")
def fm() -> FeatureMap:
    steps = [
        {"kind": "minmax"},
        {"kind": "nystroem", "n_components": 6, "kernel": "chi2"},
        {"kind": "fourier", "n_components": 8, "features": "offset"},
        {"kind": "projection", "matrix": "sparse", "n_components": 5, "density": 0.5},
        {"kind": "tensor_sketch", "n_components": 4},
    ]
    return kafeat.fit({"seed": 3, "chunk_rows": 100, "steps": steps}, rows())


@pytest.fixture(scope="module")
def good(fm: FeatureMap) -> bytes:
    return fm.dumps()


def sealed(payload: bytes) -> bytes:
    """With the right checksum behind it: what a stranger can do as well as anyone."""
    return payload + MAGIC + hashlib.sha256(payload).digest()


def refused(data: bytes, tmp_path: Path, match: str = "") -> None:
    path = tmp_path / "bad.joblib"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=match or "expected") as caught:
        kafeat.load(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 1000


# --- sound files


def test_joblib_reads_the_dict(good, tmp_path):
    path = tmp_path / "map.joblib"
    path.write_bytes(good)
    content = joblib.load(path)
    assert type(content) is dict
    assert content["format"] == FORMAT
    assert [step["recipe"]["kind"] for step in content["steps"]][:2] == ["minmax", "nystroem"]
    assert isinstance(content["steps"][1]["state"]["landmarks"], np.ndarray)


def test_only_three_names_are_in_the_file(good):
    ops = opcodes(good)
    texts = {arg for op, arg, _ in ops if op.name in ("SHORT_BINUNICODE", "BINUNICODE")}
    assert {"NumpyArrayWrapper", "ndarray", "dtype"} <= texts
    named = {*words("GLOBAL INST OBJ EXT1 EXT2 EXT4 PERSID BINPERSID")}
    assert not {op.name for op, _, _ in ops} & named


def opcodes(data: bytes) -> list:
    """Up to the first array, where the raw numbers begin."""
    found = []
    try:
        for op in pickletools.genops(data):
            found.append(op)  # noqa: PERF402
    except (ValueError, KeyError, struct.error, UnicodeDecodeError):
        pass
    return found


numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.text(max_size=5), plain, max_size=5))
def test_builtins_come_back_as_they_were(content):
    data = artifact.dumps(content)
    assert artifact.loads(data, "x") == content
    # nothing depends on which equal objects happen to be the same one
    assert artifact.dumps(copy.deepcopy(content)) == data


@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["list", "dict"])
def test_deeper_nested_content_than_any_map_has_is_refused(around):
    content: object = 1
    for _ in range(49):
        content = around(content)
    assert artifact.loads(artifact.dumps({"a": content}), "x") == {"a": content}
    with pytest.raises(ValueError, match="and 50 levels, got more"):
        artifact.dumps({"a": around(content)})


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 4), (2, 3), (2, 0, 3)])
def test_arrays_come_back_as_they_were(dtype, shape):
    rng = np.random.default_rng(0)
    array = np.array(rng.standard_normal(shape) * 3 + 10, dtype=dtype)
    for same in (array, np.array(array, order="F"), array.T.copy().T):
        got = artifact.loads(artifact.dumps({"a": same, "b": same}), "x")
        for name in "ab":
            assert got[name].dtype == array.dtype
            assert got[name].shape == shape
            assert got[name].tobytes() == array.tobytes()
        assert not np.shares_memory(got["a"], got["b"])


@pytest.mark.slow  # the only limit is the size of the file: a million entries are needed to see that there is no other
def test_a_map_of_very_many_columns_is_read_again():
    names = [None] * 1_000_001
    assert artifact.loads(artifact.dumps({"a": names}), "x") == {"a": names}


ODD = [np.array([None]), np.array(["a"]), np.array([1j]), np.zeros(2, ">f8"), np.ma.zeros(2), object()]


@pytest.mark.parametrize("value", [np.float64(1.0), (1, 2), {1: 2}, {1, 2}, b"x", 1j, *ODD])
def test_only_plain_content_is_written(value):
    with pytest.raises(TypeError, match=type(value).__name__):
        artifact.dumps({"a": [value]})


# --- hostile files: each would touch the canary if anything of it ran


class Run:
    """Calls what it is given when it is unpickled."""

    def __init__(self, function: Callable, *arguments: object) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple:
        return self._call


def dumped(content: object, **options: Any) -> bytes:
    buffer = io.BytesIO()
    joblib.dump(content, buffer, **options)
    return buffer.getvalue()


def wrapped(array_bytes: bytes, **attributes: object) -> bytes:
    """A dict with one of joblib's array wrappers, forged, and bytes behind it."""
    wrapper = NumpyArrayWrapper(np.ndarray, (2,), "C", np.dtype("float64"), numpy_array_alignment_bytes=16)
    for name, value in attributes.items():
        setattr(wrapper, name, value)
    payload = pickle.dumps({"a": wrapper}, protocol=4)
    # joblib reads an array as soon as it has BUILT a wrapper: its bytes stand right behind that opcode
    end = max(position for op, _, position in pickletools.genops(payload) if op.name == "BUILD") + 1
    return payload[:end] + bytes([0]) + array_bytes + payload[end:]


def at_its_end(payload: bytes, more: bytes) -> bytes:
    """With other operations in the place of those that put the array into the dict and stop."""
    assert payload.endswith(b"s.")
    return payload[:-2] + more


def changing_what_reads() -> dict[str, bytes]:
    """Attributes for whatever stands behind the three names, and for the wrapper and the dtype made of them."""
    read = b"}\x8c\x04readNs"
    states = {"attributes": read, "slots": b"N" + read + b"\x86", "a class": b"}\x8c\x09__class__Ns"}
    wrapper = b"\x8c\x13joblib.numpy_pickle\x8c\x11NumpyArrayWrapper\x93"
    targets = {
        "the wrapper's name": wrapper,
        "ndarray": b"\x8c\x05numpy\x8c\x07ndarray\x93",
        "dtype": b"\x8c\x05numpy\x8c\x05dtype\x93",
        "a wrapper": wrapper + b")\x81",
        "a dtype": b"\x8c\x05numpy\x8c\x05dtype\x93\x8c\x02f8\x85R",
    }
    return {
        f"{what} for {name}": b"\x80\x04" + target + state + b"b."
        for name, target in targets.items()
        for what, state in states.items()
    }


def hostile(canary: Path) -> dict[str, bytes]:
    command = f"touch {canary}"
    system = Run(os.system, command)
    objects = np.empty(1, dtype=object)
    objects[0] = system
    path = canary.with_suffix(".npy")
    np.save(path, np.arange(3.0))
    bomb: list = []
    for _ in range(40):
        bomb = [bomb, bomb]
    name = b"\x8c\x05posix\x8c\x06system\x93"
    call = b"\x80\x04" + name + b"\x8c" + bytes([len(command)]) + command.encode() + b"\x85R."
    return {
        "os.system": dumped(system),
        "os.system as a key": pickle.dumps({"a": {system._call[1][0]: system}}),
        "getattr": b"\x80\x04cbuiltins\ngetattr\n(cos\nsystem\nX\x01\x00\x00\x00atR.",
        "global opcode": b"cos\nsystem\n(S'" + command.encode() + b"'\ntR.",
        "stack global": call,
        "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.",
        "dtype by another door": b"\x80\x04\x8c\x10numpy._core._ufunc\x8c\x05dtype\x93.",
        "numpy.load": dumped(Run(np.load, str(path), "r", True)),
        "object array": dumped({"a": objects}),
        "forged object dtype": wrapped(pickle.dumps(system), dtype=np.dtype(object), shape=(1,)),
        "structured dtype": dumped({"a": np.zeros(2, [("x", "f8"), ("y", "f8")])}),
        "texts": dumped({"a": np.array(["ab"])}),
        "big endian": dumped({"a": np.zeros(2, ">f8")}),
        "subclass": wrapped(b"\0" * 16, subclass=np.memmap),
        "matrix": dumped({"a": np.ones((2, 2)).view(np.recarray)}),
        "nested pickle in bytes": dumped({"a": pickle.dumps(system)}),
        "terabytes": wrapped(b"\0" * 16, shape=(1 << 40,)),
        "terabytes in a product": wrapped(b"\0" * 16, shape=(1 << 33, 1 << 33)),
        "negative shape": wrapped(b"\0" * 16, shape=(-2,)),
        "shape of bools": wrapped(b"\0" * 16, shape=(True, 2)),
        "shape that is no tuple": wrapped(b"\0" * 16, shape="ab"),
        "many dimensions": wrapped(b"\0" * 16, shape=(1,) * 40),
        "array cut short": wrapped(b"\0" * 8),
        "wrapper called": b"\x80\x04\x8c\x13joblib.numpy_pickle\x8c\x11NumpyArrayWrapper\x93)R.",
        "ndarray made": b"\x80\x04\x8c\x05numpy\x8c\x07ndarray\x93K\x01\x85\x81.",
        "dtype of an object": b"\x80\x04\x8c\x05numpy\x8c\x05dtype\x93\x8c\x02O8\x85R.",
        "dtype with commas": b"\x80\x04\x8c\x05numpy\x8c\x05dtype\x93\x8c\x05f8,O8\x85R.",
        **changing_what_reads(),
        "bytearray8 bomb": b"\x80\x05\x96" + struct.pack("<Q", 1 << 44) + b".",
        "unicode8 bomb": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 44) + b".",
        "unicode bomb": b"\x80\x04X" + struct.pack("<I", (1 << 32) - 1) + b".",
        "long4 bomb": b"\x80\x04\x8b" + struct.pack("<i", (1 << 31) - 1) + b".",
        "frame bomb": b"\x80\x04\x95" + struct.pack("<Q", 1 << 44) + b"N.",
        "memo bomb": b"\x80\x04Nr" + struct.pack("<I", (1 << 32) - 1) + b".",
        "persistent id": b"\x80\x04\x8c\x01aQ.",
        "extension code": b"\x80\x04\x82\x01.",
        "lists that unfold": pickle.dumps({"a": bomb}, protocol=4),
        "a list in itself": b"\x80\x04}\x8c\x01a]\x94h\x00as.",
        "very deep lists": b"\x80\x04}\x8c\x01a" + b"]" * 100_000 + b"a" * 99_999 + b"s.",
        "set": dumped({"a": {1, 2}}),
        "number for a key": dumped({1: 2}),
        "no dict": dumped([1, 2]),
        "nothing": b"",
        "no pickle": b"not a pickle at all",
        "tuples in tuples for a key": b"\x80\x04})" + b"\x85" * 300_000 + b"Ns.",
        "tuples in tuples": b"\x80\x04}\x8c\x01a)" + b"\x85" * 300_000 + b"s.",
        "an array for a dict": at_its_end(wrapped(b"\0" * 16), b"K\x00K\x01s."),
        "an array for a list": at_its_end(wrapped(b"\0" * 16), b"K\x00a."),
        "two contents": b"\x80\x04}}.",
        "bytes behind the end": pickle.dumps({"a": 1}, protocol=4) + b"N.",
        "a mark left open": b"\x80\x04}(}.",
        "text that is no UTF-8": b"\x80\x04}\x8c\x01\xff]s.",
        "build on a dict": b"\x80\x04}}\x8c\x01a" + name + b"sb.",
        "empty stack": b"\x80\x04aaaa.",
        "compressed by gzip": dumped({"a": np.zeros(10**6)}, compress=("gzip", 3)),
        "another protocol": pickle.dumps({"a": 1}, protocol=0),
    }


@pytest.mark.parametrize("seal", [True, False], ids=["sealed", "open"])
def test_hostile_files_are_refused_and_nothing_runs(seal, good, tmp_path):
    canary = tmp_path / "canary"
    for name, payload in hostile(canary).items():
        path = tmp_path / "bad.joblib"
        path.write_bytes(sealed(payload) if seal else payload)
        with pytest.raises(ArtifactError, match="bad.joblib: ") as caught:
            kafeat.load(path)
        assert not canary.exists(), name
        assert len(str(caught.value)) < 1000, name
    # and none has changed what reads the next file
    assert artifact.dumps(artifact.loads(good, "x")) == good


def test_what_a_file_claims_is_not_allocated(tmp_path):
    every = hostile(tmp_path / "canary")
    claims = {name: every[name] for name in every if "bomb" in name or "terabytes" in name}
    assert len(claims) >= 8
    for name, payload in claims.items():
        tracemalloc.start()
        try:
            with pytest.raises(ArtifactError, match="x: "):
                artifact.loads(sealed(payload), "x")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        # a few copies of the file, and what a parser needs
        assert peak < 20 * len(payload) + (2 << 20), name


# --- damaged files


@pytest.mark.parametrize("where", ["kafeat.model.artifact.read", "kafeat.model.serialize._read_chain"])
@pytest.mark.parametrize(
    "error", [MemoryError("Unable to allocate 1.00 GiB"), RuntimeError("can't start new thread")]
)
def test_a_model_that_memory_is_too_small_for_is_not_called_bad(
    where, error, good, tmp_path, run, monkeypatch
):
    (tmp_path / "m.joblib").write_bytes(good)
    monkeypatch.setattr(where, Mock(side_effect=error))
    done = run("inspect m.joblib", cwd=tmp_path, code=5)
    assert f"out of memory ({error})" in done.stderr


def test_truncation_anywhere_is_noticed(good, tmp_path):
    for length in sorted({0, 1, 10, len(good) // 3, len(good) // 2, *range(len(good) - 60, len(good))}):
        refused(good[:length], tmp_path, "it is truncated, or not a model|it is damaged")


def test_appended_bytes_are_noticed(good, tmp_path):
    for more in (b"\0", b"\n", b"\0" * 46):
        refused(good + more, tmp_path, "without its closing checksum")
    refused(good + good, tmp_path, "it is damaged")


def test_flipped_bits_anywhere_are_noticed(good):
    rng = np.random.default_rng(0)
    for place in [*rng.integers(len(good), size=300), len(good) - 1, len(good) - 40]:
        bad = bytearray(good)
        bad[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(ArtifactError, match="closing checksum|checksum that closes"):
            artifact.loads(bytes(bad), "x")


def test_flipped_bytes_under_a_right_checksum_raise_nothing_else(good, tmp_path):
    payload, rng = good[: -len(MAGIC) - 32], np.random.default_rng(1)
    path = tmp_path / "bad.joblib"
    survived = 0
    for _ in range(200):
        bad = bytearray(payload)
        bad[int(rng.integers(len(bad)))] = int(rng.integers(256))
        path.write_bytes(sealed(bytes(bad)))
        try:
            kafeat.load(path)
            survived += 1  # a digit of the state, say: the checksum is what guards that
        except ArtifactError:
            pass
    assert survived < 200


# --- files that are sound and say something impossible


def edited(good: bytes, place: Any, value: Any) -> bytes:
    """With another value at a place such as steps.0.recipe; a function changes the array that stands there."""
    content = node = artifact.loads(good, "x")
    if callable(place):
        place(content)
        return artifact.dumps(content)
    *path, last = (int(key) if key.isdigit() else key for key in place.split("."))
    for key in path:
        node = node[key]
    node[last] = value(node[last]) if callable(value) else value
    return artifact.dumps(content)


def setting(index: object, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[index] = value
        return array

    return change


def twice(content):
    content["columns"]["features"].append(content["columns"]["features"][0])


OF_FORMAT = f"expected a number from 1 to {WITH_INTERVALS}, got "
EDITS: dict[str, tuple[Any, Any, str]] = {
    "newer format": ("format", WITH_INTERVALS + 1, f": {OF_FORMAT}{WITH_INTERVALS + 1}"),
    "no format": (lambda c: c.pop("format"), None, f"format: {OF_FORMAT}null"),
    "format of another type": ("format", "1", f": {OF_FORMAT}'1'"),
    "missing entry": (lambda c: c.pop("columns"), None, "expected the entries"),
    "further entry": ("more", 1, "expected the entries"),
    "dtype": ("dtype", "float16", ": expected float32 or float64, got 'float16'"),
    "chunk_rows 0": ("chunk_rows", 0, ": expected a whole number from 1 to 1,000,000, got 0"),
    "chunk_rows True": ("chunk_rows", True, ": expected a whole number"),
    "cast behind the last step": ("cast_after", 9, ": expected a whole number from 0 to …, got 9"),
    "config a list": ("config", [], ": steps: expected a non-empty list"),
    "columns a list": ("columns", [], ": expected an entry as `fit` writes it"),
    "columns twice": (twice, None, "columns.features: expected every name once"),
    "a column less": (lambda c: c["columns"]["features"].pop(), None, ".n_features_in: expected 3, got 4"),
    "no steps": ("steps", [], ": expected a list of at least one step"),
    "a step less": (lambda c: c["steps"].pop(1), None, "steps[1].n_features_in: expected 4, got 6"),
    "swapped steps": (lambda c: c["steps"].reverse(), None, "steps[0].n_features_in: expected 4, got 5"),
    "unknown kind": ("steps.0.recipe.kind", "os", ": expected …, got 'os'"),
    "kind of another package": ("steps.0.recipe.kind", "../artifact", ": expected "),
    "recipe of text": ("steps.0.recipe", "minmax", "steps[0].recipe"),
    "unknown parameter": ("steps.0.recipe.more", 1, ": "),
    "parameter out of bounds": ("steps.1.recipe.rcond", 2.0, ": "),
    "width of another step": ("steps.2.recipe.n_components", 10, "steps[2].state.…: expected the shape"),
    "huge width": ("steps.2.recipe.n_components", 10**15, "steps[2].recipe.n_components"),
    "provenance of nothing": ("provenance", {}, "provenance.sources: Field required"),
    "rows as text": ("provenance.rows_fitted", "x", "provenance.rows_fitted"),
    "a name that moves the cursor": ("provenance.sources.0.name", "\x1b[2J", "provenance.sources.0.name"),
    "a seed below 0": ("config.seed", -1, "config: seed: expected a whole number"),
    "swapped kinds": ("steps.0.recipe", {"kind": "standardize"}, ".state: expected ['mean', 'scale'], got"),
    "paired for offset": ("steps.2.recipe.features", "paired", "steps[2].state: expected "),
    "state of numbers": ("steps.0.state.low", 1.0, "steps[0].state: expected a dict of arrays"),
    "state transposed": ("steps.1.state.landmarks", lambda a: a.T, ": expected the shape (6, 4), got (4, 6)"),
    "a number for a scalar": ("steps.1.state.gamma", lambda a: np.array([1.0]), ": expected the shape ()"),
    "infinity": ("steps.0.state.width", setting(0, np.inf), ": expected finite numbers"),
    "gamma below 0": ("steps.1.state.gamma", lambda a: np.array(-1e9), ": expected a number above 0, got"),
    "column out of range": ("steps.3.state.columns", setting(0, 8), ": expected whole numbers from 0 to 7"),
    "columns of floats": ("steps.3.state.columns", lambda a: a.astype(float), "of int64, got float64"),
    "starts beyond the end": ("steps.3.state.starts", setting(-1, 10**9), ": expected whole numbers"),
    "starts that fall": ("steps.3.state.starts", setting(1, 10**3), ": expected "),
    "starts not from 0": ("steps.3.state.starts", setting(0, 1), ": expected increasing"),
    "bucket out of range": ("steps.4.state.buckets", setting((0, 0), 8), "whole numbers from 0 to 7"),
    "another length of a sketch": ("steps.4.state.length", lambda a: np.array(2 * a), "that has 3 numbers"),
    "landmarks of bools": ("steps.1.state.landmarks", lambda a: a > 0, "of float32 or float64, got bool"),
}
"""A place and its new value, or an edit, and what is said, with … for any text; a colon follows the place."""


@pytest.mark.parametrize("name", EDITS)
def test_content_that_contradicts_itself_is_refused(name, good, tmp_path):
    place, value, said = EDITS[name]
    said = re.sub(r"\.(\d+)", r"[\1]", place) + said if said.startswith(":") else said
    refused(edited(good, place, value), tmp_path, ".*".join(map(re.escape, said.split("…"))))


# Numbers that no fit gives, but that a guarded map cannot turn into harm either: they load, and the transform
# answers with finite numbers or with an error of kafeat.
ODD_STATES = {
    "width 0": ("steps.0.state.width", setting(0, 0.0)),
    "huge frequencies": ("steps.2.state.frequencies", lambda a: a * 1e300),
    "negative landmarks": ("steps.1.state.landmarks", lambda a: -a),
}


@pytest.mark.parametrize("name", ODD_STATES)
def test_odd_numbers_end_in_numbers_or_an_error(name, good, tmp_path):
    path = tmp_path / "odd.joblib"
    path.write_bytes(edited(good, *ODD_STATES[name]))
    try:
        Z = kafeat.load(path).transform(rows())
    except kafeat.errors.KafeatError:
        return
    assert np.isfinite(Z).all()


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(kafeat.errors.SystemRefusedError, match="none.joblib"):
        kafeat.load(tmp_path / "none.joblib")
    with pytest.raises(kafeat.errors.KafeatError, match=tmp_path.name):
        kafeat.load(tmp_path)


def _parquet() -> object:
    with damage("x.parquet", "sound Parquet", (pa.ArrowException,)):
        raise pa.ArrowMemoryError("malloc failed")


def _npy() -> object:
    with damage("x.npy", "an NPY file of numbers", (Exception,)):
        raise MemoryError("malloc failed")


@pytest.mark.parametrize("read", [_parquet, _npy])
def test_no_memory_is_not_told_as_a_mistake_of_what_is_read(read):
    with pytest.raises(MemoryError, match="malloc failed"):
        read()
