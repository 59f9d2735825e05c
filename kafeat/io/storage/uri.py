"""Places that are URIs: their parts, and what of them may be shown.

A key is spelled as URIs spell it: `%20` for a space, `%25` for %, `%23` for #, `%3F` for ?. Spaces and letters beyond
ASCII may stand as they are.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from kafeat.errors import UsageError, without_secrets

SCHEMES = ("file", "s3", "gs", "gcs", "hdfs", "viewfs")

_SCHEME = re.compile(r"([^/]*?)://")
# One slash is a slip, and no name of a local file: it may hold a secret.
_SLIP = re.compile(r"(?:s3|gs|gcs|hdfs|viewfs):/(?!/)", re.IGNORECASE)
# A colon outside of what stands before an @ is that of a secret with a /, ? or # in it.
_BUCKET = r"[^:\s'\"]*"
_HOST = r"[^:\s'\"]*(?::\d+)?"
_QUERY = r"\w+=[^\s'\"?&]*(?:&\w+=[^\s'\"?&]*)*"
_SAFE = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True)
class Uri:
    """`scheme://authority/path?query`; `path` as it is spelled, without its first slash."""

    scheme: str
    authority: str
    path: str
    query: str

    @property
    def key(self) -> str:
        """The path, decoded."""
        return unquote(self.path)

    def spelled(self, *, whole: bool = True) -> str:
        """The URI again; without credentials and options if not `whole`."""
        authority = self.authority if whole else self.authority.rpartition("@")[2]
        query = f"?{self.query}" if whole and self.query else ""
        return f"{self.scheme}://{authority}/{self.path}{query}"


def is_remote(place: str) -> bool:
    """Whether the place is a URI, and not of a local file."""
    found = _SCHEME.match(place)
    return _SLIP.match(place) is not None or (found is not None and found[1].lower() != "file")


def local_path(place: str) -> str:
    """The path behind a `file:` URI; any other place as it is."""
    found = _SCHEME.match(place)
    if found is None or found[1].lower() != "file":
        return place
    rest = place[found.end() :]
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            f"file://...: expected file:///folder/name, got the host {host.rpartition('@')[2]!r:.60}"
        )
    return unquote(f"/{path}")


def parsed(place: str) -> Uri:
    """The parts of a remote place; `UsageError`, which does not spell it, for what is no URI that kafeat knows.

    What cannot be parsed may have a secret anywhere.
    """
    found = _SCHEME.match(place)
    scheme = found[1].lower() if found else ""
    where = _cut(place)
    if _SLIP.match(place):
        raise UsageError(f"{where}: expected two slashes behind the scheme, got one")
    if found is None or scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise UsageError(f"{where}: expected a local path or a URI of {known}, got {scheme}://")
    rest, _, query = place[found.end() :].partition("?")
    authority, _, path = rest.partition("/")
    if "#" in place:
        raise UsageError(f"{where}: expected %23 for a # in a URI, got #")
    if not place.isprintable():
        raise UsageError(f"{where}: expected a URI in one line of printable characters, got others")
    if re.search(r"%(?![0-9A-Fa-f]{2})", path):
        raise UsageError(f"{where}: expected %25 for a % in a URI, got a % that begins no code")
    if re.search(r"\s", authority) or not re.fullmatch(
        _HOST if scheme in ("hdfs", "viewfs") else _BUCKET, authority.rpartition("@")[2]
    ):
        raise UsageError(
            f"{where}: expected KEY:SECRET@ before a bucket, "
            "with %2F, %3F and %23 for /, ? and # in it, got another form"
        )
    if query and not re.fullmatch(_QUERY, query):
        raise UsageError(f"{where}: expected options as ?name=value&name=value, got others")
    return Uri(scheme, authority, quote(path, safe=_SAFE), query)


def path_of(place: str) -> str:
    """What a suffix is looked for in: the path without options, decoded."""
    return parsed(place).key if is_remote(place) else local_path(place)


def name_of(place: str) -> str:
    """The last name, for people."""
    return os.path.basename(path_of(place))


def shown(place: str) -> str:
    """The place as messages and manifests show it: without credentials and options.

    Of what cannot be parsed, no more than the scheme is shown.
    """
    if not is_remote(place):
        return place
    try:
        return without_secrets(parsed(place).spelled(whole=False))
    except UsageError:
        return _cut(place)


def _cut(place: str) -> str:
    scheme = place.partition(":")[0].lower()
    return f"{scheme}://..." if re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) else "a URI"


def parent(place: str) -> str:
    """The folder that a place lies in; options stay at the end."""
    if not is_remote(place):
        return os.path.dirname(local_path(place))
    uri = parsed(place)
    return replace(uri, path=uri.path.rpartition("/")[0]).spelled()


def joined(folder: str, name: str) -> str:
    """The place of a name below a remote folder; options stay at the end."""
    uri = parsed(folder)
    prefix = uri.path.rstrip("/")
    below = quote(name, safe="/:@!$&'()*+,;=~")
    return replace(uri, path=f"{prefix}/{below}" if prefix else below).spelled()


def identity(place: str) -> str:
    """The same for two spellings of one place, as far as can be told without asking."""
    if not is_remote(place):
        return os.path.realpath(local_path(place))
    uri = parsed(place)
    found = re.search(r"(?:^|&)endpoint_override=([^&]*)", uri.query)
    host = unquote(found[1]) if found else re.sub(r"^\w+://", "", _endpoint(uri.scheme))
    bucket = uri.authority.rpartition("@")[2]
    scheme = {"gcs": "gs", "viewfs": "hdfs"}.get(uri.scheme, uri.scheme)
    return f"{scheme}://{host.rstrip('/')}/{bucket}/{uri.key}"


def lies_in(place: str, folder: str) -> bool:
    """Whether a place is a folder or lies below it; both are told by their `identity`."""
    return f"{place}/".startswith(f"{folder.rstrip('/')}/")


def _endpoint(scheme: str) -> str:
    if scheme != "s3":
        return ""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
