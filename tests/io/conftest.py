"""Short first looks at a text."""

import pytest


@pytest.fixture
def short_look(monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of the first look at a text, and of a block of it: not a MiB, so that short files are longer."""
    for module in ("csv", "csv_sniff", "jsonl", "text_stream"):
        monkeypatch.setattr(f"kafeat.io.readers.{module}.LOOK", 1 << 14)
    return 1 << 14
