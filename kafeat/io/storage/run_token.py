"""Only one run at a time writes below a folder. Workers of a run that lost the folder stop before they write.

A local folder is owned by locks (`folder_lock`). An object store has none: there the newest run owns the folder, and
it is the user's duty to start only one. A worker of an earlier run reads that before its object gets its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from kafeat.errors import KafeatError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.base import Location
from kafeat.io.storage.folder_lock import holding_local, owning_local
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.owner import NAME, Owner, check


@dataclass(frozen=True)
class Token:
    """The permission of a run to write below some folders. Every task of the run carries it."""

    run: str
    folders: tuple[Location, ...]

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Keep the folders with this run until the end of the block, in which a file is named or removed.

        Folders of object stores are only checked. Raise SystemRefusedError if a folder has another owner, or none.
        """
        with ExitStack() as stack:
            for folder in self.folders:
                if isinstance(folder, LocalPath):
                    stack.enter_context(holding_local(folder, self.run))
                else:
                    check(folder, _owner_of(folder), self.run)
            yield


@contextmanager
def owning(*folders: Location) -> Iterator[Token]:
    """Own folders as a new run until the end of the block. Refuse local ones while another run owns one."""
    owner = Owner.new()
    with ExitStack() as stack:
        for folder in folders:
            own = owning_local(folder, owner) if isinstance(folder, LocalPath) else _naming(folder, owner)
            stack.enter_context(own)
        yield Token(owner.run, tuple(folder.absolute() for folder in folders))


@contextmanager
def _naming(folder: Location, owner: Owner) -> Iterator[None]:
    """Name the run in a folder of an object store until the end of the block."""
    location = folder.join(NAME)
    write_bytes(location, owner.dumps())
    try:
        yield
    finally:
        with suppress(KafeatError):  # without the permission to remove objects it stays
            if _owner_of(folder) == owner:
                location.remove()


def _owner_of(folder: Location) -> Owner | None:
    location = folder.join(NAME)
    return None if location.entry() is None else Owner.loads(location.read())


def is_lock(name: str) -> bool:
    """Return true for a name of a file that marks the owner of a folder."""
    return name.startswith(NAME)
