"""Look at a wheel and an sdist: what the repository has, all of it, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile


def listed(*options: str) -> set[str]:
    """The files that git knows, or with `--others --exclude-standard` those that it does not know and not ignore."""
    shown = subprocess.run(
        ["git", "ls-files", "-z", *options], check=True, capture_output=True, text=True
    ).stdout
    return set(shown.split("\0")) - {""}


def compare(place: str, found: set[str], expected: set[str], made: set[str]) -> list[str]:
    missing = [f"{place}: expected {name}, got no such file" for name in sorted((expected | made) - found)]
    extra = [
        f"{place}: expected files of the repository, got {name}" for name in sorted(found - expected - made)
    ]
    return missing + extra


def main() -> None:
    (sdist,) = [name for name in sys.argv[1:] if name.endswith(".tar.gz")]
    (wheel,) = [name for name in sys.argv[1:] if name.endswith(".whl")]
    known = listed() - listed("--deleted")
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2] for member in archive if member.isfile()}
    new = listed("--others", "--exclude-standard")  # not committed yet
    mistakes = compare(sdist, members, known | (new & members), {"PKG-INFO"})

    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
        (folder,) = {name.partition("/")[0] for name in files if ".dist-info/" in name}
        metadata = archive.read(f"{folder}/METADATA").decode()
    notes = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    package = {name for name in known | (new & files) if name.startswith("kafeat/")}
    # A wheel of a platform holds the compiled core, any other one must not.
    core = set() if wheel.endswith("-any.whl") else {"kafeat/compiled/kernels.so"}
    # `kafeat demo` writes these.
    package |= {
        f"kafeat/demo_files/{name}" for name in known if name.startswith(("sample_data/", "configs/"))
    }
    package |= {
        f"{folder.replace('.dist-info', '.data')}/data/{name}" for name in known if name.startswith("share/")
    }
    made = core | {f"{folder}/{name}" for name in notes}
    mistakes += compare(wheel, files, package | {"kafeat/py.typed"}, made)
    for line in ("License-Expression: BSD-3-Clause", "License-File: LICENSE", "Requires-Python: >=3.11"):
        if f"\n{line}\n" not in metadata:
            mistakes.append(f"{wheel}: METADATA: expected {line!r}, got no such line")
    for link in re.findall(r"\]\((?!https://|#)[^)]*\)", metadata):
        mistakes.append(f"{wheel}: METADATA: expected addresses in the links of README.md, got {link}")
    if mistakes:
        raise SystemExit("\n".join(mistakes))
    print(f"sdist: {len(members)} files, as in the repository; wheel: {len(files)}, kafeat and nothing else")


if __name__ == "__main__":
    main()
