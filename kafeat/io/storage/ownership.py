"""One run at a time writes below a folder, and what is left of another gives up before it writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kafeat.io.storage.locations import absolute
from kafeat.io.storage.owner import NAME, Owner
from kafeat.io.storage.owner_lease import check_there, owning_there
from kafeat.io.storage.owner_lock import held_here, owning_here
from kafeat.io.storage.uri import is_remote


@dataclass(frozen=True)
class Token:
    """The right of a run to write below some folders. It travels with every task of the run."""

    run: str
    folders: tuple[str, ...]

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Around giving a file its name, or taking it away: until the end of the block no other run gets the folders.

        Those of object stores are looked at only. Raises `SystemRefusedError` if one is another run's, or nobody's.
        """
        with ExitStack() as stack:
            for folder in self.folders:
                if is_remote(folder):
                    check_there(folder, self.run)
                else:
                    stack.enter_context(held_here(folder, self.run))
            yield


@contextmanager
def owning(*folders: str) -> Iterator[Token]:
    """Make folders a new run's until the end of the block; `SystemRefusedError` while one is another's at work."""
    own = Owner.new()
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context((owning_there if is_remote(folder) else owning_here)(folder, own))
        yield Token(own.run, tuple(map(absolute, folders)))


def is_lock(name: str) -> bool:
    """Whether a file of that name says whose a folder is, or gives a sign of life."""
    return name.startswith(NAME)
