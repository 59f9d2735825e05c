"""The journal of the trials so far, one JSON object per line, so that an interrupted search can go on."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Self

from pydantic import TypeAdapter, ValidationError

from kafeat.errors import DataError, SystemRefusedError, UsageError, counted
from kafeat.io.storage.atomic import naming
from kafeat.io.storage.files import is_at, lock, write_full
from kafeat.study.tune.space import Candidate
from kafeat.study.tune.trials import RESAMPLES, Outcome, Size

_Run = Callable[[Candidate, Size, float], Outcome]
# A file that does not begin with this text is not a journal, and stays untouched.
_MARK = b'{"kafeat": "tune", "key": '


class TrialJournal:
    """The outcomes of the trials of a search, in a locked file, which is removed at the end.

    The file stays if the search, or writing its result, ends early. `complete` is None until a map is chosen. Then it
    is False if the search was interrupted, otherwise True. With `resume`, outcomes of an earlier search are read from a
    file with the same key, up to the first damaged line. Without `resume`, a file with outcomes is refused.
    """

    def __init__(self, path: str, key: str, resume: bool, warn: Callable[[str], None]) -> None:
        self._path, self._known = path, dict[str, Outcome]()
        self.complete: bool | None = None
        with naming(path):
            self._file = os.fdopen(_open(path), "r+b", buffering=0)
            try:
                self._begin(_MARK + json.dumps(key).encode() + b"}\n", resume, warn)
            except BaseException:
                self._file.close()
                raise

    def _begin(self, head: bytes, resume: bool, warn: Callable[[str], None]) -> None:
        if lock(self._file.fileno(), wait=False) is False:
            raise SystemRefusedError(
                f"{self._path}: expected a journal that no search writes to, got one in use; wait until that search "
                "has ended, or name another config"
            )
        content = self._file.read()
        if content and not content.startswith(_MARK):
            raise _not_ours(self._path)
        lines = content.splitlines(keepends=True)[1:]
        if lines and not resume:
            raise UsageError(
                f"{self._path}: expected no trials of an earlier search, got {len(lines):,}; go on with them "
                "(--resume, in Python resume=True), or remove the file to restart"
            )
        same = content.startswith(head)
        if lines and not same:
            warn(f"{self._path}: has trials of other data or options; the search starts from scratch")
        self._file.truncate(len(head) + self._take(lines, warn) if same else 0)
        if not same:
            write_full(self._file, head)

    def _take(self, lines: Sequence[bytes], warn: Callable[[str], None]) -> int:
        """Read the outcomes up to the first damaged line, and return the size of these lines in bytes."""
        size = 0
        for line in lines:
            record = _read(line)
            if record is None:
                taken = counted(len(self._known), "trial")
                warn(f"{self._path}: a line is damaged; the search goes on from {taken} before it")
                break
            self._known[record.trial] = record
            size += len(line)
        return size

    def remembering(self, run: _Run) -> _Run:
        """Return a function that returns the outcomes in the file, runs all other trials, and records them."""

        def remembered(candidate: Candidate, size: Size, seconds: float) -> Outcome:
            name = json.dumps([asdict(candidate), size])
            if name not in self._known:
                outcome = self._known[name] = run(candidate, size, seconds)
                with naming(self._path):
                    write_full(self._file, json.dumps({"trial": name, **asdict(outcome)}).encode() + b"\n")
            return self._known[name]

        return remembered

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Bad data or options would make trials fail again, so the file is removed. It stays if a map was chosen: then
        # only writing the result failed.
        useless = self.complete is None and isinstance(error, DataError | UsageError)
        done = useless if error is not None else self.complete
        with naming(self._path), self._file:
            if (done or not self._known) and is_at(self._file.fileno(), self._path):
                os.unlink(self._path)


@dataclass(frozen=True, kw_only=True)
class _Line(Outcome):
    """A line of the file: an outcome with the name of its trial."""

    trial: str


_LINE = TypeAdapter(_Line)


def _read(line: bytes) -> _Line | None:
    """Return the outcome in a line of the file, or None if the line is damaged or incomplete."""
    try:
        record = _LINE.validate_json(line, strict=True)
    except ValidationError:
        return None
    complete = record.columns > 0 and len(record.resampled) == RESAMPLES and record.score > float("-inf")
    return record if line.endswith(b"\n") and (complete or record.failure is not None) else None


def _open(path: str) -> int:
    """Open or create the file. Refuse a symbolic link, because its target may be anything."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_ours(path) from None
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _not_ours(path)
    return file


def _not_ours(path: str) -> UsageError:
    return UsageError(
        f"{path}: expected no file of that name, or the journal of a search, got another file; move it, or name "
        "another config"
    )
