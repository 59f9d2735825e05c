"""The page: whole in itself, with a picture of everything that means something."""

import os
import re

import numpy as np
import pytest

import kafeat
from kafeat.errors import KafeatError

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, digits_table):
    folder = tmp_path_factory.mktemp("report")
    step = {"frequencies": "iid", "weights": "uniform"}
    configs = [
        {"steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 16, **step}]},
        {"steps": [{"kind": "nystroem", "n_components": 16}]},
        {"steps": [{"kind": "normalize", "norm": "l1"}, {"kind": "homogeneous", "order": 1}]},
    ]
    kafeat.evaluate(
        data=digits_table, label="label", config=configs[:2], sweep=["n_components=16,64"], seeds=2, rows=300,
        exact_rows=300, report=str(folder / "swept"),
    )  # fmt: skip
    one = {"config": configs[2:], "rows": 300, "report": str(folder / "one")}
    kafeat.evaluate(data=digits_table, label="label", **one)
    return folder


@pytest.mark.slow
def test_pictures_of_what_was_compared(folder):
    assert sorted(os.listdir(folder / "swept")) == sorted([
        "index.html", "error-over-columns.svg", "score-over-columns.svg", "time-over-columns.svg",
        *(f"{what}-map-{i}.png" for i in (1, 2) for what in ("gram", "distances")),
    ])  # fmt: skip
    assert sorted(os.listdir(folder / "one")) == ["distances-map-1.png", "gram-map-1.png", "index.html"]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["swept", "one"])
def test_the_page_needs_no_other_file(folder, which):
    text = (folder / which / "index.html").read_text()
    found = re.findall(r'(?:src|srcset|href)="([^"]{0,40})', text)
    assert found
    assert all(url.startswith("data:") for url in found)
    assert "http://" not in re.sub(r"base64,[A-Za-z0-9+/=]*", "", text)
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    pictures = text.count("<img ")
    assert pictures == text.count('alt="') == len(os.listdir(folder / which)) - 1


def test_names_are_escaped(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    name = tmp_path / "a<b>&c.npy"
    np.save(name, X)
    config = {"steps": [{"kind": "projection", "n_components": 2}]}
    kafeat.evaluate(data=str(name), config=config, rows=20, report=str(tmp_path))
    assert "a&lt;b&gt;&amp;c.npy" in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_pictures_of_the_page_before_are_removed_and_nothing_else(digits_table, tmp_path):
    folder = tmp_path / "report"
    wide = {"steps": [{"kind": "nystroem", "n_components": 8}]}
    asked = {"data": digits_table.drop(["label"]), "rows": 60, "report": str(folder)}
    kafeat.evaluate(config=wide, **asked)
    (folder / "mine.png").write_bytes(b"a person's")
    assert "gram-map-1.png" in os.listdir(folder)
    kafeat.evaluate(config={"steps": [{"kind": "projection", "n_components": 8}]}, **asked)
    found = set(os.listdir(folder))
    assert "landmarks-map-1.png" not in found
    named = re.search(r'name="kafeat-pictures" content="([^"]*)"', (folder / "index.html").read_text())
    assert found == {"index.html", "mine.png", *named[1].split()}


def test_a_folder_made_for_nothing_is_removed(tmp_path):
    with pytest.raises(KafeatError, match="none.csv: No such file"):
        none, config = str(tmp_path / "none.csv"), {"steps": [{"kind": "nystroem"}]}
        kafeat.evaluate(data=none, config=config, report=str(tmp_path / "report"))
    assert not (tmp_path / "report").exists()
