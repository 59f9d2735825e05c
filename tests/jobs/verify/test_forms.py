"""`verify` of files that are not the outputs it was asked about: it names the columns, and the option that fits."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import GateError, UsageError
from kafeat.io.options import InputOptions
from tests.jobs.files import verify_file

N = 120
STEPS = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 4, "frequencies": "iid"}]
OF = {"map": None, "num": "y", "cls": "c", "two": ["y", "id"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, rng = tmp_path_factory.mktemp("forms"), np.random.default_rng(0)
    a, b = rng.standard_normal((2, N))
    columns = {"id": np.arange(N), "a": a, "b": b, "y": a + 0.1 * b, "c": np.where(a > 0.0, "p", "q")}
    pq.write_table(pa.table(columns), place / "in.parquet")
    for name, label in OF.items():
        steps = STEPS if label is None else [*STEPS, {"kind": "ridge"}]
        config = {"columns": {"include": ["a", "b"]}, "steps": steps}
        kafeat.fit(config, place / "in.parquet", label=label).save(place / f"{name}.joblib")
    return place


def made(folder, tmp_path, model, format="csv", **options):
    out = tmp_path / f"{model}.{format}"
    kafeat.transform(folder / "in.parquet", out, model=folder / f"{model}.joblib", **options)
    return str(out)


def verify(folder, model, out, **options):
    return verify_file(folder / f"{model}.joblib", folder / "in.parquet", out, **options)


FEATURES = "the columns of the features in their order, f0, f1, f2, f3"


@pytest.mark.parametrize(("model", "expected"), [
    ("map", FEATURES),
    ("num", f"the columns of predictions, prediction or {FEATURES}"),
    ("cls", f"the columns of predictions, prediction, probability_p, probability_q or {FEATURES}"),
    ("two", f"the columns of predictions, prediction_y, prediction_id or {FEATURES}"),
])  # fmt: skip
def test_the_columns_of_a_file_that_is_no_output_are_named(folder, model, expected):
    with pytest.raises(GateError, match=f"in.parquet: expected {expected}, got id, a, b, y, c$"):
        verify(folder, model, str(folder / "in.parquet"))


@pytest.mark.sampled
@pytest.mark.parametrize("other", ["map", "num", "cls", "two"])
@pytest.mark.parametrize("model", ["map", "num", "cls", "two"])
def test_the_output_of_another_model_is_none_of_this(folder, tmp_path, model, other):
    out = made(folder, tmp_path, other, keep=["id"])
    if model == other or other == "map":  # the features before the predictor are those of the map
        assert verify(folder, model, out).rows == N
    else:
        told = rf"{other}.csv: expected the columns of .*, got id, .*prediction"
        with pytest.raises(GateError, match=told):
            verify(folder, model, out)


@pytest.mark.sampled
@pytest.mark.parametrize("layout", ["columns", "list"])
@pytest.mark.parametrize("prefix", [None, "m_"])
@pytest.mark.parametrize("levels", [(), (0.8,), (0.9, 0.8)])
@pytest.mark.parametrize("model", ["num", "cls", "two"])
def test_sound_outputs_fit(folder, tmp_path, model, levels, prefix, layout):
    options = {"interval": levels, "prefix": prefix, "layout": layout, "keep": ["c", "id"]}
    for format in ("arrow", "parquet") if layout == "list" else ("csv", "parquet"):
        out = made(folder, tmp_path, model, format, **options)
        assert verify(folder, model, out, interval=levels).rows == N
        if levels and format == "csv":
            with pytest.raises(GateError, match="predictions with intervals: give "):
                verify(folder, model, out)
        else:
            assert verify(folder, model, out).rows == N


@pytest.mark.sampled
@pytest.mark.parametrize(("levels", "asked", "advice"), [
    ((0.8, 0.9), (), "give --interval 0.8 --interval 0.9"),
    ((0.8, 0.9), (0.9, 0.8), "give --interval 0.8 --interval 0.9"),
    ((0.8, 0.9), (0.8,), "give --interval 0.8 --interval 0.9"),
    ((0.8,), (), "give the --interval of the output"),
    ((0.8,), (0.8, 0.9), "give the --interval of the output"),
    ((), (0.8,), "which are its predictions: leave --interval out"),
])  # fmt: skip
@pytest.mark.parametrize("model", ["num", "cls", "two"])
def test_the_interval_that_fits_is_told(folder, tmp_path, model, levels, asked, advice):
    out = made(folder, tmp_path, model, interval=levels, prefix="m_")
    with pytest.raises(GateError, match=f"expected the columns of predictions, .*, got .*m_.*{advice}$"):
        verify(folder, model, out, interval=asked)


def test_an_interval_of_another_level_names_its_end_or_what_the_file_states(folder, tmp_path):
    out = made(folder, tmp_path, "num", interval=0.8)
    with pytest.raises(GateError, match="column 'lower': expected .*, got"):
        verify(folder, "num", out, interval=0.9)
    out = made(folder, tmp_path, "num", "parquet", interval=0.8)
    with pytest.raises(GateError, match=r"expected --interval 0.9, got an output of --interval 0.8"):
        verify(folder, "num", out, interval=0.9)


@pytest.mark.parametrize("model", ["num", "cls"])
def test_features_have_no_intervals_and_predictions_no_unit_variance(folder, tmp_path, model):
    features = made(folder, tmp_path, "map")
    with pytest.raises(GateError, match="which are its features: leave --interval out"):
        verify(folder, model, features, interval=0.8)
    with pytest.raises(UsageError, match="--interval: expected predictions, got features"):
        verify(folder, "map", features, interval=0.8)
    predictions = made(folder, tmp_path, model)
    with pytest.raises(GateError, match="which are its predictions: leave --unit-variance out"):
        verify(folder, model, predictions, unit_variance=True)


def test_numbers_without_names_are_counted(folder, tmp_path):
    out = made(folder, tmp_path, "num", "npy", interval=0.8)
    expected = "expected 1 column of predictions or 4 columns of features, got 3 columns"
    with pytest.raises(GateError, match=f"{expected}, .*predictions with intervals: give the --interval"):
        verify(folder, "num", out)
    assert verify(folder, "num", out, interval=0.8).rows == N
    np.save(out, np.zeros((N, 2)))
    with pytest.raises(GateError, match=f"{expected[:-9]}2 columns$"):
        verify(folder, "num", out)
    text = tmp_path / "text.csv"  # without names, only features may have passthrough columns before them
    text.write_text("1,2\n" * N)
    with pytest.raises(GateError, match=f"{expected[:-9]}2 columns"):
        verify(folder, "num", text, reading_output=InputOptions(no_header=True))
