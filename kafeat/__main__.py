"""The start of the process: nothing is imported before an interrupt is sure to end it without a traceback."""

from __future__ import annotations

import gc
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class _WithoutPandas:
    """A finder of modules that finds no pandas.

    Arrow imports it to see whether a list is a column of pandas, which takes longer than all that a short command does.
    """

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("a transform does without pandas", name=name)


def main() -> NoReturn:
    """`kafeat`, or `python -m kafeat`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line listens
    # It would look through all installed packages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if sys.argv[1:2] in (["transform"], ["predict"]):
        # Dask needs pandas: --engine, or KAFEAT_ENGINE and its like.
        if not any("engine" in word.lower() for word in (*sys.argv[2:], *os.environ)):
            sys.meta_path.insert(0, _WithoutPandas)
        gc.disable()  # until the job begins: nothing that is imported goes, and to see that takes a tenth of a start
    from kafeat.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
