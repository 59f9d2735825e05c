"""Only one run at a time writes below a folder. Workers of a run that lost the folder stop before they write.

A local folder is owned by locks (`folder_lock`), a folder in an object store by a lease (`folder_lease`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kafeat.io.storage.folder_lease import check_remote, owning_remote
from kafeat.io.storage.folder_lock import holding_local, owning_local
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.location import Location
from kafeat.io.storage.owner import NAME, Owner


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
                    check_remote(folder, self.run)
            yield


@contextmanager
def owning(*folders: Location) -> Iterator[Token]:
    """Own folders as a new run until the end of the block. Refuse them while another run owns one."""
    owner = Owner.new()
    with ExitStack() as stack:
        for folder in folders:
            own = (
                owning_local(folder, owner) if isinstance(folder, LocalPath) else owning_remote(folder, owner)
            )
            stack.enter_context(own)
        yield Token(owner.run, tuple(folder.absolute() for folder in folders))


def is_lock(name: str) -> bool:
    """Return true for a name of a file that marks the owner of a folder or gives a sign of life."""
    return name.startswith(NAME)
