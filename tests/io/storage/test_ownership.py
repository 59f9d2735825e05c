"""One run writes below a folder: others are refused, and what is left of it gives up once it is gone."""

import json
import os
import signal
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafeat.errors import SystemRefusedError
from kafeat.io.storage import owner
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.location import parse_location
from kafeat.io.storage.owner import NAME, Owner, Token, owning
from tests.zygote import Process

# Owns a folder, tells its token, and does nothing more.
OWNS = """
import sys
from kafeat.io.storage.owner import owning
from kafeat.io.storage.location import parse_location
with owning(parse_location(sys.argv[1])) as token:
    print(token.run, flush=True)
    sys.stdin.read()
"""


def owning_process(folder: Path) -> tuple[subprocess.Popen[str], Token]:
    process = Process(folder, code=OWNS, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    return process, Token(process.stdout.readline().strip(), (parse_location(folder),))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "SIGN_SECONDS", 0.05)
    monkeypatch.setattr(owner, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(owner, "_MOMENT_SECONDS", 0.2)


def of_the_dead(folder: Path, **more: object) -> Token:
    """The token of a run that was killed there."""
    dead = {**json.loads(Owner.new().dumps()), **more}
    (folder / NAME).write_text(json.dumps(dead))
    return Token(str(dead["run"]), (parse_location(folder),))


def test_another_run_is_refused_until_the_owner_is_done(tmp_path):
    refusal = pytest.raises(SystemRefusedError, match="expected a folder that no run writes to")
    with owning(parse_location(tmp_path)), refusal as refused, owning(parse_location(tmp_path)):
        pass
    assert str(refused.value).startswith(f"{tmp_path}: expected a folder that no run writes to, got one of")
    assert f"(process {os.getpid()} on " in str(refused.value)
    assert refused.value.exit_code == 5
    with owning(parse_location(tmp_path)):
        assert os.listdir(tmp_path) == [NAME]
    assert os.listdir(tmp_path) == []


def test_an_owner_that_is_killed_leaves_the_folder_to_the_next(tmp_path):
    process, late = owning_process(tmp_path)
    with process:
        with late.publishing(), pytest.raises(SystemRefusedError, match=rf"\(process {process.pid} on"):
            owning(parse_location(tmp_path)).__enter__()
        process.kill()
    with late.publishing():  # nobody has the folder yet
        pass
    with owning(parse_location(tmp_path)) as token:
        with token.publishing():
            pass
        with pytest.raises(SystemRefusedError, match="expected this run to own the folder, got a run"):
            write_bytes(parse_location(tmp_path / "part"), b"of the dead", guard=late.publishing)
    with pytest.raises(SystemRefusedError, match=rf"got no owner: {NAME} is gone"):
        write_bytes(parse_location(tmp_path / "part"), b"of the dead", guard=late.publishing)
    assert os.listdir(tmp_path) == []


def test_a_folder_does_not_change_hands_while_a_file_gets_its_name(tmp_path):
    late = of_the_dead(tmp_path)
    refused = pytest.raises(SystemRefusedError, match="expected a folder that no run writes to")
    with late.publishing(), refused:
        owning(parse_location(tmp_path)).__enter__()
    ended = threading.Event()

    def publish() -> None:
        with late.publishing():
            holds.set()
            ended.wait(0.1)

    holds = threading.Event()
    thread = threading.Thread(target=publish)
    thread.start()
    holds.wait(5)
    with owning(parse_location(tmp_path)):  # waits that long
        pass
    thread.join()


def test_the_lock_stays_while_a_worker_gives_a_file_its_name(tmp_path):
    with ExitStack() as stack:
        with owning(parse_location(tmp_path)) as token:
            stack.enter_context(token.publishing())
        assert os.listdir(tmp_path) == [NAME]
    with owning(parse_location(tmp_path)):
        pass
    assert os.listdir(tmp_path) == []


def test_of_many_that_begin_at_once_one_owns_the_folder(tmp_path):
    of_the_dead(tmp_path)
    begin, end, owned = threading.Barrier(8), threading.Event(), list[bool]()

    def run() -> None:
        begin.wait()
        try:
            with owning(parse_location(tmp_path)) as token:
                with token.publishing():
                    owned.append(True)
                end.wait(5)
        except SystemRefusedError:
            owned.append(False)
        if len(owned) == 8:
            end.set()

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(owned) == [False] * 7 + [True]


@pytest.mark.parametrize("why", ["no locks", "another host"])
def test_without_locks_signs_of_life_tell(why, tmp_path, monkeypatch):
    late = of_the_dead(tmp_path, **({"host": "elsewhere"} if why == "another host" else {}))
    if why == "no locks":
        monkeypatch.setattr(owner, "lock", lambda *_, **__: None)
    with monkeypatch.context() as patient, owner.signs_of_life(lambda: os.utime(tmp_path / NAME)):
        patient.setattr(owner, "PATIENCE_SECONDS", 10.0)
        with pytest.raises(SystemRefusedError, match=r"expected a folder that no run writes to.* on "):
            owning(parse_location(tmp_path)).__enter__()
    with owning(parse_location(tmp_path)) as token:
        refused = pytest.raises(SystemRefusedError, match="expected this run to own the folder")
        with refused, late.publishing():
            pass
        with token.publishing():
            pass
    assert os.listdir(tmp_path) == []


def test_an_owner_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "lock", lambda *_, **__: None)
    monkeypatch.setattr(owner, "PATIENCE_SECONDS", 10.0)
    refused = pytest.raises(SystemRefusedError, match=f"process {os.getpid()} on")
    with owning(parse_location(tmp_path)), refused:
        owning(parse_location(tmp_path)).__enter__()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_of_ours_is_not_written_to(kind, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_bytes(b"something")
    lock = tmp_path / "out" / NAME
    if kind == "link":
        lock.symlink_to(tmp_path / "precious")
    else:
        os.mkfifo(lock)
    told = rf"{NAME}: (Too many levels|expected a file of kafeat, got a pipe)"
    with pytest.raises(SystemRefusedError, match=told):
        owning(parse_location(tmp_path / "out")).__enter__()
    assert (tmp_path / "precious").read_bytes() == b"something"


def test_a_full_disk_is_told_and_keeps_nothing(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kafeat.io.storage.owner.os.pwrite", full)
    with pytest.raises(SystemRefusedError, match=f"{NAME}: No space left on device"):
        owning(parse_location(tmp_path)).__enter__()
    assert os.listdir(tmp_path) == []


def test_two_folders_are_owned_or_none(tmp_path):
    for name in ("out", "rejects"):
        (tmp_path / name).mkdir()
    with owning(parse_location(tmp_path / "rejects")):
        with pytest.raises(SystemRefusedError, match="rejects: expected a folder that no run writes to"):
            owning(parse_location(tmp_path / "out"), parse_location(tmp_path / "rejects")).__enter__()
        with owning(parse_location(tmp_path / "out")):
            pass


def test_a_signal_leaves_nothing(tmp_path):
    process, _ = owning_process(tmp_path)
    with process:
        process.send_signal(signal.SIGINT)
        process.wait(10)
    assert os.listdir(tmp_path) == []
