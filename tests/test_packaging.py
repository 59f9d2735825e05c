"""Facts about the package are the same wherever they stand; `make package` tries the package itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ruamel.yaml import YAML

import kafeat

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_agrees_with_the_project():
    citation = YAML(typ="safe").load(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what the format requires
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["license"]) == (PROJECT["name"], PROJECT["license"])
    assert citation["version"] == kafeat.__version__
    assert citation["authors"] == PROJECT["authors"]
    for work in citation["references"]:
        assert {"type", "title", "authors", "year"} <= set(work)


def test_every_requirement_has_a_lower_bound_that_can_be_tested():
    extras = [bound for extra in PROJECT["optional-dependencies"].values() for bound in extra]
    for requirement in [*PROJECT["dependencies"], *extras]:
        assert re.fullmatch(r"[\w.-]+(\[\w+\])?>=\d[\w.]*", requirement), requirement


def test_types_are_shipped():
    assert (Path(kafeat.__file__).parent / "py.typed").exists()
