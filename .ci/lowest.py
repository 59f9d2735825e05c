"""The lowest versions that pyproject.toml allows, as requirements: `lowest.py [EXTRA ...]`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

BOUND = re.compile(r"(?P<name>[\w.-]+(\[[\w,-]+\])?)>=(?P<version>[\w.]+)")


def lowest(requirement: str) -> str:
    bound = BOUND.fullmatch(requirement)
    if bound is None:
        raise SystemExit(f"pyproject.toml: expected name>=version, got {requirement!r}")
    return f"{bound['name']}=={bound['version']}"


def main() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    found = list(project["dependencies"])
    for extra in sys.argv[1:]:
        found += project["optional-dependencies"][extra]
    print("\n".join(dict.fromkeys(map(lowest, found))))


if __name__ == "__main__":
    main()
