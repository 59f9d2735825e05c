"""Write sample data and configs to a folder, so that every example of the docs runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from kafeat.errors import UsageError
from kafeat.io.storage.location import write_file
from kafeat.io.storage.object_store import is_remote

_FOLDERS = ("sample_data", "configs")


def write_demo(folder: str | os.PathLike[str]) -> list[str]:
    """Write `sample_data/` and `configs/` to a folder. A missing folder is created.

    Parameters
    ----------
    folder : path
        Files that already have the same content are left alone. If a file of the same name has other content, this is
        an error, and nothing is written.

    Returns
    -------
    list of str
        The paths of the files, sorted.
    """
    if os.fspath(folder) == "-" or is_remote(os.fspath(folder)):
        raise UsageError(f"expected a folder on this machine, got {folder}")
    files = {os.path.join(folder, name): data for name, data in _files()}
    for path, data in files.items():
        if os.path.lexists(path) and not (os.path.isfile(path) and Path(path).read_bytes() == data):
            raise UsageError(
                f"{path}: expected no such file, got one with other content: choose an empty folder"
            )
    for path, data in files.items():
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_file(path, data, fsync=False)
    return sorted(files)


def _files() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file, from the package or, in a checkout, from the folder next to it."""
    package = Path(str(resources.files("kafeat")))
    shipped = package / "demo_files"
    root = shipped if shipped.is_dir() else package.parent
    for folder in _FOLDERS:
        for path in sorted((root / folder).iterdir()):
            if path.is_file() and path.suffix != ".py":
                yield f"{folder}/{path.name}", path.read_bytes()
