"""The entry point of the process: it makes Ctrl-C end the process silently before it imports anything slow."""

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

    PyArrow imports pandas to check whether a list is a pandas column. This import takes longer than a short command.
    """

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("kafeat hides pandas from this command", name=name)


def main() -> NoReturn:
    """Run the command line, started as `kafeat` or as `python -m kafeat`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # end silently until the command line handles Ctrl-C.
    # Pydantic would search all installed packages for its plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if sys.argv[1:2] in (["transform"], ["predict"]):
        # Dask needs pandas, and --engine or a variable such as KAFEAT_ENGINE may choose Dask.
        if not any("engine" in word.lower() for word in (*sys.argv[2:], *os.environ)):
            sys.meta_path.insert(0, _WithoutPandas)
        gc.disable()  # Collections would take a tenth of the start. The job enables them again.
    from kafeat.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
