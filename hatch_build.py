"""Build the compiled core beside its source, for a wheel or an editable install; `python hatch_build.py` does no more.

Without a C compiler, or where it fails, the wheel holds Python alone and NumPy computes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "kafeat" / "compiled"
LIBRARY = FOLDER / "kernels.so"
# Products and sums are contracted. Otherwise arithmetic is the standard's; nobody reads errno and flags.
FLAGS = ("-O3", "-std=c11", "-fPIC", "-shared", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
# By default, compilers take half of an AVX-512 register.
FLAGS_OF_X86 = ("-mprefer-vector-width=512",)


def build() -> bool:
    """Compile the library in place and return True, or remove an old one and return False."""
    LIBRARY.unlink(missing_ok=True)
    compiler = shutil.which(os.environ.get("CC") or "cc")
    if compiler is None or os.environ.get("KAFEAT_COMPILED") == "0":
        return False
    of_machine = FLAGS_OF_X86 if sysconfig.get_platform().endswith(("x86_64", "amd64")) else ()
    print("kafeat: compiling the core, which takes minutes on a slow machine", file=sys.stderr, flush=True)
    made = FOLDER / f"kernels.{os.getpid()}.so"
    command = [compiler, *FLAGS, *of_machine, "-o", str(made), str(FOLDER / "kernels.c"), "-lm"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode:
        made.unlink(missing_ok=True)
        print(f"kafeat: the compiled core was not built, NumPy computes:\n{result.stderr}", file=sys.stderr)
        return False
    made.replace(LIBRARY)  # a process that has the old one loaded keeps it
    return True


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # `python hatch_build.py` where there is no hatchling
    pass
else:

    class CompiledCore(BuildHookInterface[Any]):
        """The wheel holds the library and the name of its platform: any Python loads it."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            if self.target_name == "wheel" and build():
                # the library is for this processor alone, even if Python is for two
                platform = sysconfig.get_platform().replace("universal2", os.uname().machine)
                platform = platform.replace("-", "_").replace(".", "_")
                build_data["artifacts"].append("kafeat/compiled/kernels.so")
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{platform}"

    class Readme(MetadataHookInterface):
        """README.md without links to files, which a page of a package index could not follow."""

        def update(self, metadata: dict[str, Any]) -> None:
            text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
            address, version = metadata["urls"]["Repository"], metadata["version"]
            text = re.sub(
                r"(!?)\[[^]]*\]\((?!https?:|#)",
                lambda link: f"{link[0]}{address}/{'raw' if link[1] else 'blob'}/v{version}/",
                text,
            )
            metadata["readme"] = {"content-type": "text/markdown", "text": text}


if __name__ == "__main__":
    sys.exit(not build())
