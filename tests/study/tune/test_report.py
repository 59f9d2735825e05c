"""The page of a search, and the figures that it shows."""

import os
import re
from html import escape

import pytest

import kafeat
from tests.study.tune.test_tune import mixed

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    tuning = kafeat.tune(
        mixed(), "y", split="split", trials=6, jobs=1, max_bytes_per_row=256, report=str(folder)
    )
    return folder, tuning


def test_the_page_needs_no_other_file_and_has_every_part(tuned):
    folder, tuning = tuned
    text = (folder / "index.html").read_text()
    assert sorted(os.listdir(folder)) == ["index.html", "score-over-columns.svg"]
    assert all(url.startswith("data:") for url in re.findall(r'(?:src|srcset|href)="([^"]{0,40})', text))
    weigh = f"Columns that weigh most: {escape(tuning.table[0]['map'])}"
    for heading in ("Leaderboard", "Score over columns", weigh, "Pictures", "The config"):
        assert f"<h2>{heading}</h2>" in text
    assert f"{tuning.test_score.value:.4f}" in text
    assert "- kind: one_hot" in text


def test_columns_of_text_and_times_are_shuffled_as_a_whole(tuned):
    _, tuning = tuned
    assert set(tuning.importance) == {"x", "gaps", "town", "time"}
    assert set(list(tuning.importance)[:2]) == {"x", "town"}  # the label is sin(x) and one town
    assert tuning.importance["x"] > 0.1
    assert abs(tuning.importance["time"]) < 0.1


def test_the_commands_are_those_for_the_file(tmp_path):
    import pyarrow.csv as pc

    path = str(tmp_path / "a table.csv")
    pc.write_csv(mixed(), path)
    tuning = kafeat.tune(path, "y", 16, split="split", trials=1, jobs=1)
    assert tuning.commands("c.yaml") == [
        f"kafeat fit --config c.yaml '{path}' map.joblib --label y --split split",
        "kafeat transform --model map.joblib NEW.csv features.parquet",
        f"kafeat evaluate --model map.joblib '{path}' --label y --split split",
    ]
    assert kafeat.tune(mixed(), "y", 16, trials=1, jobs=1).commands() == []
