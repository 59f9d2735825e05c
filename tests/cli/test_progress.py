"""The bar, on a terminal and without one."""

import re
import subprocess
import sys

from tests.cli.terminal import on_terminal

WORK = """
import time
from kafeat.cli.progress import progress
with progress("transform", quiet={quiet}) as announce:
    told = announce({rows})
    for _ in range(8):
        time.sleep(0.1)
        told(1250)
"""


def test_a_bar_tells_rows_speed_and_time_left():
    text, code = on_terminal([sys.executable, "-c", WORK.format(quiet=False, rows=10_000)])
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert code == 0
    assert "10,000/10,000 rows" in text
    # 1,250 rows every tenth of a second, and no faster; a busy machine is slower
    speeds = [int(found.replace(",", "")) for found in re.findall(r"([\d,]+) rows/s", text)]
    assert speeds
    assert 100 < max(speeds) <= 12_500
    assert re.search(r"0:00:0\d\S* left", text)


def test_a_bar_without_an_end_still_tells_the_speed():
    text, _ = on_terminal([sys.executable, "-c", WORK.format(quiet=False, rows=None)], env={"NO_COLOR": "1"})
    assert re.search(r"10,000 rows +[\d,.]+ rows/s", text)
    assert "?" not in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert "left" not in text


def test_quiet_and_pipes_see_nothing():
    assert on_terminal([sys.executable, "-c", WORK.format(quiet=True, rows=10_000)]) == ("", 0)
    done = subprocess.run([sys.executable, "-c", WORK.format(quiet=False, rows=10_000)], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
