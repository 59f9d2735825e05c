"""Rows that come one at a time through a pipe: each is answered before the next one is written."""

import gzip
import json
import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from tests.zygote import PIPE, Process, apart

SECONDS = 10.0
"""Time in which an answer has to come on a busy machine. An idle one takes 0.06 s."""
PAUSE = 0.15
"""Seconds between pieces of text: longer than bytes are gathered."""
NOTES = ("plain", 'é\n€, "😀"', "", "two\nlines", "last", "x")
PREDICT = ("predict", "--model", "m.joblib", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, and with the same rows as CSV and as JSON lines."""
    folder = tmp_path_factory.mktemp("pipes")
    X = np.random.default_rng(0).normal(size=(300, 2))
    config = {"steps": [{"kind": "fourier", "n_components": 32}, {"kind": "ridge"}]}
    kafeat.fit(config, pa.table({"a": X[:, 0], "b": X[:, 1]}), X @ [1.0, -2.0]).save(folder / "m.joblib")
    rows = [(number, *x, note) for number, (x, note) in enumerate(zip(X.tolist(), NOTES, strict=False))]
    lines = [json.dumps(_named(row), ensure_ascii=False) for row in rows]
    (folder / "x.jsonl").write_text("\n".join([*lines, ""]))
    (folder / "x.csv").write_text("id,a,b,note\n" + "".join(map(_line, rows)))
    return folder


def _named(row: tuple) -> dict:
    return dict(zip(("id", "a", "b", "note"), row, strict=True))


def _line(row: tuple) -> str:
    note = row[-1].replace('"', '""')
    return f'{row[0]},{row[1]},{row[2]},"{note}"\n'


class Piped:
    """A command between two pipes."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.run = Process(*words, stdin=PIPE, cwd=folder)
        self.got = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.run.kill()
        with suppress(BrokenPipeError):
            self.run.__exit__(None, None, None)

    def write(self, data: bytes) -> None:
        self.run.stdin.write(data)
        self.run.stdin.flush()

    def lines(self, wanted: int, seconds: float = SECONDS) -> int:
        """Return the number of lines that have come, as soon as it is the wanted one."""
        until = time.monotonic() + seconds
        while self.got.count(b"\n") < wanted:
            if not select.select([self.run.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                break
            self.got += os.read(self.run.stdout.fileno(), 1 << 16)
        return self.got.count(b"\n")

    def end(self) -> tuple[int, bytes, str]:
        """Return exit code, output and messages after the end of the input."""
        rest, messages = self.run.communicate(timeout=60)
        return self.run.returncode, self.got + rest, messages.decode()


def _of_file(folder: Path, name: str, *words: str) -> bytes:
    return apart(*words, name, "-", cwd=folder).stdout


@pytest.mark.parametrize(("source", "words", "header"), [
    ("x.csv", PREDICT, 1),
    ("x.csv", (*PREDICT, "--keep", "id", "--jobs", "1", "--on-bad-rows", "drop"), 1),
    ("x.csv", (*PREDICT, "--keep", "id", "--output-format", "jsonl"), 0),
    ("x.csv", ("transform", *PREDICT[1:], "--features", "--jobs", "2"), 1),
    ("x.jsonl", (*PREDICT, "--input-format", "jsonl", "--on-bad-rows", "null", "--jobs", "2"), 1),
    ("x.jsonl", (*PREDICT, "--input-format", "jsonl", "--output-format", "jsonl", "--keep", "id,a"), 0),
])  # fmt: skip
def test_every_row_is_answered_before_the_next_one_is_written(folder, source, words, header):
    with Piped(folder, *words, "-", "-") as piped:
        if source == "x.csv":
            piped.write(b"id,a,b,note\n")
            assert piped.lines(header, 60) == header  # at once, when the program has started
        for number, row in enumerate(_rows(folder, source), 1):
            piped.write(row)
            assert piped.lines(number + header, SECONDS if number > 1 else 60) == number + header
        code, output, messages = piped.end()
        assert (code, output) == (0, _of_file(folder, source, *words)), messages


def _rows(folder: Path, source: str) -> list[bytes]:
    """Return the text of each row."""
    text = (folder / source).read_bytes().removeprefix(b"id,a,b,note\n")
    begin = b"\n%d," if source == "x.csv" else b'\n{"id": %d,'
    starts = [0, *((text.index(begin % number) + 1) for number in range(1, len(NOTES)))]
    return [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


@pytest.mark.parametrize(("pieces", "answered"), [
    # half a line, and the rest of it at the end
    ((b"a,b\n1,2\n3", b",4\n5,", b"6"), (2, 3, 3)),
    # a quote that stays open over pauses, with line ends in it, behind rows that are complete
    ((b'a,b,note\n1,2,x\n3,4,"', b"one\n", b'5,6,\n""', b'\n"\n7,8,y\n'), (2, 2, 2, 4)),
    # pauses within characters, line ends and the mark of the encoding
    ((b"\xef\xbb", b"\xbfa,b,\xc3", b"\xa9\r", b"\n1,2,\xe2\x82", b"\xac\r", b"\n"), (0, 0, 0, 1, 1, 2)),
    # blank lines and pauses between the bytes of a row
    ((b"a,b\n", b"\n", b"1", b",", b"2", b"\n\n", b"3,4\n", b"\n"), (1, 1, 1, 1, 1, 2, 3, 3)),
    # quotes within values that do not begin with one
    ((b'a,b,c\n1,2,5"\n', b'3,4,"x"\n', b'5,6,y"\n7,8,"', b'"\n'), (2, 3, 4, 5)),
])  # fmt: skip
def test_only_rows_that_have_ended_are_answered(folder, tmp_path, pieces, answered):
    with Piped(folder, *PREDICT, "-", "-") as piped:
        seconds = 60.0
        for piece, lines in zip(pieces, answered, strict=True):
            piped.write(piece)
            assert piped.lines(lines, seconds) == lines
            seconds = SECONDS if lines else seconds
            time.sleep(PAUSE)
            assert piped.lines(lines + 1, 0.0) == lines
        code, output, messages = piped.end()
        (tmp_path / "x.csv").write_bytes(b"".join(pieces))
        assert (code, output) == (0, _of_file(folder, str(tmp_path / "x.csv"), *PREDICT)), messages


@pytest.mark.parametrize("rule", ["drop", "null", "error"])
def test_bad_rows_of_a_slow_pipe_have_their_numbers(folder, tmp_path, rule):
    pieces = [b"a,b\n", b"1,2\n", b"1,2,3\n", b"x,2\n", b"3,4\n"]
    rejects = () if rule == "error" else ("--rejects", str(tmp_path / "slow.jsonl"))
    words = (*PREDICT, "--on-bad-rows", rule)
    with Piped(folder, *words, *rejects, "-", "-") as piped:
        answered = {"drop": (1, 2, 2, 2, 3), "null": (1, 2, 3, 4, 5), "error": (1, 2, 2, 2, 2)}[rule]
        for piece, lines in zip(pieces, answered, strict=True):
            if piped.run.poll() is None:
                piped.write(piece)
            assert piped.lines(lines, 60) == lines
        code, output, messages = piped.end()
        if rule == "error":
            assert code == 3
            assert "row 2 (index 1): expected 2 fields, got 3" in messages
            return
        (tmp_path / "x.csv").write_bytes(b"".join(pieces))
        again = ("--rejects", str(tmp_path / "file.jsonl"))
        assert (code, output) == (0, _of_file(folder, str(tmp_path / "x.csv"), *words, *again)), messages
        slow, file = ((tmp_path / f"{name}.jsonl").read_text() for name in ("slow", "file"))
        assert slow == file.replace(str(tmp_path / "x.csv"), "<stdin>")


def test_a_limit_is_reached_before_the_pipe_ends(folder):
    with Piped(folder, *PREDICT, "--limit", "2", "-", "-") as piped:
        piped.write(b"a,b\n1,2\n")
        assert piped.lines(2, 60) == 2
        piped.write(b"3,4\n")
        assert piped.run.wait(SECONDS) == 0
        assert piped.lines(3) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_that_waits_for_rows(folder, number):
    with Piped(folder, *PREDICT, "-", "-") as piped:
        piped.write(b"a,b\n1,2\n")
        assert piped.lines(2, 60) == 2
        piped.run.send_signal(number)
        assert piped.run.wait(SECONDS) == 128 + number


def test_a_reader_that_leaves_ends_a_command_at_its_next_row(folder):
    with Piped(folder, *PREDICT, "-", "-") as piped:
        piped.write(b"a,b\n1,2\n")
        assert piped.lines(2, 60) == 2
        piped.run.stdout.close()
        piped.write(b"3,4\n")
        assert (piped.run.stderr.read(), piped.run.wait(SECONDS)) == (b"", 0)


def test_a_kept_column_is_typed_by_its_first_values(folder):
    words = (*PREDICT, "--keep", "note", "--output-format", "jsonl")
    with Piped(folder, *words, "-", "-") as piped:
        piped.write(b"a,b,note\n1,2,\n")  # nothing tells if the notes are numbers
        assert piped.lines(1, 2.0) == 0
        piped.write(b"3,4,7\n")
        assert piped.lines(2, 60) == 2
        code, output, messages = piped.end()
        assert (code, [json.loads(line)["note"] for line in output.splitlines()]) == (0, [None, 7]), messages


def test_compressed_text_is_read_to_its_end(folder):
    with Piped(folder, *PREDICT, "-", "-") as piped:
        data = gzip.compress((folder / "x.csv").read_bytes())
        for piece in (data[:9], data[9:70], data[70:]):
            piped.write(piece)
            time.sleep(PAUSE)
        code, output, messages = piped.end()
        assert (code, output) == (0, _of_file(folder, "x.csv", *PREDICT)), messages
