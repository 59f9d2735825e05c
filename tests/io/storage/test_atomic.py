import os
import stat
import subprocess

import pytest

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.storage.atomic import atomic, write_bytes
from kafeat.io.storage.location import parse_location
from tests.zygote import ROOT, Process, apart


def names(folder):
    return sorted(os.listdir(folder))


def write(output, text=b"new"):
    with open(output.path, "wb") as file:
        file.write(text)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("before", [None, b"old"])
def test_a_failure_leaves_what_was_there(tmp_path, error, before):
    path = tmp_path / "out"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(error, match="stop"), atomic(parse_location(path)) as output:
        write(output)
        assert names(tmp_path) != ["out"]
        raise error("stop")
    assert names(tmp_path) == ([] if before is None else ["out"])
    assert before is None or path.read_bytes() == before


def test_success_replaces_and_keeps_the_mode(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_bytes(parse_location(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["out"]


def test_a_new_file_follows_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_bytes(parse_location(tmp_path / "out"), b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_no_clobber(tmp_path):
    path = tmp_path / "out"
    write_bytes(parse_location(path), b"old", clobber=False)
    with pytest.raises(UsageError, match="out: expected no file of that name, got one"):
        write_bytes(parse_location(path), b"new", clobber=False)
    assert path.read_bytes() == b"old"


def test_no_clobber_against_someone_faster(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(UsageError, match="got one"), atomic(parse_location(path), clobber=False) as output:
        write(output)
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["out"]


HOLDS_A_TEMPORARY_FILE = """
import sys, time
from kafeat.io.storage.atomic import atomic
from kafeat.io.storage.location import parse_location
with atomic(parse_location(sys.argv[1])) as output:
    with open(output.path, "wb") as file:
        file.write(b"half")
    print(output.path, flush=True)
    time.sleep(60)
"""


def holder(path):
    process = Process(str(path), code=HOLDS_A_TEMPORARY_FILE, text=True)
    return process, process.stdout.readline().strip()


def kill(process):
    process.kill()
    process.communicate()


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path):
    path = tmp_path / "out"
    for name in (".other.kafeat-1-00000000.tmp", ".out.kafeat-1-0.tmp", "out.kafeat-1-00000000.tmp"):
        (tmp_path / name).write_bytes(b"not ours")
    killed, dead = holder(path)
    kill(killed)
    alive, draft = holder(path)
    try:
        assert not os.path.exists(dead)
        write_bytes(parse_location(path), b"new")
        assert os.path.exists(draft)
    finally:
        kill(alive)
    assert path.read_bytes() == b"new"
    write_bytes(parse_location(path), b"newer")
    assert len(names(tmp_path)) == 4
    assert not os.path.exists(draft)


def test_a_draft_that_is_taken_for_dead_is_made_again(tmp_path, monkeypatch):
    # between making a draft and locking it, another writer may have found it without a lock
    from kafeat.io.storage import temporary_files as module

    real, seen = module.lock, []

    def locked(file, *, wait=True):
        if wait and not seen:
            seen.append(names(tmp_path))
            os.unlink(tmp_path / seen[0][0])
        return real(file, wait=wait)

    monkeypatch.setattr(module, "lock", locked)
    write_bytes(parse_location(tmp_path / "out"), b"new")
    assert (tmp_path / "out").read_bytes() == b"new"
    assert names(tmp_path) == ["out"]


# A signal right after the temporary file is made, before any `try` that could remove it.
AT_THE_WORST_MOMENT = """
import os, signal, sys
from kafeat.io.storage import temporary_files
temporary_files.lock = lambda file, wait=True: os.kill(os.getpid(), signal.SIGINT) or True
"""


def test_a_signal_at_the_worst_moment_of_a_command_leaves_nothing(tmp_path):
    code = AT_THE_WORST_MOMENT + "from kafeat.__main__ import main; main()"
    config, data = ROOT / "configs/projection.yaml", ROOT / "sample_data/digits.parquet"
    done = apart("fit", "--config", config, data, "out", code=code, cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, b"kafeat: interrupted")
    assert names(tmp_path) == []


A_CHILD_ENDS = """
import atexit, os
from kafeat.io.storage.atomic import atomic
from kafeat.io.storage.location import parse_location
with atomic(parse_location("out")) as output:
    child = os.fork()
    if child == 0:
        atexit._run_exitfuncs()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.path.exists(output.path)
    os._exit(0)
"""


def test_the_temporary_files_of_a_parent_outlive_a_child(tmp_path):
    done = apart(code=A_CHILD_ENDS, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


def test_two_temporary_files_of_one_process_do_not_disturb_each_other(tmp_path):
    path = str(tmp_path / "out")
    with atomic(parse_location(path)) as first, atomic(parse_location(path)) as second:
        assert first.path != second.path
        write(first, b"first")
        write(second, b"second")
    assert (tmp_path / "out").read_bytes() == b"first"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("fsync", [True, False])
def test_the_disk_has_the_content_before_the_name(tmp_path, monkeypatch, fsync):
    done = []
    sync, replace = os.fsync, os.replace

    def synced(file):
        done.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else f"{os.fstat(file).st_size} bytes")
        sync(file)

    def renamed(draft, target):
        done.append("rename")
        replace(draft, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write_bytes(parse_location(tmp_path / "out"), b"content", fsync=fsync)
    assert done == (["7 bytes", "rename", "folder"] if fsync else ["rename"])


def test_a_disk_that_cannot_flush_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "out").write_bytes(b"old")

    def broken(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(SystemRefusedError, match="out: Input/output error"):
        write_bytes(parse_location(tmp_path / "out"), b"new")
    assert (tmp_path / "out").read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("there/target")
    write_bytes(parse_location(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "target").read_bytes() == b"new"
    assert names(tmp_path / "there") == ["target"]


def test_devices_and_pipes_are_written_through(tmp_path):
    write_bytes(parse_location("/dev/null"), b"new", clobber=False)
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE)
    write_bytes(parse_location(tmp_path / "pipe"), b"new")
    assert reader.communicate()[0] == b"new"
    assert names(tmp_path) == ["pipe"]


TO_STDOUT = """
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.location import parse_location
write_bytes(parse_location("/dev/stdout"), b"new")
"""


def test_a_pipe_without_a_name_is_written_through():
    assert apart(code=TO_STDOUT).stdout == b"new"


def test_a_link_to_nothing_gets_its_target(tmp_path):
    (tmp_path / "link").symlink_to("target")
    write_bytes(parse_location(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_what_the_machine_refuses(tmp_path):
    with pytest.raises(SystemRefusedError, match="expected a file, got a directory"):
        write_bytes(parse_location(tmp_path), b"")
    told = r"no/such: expected a folder .*/no, got none: make it first"
    with pytest.raises(SystemRefusedError, match=told):
        write_bytes(parse_location(tmp_path / "no" / "such"), b"")
    with pytest.raises(SystemRefusedError, match="/dev/full: No space left"):
        write_bytes(parse_location("/dev/full"), b"x")


def test_the_name_of_an_open_file_is_refused(tmp_path):
    """Renaming over it would lose what stands in it."""
    with open(tmp_path / "log", "wb") as log:
        log.write(b"before\n")
        log.flush()
        done = apart(code=TO_STDOUT, stdout=log)
    assert b"/dev/stdout: expected the file's own name, got the name of an open file" in done.stderr
    assert (tmp_path / "log").read_bytes() == b"before\n"


@pytest.mark.parametrize("name", ["\u2603" * 83 + ".csv", "\u00e9" * 125 + ".npy", "n" * 255])
def test_long_names_have_drafts(tmp_path, name):
    write_bytes(parse_location(tmp_path / name), b"x")
    assert names(tmp_path) == [name]


def test_the_name_of_a_folder_is_refused(tmp_path):
    with pytest.raises(SystemRefusedError, match="expected the name of a file, got that of a folder"):
        write_bytes(parse_location(f"{tmp_path}/x.csv/"), b"x")


def test_files_in_memory_are_files_like_any_other():
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no /dev/shm here")
    path = f"/dev/shm/kafeat-test-{os.getpid()}"
    try:
        for content in (b"old", b"new"):
            write_bytes(parse_location(path), content)
            with open(path, "rb") as file:
                assert file.read() == content
    finally:
        os.unlink(path)
