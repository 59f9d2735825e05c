import hashlib
import os
import time

import pytest

from tests.zygote import PIPE, Process, apart

READ = (
    "import numpy as np; from kafeat.io.options import InputOptions\n"
    "from kafeat.io.storage.location import parse_location\n"
    "from kafeat.io.columns.selection import choose\n"
    "s = InputOptions().open_file(parse_location('-')); c = choose(s, None, [], ())\n"
    "print(sum(k.matrix(np.dtype('f8')).sum() for k in s.chunks(c, [], 100)), s.digest())\n"
    "try: next(s.chunks(c, [], 100))\n"
    "except Exception as e: print(e)"
)
WRITE = (
    "import numpy as np; from kafeat.io.writers.open import open_writer\n"
    "from kafeat.io.formats import FORMATS\n"
    "from kafeat.io.storage.location import parse_location\n"
    "from kafeat.io.writers.base import Layout\n"
    "with open_writer(parse_location('-'), FORMATS['csv'], Layout(['a'], np.dtype('f4'))) as s:\n"
    "    s.write(np.ones((9, 1), 'f4'), None)\n"
)


@pytest.mark.parametrize(("code", "closed"), [(READ, 0), (WRITE, 1)])
def test_a_closed_stream_is_refused(code, closed):
    done = apart(code=code, closed=closed)
    assert b"SystemRefusedError: -: expected an open standard " in done.stderr


def test_a_stalled_pipe_lets_the_process_end():
    code = (
        "import threading, time; from kafeat.io.readers.text_stream import HashingStream\n"
        "from kafeat.io.storage.location import parse_location; raw = HashingStream(parse_location('-'))\n"
        "threading.Thread(target=raw.read, args=(1 << 20,), daemon=True).start()\n"
        "raw._ahead = b''; time.sleep(0.3); print('end')\n"
    )
    child = Process(code=code, stdin=PIPE)
    child.stdin.write(b"a\n1\n2\n")
    child.stdin.flush()
    assert child.wait(timeout=60) == 0
    assert child.communicate() == (b"end\n", b"")


@pytest.mark.parametrize("blocking", [True, False])
def test_a_slow_pipe_is_read_whole(blocking):
    ours, theirs = os.pipe()
    os.set_blocking(ours, blocking)
    child = Process(code=READ, stdin=ours)
    os.close(ours)
    text = b"a\n" + b"1\n" * 1000
    for start in range(0, len(text), 501):
        os.write(theirs, text[start : start + 501])
        time.sleep(0.05)
    os.close(theirs)
    first, last = child.communicate()[0].decode().splitlines()
    assert first == f"1000.0 {hashlib.sha256(text).hexdigest()}"
    assert last == "<stdin>: expected a file, which can be read again, got a pipe; save it to a file first"
