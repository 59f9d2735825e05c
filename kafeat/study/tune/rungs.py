"""Decide which trial comes next. The search has rungs (stages), each with trials on more rows than the one before.

All candidates are tried in the first rung, and the best of each rung go on to the next one. The trials of a rung have
the same size, so that scores are comparable. The best candidate goes first. If its trial would take too long, the rung
gets fewer splits, then fewer rows. After the last rung, the chosen map is tried with other widths and with fewer rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import NamedTuple

from kafeat.contract import RowKeys
from kafeat.study.tune.space import BASE, DEFAULT, NO_TREES, RAW, Candidate, SearchSpace
from kafeat.study.tune.trials import Outcome, Size, Trial, Trials


def in_order(search: Search) -> Iterator[Candidate]:
    """Yield the candidates of the first rung. Later candidates depend on the outcomes so far."""
    space = search.space
    yield DEFAULT
    if space.table.width <= _MOST_RAW:
        yield RAW
    if space.base:
        yield BASE
    yield from space.readings(DEFAULT)
    like = search.best_map() or DEFAULT
    kernels = search.screened(like, KERNELS_UNTIL * search.seconds - search.elapsed) or [like]
    yield kernels[0]
    beside_best, *other_trees = [*space.with_trees(search.best_map() or kernels[0])] or [kernels[0]]
    yield beside_best
    yield from space.trained(kernels[0])
    yield from other_trees
    yield from kernels[1:]
    yield from space.with_metrics(kernels[0])
    yield from around_the_best(search)


def around_the_best(search: Search) -> Iterator[Candidate]:
    """Yield the neighbours of the best maps so far, alternately of a map with trees and of one without."""
    seen = list[Candidate]()
    while len(seen) < _ROUNDS or search.most_trials is not None:
        other = seen[-1].trees == NO_TREES if seen else None
        best = search.best_map(seen, with_trees=other) or search.best_map(seen)
        if best is None:
            return
        seen.append(best)
        yield from search.space.neighbours(best)


def best_five(search: Search) -> Iterator[Candidate]:
    """Yield five candidates of the previous rung: the best two, the best with and without trees, `RAW`, `DEFAULT`."""
    ranked = search.different()
    kinds = {one.trees == NO_TREES: one for one in reversed(ranked) if one.map != "trees"}
    first = [*ranked[:1], *sorted(kinds.values(), key=ranked.index), *ranked[1:2]]
    plain = [one for one in (RAW, DEFAULT) if one in ranked]
    yield from [*dict.fromkeys([*first, *plain, *ranked])][:_ENTER]


class Rung(NamedTuple):
    """A stage of the search: trials of candidates on at most `rows` rows, of which a split holds out a share.

    The rung ends when the share `until` of the time has passed.
    """

    name: str
    rows: float
    held: float
    candidates: Callable[[Search], Iterator[Candidate]]
    until: float


KERNELS_UNTIL = 0.25
"""The share of the time after which the screening of kernels, in the first rung, ends."""
RUNGS = (
    Rung("maps", 3_000, 0.25, in_order, 0.6),
    Rung("more rows", 6_000, 0.25, best_five, 0.75),
    Rung("all rows", inf, 0.1, best_five, 0.9),
)
"""The rungs. A trial has `--seeds` splits or, in the last rung, which holds out tenths, enough splits to score 3,000
rows. Except for the last one, a rung with about as many rows as the rung before it is left out."""
_ENTER = 5
_HARDLY_MORE = 1.15
# The last rung holds out a tenth, so that its models learn from nearly all rows, like the final model. Rows in memory
# get enough splits to score _SCORED rows. With more rows, there is one split, which scores at least _SCORED_ONCE rows.
_SCORED, _SCORED_ONCE = 3_000, 2_000
# If time is short, a later rung still scores this many rows, or as many as the rung before it if those are fewer.
_LEAST_SCORED = 600
# Raw columns are not tried in wider tables, because they need more time and memory than any map.
_MOST_RAW = 2048
# The neighbours of this many maps are tried. A search with a limit on trials tries neighbours until that limit.
_ROUNDS = 4
ENDED = "ended, as it took more than half of the time that its rung had left"


def most_in_memory() -> float:
    """Return the largest number of rows of a trial that holds its rows in memory."""
    return RUNGS[-2].rows


def rungs_of(rows: int, every: int, width: int, splits: int, keys: RowKeys | None) -> list[tuple[Rung, Size]]:
    """Return the rungs with the sizes of their trials. The sample has `rows` rows, and the data have `every` rows."""
    maps, more, last = RUNGS
    most, first = int(min(rows, more.rows)), Size(int(min(rows, maps.rows)), width, splits, maps.held)
    between = first._replace(rows=min(every, most))
    one_pass, ordered = every > _HARDLY_MORE * most, keys is not None and keys.ordered
    found = [(maps, first)]
    if (one_pass or ordered) and between.rows > _HARDLY_MORE * first.rows:
        found.append((more, between))
    if one_pass:
        held = min(max(_SCORED_ONCE / every, last.held if keys is None else maps.held), 0.25)
        found.append((last, Size(every, width, 1, held, one_pass=True)))
    elif between.rows >= first.rows and not ordered:
        # Splits by time have no rung with tenths, since models for the earliest tenths would learn from few rows.
        tenths = between._replace(held=last.held)
        wanted = min(ceil(_SCORED / (tenths.held * tenths.rows)), tenths.parts)
        found.append((last, tenths._replace(splits=max(wanted, splits))))
    return found


@dataclass(kw_only=True)
class Search(Trials):
    """The trials of the rungs, in order.

    `run` returns the outcome of a candidate, or raises TimeoutError after the given seconds. `screened` returns the
    kernels that screening finds best in the given seconds, with text and categories coded as for a candidate. A search
    ends after `most_trials`, or `seconds` after it `started`. It reserves `last_fit` times the seconds of a trial for
    the last fit.
    """

    space: SearchSpace
    rungs: Sequence[tuple[Rung, Size]]
    run: Callable[[Candidate, Size, float], Outcome]
    screened: Callable[[Candidate, float], Sequence[Candidate]]
    most_trials: int | None = None
    seconds: float = inf
    last_fit: float = 0.0
    tell: Callable[[Search, Trial], None] | None = None
    started: float = field(default_factory=time.monotonic)
    ended_early: bool = False
    rung: str = RUNGS[0].name
    cut_by_time: bool = False
    """True if lack of time cut or skipped trials. Then a search without a time limit does not repeat this one."""

    def search(self) -> None:
        """Make the trials of all rungs."""
        for k, (rung, planned) in enumerate(self.rungs):
            size = planned if k == 0 else self._affordable(rung, planned)
            if size is None:
                return
            self.rung = rung.name
            self._make_all(rung.candidates(self), k, size)

    def _make_all(self, candidates: Iterable[Candidate], k: int, size: Size) -> None:
        """Make the trials of a rung until a limit is reached. Raw columns and the default map are always tried."""
        rung, slowest = self.rungs[k][0], 0.0
        most, too_slow = self._most(k), set[object]()
        for candidate in candidates:
            if self._made(candidate, size) is not None or candidate.learned in too_slow:
                continue
            left, always = rung.until * self.seconds - self.elapsed, k == 0 and candidate in (DEFAULT, RAW)
            if most == 0 or (slowest > left and not always):
                self.ended_early |= k == 0
                self.cut_by_time |= k > 0 and most > 0
                return
            leads = k > 0 and slowest == 0.0 and not too_slow
            trial = self._make(candidate, size, inf if always else left if leads else left / 2.0)
            most -= 1
            if (
                trial.outcome.failure == ENDED
            ):  # candidates with the same learned parts would be too slow as well
                too_slow.add(candidate.learned)
                self.ended_early |= k == 0
            else:
                slowest = max(slowest, trial.outcome.seconds)

    def _most(self, k: int) -> float:
        """Return how many trials rung `k` may make. If enough trials are left, some are reserved for later rungs."""
        if self.most_trials is None:
            return inf
        left = self.most_trials - len(self.trials)
        return left - min(_ENTER * len(self.rungs[k + 1 :]), max(0, left - 2) // 2)

    def _affordable(self, rung: Rung, size: Size) -> Size | None:
        """Return the largest size, up to this one, at which the best candidate takes at most half of the time left.

        The time of a trial is estimated by its training rows. Return None if even the smallest size takes too long.
        """
        ranked = self._ranked(self.trials[-1].size)
        if not ranked:
            return None
        best, left = ranked[0], rung.until * self.seconds - self.elapsed
        least, each = min(_LEAST_SCORED, best.size.scored), best.outcome.seconds / best.size.work
        while each * size.work > left / 2.0:
            self.cut_by_time = True
            smaller = size.smaller()
            if smaller.scored < least or smaller.rows < best.size.rows:
                return size if each * size.work < left else None
            size = smaller
        return size

    def afterwards(self, what: str, candidate: Candidate, size: Size) -> Trial | None:
        """Return a trial that follows the rungs. If it was not made before, make it; return None if time is short.

        `what` names the stage in place of a rung: `boosting`, `other widths` or `fewer rows`.
        """
        made, self.rung = self._made(candidate, size), what
        if made is not None:
            return made
        every = (self.best_score, *self.later)
        slowest = max((one.outcome.seconds for one in every if one.candidate == candidate), default=0.0)
        left = self.seconds - self.elapsed - self.last_fit * slowest
        return None if slowest > left else self._make(candidate, size, left, later=True)

    @property
    def complete(self) -> bool:
        """True if the best map was tried on all rows of the last rung."""
        return self.best_score.size.rows == self.rungs[-1][1].rows

    @property
    def elapsed(self) -> float:
        """The seconds since the search started."""
        return time.monotonic() - self.started

    def _make(self, candidate: Candidate, size: Size, seconds: float, later: bool = False) -> Trial:
        """Make and return a trial of the candidate. It fails if it takes more than these seconds."""
        trials = self.later if later else self.trials
        try:
            outcome = self.run(candidate, size, max(0.0, seconds))
        except TimeoutError:
            self.cut_by_time = True
            outcome = Outcome(-inf, (), seconds, failure=ENDED)
        trials.append(Trial(len(trials) + 1, candidate, size, outcome, later, self.rung))
        if self.tell is not None:
            self.tell(self, trials[-1])
        return trials[-1]
