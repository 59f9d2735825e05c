"""Abort an unfinished multipart upload: the one request that pyarrow cannot make.

It is signed with the keys of the URI, the environment or the credentials file. Roles of machines give theirs to
pyarrow only: there the upload stays, invisible, until the bucket's lifecycle rule removes it.
"""

from __future__ import annotations

import configparser
import datetime
import hashlib
import hmac
import http.client
import os
import re
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

_SECONDS = 10


@dataclass(frozen=True)
class _Keys:
    access: str
    secret: str
    token: str


def abort_upload(fs: Any, path: str) -> bool:
    """Abort the one unfinished upload to that bucket and key; whether none is left.

    If there are several, nobody can tell which is whose, and all of them stay.
    """
    try:
        _, (options,) = fs.__reduce__()
        keys = _keys(options)
        if keys is None:
            return False
        bucket, _, key = path.partition("/")
        store = _Store(options, fs.region, keys)
        found = _uploads(store.ask("GET", f"/{bucket}", {"prefix": key, "uploads": ""}), key)
        if len(found) == 1:
            store.ask("DELETE", f"/{bucket}/{key}", {"uploadId": found[0]})
        return len(found) < 2
    except (OSError, http.client.HTTPException, ValueError, ElementTree.ParseError, configparser.Error):
        return False


def _uploads(answer: bytes, key: str) -> list[str]:
    """Ids of the uploads to that key, in what the store answered."""
    plain = ElementTree.fromstring(re.sub(rb'\sxmlns="[^"]*"', b"", answer))  # noqa: S314
    uploads = (one for one in plain.iter("Upload") if one.findtext("Key") == key)
    return [name for one in uploads if (name := one.findtext("UploadId"))]


def _keys(options: dict[str, Any]) -> _Keys | None:
    if options["access_key"]:
        return _Keys(options["access_key"], options["secret_key"], options["session_token"] or "")
    environ = os.environ
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        token = environ.get("AWS_SESSION_TOKEN", "")
        return _Keys(environ["AWS_ACCESS_KEY_ID"], environ["AWS_SECRET_ACCESS_KEY"], token)
    file = configparser.RawConfigParser()
    file.read(os.path.expanduser(environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")))
    profile = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    if not file.has_option(profile, "aws_secret_access_key"):
        return None
    one = file[profile]
    return _Keys(one["aws_access_key_id"], one["aws_secret_access_key"], one.get("aws_session_token", ""))


class _Store:
    """Requests with a signature of version 4 (AWS: Authenticating Requests), bucket in the path."""

    def __init__(self, options: dict[str, Any], region: str, keys: _Keys) -> None:
        named = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        scheme = options["scheme"] or "https"
        where = options["endpoint_override"] or named or f"s3.{region}.amazonaws.com"
        self._url = urlsplit(where if "://" in where else f"{scheme}://{where}")
        self._region, self._keys, self._authorities = region, keys, options["tls_ca_file_path"] or None

    def ask(self, method: str, path: str, query: dict[str, str]) -> bytes:
        """The body of the answer; `OSError` if it is a refusal."""
        path = quote(path, safe="/~")
        asked = "&".join(f"{quote(k, safe='~')}={quote(v, safe='~')}" for k, v in sorted(query.items()))
        connection = self._connection()
        try:
            connection.request(method, f"{path}?{asked}", headers=self._signed(method, path, asked))
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise OSError(f"HTTP status {answer.status}")
        return body

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=_SECONDS)
        context = ssl.create_default_context(cafile=self._authorities or os.environ.get("AWS_CA_BUNDLE"))
        return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)

    def _signed(self, method: str, path: str, query: str) -> dict[str, str]:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        empty = hashlib.sha256().hexdigest()
        headers = {"host": self._url.netloc, "x-amz-content-sha256": empty, "x-amz-date": now}
        if self._keys.token:
            headers["x-amz-security-token"] = self._keys.token
        names = ";".join(sorted(headers))
        spelled = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        request = f"{method}\n{path}\n{query}\n{spelled}\n{names}\n{empty}"
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{self._keys.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return headers
