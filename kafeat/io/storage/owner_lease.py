"""Ownership of a folder in an object store, by a lease: object stores have no locks.

`.kafeat.lock` names the run. Its driver rewrites a second object every few seconds, and another run that wants the
folder watches that object. A worker reads `.kafeat.lock` right before its object gets its name; the folder could only
change its owner between these two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kafeat.errors import KafeatError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.files import opened
from kafeat.io.storage.locations import entry_of, join, remove
from kafeat.io.storage.owner import NAME, Owner, check, refuse_if_alive, signs_of_life


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
