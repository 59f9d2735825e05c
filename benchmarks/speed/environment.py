"""Both sides run as on a user's machine: nothing tells BLAS which processor it is on, or how many threads to take.

BLAS looks when it is loaded, so this comes before NumPy is imported. Children inherit it.
"""

import os
import sys

DISTURBING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def clean() -> dict[str, str]:
    """Remove what would favour or hinder a side, and say what was removed."""
    if "numpy" in sys.modules:
        raise RuntimeError("NumPy has read the environment already")
    names = [name for name in os.environ if name in DISTURBING or name.endswith("_NUM_THREADS")]
    return {name: os.environ.pop(name) for name in names}
