"""Files that runs have written are the only ones that a run removes."""

from __future__ import annotations

from kafeat.io.storage.files import digest_of
from kafeat.io.storage.locations import entry_of, join, lies_below, remove
from kafeat.jobs.dataset.manifest import File


def remove_written(folder: str, name: str, file: File) -> bool:
    """Remove a file below a folder if its stamp or hash is that of the manifest; return true if it was removed.

    A file that somebody changed or put there stays, and so does the target of a link.
    """
    place = join(folder, name)
    entry = entry_of(place) if lies_below(folder, name) else None
    if entry is None or entry.bytes != file.bytes:
        return False
    if entry.stamp != file.stamp and (file.sha256 is None or digest_of(place) != file.sha256):
        return False
    remove(place)
    return True
