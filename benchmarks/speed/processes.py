"""A process as a side of a contest: its seconds and its peak memory, started from a small process."""

import sys
from collections.abc import Callable
from pathlib import Path

from measure import measure

from speed.contest import Sample, Side

KAFEAT = str(Path(sys.executable).with_name("kafeat"))
PEERS = Path(__file__).parent / "peers"


def process(command: list[str], after: Callable[[], object] = lambda: None) -> Side:
    """A run of the command; `after` removes what it wrote, outside of the time."""

    def side() -> Sample:
        report = measure(command)
        if report["code"]:
            raise RuntimeError(f"{' '.join(command)} ended with {report['code']}")
        after()
        return {"seconds": report["seconds"], "peak_mb": report["peak_mib"] * 1.048576}

    return side


def peer(script: str, *arguments: object) -> list[str]:
    """The command of a peer's script."""
    return [sys.executable, str(PEERS / script), *map(str, arguments)]
