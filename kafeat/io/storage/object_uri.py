"""Objects in S3 and Google Cloud Storage: the parts of their URIs, their display without secrets, and what lies there.

Keys are percent-encoded: `%20` for a space, `%25` for %, `%23` for #, `%3F` for ?. Spaces and letters outside ASCII may
also be written as they are. pyarrow's file systems are imported on use.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

from kafeat.errors import SystemRefusedError, UsageError, without_secrets
from kafeat.io.storage.base import Entry, Kind, Location

SCHEMES = ("file", "s3", "gs", "gcs")
_HDFS = ("hdfs", "viewfs")

_SCHEME = re.compile(r"([^/]*?)://")
# One slash is a typing error and not a local path: the text may hold a secret.
_SLIP = re.compile(r"(?:s3|gs|gcs):/(?!/)", re.IGNORECASE)
# A colon elsewhere than before an @ belongs to a secret with a /, ? or # in it.
_BUCKET = r"[^:\s'\"]*"
_QUERY = r"\w+=[^\s'\"?&]*(?:&\w+=[^\s'\"?&]*)*"
_SAFE = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True)
class ObjectUri(Location):
    """`scheme://authority/encoded?query`. `encoded` has no leading slash."""

    scheme: str
    authority: str
    encoded: str
    query: str

    # `?` begins the options and is no wildcard.
    wildcards = re.compile(r"[*\[]")

    @staticmethod
    def of(text: str) -> ObjectUri:
        """Return the location of a URI. Refuse URIs that kafeat does not know.

        The error does not show the URI: one that cannot be parsed may hold a secret anywhere.
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
        if "#" in text:
            raise UsageError(f"{scheme_shown}: expected %23 for a # in a URI, got #")
        if not text.isprintable():
            raise UsageError(
                f"{scheme_shown}: expected a URI in one line of printable characters, got others"
            )
        if re.search(r"%(?![0-9A-Fa-f]{2})", path):
            raise UsageError(f"{scheme_shown}: expected %25 for a % in a URI, got a % that begins no code")
        if re.search(r"\s", authority) or not re.fullmatch(_BUCKET, authority.rpartition("@")[2]):
            raise UsageError(
                f"{scheme_shown}: expected KEY:SECRET@ before a bucket, "
                "with %2F, %3F and %23 for /, ? and # in it, got another form"
            )
        if query and not re.fullmatch(_QUERY, query):
            raise UsageError(f"{scheme_shown}: expected options as ?name=value&name=value, got others")
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
        """The bucket."""
        return self.authority.rpartition("@")[2]

    @property
    def identity(self) -> str:
        match = re.search(r"(?:^|&)endpoint_override=([^&]*)", self.query)
        endpoint = unquote(match[1]) if match else re.sub(r"^\w+://", "", _endpoint(self.scheme))
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

        from kafeat.io.storage.object_store import request

        with request(self) as (fs, path):
            base = path.rstrip("/")
            try:
                infos = fs.get_file_info(FileSelector(base, recursive=True))
            except FileNotFoundError:
                raise SystemRefusedError(
                    f"{self}: expected a folder with something in it, got none"
                ) from None
        for info in infos:
            if info.type.name == "File":
                yield _entry(info.path[len(base) + 1 :], info)

    def make_folder(self) -> list[str]:
        from kafeat.io.storage.object_store import bucket_is_missing

        if bucket_is_missing(self):
            raise SystemRefusedError(f"{self}: expected a bucket of that name, got none; make it")
        return []

    def remove(self) -> None:
        from kafeat.io.storage.object_store import request

        with request(self) as (fs, path):
            try:
                fs.delete_file(path)
            except FileNotFoundError:
                return

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(self.spool).free

    @property
    def spool(self) -> str:
        return tempfile.gettempdir()

    def open(self) -> io.RawIOBase:
        from kafeat.io.storage.object_store import RemoteFile

        return RemoteFile(self)

    def open_random(self) -> Any:
        from kafeat.io.storage.object_store import request

        with request(self) as (fs, path):
            file = fs.open_input_file(path)
            file.size()
        return file

    def _info(self) -> Any:
        from kafeat.io.storage.object_store import request

        with request(self) as (fs, path):
            return fs.get_file_info(path)


def is_remote(text: str) -> bool:
    """Return true for a URI other than `file:`."""
    match = _SCHEME.match(text)
    return _SLIP.match(text) is not None or (match is not None and match[1].lower() != "file")


def scheme_only(text: str) -> str:
    """Return the scheme of a URI that cannot be parsed, as a secret may be anywhere after it."""
    scheme = text.partition(":")[0].lower()
    return f"{scheme}://..." if re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) else "a URI"


def _endpoint(scheme: str) -> str:
    if scheme != "s3":
        return ""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")


_KINDS: dict[str, Kind | None] = {"File": "file", "Directory": "folder", "NotFound": None, "Unknown": "other"}


def _entry(name: str, info: Any) -> Entry:
    # A listing has fractions of a second, the object itself does not.
    return Entry(name, int(info.size), f"{info.size:x}-{(info.mtime_ns or 0) // 10**9:x}")
