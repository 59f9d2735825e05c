"""The start of the process. Nothing is imported before an interrupt is sure to end it without a traceback."""

from __future__ import annotations

import gc
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class _WithoutPandas:
    """A module finder that hides pandas.

    Arrow imports pandas to check whether a list is one of its columns, which takes longer than a whole short command.
    """

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("a transform does without pandas", name=name)


def main() -> NoReturn:
    """Run `kafeat`, or `python -m kafeat`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line handles it
    # It would search all installed packages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if sys.argv[1:2] in (["transform"], ["predict"]):
        # Dask needs pandas: --engine, or KAFEAT_ENGINE and the like.
        if not any("engine" in word.lower() for word in (*sys.argv[2:], *os.environ)):
            sys.meta_path.insert(0, _WithoutPandas)
        gc.disable()  # until the job begins: no import is garbage, and checking that takes a tenth of the start
    from kafeat.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
