"""Work for engines whose workers are other processes: found there by its name."""

import os
import signal
import time
from collections.abc import Sequence

from kafeat.runtime.backends import start_engine
from kafeat.runtime.engine import Engine, run_all


def double(item: int) -> int:
    """Twice a number; the seventh kills whoever works on it."""
    if item == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * item


def sleep(seconds: float) -> None:
    """Do nothing for a while."""
    time.sleep(seconds)


def blas_threads(_: object) -> set[int]:
    """Numbers of threads of the BLAS libraries; it prints, too."""
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_info

    print("of a library", flush=True)
    return {library["num_threads"] for library in threadpool_info()}


def doubled(engine: Engine, items: Sequence[int]) -> dict[int, int | None]:
    """Every item and its double, None where its workers always died."""
    with start_engine(engine) as pool:
        found = list(run_all(pool, both, items, lambda item, _why: (item, None)))
    assert len(found) == len(dict(found))
    return dict(found)


def both(item: int) -> tuple[int, int | None]:
    return item, double(item)
