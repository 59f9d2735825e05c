"""Only one run at a time writes below a folder. Workers of a run that lost the folder stop before they write.

A local folder is owned by locks (`owner_lock`). A folder in an object store is owned by a lease: `.kafeat.lock` names
the run, whose driver rewrites a second object every few seconds, and another run that wants the folder watches that
object. A worker reads `.kafeat.lock` right before its object gets its name; the folder could only change its owner
between these two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from kafeat.errors import KafeatError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.files import opened
from kafeat.io.storage.locations import absolute, entry_of, join, remove
from kafeat.io.storage.owner import NAME, Owner, check, refuse_if_alive, signs_of_life
from kafeat.io.storage.owner_lock import holding_local, owning_local
from kafeat.io.storage.uri import is_remote


@dataclass(frozen=True)
class Token:
    """The permission of a run to write below some folders. Every task of the run carries it."""

    run: str
    folders: tuple[str, ...]

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Keep the folders with this run until the end of the block, in which a file is named or removed.

        Folders of object stores are only checked. Raise SystemRefusedError if a folder has another owner, or none.
        """
        with ExitStack() as stack:
            for folder in self.folders:
                if is_remote(folder):
                    check_remote(folder, self.run)
                else:
                    stack.enter_context(holding_local(folder, self.run))
            yield


@contextmanager
def owning(*folders: str) -> Iterator[Token]:
    """Own folders as a new run until the end of the block. Refuse them while another run owns one."""
    owner = Owner.new()
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context((owning_remote if is_remote(folder) else owning_local)(folder, owner))
        yield Token(owner.run, tuple(map(absolute, folders)))


def is_lock(name: str) -> bool:
    """Return true for a name of a file that marks the owner of a folder or gives a sign of life."""
    return name.startswith(NAME)


def check_remote(folder: str, run: str) -> None:
    """Refuse a folder that does not belong to the run."""
    check(folder, _owner_of(folder), run)


@contextmanager
def owning_remote(folder: str, owner: Owner) -> Iterator[None]:
    """Own the folder until the end of the block. Refuse it while another run owns it."""
    before = _owner_of(folder)
    if before is not None:
        refuse_if_alive(folder, before, _sign_of(folder, before))
        with suppress(KafeatError):  # without the permission to remove objects it stays
            remove(_sign_of(folder, before))
    location, sign = join(folder, NAME), _sign_of(folder, owner)
    try:
        write_bytes(sign, b".")
        write_bytes(location, owner.dumps())
        with signs_of_life(lambda: write_bytes(sign, b".")):
            yield
    finally:
        with suppress(KafeatError):
            remove(sign)
            if _owner_of(folder) == owner:
                remove(location)


def _sign_of(folder: str, owner: Owner) -> str:
    """Return the location of the signs of life. It is not `.kafeat.lock`, which may name another run by then."""
    return join(folder, f"{NAME}.{owner.run}")


def _owner_of(folder: str) -> Owner | None:
    location = join(folder, NAME)
    if entry_of(location) is None:
        return None
    with opened(location) as file:
        return Owner.loads(file.readall())
