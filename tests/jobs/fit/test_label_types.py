"""Labels of every type: classes keep the type and value of the label, or the fit refuses, in every format and part."""

from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.study.models import score_predictions
from tests.sizes import some

N = 40
HALF = np.arange(N) % 2
X = np.column_stack([HALF + np.random.default_rng(0).normal(size=N) / 8, np.arange(N) % 7.0])
BIG = 2**53
CONFIG = {"columns": {"include": ["a", "b"]}, "seed": 1, "chunk_rows": 16}
PAIRS = {
    "bool": pa.array([False, True]),
    "int8": pa.array([0, 1], pa.int8()),
    "int64": pa.array([-1, 1]),
    "large int64": pa.array([BIG, BIG + 1]),
    "uint64": pa.array([0, 1], pa.uint64()),
    "large uint64": pa.array([2**64 - 2, 2**64 - 1], pa.uint64()),
    "float32": pa.array([0.0, 1.0], pa.float32()),
    "tenths": pa.array([0.1, 0.2], pa.float32()),
    "float64": pa.array([-0.0, 1.0]),
    "decimal": pa.array([Decimal(BIG), Decimal(BIG + 1)], pa.decimal128(20, 0)),
    "decimal of 30 digits": pa.array(
        [Decimal("0.1"), Decimal("0.1") + Decimal(10) ** -20], pa.decimal128(30, 20)
    ),
    "text": pa.array(["a", "a\0"]),
    "dictionary": pa.array(["a", "b"]).dictionary_encode(),
    "large_string": pa.array(["a", "b"], pa.large_string()),
}
PREDICTORS = ("ridge", "logistic")
FEATURES = pa.table({"a": X[:, 0], "b": X[:, 1]})


def table(pair: pa.Array) -> pa.Table:
    return FEATURES.append_column("y", pair.take(pa.array(HALF)))


def config(predictor: str) -> dict:
    step = {"kind": predictor, "penalty": 1e-3, "task": "classification"}
    return {**CONFIG, "steps": [{"kind": "standardize"}, step]}


def distinct(*pairs: pa.Array) -> set:
    """Return the values of a label. A float32 is the number that text has: 0.1."""
    return {
        float(str(np.float32(one))) if pair.type == pa.float32() else one
        for pair in pairs
        for one in pair.to_pylist()
    }


def check(data: object, expected: set, predictor: str, tmp_path) -> bool:
    """Fit, save and load: the classes are exactly the values of the label. Return False if the fit refuses them."""
    try:
        fm = kafeat.fit(config(predictor), data, label="y", jobs=1)
    except DataError as error:
        if "label" not in str(error):
            raise
        return False
    fm.save(tmp_path / "m.joblib")
    classes = kafeat.load(tmp_path / "m.joblib").classes.tolist()
    assert set(classes) == expected
    assert len(classes) == len(expected)
    assert str(classes) == str(sorted(classes))
    assert "-0.0" not in str(classes)
    return True


@pytest.mark.sampled
@pytest.mark.parametrize("name", PAIRS)
def test_classes_of_one_type(name, tmp_path):
    data = table(PAIRS[name])
    pq.write_table(data, tmp_path / "in.parquet")
    with pa.ipc.new_file(tmp_path / "in.arrow", data.schema) as writer:
        writer.write_table(data, 8)
    for source, predictor in product([tmp_path / "in.parquet", tmp_path / "in.arrow", data], PREDICTORS):
        assert check(source, distinct(PAIRS[name]), predictor, tmp_path) == (name != "decimal of 30 digits")


@pytest.mark.parametrize("predictor", ["ridge", pytest.param("logistic", marks=pytest.mark.slow)])
def test_classes_of_parts_of_two_types(predictor, tmp_path):
    fits = set()
    pairs = some(product(PAIRS, PAIRS))
    for i, (one, other) in enumerate(pairs):
        folder = tmp_path / f"{i}"
        folder.mkdir()
        for part, name in enumerate((one, other)):
            pq.write_table(table(PAIRS[name]), folder / f"{part}.parquet")
        if check(folder, distinct(PAIRS[one], PAIRS[other]), predictor, folder):
            fits.add((one, other))
    texts = ("text", "dictionary", "large_string")
    numbers = [name for name in PAIRS if name not in (*texts, "decimal of 30 digits")]
    refused = {("int64", "large uint64")}  # below 0 and from 2⁶³ on
    whole = ("large int64", "large uint64", "decimal")
    refused |= set(product(whole, ("float32", "tenths", "float64")))
    refused |= {(other, one) for one, other in refused}
    accepted = (set(product(numbers, numbers)) | set(product(texts, texts))) - refused
    assert fits == accepted & set(pairs)


@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name in PAIRS if name != "decimal of 30 digits"])
def test_a_model_is_scored_on_the_same_rows_in_another_format(name, tmp_path):
    data = table(PAIRS[name])
    if name == "text":
        data = table(pa.array(["1", "true"]))
    fm = kafeat.fit(config("ridge"), data, label="y", jobs=1)
    fm.save(tmp_path / "m.joblib")
    pq.write_table(data, tmp_path / "in.parquet")
    plain = data.set_column(2, "y", data["y"].cast(pa.string()) if name == "decimal" else data["y"])
    pa_csv.write_csv(plain, tmp_path / "in.csv")
    records = [
        score_predictions([str(tmp_path / "m.joblib")], str(tmp_path / f"in.{ending}"), jobs=1)[0].flat()
        for ending in ("parquet", "csv")
    ]
    assert records[0]["accuracy_model"] == records[1]["accuracy_model"] > 0.9


def test_labels_in_memory_do_not_merge():
    for given in (["a", "a\0"], [BIG, BIG + 1], [0, 2**64 - 1], [False, True], [0.5, 2]):
        fm = kafeat.fit(config("ridge"), FEATURES, label=given * (N // 2), jobs=1)
        assert fm.classes.tolist() == sorted(given)
    tenths = [Decimal("0.1"), Decimal("0.1") + Decimal(10) ** -20]
    for given in ([BIG + 1, BIG, 0.5, 1], [Decimal(BIG), BIG + 1], tenths):
        with pytest.raises(DataError, match="label: expected numbers that also differ in float64"):
            kafeat.fit(config("ridge"), FEATURES, label=given * (N // len(given)))


def test_a_negative_zero_is_zero_in_any_order_of_rows():
    for pair in ([0.0, -0.0, 1.0, 0.0], [-0.0, 0.0, 1.0, 0.0]):
        fm = kafeat.fit(config("ridge"), FEATURES, label=np.array(pair * (N // 4)), jobs=1)
        assert str(fm.classes.tolist()) == "[0.0, 1.0]"
        assert fm.predictor.output_names == ["probability_0", "probability_1"]


def test_a_model_that_cannot_be_read_back_replaces_nothing(tmp_path):
    fm = kafeat.fit(config("ridge"), FEATURES, label=HALF, jobs=1)
    fm.save(tmp_path / "m.joblib")
    before = (tmp_path / "m.joblib").read_bytes()
    broken = kafeat.fit(config("ridge"), FEATURES, label=["a" if one else "\ud800" for one in HALF], jobs=1)
    with pytest.raises(kafeat.errors.ArtifactError, match="read back before it is put in place.*UTF-8"):
        broken.save(tmp_path / "m.joblib")
    assert (tmp_path / "m.joblib").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.joblib"]
