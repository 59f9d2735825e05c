"""Locations that are URIs: their parts, and their display without secrets.

Keys are percent-encoded: `%20` for a space, `%25` for %, `%23` for #, `%3F` for ?. Spaces and letters outside ASCII may
also be written as they are.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from kafeat.errors import UsageError, without_secrets

SCHEMES = ("file", "s3", "gs", "gcs", "hdfs", "viewfs")

_SCHEME = re.compile(r"([^/]*?)://")
# One slash is a typing error and not a local path: the text may hold a secret.
_SLIP = re.compile(r"(?:s3|gs|gcs|hdfs|viewfs):/(?!/)", re.IGNORECASE)
# A colon elsewhere than before an @ belongs to a secret with a /, ? or # in it.
_BUCKET = r"[^:\s'\"]*"
_HOST = r"[^:\s'\"]*(?::\d+)?"
_QUERY = r"\w+=[^\s'\"?&]*(?:&\w+=[^\s'\"?&]*)*"
_SAFE = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True)
class Uri:
    """`scheme://authority/path?query`. `path` is encoded and has no leading slash."""

    scheme: str
    authority: str
    path: str
    query: str

    @property
    def key(self) -> str:
        """The decoded path."""
        return unquote(self.path)

    def spelled(self, *, whole: bool = True) -> str:
        """Return the URI as text, without credentials and options if not `whole`."""
        authority = self.authority if whole else self.authority.rpartition("@")[2]
        query = f"?{self.query}" if whole and self.query else ""
        return f"{self.scheme}://{authority}/{self.path}{query}"


def is_remote(location: str) -> bool:
    """Return true for a URI other than `file:`."""
    match = _SCHEME.match(location)
    return _SLIP.match(location) is not None or (match is not None and match[1].lower() != "file")


def local_path(location: str) -> str:
    """Return the path of a `file:` URI, and any other location as it is."""
    match = _SCHEME.match(location)
    if match is None or match[1].lower() != "file":
        return location
    rest = location[match.end() :]
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            f"file://...: expected file:///folder/name, got the host {host.rpartition('@')[2]!r:.60}"
        )
    return unquote(f"/{path}")


def parsed(location: str) -> Uri:
    """Return the parts of a remote location. Refuse URIs that kafeat does not know.

    The error does not show the URI: one that cannot be parsed may hold a secret anywhere.
    """
    match = _SCHEME.match(location)
    scheme = match[1].lower() if match else ""
    scheme_shown = _cut(location)
    if _SLIP.match(location):
        raise UsageError(f"{scheme_shown}: expected two slashes after the scheme, got one")
    if match is None or scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise UsageError(f"{scheme_shown}: expected a local path or a URI of {known}, got {scheme}://")
    rest, _, query = location[match.end() :].partition("?")
    authority, _, path = rest.partition("/")
    if "#" in location:
        raise UsageError(f"{scheme_shown}: expected %23 for a # in a URI, got #")
    if not location.isprintable():
        raise UsageError(f"{scheme_shown}: expected a URI in one line of printable characters, got others")
    if re.search(r"%(?![0-9A-Fa-f]{2})", path):
        raise UsageError(f"{scheme_shown}: expected %25 for a % in a URI, got a % that begins no code")
    if re.search(r"\s", authority) or not re.fullmatch(
        _HOST if scheme in ("hdfs", "viewfs") else _BUCKET, authority.rpartition("@")[2]
    ):
        raise UsageError(
            f"{scheme_shown}: expected KEY:SECRET@ before a bucket, "
            "with %2F, %3F and %23 for /, ? and # in it, got another form"
        )
    if query and not re.fullmatch(_QUERY, query):
        raise UsageError(f"{scheme_shown}: expected options as ?name=value&name=value, got others")
    return Uri(scheme, authority, quote(path, safe=_SAFE), query)


def path_of(location: str) -> str:
    """Return the decoded path without options, which ends in the suffix of the format."""
    return parsed(location).key if is_remote(location) else local_path(location)


def name_of(location: str) -> str:
    """Return the last name of the path."""
    return os.path.basename(path_of(location))


def shown(location: str) -> str:
    """Return a location for messages and manifests, without credentials and options.

    Of a URI that cannot be parsed, only the scheme is shown.
    """
    if not is_remote(location):
        return location
    try:
        return without_secrets(parsed(location).spelled(whole=False))
    except UsageError:
        return _cut(location)


def _cut(location: str) -> str:
    scheme = location.partition(":")[0].lower()
    return f"{scheme}://..." if re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) else "a URI"


def parent(location: str) -> str:
    """Return the folder of a location. Options of a URI are kept."""
    if not is_remote(location):
        return os.path.dirname(local_path(location))
    uri = parsed(location)
    return replace(uri, path=uri.path.rpartition("/")[0]).spelled()


def joined(folder: str, name: str) -> str:
    """Return the location of a name below a remote folder. Options of the URI are kept."""
    uri = parsed(folder)
    prefix = uri.path.rstrip("/")
    below = quote(name, safe="/:@!$&'()*+,;=~")
    return replace(uri, path=f"{prefix}/{below}" if prefix else below).spelled()


def identity(location: str) -> str:
    """Return a text that is equal for all spellings of one location, as far as that is known without a request."""
    if not is_remote(location):
        return os.path.realpath(local_path(location))
    uri = parsed(location)
    match = re.search(r"(?:^|&)endpoint_override=([^&]*)", uri.query)
    host = unquote(match[1]) if match else re.sub(r"^\w+://", "", _endpoint(uri.scheme))
    bucket = uri.authority.rpartition("@")[2]
    scheme = {"gcs": "gs", "viewfs": "hdfs"}.get(uri.scheme, uri.scheme)
    return f"{scheme}://{host.rstrip('/')}/{bucket}/{uri.key}"


def lies_in(location: str, folder: str) -> bool:
    """Return true if a location is a folder or lies below it. Both are given by their `identity`."""
    return f"{location}/".startswith(f"{folder.rstrip('/')}/")


def _endpoint(scheme: str) -> str:
    if scheme != "s3":
        return ""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
