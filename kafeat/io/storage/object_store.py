"""Object stores through pyarrow's file systems. Their errors become one line with a remedy."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs as pa_fs

from kafeat.errors import SystemRefusedError, UsageError, first_line

# Every request of a sequential reader costs a round trip.
STREAM_BUFFER = 8 << 20

# An endpoint that does not answer is given up after three attempts of this many seconds.
_CONNECT_SECONDS, _ANSWER_SECONDS, _ATTEMPTS = 5, 10, 3


class Address(Protocol):
    """The parts of a URI that lead to an object."""

    @property
    def scheme(self) -> str: ...
    @property
    def authority(self) -> str: ...
    @property
    def query(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def path(self) -> str: ...


def file_system(uri: Address) -> tuple[Any, str]:
    """Return pyarrow's file system of a URI and the path in it. File systems are cached by host and options."""
    if not uri.host:
        raise UsageError(f"{uri}: expected {uri.scheme}://BUCKET/KEY, got no bucket")
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_LISTENED)))
    try:
        fs = _file_system(uri.scheme, uri.authority, uri.query, settings, os.getpid())
    except (pa.ArrowInvalid, ValueError) as error:
        # Not chained: pyarrow's message shows the whole URI with its credentials.
        raise UsageError(f"{uri}: expected options that pyarrow knows, got: {_brief(error)}") from None
    except OSError as error:
        raise unreachable(uri, error) from None
    return fs, f"{uri.host}/{uri.path}".rstrip("/")


@contextmanager
def request(uri: Address) -> Iterator[tuple[Any, str]]:
    """Yield the file system and the path for a request, and convert its errors."""
    fs, path = file_system(uri)
    try:
        yield fs, path
    except OSError as error:
        raise unreachable(uri, error) from error


_LISTENED = ("AWS_", "GOOGLE_", "CLOUDSDK_")


@lru_cache(maxsize=32)
def _file_system(scheme: str, authority: str, query: str, settings: Any, process: int) -> Any:
    del settings, process  # part of the cache key: other credentials or a forked process need another client
    if scheme in ("gs", "gcs") and "retry_limit_seconds" not in query:
        # The default of pyarrow is a quarter of an hour.
        query = "&".join(filter(None, [query, "retry_limit_seconds=30"]))
    fs, _ = pa_fs.FileSystem.from_uri(f"{scheme}://{authority}/key" + (f"?{query}" if query else ""))
    return _patient(fs) if fs.type_name == "s3" else fs


def _patient(fs: Any) -> Any:
    """Return the file system with bounded waits, which a URI cannot set: a silent endpoint would take 100 seconds."""
    _, (options,) = fs.__reduce__()
    return pa_fs.S3FileSystem(
        **{
            **options,
            "connect_timeout": _CONNECT_SECONDS,
            "request_timeout": _ANSWER_SECONDS,
            "retry_strategy": pa_fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
            # A small object is sent in one request, which cannot stay incomplete.
            "allow_delayed_open": True,
        }
    )


def bucket_is_missing(uri: Address) -> bool:
    """Return true if the bucket does not exist. If the query is denied, assume that it does."""
    fs, path = file_system(uri)
    try:
        info = fs.get_file_info(path.partition("/")[0])
    except OSError as error:
        if _is_denied(str(error)):
            return False
        raise unreachable(uri, error) from error
    return bool(info.type == pa_fs.FileType.NotFound)


class RemoteFile(io.RawIOBase):
    """The bytes of an object, from the first to the last."""

    def __init__(self, uri: Address) -> None:
        self._uri = uri
        with request(uri) as (fs, path):
            # Compression is recognised by the bytes, not by the name.
            self._stream = fs.open_input_stream(path, compression=None, buffer_size=STREAM_BUFFER)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._stream.readinto(buffer))
        except OSError as error:
            raise unreachable(self._uri, error) from error

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def is_of_transport(error: BaseException) -> bool:
    """Return true if the error comes from the store and not from a decoder."""
    return isinstance(error, OSError) and bool(re.search(r"AWS Error|HTTP status|google::cloud", str(error)))


def unreachable(name: object, error: BaseException) -> SystemRefusedError:
    """Convert an error of a file system into one line: the location, the problem and the remedy."""
    text = _brief(error)
    if "NO_SUCH_BUCKET" in text:
        return SystemRefusedError(
            f"{name}: expected a bucket of that name, got none; make it, or look at the endpoint"
        )
    if isinstance(error, FileNotFoundError):
        return SystemRefusedError(
            f"{name}: expected an object of that name, got none; look at bucket, key and endpoint"
        )
    if _is_denied(text):
        return SystemRefusedError(
            f"{name}: access denied ({text}); look at the credentials: AWS_ACCESS_KEY_ID, AWS_PROFILE, or a role"
        )
    if "NETWORK_CONNECTION" in text or "UNAVAILABLE" in text.upper():
        return SystemRefusedError(
            f"{name}: no connection ({text}); look at the network, and at endpoint_override or AWS_ENDPOINT_URL"
        )
    return SystemRefusedError(f"{name}: {text}")


def _is_denied(text: str) -> bool:
    return bool(
        re.search(r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|status 40[13]|PERMISSION", text)
    )


def _brief(error: BaseException) -> str:
    """Return the first line of an error, without request numbers and pyarrow's own prefix."""
    if str(error).startswith("Cannot parse URI"):  # the rest is the URI
        return "one that cannot be parsed"
    line = first_line(error)
    line = re.sub(r"\s*\(Request ID:.*?\)", "", line)
    return re.sub(r"^When [^:]*: (?=AWS)", "", line).removeprefix("AWS Error ").strip()
