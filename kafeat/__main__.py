"""The start of the process: nothing is imported before an interrupt is sure to end it without a traceback."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """`kafeat`, or `python -m kafeat`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line listens
    from kafeat.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
