import hashlib
import os
import time

import pytest

from tests.zygote import PIPE, Process

READ = (
    "import numpy as np; from kafeat.io.options import InputOptions\n"
    "from kafeat.io.storage.location import parse_location\n"
    "from kafeat.io.columns.selection import choose\n"
    "s = InputOptions().open_file(parse_location('-')); c = choose(s, None, [], ())\n"
    "print(sum(k.matrix(np.dtype('f8')).sum() for k in s.chunks(c, [], 100)), s.digest())\n"
)


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
    assert child.communicate()[0].decode() == f"1000.0 {hashlib.sha256(text).hexdigest()}\n"
