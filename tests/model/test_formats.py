"""Model files of every format that was released stay readable, and give the same features.

formats/N beside this file has a map of format N, rows, and their features by the kafeat that wrote it: a union of nine
chains, so of most kinds of state. In format 2 a scaler stands before it, and a column of the rows holds Unix times.
"""

from pathlib import Path

import numpy as np
import pytest

import kafeat
from kafeat.errors import ArtifactError
from kafeat.model import artifact
from kafeat.model.load import loads
from kafeat.model.serialize import FORMAT

FOLDERS = sorted((Path(__file__).parent / "formats").iterdir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_old_file_gives_the_same_features(folder):
    fm = kafeat.load(folder / "map.joblib")
    expected = np.load(folder / "features.npy")
    found = fm.transform(np.load(folder / "rows.npy"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_every_format_has_a_file():
    assert [folder.name for folder in FOLDERS] == [str(i) for i in range(1, FORMAT + 1)]


def test_the_first_file_knows_no_range_of_its_columns():
    assert kafeat.load(FOLDERS[0] / "map.joblib").column_ranges is None


def test_a_map_of_format_1_casts_its_input_first_also_when_it_is_saved_again(tmp_path):
    fm = kafeat.load(FOLDERS[0] / "map.joblib")
    assert (fm.format, fm.chain.cast_after, fm.input_dtype) == (1, 0, np.float32)
    fm.save(tmp_path / "map.joblib")
    assert kafeat.load(tmp_path / "map.joblib").format == 1
    # what float32 does not tell from a row makes no difference
    rows = np.load(FOLDERS[0] / "rows.npy").astype(np.float32).astype(np.float64)
    assert kafeat.load(tmp_path / "map.joblib").transform(rows).tobytes() == fm.transform(rows).tobytes()
    assert fm.transform(rows * (1.0 + 1e-12)).tobytes() == fm.transform(rows).tobytes()


def test_a_map_of_format_2_knows_where_it_casts():
    fm = kafeat.load(FOLDERS[1] / "map.joblib")
    assert (fm.format, fm.chain.cast_after, fm.input_dtype) == (2, 1, np.float64)
    rows = np.load(FOLDERS[1] / "rows.npy")
    later = rows + np.array([1.0, 0.0, 0.0, 0.0, 0.0])  # a second, of which float32 knows nothing
    assert (later.astype(np.float32)[:, 0] == rows.astype(np.float32)[:, 0]).any()
    assert (fm.transform(later) != fm.transform(rows)).any(axis=1).all()


def test_a_map_with_preimages_gives_the_same_features():
    """Versions before 1.0.0 wrote the parameter into every recipe, and the arrays if it was true."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    inner = {"kind": "nystroem", "n_components": 4}
    fm = kafeat.fit({"steps": [{"kind": "union", "maps": [{"steps": [inner]}, {"steps": [inner]}]}]}, X)
    content = artifact.loads(fm.dumps(), "map")
    for steps in (content["steps"][0]["recipe"], content["config"]["steps"][0]):
        for one in steps["maps"]:
            one["steps"][0]["preimages"] = True
    prefix = next(name for name in content["steps"][0]["state"] if name.endswith("projection"))
    content["steps"][0]["state"][prefix.replace("projection", "preimages")] = np.ones((4, 3))
    content["steps"][0]["state"][prefix.replace("projection", "preimage_of_0")] = np.ones(3)
    old = loads(artifact.dumps(content))
    assert old.transform(X).tobytes() == fm.transform(X).tobytes()
    assert old.dumps() == fm.dumps()


def test_a_pruned_map_is_refused_with_the_remedy():
    content = artifact.loads(kafeat.load(FOLDERS[1] / "map.joblib").dumps(), "map")
    with pytest.raises(ArtifactError, match="got a pruned map: fit it again without `prune`"):
        loads(artifact.dumps({**content, "outputs": np.array([0, 2])}))
