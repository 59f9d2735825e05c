"""Processes that need no start: one child of the tests has imported kafeat, and forks for each of them.

A command that only writes files and messages is run in the process of the tests (`in_process`). These here are for
signals, pipes, terminals, closed streams, full devices, limits of the system, and what ends with its process.
"""

import atexit
import gc
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from select import select
from types import ModuleType
from typing import Any

from tests.sizes import shorten_searches

ROOT = Path(__file__).parents[1]
KAFEAT = str(Path(sys.executable).with_name("kafeat"))
PIPE = subprocess.PIPE
PRELOADED = (
    *(f"kafeat.cli.{name}" for name in ("evaluate", "fit", "inspect", "predict", "progress", "transform", "tune")),
    *(f"kafeat.io.readers.{name}" for name in ("arrow_ipc", "csv", "jsonl", "npy", "parquet")),
    *(f"kafeat.io.writers.{name}" for name in ("npy", "open", "parquet", "text")),
    "kafeat.jobs.dataset.api", "kafeat.jobs.fit.fit", "kafeat.study.evaluate", "kafeat.study.tune.tune",
    "kafeat.cli.evaluate_tables", "kafeat.cli.json_output", "kafeat.io.writers.passthrough", "kafeat.study.models",
    "kafeat.samplers.fourier", "kafeat.scalers.standardize", "kafeat.predictors.ridge", "pyarrow.pandas_compat",
    "kafeat.samplers.nystroem", "kafeat.scalers.quantile", "kafeat.scalers.power", "joblib", "lightgbm", "pandas",
    "rich.table", "ruamel.yaml", "scipy.optimize", "sklearn.ensemble", "sklearn.metrics",
)  # fmt: skip
STUCK = """
import ctypes, os, sys
from kafeat.cli import main
def stuck(*_, **__):
    os.write(2, b"long\\n")  # a thread that holds the lock of sys.stderr as the process ends aborts it
    libc, mutex = ctypes.CDLL(None), (ctypes.c_char * 256)()
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)  # for ever, and no signal cuts it short
"""
CLIENT = f"""#!{sys.executable} -IS
import json, os, socket, struct, sys
told, tell = os.pipe()
asked = dict(words=sys.argv[1:], code=None, closed=-1, cwd=os.getcwd(), env=dict(os.environ))
socket.send_fds(socket.socket(fileno=NUMBER), [json.dumps(asked).encode()], [0, 1, 2, tell])
os.close(tell)
os.read(told, 4)
os._exit(struct.unpack("id", os.read(told, 16))[0])
"""
_PID, _END = struct.Struct("i"), struct.Struct("id")
spent: list[float] = []
"""Seconds of the processor that each of these processes took: this one has not waited for them."""


class Process(subprocess.Popen):
    """`kafeat` with these words, or a Python program with them; streams, folder, variables and signals are its own."""

    def __init__(
        self, words: object = "", *more: object, code: str | None = None, closed: int = -1, **options: Any
    ) -> None:
        """The first words may be one text with blanks. `closed` is the number of a standard stream that is closed."""
        self._asked = {"words": [*str(words).split(), *map(str, more)], "code": code, "closed": closed}
        given = {"stdin": subprocess.DEVNULL, "stdout": PIPE, "stderr": PIPE, **options}
        variables = {**os.environ, **(given.get("env") or {})}
        given["env"] = {name: value for name, value in variables.items() if value is not None}
        super().__init__(["kafeat", *self._asked["words"]], **given)

    def _execute_child(self, *given: Any) -> None:
        cwd, env, pipes = given[5], given[6], given[10:16]
        streams = [
            number if pipe == -1 else pipe for number, pipe in enumerate((pipes[0], pipes[3], pipes[5]))
        ]
        self._told, tell = os.pipe()
        asked = {**self._asked, "cwd": os.path.abspath(cwd or os.curdir), "env": env}
        socket.send_fds(_zygote(), [json.dumps(asked).encode()], [*streams, tell])
        os.close(tell)
        self._close_pipe_fds(*pipes)
        self._child_created = True
        (self.pid,) = _PID.unpack(os.read(self._told, _PID.size))

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode, seconds = _END.unpack(os.read(self._told, _END.size))
            os.close(self._told)
            spent.append(seconds)
        return self.returncode


def apart(
    *words: object, input: Any = None, timeout: float = 120.0, **options: Any
) -> subprocess.CompletedProcess:
    """Run a `Process` to its end; return its exit code and what it wrote."""
    with Process(*words, **({} if input is None else {"stdin": PIPE}), **options) as process:
        try:
            stdout, stderr = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def for_scripts(folder: Path) -> int:
    """Write a `kafeat` that asks for such a process, by the open stream whose number this returns."""
    number = _zygote().fileno()
    command = folder / "kafeat"
    command.write_text(CLIENT.replace("NUMBER", str(number)), encoding="utf-8")
    command.chmod(0o755)
    return number


@cache
def _zygote() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.zygote import serve; serve({theirs.fileno()})"
    child = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    atexit.register(lambda: (ours.close(), child.wait()))
    return ours


def serve(number: int) -> None:
    """Fork for each request, and run its program in the fork, which ends as any process does."""
    for name in PRELOADED:
        with suppress(ModuleNotFoundError):  # not every environment has them all
            import_module(name)
    shorten_searches(setattr)
    assert threading.active_count() == 1, (
        "no fork would have the others"
    )  # those of C libraries know how to fork
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for the programs
    channel = socket.socket(fileno=number)
    while True:
        asked, fds, _, _ = socket.recv_fds(channel, 1 << 20, 4)
        if not asked:
            os._exit(0)
        if os.fork() == 0:
            break
        for fd in fds:
            os.close(fd)
    channel.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, tell = fds
    if child := os.fork():
        _watch(child, streams, tell)
    os.close(tell)
    _become(json.loads(asked), streams)


def _watch(child: int, streams: list[int], tell: int) -> None:
    for stream in streams:
        os.close(stream)
    with suppress(BrokenPipeError):
        os.write(tell, _PID.pack(child))
        _, status, usage = os.wait4(child, 0)
        os.write(tell, _END.pack(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime))
    os._exit(0)


def _become(asked: dict[str, Any], streams: list[int]) -> None:
    """Be the interpreter that would have been started."""
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.dup2(streams[number], number)
        os.close(streams[number])
        stream = None
        if number == asked["closed"]:
            os.close(number)
        else:
            how = {"mode": "w" if number else "r", "encoding": "utf-8", "closefd": False}
            how |= {"buffering": 1, "errors": "backslashreplace"} if name == "stderr" else {}
            stream = open(number, **how)  # noqa: SIM115  # for the life of the process
        setattr(sys, name, stream)
    sys.argv = ["kafeat" if asked["code"] is None else "-c", *asked["words"]]
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(asked["code"] or "from kafeat.__main__ import main; main()", vars(main))


def ended_in_a_long_call(code: str, number: int, cwd: Path) -> tuple[int, str, str]:
    """Run a program whose call of `stuck` never returns, and check that a signal ends it soon."""
    process = Process(code=STUCK + code, cwd=cwd, text=True)
    for line in process.stderr:
        if "long" in line:  # of two threads at once
            break
    process.send_signal(number)
    started = time.monotonic()
    stdout, stderr = process.communicate(timeout=60)
    assert time.monotonic() - started < 5.0, stderr
    return process.returncode, stdout, stderr
