"""The newest run owns a folder in an object store, where there are no locks."""

import json

import pytest

from kafeat.errors import SystemRefusedError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.location import parse_location
from kafeat.io.storage.owner import NAME, Owner, Token, owning

pytestmark = pytest.mark.usefixtures("credentials")


def objects(store):
    """But for the empty one that pyarrow puts in the place of a folder from which it removes something."""
    keys = store.keys()
    return [key for key in keys if not key.endswith("/")]


def of_the_dead(store):
    dead = Owner.new()
    store.put(f"out/{NAME}", dead.dumps())
    return Token(dead.run, (parse_location(store.uri("out")),))


def test_the_lock_names_the_run_while_it_lasts(store):
    with owning(parse_location(store.uri("out"))) as token:
        assert json.loads(store.get(f"out/{NAME}"))["run"] == token.run
        with token.publishing():
            pass
        assert objects(store) == [f"out/{NAME}"]
    assert objects(store) == []


@pytest.mark.slow
def test_what_is_left_of_a_dead_run_completes_no_upload(store):
    late = of_the_dead(store)
    write_bytes(
        parse_location(store.uri("out/part")), b"of the dead", guard=late.publishing
    )  # nobody has the folder yet
    with owning(parse_location(store.uri("out"))) as token:
        write_bytes(parse_location(store.uri("out/part")), b"of the new one", guard=token.publishing)
        for size in (11, 11 << 20):  # in one request, and in parts
            with pytest.raises(SystemRefusedError, match="expected this run to own the folder, got a run"):
                write_bytes(parse_location(store.uri("out/part")), bytes(size), guard=late.publishing)
    with pytest.raises(SystemRefusedError, match="expected this run to own the folder, got no owner"):
        write_bytes(parse_location(store.uri("out/part")), b"of the dead", guard=late.publishing)
    assert objects(store) == ["out/part"]
    assert store.get("out/part") == b"of the new one"
    assert store.uploads() == []


def test_of_two_runs_the_later_owns_the_folder_at_once(store):
    place = parse_location(store.uri("out"))
    with owning(place) as first, owning(place) as second:
        with second.publishing():
            pass
        told = "got a run .*; let one run at a time write there"
        with pytest.raises(SystemRefusedError, match=told) as refused:
            write_bytes(parse_location(store.uri("out/part")), b"of the first", guard=first.publishing)
        assert refused.value.exit_code == 5
    assert objects(store) == []
