"""Predict the time of a data set on a cluster: the arithmetic, and a simulation of parts on workers that fail.

    python benchmarks/scaling_simulation.py [--rows 1e9] [--workers 64] ...

Every constant can be set. The defaults were measured by benchmarks/scaling.py on one machine
(benchmarks/results/scaling.md).
"""

from __future__ import annotations

import argparse
import heapq
import math
from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class World:
    """A data set, a cluster, and what was measured. Rates are per second."""

    rows: float = 1e9
    rows_per_part: float = 1e6
    bytes_in: float = 160.0
    """A row of the input on the disk or in the store."""
    bytes_out: float = 1024.0
    workers: int = 64
    """Cores: each makes one part at a time."""
    rows_per_second: float = 157_000.0
    """One core, reading and writing a local disk."""
    seconds_per_part: float = 0.01
    """Opening, hashing and noting one, besides its rows."""
    parts_per_second: float = 60.0
    """Parts per second that one scheduler hands out and takes back."""
    worker_network: float = 100e6
    """Bytes that one worker moves, in and out together."""
    store_network: float = 10e9
    """Bytes that the store serves to all."""
    failures_per_day: float = 0.1
    """Of one worker; its part is lost and done again, and the worker is away for a minute."""
    spread: float = 0.1
    """Standard deviation of the logarithm of a part's time."""

    @property
    def parts(self) -> int:
        return math.ceil(self.rows / self.rows_per_part)

    @property
    def part_seconds(self) -> float:
        """One part on one worker, when the store is not the limit: computing and moving overlap but at the ends."""
        compute = self.rows_per_part / self.rows_per_second + self.seconds_per_part
        return compute + self.rows_per_part * (self.bytes_in + self.bytes_out) / self.worker_network


def arithmetic(world: World) -> dict[str, float]:
    """Seconds that each limit alone would ask for; the largest is what to expect at the least."""
    moved = world.rows * (world.bytes_in + world.bytes_out)
    waves = math.ceil(world.parts / world.workers)
    return {
        "workers": waves * world.part_seconds,
        "store": moved / world.store_network,
        "scheduler": world.parts / world.parts_per_second,
    }


def simulate(world: World, seed: int = 0) -> tuple[float, int]:
    """Seconds until the last part is done, and how many parts were begun again. One event a part."""
    rng = np.random.default_rng(seed)
    slowed = max(
        1.0,
        world.workers
        * world.rows_per_part
        * (world.bytes_in + world.bytes_out)
        / world.part_seconds
        / world.store_network,
    )
    free = [0.0] * world.workers
    heapq.heapify(free)
    handed_out, again, end = 0.0, 0, 0.0
    left = world.parts
    while left:
        ready = heapq.heappop(free)
        handed_out = max(handed_out + 1.0 / world.parts_per_second, ready)
        took = world.part_seconds * slowed * float(np.exp(rng.normal(0.0, world.spread)))
        dies = (
            float(rng.exponential(86_400.0 / world.failures_per_day)) if world.failures_per_day else math.inf
        )
        if dies < took:
            again += 1
            heapq.heappush(free, handed_out + dies + 60.0)
            continue
        left -= 1
        end = max(end, handed_out + took)
        heapq.heappush(free, handed_out + took)
    return end, again


def spelled(seconds: float) -> str:
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for field in fields(World):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=float, default=field.default)
    asked = dict(vars(parser.parse_args()).items())
    world = World(**{**asked, "workers": int(asked["workers"])})
    limits = arithmetic(world)
    print(f"{world.rows:.3g} rows in {world.parts:,} parts on {world.workers:,} workers")
    for name, seconds in limits.items():
        print(f"  {name:10} {spelled(seconds)}")
    end, again = simulate(world)
    print(
        f"  simulated  {spelled(end)}, {again} parts begun again; first limit: {max(limits, key=limits.__getitem__)}"
    )


if __name__ == "__main__":
    main()
