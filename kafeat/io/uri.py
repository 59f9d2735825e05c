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

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
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
    return found is not None and found[1].lower() != "file"


def local_path(place: str) -> str:
    """The path behind a `file:` URI; any other place as it is."""
    found = _SCHEME.match(place)
    if found is None or found[1].lower() != "file":
        return place
    rest = place[found.end() :]
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(f"{place}: expected file:///folder/name, got the host {host!r}")
    return unquote(f"/{path}")


def parsed(place: str) -> Uri:
    """The parts of a remote place; `UsageError` for what is no URI that kafeat knows."""
    found = _SCHEME.match(place)
    scheme = found[1].lower() if found else ""
    if found is None or scheme not in SCHEMES:
        raise UsageError(
            f"{place}: expected a local path or a URI of {', '.join(f'{name}://' for name in SCHEMES)}, got {scheme}://"
        )
    rest, _, query = place[found.end() :].partition("?")
    if "#" in rest or "#" in query:
        raise UsageError(f"{place}: expected %23 for a # in a URI, got #")
    authority, _, path = rest.partition("/")
    if re.search(r"%(?![0-9A-Fa-f]{2})", path):
        raise UsageError(f"{place}: expected %25 for a % in a URI, got a % that begins no code")
    return Uri(scheme, authority, quote(path, safe=_SAFE), query)


def path_of(place: str) -> str:
    """What a suffix is looked for in: the path without options, decoded."""
    return parsed(place).key if is_remote(place) else local_path(place)


def name_of(place: str) -> str:
    """The last name, for people."""
    return os.path.basename(path_of(place))


def shown(place: str) -> str:
    """The place as messages and manifests show it: without credentials and options."""
    return without_secrets(parsed(place).spelled(whole=False)) if is_remote(place) else place


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
