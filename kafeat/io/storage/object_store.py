"""Objects in S3 and Google Cloud Storage: their URIs without secrets, and requests through pyarrow's file systems.

Keys are percent-encoded: `%20` for a space, `%25` for %, `%23` for #, `%3F` for ?. Spaces and letters outside ASCII may
also be written as they are. pyarrow is imported on use. Its errors become one line with a remedy.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from kafeat.errors import SystemRefusedError, UsageError, counted, first_line, without_secrets
from kafeat.io.storage.base import Entry, Kind, Location

# A large buffer, because every request of a sequential reader costs a round trip.
STREAM_BUFFER = 8 << 20

# Limits for an endpoint: seconds to wait for a connection and for an answer, and the number of attempts.
_CONNECT_SECONDS, _ANSWER_SECONDS, _ATTEMPTS = 5, 10, 3

SCHEMES = ("file", "s3", "gs", "gcs")
_HDFS = ("hdfs", "viewfs")

_SCHEME = re.compile(r"([^/]*?)://")
# One slash, as in s3:/bucket, is a typing error and not a local path: the text may contain a secret.
_SLIP = re.compile(r"(?:s3|gs|gcs):/(?!/)", re.IGNORECASE)
# The name of a bucket has no colon. A colon shows that it is from KEY:SECRET@ with an unescaped /, ? or #.
_BUCKET = r"[^:\s'\"]*"
_QUERY = r"\w+=[^\s'\"?&]*(?:&\w+=[^\s'\"?&]*)*"
_SAFE = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True)
class ObjectUri(Location):
    """A URI `scheme://authority/encoded?query`. `encoded` is the percent-encoded key, without a leading slash."""

    scheme: str
    authority: str
    encoded: str
    query: str

    # `?` begins the options and is not a wildcard.
    wildcards = re.compile(r"[*\[]")

    @staticmethod
    def of(text: str) -> ObjectUri:
        """Return the location of a URI. Raise UsageError for other schemes and invalid URIs.

        The error does not show the URI, which may contain a secret anywhere if it cannot be parsed.
        """
        match = _SCHEME.match(text)
        scheme = match[1].lower() if match else ""
        scheme_shown = scheme_only(text)
        if _SLIP.match(text):
            raise UsageError(f"{scheme_shown}: expected two slashes after the scheme, got one")
        if match is None or scheme not in SCHEMES:
            known = ", ".join(f"{name}://" for name in SCHEMES)
            remedy = "; mount HDFS, or copy the files with `hdfs dfs -get`" if scheme in _HDFS else ""
            raise UsageError(
                f"{scheme_shown}: expected a local path or a URI of {known}, got {scheme}://{remedy}"
            )
        rest, _, query = text[match.end() :].partition("?")
        authority, _, path = rest.partition("/")
        problem = _problem(text, authority, path, query)
        if problem is not None:
            raise UsageError(f"{scheme_shown}: expected {problem}")
        return ObjectUri(scheme, authority, quote(path, safe=_SAFE), query)

    def __str__(self) -> str:
        return without_secrets(f"{self.scheme}://{self.host}/{self.encoded}")

    def __repr__(self) -> str:
        return f"ObjectUri({self})"

    @property
    def text(self) -> str:
        """The whole URI, with credentials and options."""
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.authority}/{self.encoded}{query}"

    @property
    def path(self) -> str:
        return unquote(self.encoded)

    @property
    def host(self) -> str:
        """The name of the bucket."""
        return self.authority.rpartition("@")[2]

    @property
    def identity(self) -> str:
        named = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
        own = named if self.scheme == "s3" else ""
        match = re.search(r"(?:^|&)endpoint_override=([^&]*)", self.query)
        endpoint = unquote(match[1]) if match else re.sub(r"^\w+://", "", own)
        scheme = "gs" if self.scheme == "gcs" else self.scheme
        return f"{scheme}://{endpoint.rstrip('/')}/{self.host}/{self.path}"

    @property
    def parent(self) -> ObjectUri:
        return replace(self, encoded=self.encoded.rpartition("/")[0])

    def join(self, name: str) -> ObjectUri:
        prefix = self.encoded.rstrip("/")
        below = quote(name, safe="/:@!$&'()*+,;=~")
        return replace(self, encoded=f"{prefix}/{below}" if prefix else below)

    def above(self, pieces: int) -> ObjectUri:
        return replace(self, encoded="/".join(self.encoded.split("/")[:pieces]))

    def kind(self) -> Kind | None:
        return _KINDS[self._info().type.name]

    def entry(self) -> Entry | None:
        info = self._info()
        return _entry(self.name, info) if info.type.name == "File" else None

    def listed(self) -> Iterator[Entry]:
        from pyarrow.fs import FileSelector

        with request(self) as (fs, path):
            base = path.rstrip("/")
            try:
                infos = fs.get_file_info(FileSelector(base, recursive=True))
            except FileNotFoundError:
                raise SystemRefusedError(
                    f"{self}: expected a folder that contains objects, got none"
                ) from None
        for info in infos:
            if info.type.name == "File":
                yield _entry(info.path[len(base) + 1 :], info)

    def make_folder(self) -> list[str]:
        with request(self) as (fs, path):
            try:
                missing = fs.get_file_info(path.partition("/")[0]).type.name == "NotFound"
            except OSError as error:
                if not _is_denied(str(error)):
                    raise
                missing = False  # without permission to look, writing may be allowed
        if missing:
            raise SystemRefusedError(f"{self}: expected a bucket of that name, got none; make it")
        return []

    def remove(self) -> None:
        with request(self) as (fs, path), suppress(FileNotFoundError):
            fs.delete_file(path)

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(self.spool).free

    @property
    def spool(self) -> str:
        return tempfile.gettempdir()

    def open(self) -> Any:
        with request(self) as (fs, path):
            # Compression is recognised by the bytes, not by the name.
            return fs.open_input_stream(path, compression=None, buffer_size=STREAM_BUFFER)

    def open_random(self) -> Any:
        with request(self) as (fs, path):
            file = fs.open_input_file(path)
            file.size()
        return file

    def refusal(self, error: OSError) -> SystemRefusedError:
        return unreachable(self, error)

    def _info(self) -> Any:
        with request(self) as (fs, path):
            return fs.get_file_info(path)


def _problem(text: str, authority: str, path: str, query: str) -> str | None:
    """Return the message about an invalid URI, from the word after "expected" on, or None for a valid URI."""
    if "#" in text:
        return "%23 for a # in a URI, got #"
    if not text.isprintable():
        return "a URI in one line of printable characters, got others"
    if re.search(r"%(?![0-9A-Fa-f]{2})", path):
        return "%25 for a % in a URI, got a % that begins no code"
    if re.search(r"\s", authority) or not re.fullmatch(_BUCKET, authority.rpartition("@")[2]):
        return "KEY:SECRET@ before a bucket, with %2F, %3F and %23 for /, ? and # in it, got another form"
    if query and not re.fullmatch(_QUERY, query):
        return "options as ?name=value&name=value, got others"
    return None


def is_remote(text: str) -> bool:
    """Return true for a URI other than `file:`."""
    match = _SCHEME.match(text)
    return _SLIP.match(text) is not None or (match is not None and match[1].lower() != "file")


def scheme_only(text: str) -> str:
    """Return only the scheme of an invalid URI, such as `s3://...`: a secret may be anywhere after it."""
    scheme = text.partition(":")[0].lower()
    return f"{scheme}://..." if re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) else "a URI"


_KINDS: dict[str, Kind | None] = {"File": "file", "Directory": "folder", "NotFound": None, "Unknown": "other"}


def _entry(name: str, info: Any) -> Entry:
    # The time is cut to whole seconds: a listing has fractions of a second, but the metadata of an object has none.
    return Entry(name, int(info.size), f"{info.size:x}-{(info.mtime_ns or 0) // 10**9:x}")


def file_system(uri: ObjectUri) -> tuple[Any, str]:
    """Return pyarrow's file system of a URI and the path in it. File systems are cached by host and options."""
    from pyarrow import ArrowInvalid

    if not uri.host:
        raise UsageError(f"{uri}: expected {uri.scheme}://BUCKET/KEY, got no bucket")
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_LISTENED)))
    try:
        fs = _file_system(uri.scheme, uri.authority, uri.query, settings, os.getpid())
    except (ArrowInvalid, ValueError) as error:
        # Not chained: pyarrow's message shows the whole URI with its credentials.
        raise UsageError(f"{uri}: expected options that pyarrow knows, got: {_brief(error)}") from None
    except OSError as error:
        raise unreachable(uri, error) from None
    return fs, f"{uri.host}/{uri.path}".rstrip("/")


@contextmanager
def request(uri: ObjectUri) -> Iterator[tuple[Any, str]]:
    """Yield pyarrow's file system and the path in it. Errors in the block become SystemRefusedErrors."""
    fs, path = file_system(uri)
    with uri.naming():
        yield fs, path


_LISTENED = ("AWS_", "GOOGLE_", "CLOUDSDK_")


@lru_cache(maxsize=32)
def _file_system(scheme: str, authority: str, query: str, settings: Any, process: int) -> Any:
    from pyarrow.fs import FileSystem

    del settings, process  # part of the cache key: other credentials or a forked process need another client
    if scheme in ("gs", "gcs") and "retry_limit_seconds" not in query:
        # By default, pyarrow retries for a quarter of an hour.
        query = "&".join(filter(None, [query, "retry_limit_seconds=30"]))
    fs, _ = FileSystem.from_uri(f"{scheme}://{authority}/key" + (f"?{query}" if query else ""))
    return _patient(fs) if fs.type_name == "s3" else fs


def _patient(fs: Any) -> Any:
    """Return an S3 file system with short timeouts, which a URI cannot set. The defaults add up to 100 s."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    _, (options,) = fs.__reduce__()
    return S3FileSystem(
        **{
            **options,
            "connect_timeout": _CONNECT_SECONDS,
            "request_timeout": _ANSWER_SECONDS,
            "retry_strategy": AwsStandardS3RetryStrategy(max_attempts=_attempts()),
            # A small object is sent in one request, which leaves no incomplete upload.
            "allow_delayed_open": True,
        }
    )


def _attempts() -> int:
    """Return how often a failing request is sent, 3 or the value of AWS_MAX_ATTEMPTS, which all tools of AWS read."""
    asked = os.environ.get("AWS_MAX_ATTEMPTS") or str(_ATTEMPTS)
    if not re.fullmatch(r"[1-9]\d{0,2}", asked):
        raise UsageError(f"AWS_MAX_ATTEMPTS: expected a whole number from 1 to 999, got {asked!r}")
    return int(asked)


def is_of_transport(error: BaseException) -> bool:
    """Return true if the error comes from the object store, and not from decoding the content."""
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
    if re.search(_PASSING, text):
        return _answered(name, text)
    if "NETWORK_CONNECTION" in text or "UNAVAILABLE" in text.upper():
        return SystemRefusedError(
            f"{name}: no connection ({text}); look at the network, and at endpoint_override or AWS_ENDPOINT_URL",
            retry=True,
        )
    return SystemRefusedError(f"{name}: {text}")


def _answered(name: object, text: str) -> SystemRefusedError:
    bare = re.search(r"(HTTP status \d+)\) during (\w+) operation: No response body", text)
    said = text.rstrip(":") if bare is None else f"{bare[1]} to {bare[2]}"
    tries = f", {counted(_attempts(), 'time')} (AWS_MAX_ATTEMPTS)" if str(name).startswith("s3:") else ""
    return SystemRefusedError(f"{name}: the store answered: {said}{tries}; try again later", retry=True)


_PASSING = r"SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT|THROTTL|HTTP status (?:429|5\d\d)"
"""Words by which a temporary error of a store is recognised: a later try may succeed."""


def _is_denied(text: str) -> bool:
    return bool(
        re.search(r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|status 40[13]|PERMISSION", text)
    )


def _brief(error: BaseException) -> str:
    """Return the first line of an error, without the ID of the request and pyarrow's own prefix."""
    if str(error).startswith("Cannot parse URI"):  # the rest of the message is the URI
        return "one that cannot be parsed"
    line = first_line(error)
    line = re.sub(r"\s*\(Request ID:.*?\)", "", line)
    return re.sub(r"^When [^:]*: (?=AWS)", "", line).removeprefix("AWS Error ").strip()
