import os
import stat
import subprocess
import sys

import pytest

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.output import atomic, write_bytes


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
    with pytest.raises(error, match="stop"), atomic(str(path)) as output:
        write(output)
        assert names(tmp_path) != ["out"]
        raise error("stop")
    assert names(tmp_path) == ([] if before is None else ["out"])
    assert before is None or path.read_bytes() == before


def test_success_replaces_and_keeps_the_mode(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_bytes(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["out"]


def test_a_new_file_follows_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_bytes(str(tmp_path / "out"), b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_no_clobber(tmp_path):
    path = tmp_path / "out"
    write_bytes(str(path), b"old", clobber=False)
    with pytest.raises(UsageError, match="out: expected no file of that name, got one"):
        write_bytes(str(path), b"new", clobber=False)
    assert path.read_bytes() == b"old"


def test_no_clobber_against_someone_faster(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(UsageError, match="got one"), atomic(str(path), clobber=False) as output:
        write(output)
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["out"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("there/target")
    write_bytes(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "target").read_bytes() == b"new"
    assert names(tmp_path / "there") == ["target"]


def test_devices_and_pipes_are_written_through(tmp_path):
    write_bytes("/dev/null", b"new", clobber=False)
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE)
    write_bytes(str(tmp_path / "pipe"), b"new")
    assert reader.communicate()[0] == b"new"
    assert names(tmp_path) == ["pipe"]


def test_a_pipe_without_a_name_is_written_through():
    code = "from kafeat.io.output import write_bytes; write_bytes('/dev/stdout', b'new')"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"new"


def test_a_link_to_nothing_gets_its_target(tmp_path):
    (tmp_path / "link").symlink_to("target")
    write_bytes(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_what_the_machine_refuses(tmp_path):
    with pytest.raises(SystemRefusedError, match="expected a file, got a directory"):
        write_bytes(str(tmp_path), b"")
    with pytest.raises(SystemRefusedError, match="no/such: No such file"):
        write_bytes(str(tmp_path / "no" / "such"), b"")
    with pytest.raises(SystemRefusedError, match="/dev/full: No space left"):
        write_bytes("/dev/full", b"x")
    write_bytes(str(tmp_path / ("n" * 250)), b"x")


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path):
    code = (
        "import resource, signal, sys\n"
        "from kafeat.io.output import write_bytes\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_bytes(sys.argv[1], bytes(5000))\n"
        "except Exception as e: print(type(e).__name__, e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == f"SystemRefusedError {tmp_path / 'out'}: File too large"
    assert names(tmp_path) == []
