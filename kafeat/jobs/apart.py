"""What a run over parts writes lies apart from what it reads, now or in the next run, and from what else it writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.locations import kind_of
from kafeat.io.parts import Parts
from kafeat.io.uri import identity, shown


@dataclass(frozen=True)
class Destinations:
    """The folder of the parts, that of their rejects, and the file of the caller's stats."""

    target: str
    rejects: str | None = None
    stats: str | None = None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """What there is of them: in words, and the place."""
        named = {"the output": self.target, "--rejects": self.rejects, "--stats": self.stats}
        return ((what, place) for what, place in named.items() if place is not None)


def refuse_overlap(source: str, found: Parts | None, model: object, written: Destinations) -> None:
    """Refuse what would be destroyed, or be read as a part by the next run; `found` None is one file."""
    if written.rejects == "-":
        raise UsageError("--rejects: expected a folder for the rejects of the parts, got standard output")
    if written.rejects is not None and kind_of(written.rejects) not in (None, "folder"):
        raise SystemRefusedError(
            f"{written.rejects}: expected a folder for the rejects of the parts, got a file"
        )
    places = [source] if found is None else [source, *(part.place for part in found.parts)]
    inputs = [identity(place) for place in places if place != "-"]
    whole = identity(found.folder) if found is not None and found.deep and found.folder else None
    outputs = [(what, place, identity(place)) for what, place in written]
    for what, place, own in outputs:
        if any(_lies_in(one, own) for one in inputs) or (whole is not None and _lies_in(own, whole)):
            raise _overlap(place, what, "the input", own in inputs)
        if isinstance(model, str) and _lies_in(identity(model), own):
            raise _overlap(place, what, "the model", identity(model) == own)
    for (what, place, own), (other, _, beside) in permutations(outputs, 2):
        if _lies_in(own, beside):
            raise _overlap(place, what, other, own == beside)


def _lies_in(place: str, folder: str) -> bool:
    return f"{place}/".startswith(f"{folder.rstrip('/')}/")


def _overlap(place: str, what: str, other: str, same: bool) -> UsageError:
    wanted = "an output" if what == "the output" else what
    got = "the same" if same else "one inside of the other"
    return UsageError(f"{shown(place)}: expected {wanted} apart from {other}, got {got}")
