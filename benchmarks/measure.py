"""Seconds and peak memory of a command, as the operating system counts them.

A child's peak starts at that of the process that forked it, so commands are started from this small file in a
process of its own: `python -S benchmarks/measure.py COMMAND...` prints JSON.
"""

import json
import os
import subprocess
import sys
import time


def measure(command: list[str]) -> dict[str, float]:
    """Wall seconds, CPU seconds, peak resident MiB and the exit code of a command."""
    result = subprocess.run(
        [sys.executable, "-S", "-E", __file__, *command], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(result.stdout.splitlines()[-1])


def main() -> None:
    started = time.perf_counter()
    pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
    _, status, usage = os.wait4(pid, 0)
    report = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
        "code": os.waitstatus_to_exitcode(status),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
