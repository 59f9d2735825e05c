"""The value that stands for a path, a URI or a standard stream."""

import pickle
from pathlib import Path

import pytest

from kafeat.errors import SystemRefusedError
from kafeat.io.storage.location import parse_location

SECRET = "s3://AKIA:hush@bucket/a%20b/c.csv?region=eu-west-1"


@pytest.mark.parametrize("text", ["a/b.csv", "file:///a/b%20c.csv", SECRET, "-"])
def test_a_location_is_a_value(text):
    one = parse_location(text)
    assert one == parse_location(text)
    assert pickle.loads(pickle.dumps(one)) == one
    assert len({one, parse_location(text)}) == 1
    assert parse_location(one) is one


def test_a_location_shows_no_secrets():
    one = parse_location(SECRET)
    for text in (str(one), repr(one), f"{one.join('d')}", f"{one.parent}"):
        assert "hush" not in text
        assert "AKIA" not in text
        assert "region" not in text
    assert (str(one), one.name, one.path) == ("s3://bucket/a%20b/c.csv", "c.csv", "a b/c.csv")


def test_a_file_uri_is_shown_as_it_was_spelled(tmp_path):
    one = parse_location(f"file://{tmp_path}/two%20words.csv")
    assert str(one) == f"file://{tmp_path}/two%20words.csv"
    assert one.identity == parse_location(tmp_path / "two words.csv").identity
    assert str(one.parent) == str(tmp_path)


def test_a_standard_stream_is_no_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-").write_bytes(b"a file")
    stream = parse_location("-")
    assert (stream.kind(), stream.size(), stream.entry()) == ("other", None, None)
    for refused in (stream.read, lambda: stream.join("x"), lambda: stream.parent, stream.remove):
        with pytest.raises(SystemRefusedError, match="^-: expected .* got standard input or output"):
            refused()
