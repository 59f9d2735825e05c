"""Quotes, line ends and pieces of a CSV: the rows that Python's csv module reads, or an error with the line."""

import csv
import importlib
import io
import random
from collections import Counter
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from kafeat.errors import DataError
from kafeat.io.readers.csv_quotes import Quotes, whole_rows
from tests.zygote import ROOT


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("fuzz_csv")


def test_random_files_are_read_as_the_csv_module_reads_them(fuzz, tmp_path):
    rng, found = random.Random(18), Counter()
    for _ in range(100):
        given = fuzz.example(rng)
        verdict = fuzz.judge(given, tmp_path / "in.csv")
        assert not verdict[:2].isupper(), f"{given}: {verdict}"
        found[verdict] += 1
    assert min(found[kind] for kind in ("same", "quotes", "widths")) > 5


@pytest.mark.parametrize(("text", "problem"), [
    # Two that are left open pair up: Arrow alone takes what lies between them for one value.
    ('a,b\n1,"2\n3,4\n5,"6\n', r"line 4: expected the end of a value after .*, got '6'"),
    ('a,b\n1,"2"3"4"\n', "line 2: expected the end of a value after .*, got '3\"4\"'"),
    ('a,b\n1,"2""\n', "line 2: expected a quote that closes"),
    ('a,b\n1,2\n"3,4\n5,6\n', "line 3: expected a quote that closes"),
    ('a,b\r1,"2"x\r', "line 2: expected the end of a value after .*, got 'x'"),
])  # fmt: skip
@pytest.mark.parametrize("aside", [False, True])
def test_quotes_out_of_place_are_refused_with_their_line(fuzz, tmp_path, text, problem, aside):
    given = fuzz.Example(text.encode(), ",", True, aside, 1 << 20)
    with pytest.raises(DataError, match=problem):
        fuzz.read(given, tmp_path / "in.csv")


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n5",6"\n',  # inches and feet
        'a,b\n"1" ,"2"\t\n',
        'a,b\r\n"x\r\ny","""z"""\r\n\r\n1,2',
        'a,b\r1,2\r"3\r4",5\r',
        '\ufeff"a",b\n1,2\n',
    ],
)
def test_rows_do_not_depend_on_where_a_piece_ends(fuzz, tmp_path, text):
    wanted = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))[1:]
    for size in (8, 64, 1 << 20):
        given = fuzz.Example(text.encode(), ",", True, False, size)
        assert fuzz.read(given, tmp_path / "in.csv") == [row for row in wanted if row]


@st.composite
def tables(draw):
    cells = st.text('a,"\n é', max_size=4)
    rows = draw(st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=draw(st.sampled_from(("\n", "\r\n")))).writerows(rows)
    return text.getvalue()


class SlowText:
    """A text that pauses after each of these pieces."""

    location = "in.csv"

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces, self.paused = pieces, False

    def read(self, size: int) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        if len(piece) > size:
            self._pieces.insert(0, piece[size:])
        self.paused = 0 < len(piece) <= size
        return piece[:size]


@example('",","\na"\n', [6], 8)
@given(tables(), st.lists(st.integers(0, 60)), st.sampled_from((8, 24, 1 << 20)))
def test_pieces_are_whole_rows_and_at_a_pause_all_that_have_come(text, places, size):
    data = text.encode()
    cuts = [0, *sorted(place for place in places if place < len(data)), len(data)]
    slow = SlowText([data[start:stop] for start, stop in pairwise(cuts) if start < stop])
    rows, given = list[list[str]](), b""
    for piece, line, byte in whole_rows(slow, ",", size):
        assert (byte, line) == (len(given), 1 + given.count(b"\n"))
        given += piece
        rows += csv.reader(io.StringIO(piece.decode(), newline=""))
        come = data[: len(data) - sum(map(len, slow._pieces))]
        if slow.paused and "\r" not in text:
            # a letter shows if the last of the rows has ended
            known = come.decode(errors="ignore") + "x"
            assert rows == list(csv.reader(io.StringIO(known, newline="")))[:-1]
    assert given == data
    assert rows == list(csv.reader(io.StringIO(text, newline="")))


def test_values_of_many_lines_hold_back_no_rows():
    data = b"".join(b'%d,"%s"\n' % (i, b"a\n" * 40) for i in range(500))
    sizes = [len(rows) for rows, _, _ in whole_rows(SlowText([data]), ",", 4096)]
    assert (sum(sizes), max(sizes) < 2 * 4096) == (len(data), True)


@pytest.mark.parametrize("length", range(56, 68))
def test_a_last_line_end_is_no_piece_of_its_own(fuzz, tmp_path, length):
    text = "1,2\r" + "3," + "4" * (length - 7) + "\r"
    given = fuzz.Example(text.encode(), ",", False, False, 64)
    assert fuzz.read(given, tmp_path / "in.csv") == [["1", "2"], ["3", "4" * (length - 7)]]


@pytest.mark.parametrize("many", [1, 5_000])
def test_any_number_of_quotes_in_a_row_of_matches_is_followed(many):
    """Patterns match 4,096 quotes at a time."""
    sound = b'a"b,c\n' * many + b'x"y,"' + b'""' * many + b'"\n'
    quotes = Quotes(",")
    assert quotes.problem(sound) is None
    assert (quotes.inside, quotes.complete) == (False, len(sound))
    assert quotes.problem(b'x"y\n"' + b'a""' * many + b'"b\n').startswith(
        f"line {many + 3}: expected the end of"
    )
