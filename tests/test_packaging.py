"""Facts about the package are the same wherever they stand; `make package` tries the package itself."""

import platform
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import kafeat
from tests.zygote import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


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
    extras = dict(PROJECT["optional-dependencies"])
    assert extras.pop("all") == [f"kafeat[{','.join(sorted(extras))}]"]
    groups = [*extras.values(), *PYPROJECT["dependency-groups"].values()]
    for requirement in [*PROJECT["dependencies"], *(bound for group in groups for bound in group)]:
        assert re.fullmatch(r"[\w.-]+(\[\w+\])?>=\d[\w.]*(,<2)?", requirement), requirement


@pytest.mark.skipif(shutil.which("objdump") is None or platform.machine() != "x86_64", reason="of x86-64")
def test_a_wheel_runs_on_every_processor_of_its_platform():
    library = Path(kafeat.__file__).parent / "compiled/kernels.so"
    if not library.exists():
        pytest.skip("no compiled core here")
    words = ["objdump", "-d", "--no-show-raw-insn", library]
    listed = subprocess.run(words, capture_output=True, text=True, check=True)
    functions = re.split(r"^[0-9a-f]+ <(.+)>:$", listed.stdout, flags=re.M)[1:]
    codes = zip(functions[::2], functions[1::2], strict=True)
    newer = {name for name, code in codes if re.search(r"%[yz]mm|%k[1-7]|\tv[a-z]", code)}
    # The loader chooses among the versions of a function, and kafeat takes those of 64 bytes by `kafeat_vector_bytes`.
    assert newer
    assert all(re.search(r"\.arch_x86_64_v[34]|^kafeat_\w+_64_f\d\d$", name) for name in newer), newer
