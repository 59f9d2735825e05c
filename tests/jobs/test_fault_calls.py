"""Calls of the system that fail once, one in each run, and allocations: what is left is right."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fault_calls.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_random_calls_that_fail_lose_nothing():
    """Some here; `make fault-calls` lets every call fail."""
    if not sys.platform.startswith("linux") or shutil.which("cc") is None:
        pytest.skip("no C compiler here, or no library that can be preloaded")
    command = [sys.executable, SCRIPT, "--random", "50", "--memory", "10"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'calls that failed': 50" in done.stdout
