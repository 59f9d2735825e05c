"""The packages of a dependency group of pyproject.toml, one a line: `group.py dev`. An old pip cannot read groups."""

import sys
import tomllib
from pathlib import Path

text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
print("\n".join(tomllib.loads(text)["dependency-groups"][sys.argv[1]]))
