"""A folder of an object store belongs to one run by a lease: there are no locks.

`.kafeat.lock` tells the run. Its driver writes another object every few seconds, and who wants the folder looks whether
that happens. A worker reads the run right before its object gets its name: what remains possible is that the folder
changes hands between these two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kafeat.errors import KafeatError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.files import opened
from kafeat.io.storage.locations import entry_of, join, remove
from kafeat.io.storage.owner import NAME, Owner, check, refuse_signs, signs_of_life


def check_there(folder: str, run: str) -> None:
    """Raise `SystemRefusedError` if the folder is not the run's."""
    check(folder, _owner_of(folder), run)


@contextmanager
def owning_there(folder: str, own: Owner) -> Iterator[None]:
    """Until the end of the block the folder is that run's; `SystemRefusedError` while it is another's."""
    before = _owner_of(folder)
    if before is not None:
        refuse_signs(folder, before, _sign_of(folder, before))
        with suppress(KafeatError):  # without the right to remove objects it stays
            remove(_sign_of(folder, before))
    place, sign = join(folder, NAME), _sign_of(folder, own)
    try:
        write_bytes(sign, b".")
        write_bytes(place, own.dumps())
        with signs_of_life(lambda: write_bytes(sign, b".")):
            yield
    finally:
        with suppress(KafeatError):
            remove(sign)
            if _owner_of(folder) == own:
                remove(place)


def _sign_of(folder: str, owner: Owner) -> str:
    """Not the object of the run: a driver that is late with a sign must not put its run in the place of another."""
    return join(folder, f"{NAME}.{owner.run}")


def _owner_of(folder: str) -> Owner | None:
    place = join(folder, NAME)
    if entry_of(place) is None:
        return None
    with opened(place) as file:
        return Owner.loads(file.readall())
