"""Opening files, and their SHA-256; what the machine refuses is said plainly."""

from __future__ import annotations

import hashlib
import io
import os
import stat

from kafeat.errors import SystemRefusedError


def refused(place: str, error: OSError) -> SystemRefusedError:
    """An error of the operating system, in the words of the one who asked."""
    return SystemRefusedError(f"{place}: {os.strerror(error.errno) if error.errno else error}")


def opened(place: str) -> io.FileIO:
    """The file for reading, unbuffered."""
    try:
        if stat.S_ISDIR(os.stat(place).st_mode):
            raise SystemRefusedError(f"{place}: expected a file, got a directory")
        return open(place, "rb", buffering=0)
    except ValueError as error:
        raise SystemRefusedError(f"{place!r}: {error}") from error
    except OSError as error:
        raise refused(place, error) from error


def opened_regular(place: str) -> io.FileIO:
    """The same, for formats that are read out of order."""
    file = opened(place)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SystemRefusedError(
            f"{place}: expected a regular file, got a pipe or a device; only CSV can be piped"
        )
    return file


def digest_of(place: str) -> str:
    """SHA-256 of the file, in hex."""
    with opened(place) as file:
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise refused(place, error) from error
