"""Ownership of a folder in an object store, by a lease.

`.kafeat.lock` names the run, whose driver rewrites a second object every few seconds. Another run that wants the folder
watches that object. A worker reads `.kafeat.lock` right before its object gets its name. The folder could only change
its owner between these two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kafeat.errors import KafeatError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.location import Location
from kafeat.io.storage.owner import MOST_BYTES, NAME, Owner, check, refuse_if_alive, signs_of_life


def check_remote(folder: Location, run: str) -> None:
    """Refuse a folder that does not belong to the run."""
    check(folder, _owner_of(folder), run)


@contextmanager
def owning_remote(folder: Location, owner: Owner) -> Iterator[None]:
    """Own the folder until the end of the block. Refuse it while another run owns it."""
    before = _owner_of(folder)
    if before is not None:
        refuse_if_alive(folder, before, _sign_of(folder, before))
        with suppress(KafeatError):  # without the permission to remove objects it stays
            _sign_of(folder, before).remove()
    location, sign = folder.join(NAME), _sign_of(folder, owner)
    try:
        write_bytes(sign, b".")
        write_bytes(location, owner.dumps())
        with signs_of_life(lambda: write_bytes(sign, b".")):
            yield
    finally:
        with suppress(KafeatError):
            sign.remove()
            if _owner_of(folder) == owner:
                location.remove()


def _sign_of(folder: Location, owner: Owner) -> Location:
    """Return the location of the signs of life. It is not `.kafeat.lock`, which may name another run by then."""
    return folder.join(f"{NAME}.{owner.run}")


def _owner_of(folder: Location) -> Owner | None:
    location = folder.join(NAME)
    return None if location.entry() is None else Owner.loads(location.read(MOST_BYTES))
