"""The lowest versions that pyproject.toml allows, as requirements: `lowest.py [EXTRA ...]`, or `lowest.py --only EXTRA ...`."""

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


def requirements(project: dict, extras: list[str], core: bool) -> list[str]:
    found = list(project["dependencies"]) if core else []
    for extra in extras:
        found += project["optional-dependencies"][extra]
    return found


def main() -> None:
    asked = sys.argv[1:]
    core = "--only" not in asked
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extras = [name for name in asked if name != "--only"]
    print("\n".join(lowest(requirement) for requirement in requirements(project, extras, core)))


if __name__ == "__main__":
    main()
