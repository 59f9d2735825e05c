"""From a complete local file to an object that is there whole, or not at all.

Closing one of pyarrow's output streams completes the object with what it has so far, and so does collecting it as
garbage (apache/arrow issue 40502): there is no way to call it off. So the stream lives in a thread, where no signal
raises; it is closed after its last byte and never otherwise; and one that is given up is kept for the life of the
process.
"""

from __future__ import annotations

import ctypes
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kafeat.errors import KafeatError, SystemRefusedError
from kafeat.io.files import opened
from kafeat.io.remote import file_system, unreachable
from kafeat.io.s3_uploads import abort_upload

# As large as pyarrow's parts: a smaller piece would be copied.
_PIECE = 10 << 20
# Parts are sent in the background, by threads that take all that they are given: now and then we wait for them.
_PIECES_AT_ONCE = 4
# Parts that are on their way are waited for; on a network that is gone, pyarrow gives them up after half a minute.
_GRACE_SECONDS = 15.0


def upload(draft: str, place: str, may_stand: Callable[[], None]) -> None:
    """Copy a local file to a remote place. `may_stand` is asked right before the object gets its name."""
    fs, path = file_system(place)
    if fs.type_name not in ("s3", "gcs"):
        _by_rename(fs, draft, path, place, may_stand)
        return
    sender = _Sender(fs, draft, path, may_stand)
    try:
        sender.run()
    except BaseException as error:
        left = sender.give_up() and not (fs.type_name == "s3" and abort_upload(fs, path))
        if isinstance(error, OSError):
            told = unreachable(place, error)
            more = "; parts that were uploaded may remain: see docs/locations.md" if left else ""
            raise SystemRefusedError(f"{told}{more}") from error
        raise


class _Sender:
    """A thread that sends the file. The one that waits for it may be interrupted at any moment."""

    def __init__(self, fs: Any, draft: str, path: str, may_stand: Callable[[], None]) -> None:
        self._fs, self._draft, self._path, self._may_stand = fs, draft, path, may_stand
        # Not a join: one that a signal interrupts takes the thread for ended ever after (Python 3.11).
        self._stop, self._ended = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._in_parts = self._done = False
        self._thread = threading.Thread(target=self._send, name="kafeat-upload", daemon=True)

    def run(self) -> None:
        """Send all of it, or raise what went wrong."""
        self._thread.start()
        self._ended.wait()
        if self._error is not None:
            raise self._error

    def give_up(self) -> bool:
        """Wait until the thread has stopped, but not for ever; whether it leaves something unfinished."""
        self._stop.set()
        self._ended.wait(_GRACE_SECONDS)
        return self._in_parts and not self._done

    def _send(self) -> None:
        try:
            with opened(self._draft) as file:
                self._copy(file)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()

    def _copy(self, file: Any) -> None:
        stream = _kept(self._fs.open_output_stream(self._path, compression=None))
        pieces = 0
        while data := file.read(_PIECE):
            if self._stop.is_set():
                with suppress(OSError):
                    stream.flush()  # parts that are on their way would outlive an abort
                return
            stream.write(data)
            pieces += 1
            # Only now there is an upload of ours: one that is found there is to be aborted, and no one else's.
            self._in_parts |= len(data) == _PIECE
            if not pieces % _PIECES_AT_ONCE:
                stream.flush()
        self._may_stand()
        if self._stop.is_set():
            return
        stream.close()
        self._done = True
        _let_go(stream)


def _kept(stream: Any) -> Any:
    """The stream, with a reference that nobody lets go by accident, not even the interpreter when it ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
    return stream


def _let_go(stream: Any) -> None:
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(stream))


def _by_rename(fs: Any, draft: str, path: str, place: str, may_stand: Callable[[], None]) -> None:
    """Where there are renames: a draft beside the place, which takes the name when it is complete."""
    folder, _, name = path.rpartition("/")
    beside = f"{folder}/.{name[:100]}.kafeat-{secrets.token_hex(8)}.tmp"
    try:
        with opened(draft) as file, fs.open_output_stream(beside, compression=None) as stream:
            while data := file.read(_PIECE):
                stream.write(data)
        may_stand()
        if fs.type_name == "hdfs" and fs.get_file_info(path).is_file:
            fs.delete_file(path)  # its rename does not replace
        fs.move(beside, path)
    except BaseException as error:
        with suppress(OSError):
            fs.delete_file(beside)
        if isinstance(error, OSError) and not isinstance(error, KafeatError):
            raise unreachable(place, error) from error
        raise
