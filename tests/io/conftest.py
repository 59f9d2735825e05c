"""A real S3 server on this machine, for the tests that write to one."""

import os
import tempfile

import pytest

from tests.io.object_store import running


@pytest.fixture(scope="module")
def credentials():
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("AWS_"):
                patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "SECRETTEST")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="session")
def server():
    with running() as store:
        yield store


@pytest.fixture
def store(credentials, server, tmp_path, monkeypatch):
    """The server, empty, and a temporary folder in which nothing may be left."""
    server.clear()
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setenv("TMPDIR", str(spool))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield server
    assert os.listdir(spool) == []


@pytest.fixture
def short_look(monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of the first look at a text, and of a block of it: not a MiB, so that short files are longer."""
    for module in ("csv", "csv_sniff", "jsonl", "text_stream"):
        monkeypatch.setattr(f"kafeat.io.readers.{module}.LOOK", 1 << 14)
    return 1 << 14
