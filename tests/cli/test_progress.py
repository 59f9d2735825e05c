"""The bar, on a terminal and without one."""

import re

from kafeat.config import load_config
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.messages import Listener
from tests.cli.terminal import on_terminal
from tests.zygote import apart

WORK = """
import time
from kafeat.cli import log
from kafeat.cli.progress import progress
from kafeat.io.storage.location import parse_location
log.settings.quiet = {quiet}
with progress("transform") as announce:
    told = announce({rows})
    for _ in range(8):
        time.sleep(0.1)
        told(1250)
"""


def test_a_bar_tells_rows_speed_and_time_left():
    text, code = on_terminal(code=WORK.format(quiet=False, rows=10_000))
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert code == 0
    assert "10,000 of 10,000 rows" in text
    # 1,250 rows every tenth of a second, and no faster; a busy machine is slower
    speeds = [int(found.replace(",", "")) for found in re.findall(r"([\d,]+) rows/s", text)]
    assert speeds
    assert 100 < max(speeds) <= 12_500
    assert re.search(r"0:00:0\d left", text)


def test_a_bar_without_an_end_still_tells_the_speed():
    text, _ = on_terminal(code=WORK.format(quiet=False, rows=None), env={"NO_COLOR": "1"})
    assert re.search(r"10,000 rows, [\d,.]+ rows/s", text)
    assert "?" not in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert "left" not in text


PHASES = """
import time
from kafeat.cli.progress import progress
with progress("reading rows") as announce:
    told = announce(100)
    told(100)
    time.sleep(0.3)
    announce.phase("fitting step 2 of 3: nystroem")
    time.sleep(1.3)
"""


def test_a_phase_that_nothing_is_counted_in_promises_no_end():
    text, code = on_terminal(code=PHASES, env={"NO_COLOR": "1"})
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert code == 0
    reading, _, fitting = text.partition("fitting step 2 of 3: nystroem")
    assert re.search(r"reading rows .*100 of 100 rows", reading)
    assert re.search(r" 0:00:01", fitting)
    assert "left" not in fitting
    assert "rows" not in fitting


def test_a_fit_tells_what_it_works_on(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "steps: [{kind: standardize}, {kind: fourier, gamma: {validate: [0.1, 1]}, n_components: 8}]\n"
    )
    (tmp_path / "x.csv").write_text("a,b,y\n" + "1,2,0\n2,4,1\n3,5,1\n1,4,0\n" * 20)
    with InputOptions().open(parse_location(tmp_path / "x.csv")) as source:
        heard, rows = [], []
        listener = Listener(rows=rows.append, phase=heard.append)
        fit_reader(load_config(tmp_path / "c.yaml"), source, "y", listener=listener)
    assert sum(rows) == 80
    begun = ["hashing the input", "choosing parameters from the data"]
    steps = ["fitting step 1 of 2: standardize", "fitting step 2 of 2: fourier"]
    assert heard == begun + steps


def test_quiet_and_pipes_see_nothing():
    assert on_terminal(code=WORK.format(quiet=True, rows=10_000)) == ("", 0)
    done = apart(code=WORK.format(quiet=False, rows=10_000))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
