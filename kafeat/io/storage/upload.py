"""Upload a complete local file as an object that appears complete or not at all.

Closing one of pyarrow's output streams completes the object with the bytes so far, and so does its garbage collection
(apache/arrow issue 40502). It cannot be cancelled. So the stream is used in a thread, where no signal raises. It is
closed only after its last byte. A stream that is given up is kept until the process ends.
"""

from __future__ import annotations

import configparser
import ctypes
import datetime
import hashlib
import hmac
import http.client
import os
import re
import secrets
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from kafeat.errors import KafeatError, SystemRefusedError
from kafeat.io.storage.files import opened
from kafeat.io.storage.object_store import file_system, unreachable

# The size of pyarrow's parts. A smaller piece would be copied.
_PIECE = 10 << 20
# Parts are sent by background threads that accept any number of parts: wait for them after each group of this size.
_PIECES_AT_ONCE = 4
# Wait this long for parts in flight. On a lost network, pyarrow gives up after half a minute.
_GRACE_SECONDS = 15.0


def upload(local_file: str, location: str, may_stand: Callable[[], None]) -> None:
    """Copy a local file to a remote location. Call `may_stand` right before the object gets its name."""
    fs, path = file_system(location)
    if fs.type_name not in ("s3", "gcs"):
        _by_rename(fs, local_file, path, location, may_stand)
        return
    sender = _Sender(fs, local_file, path, may_stand)
    try:
        sender.run()
    except BaseException as error:
        left = sender.give_up() and not (fs.type_name == "s3" and abort_upload(fs, path))
        if isinstance(error, OSError):
            refusal = unreachable(location, error)
            more = "; parts that were uploaded may remain: see docs/locations.md" if left else ""
            raise SystemRefusedError(f"{refusal}{more}") from error
        raise


class _Sender:
    """A thread that sends the file. The caller that waits for it may be interrupted at any time."""

    def __init__(self, fs: Any, local_file: str, path: str, may_stand: Callable[[], None]) -> None:
        self._fs, self._local_file, self._path, self._may_stand = fs, local_file, path, may_stand
        # Not a join: after an interrupted join, Python 3.11 takes the thread for ended.
        self._stop, self._ended = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._in_parts = self._done = False
        self._thread = threading.Thread(target=self._send, name="kafeat-upload", daemon=True)

    def run(self) -> None:
        """Send the whole file, or raise the error of the thread."""
        self._thread.start()
        self._ended.wait()
        if self._error is not None:
            raise self._error

    def give_up(self) -> bool:
        """Stop the thread, with a limited wait. Return true if it leaves an unfinished upload."""
        self._stop.set()
        self._ended.wait(_GRACE_SECONDS)
        return self._in_parts and not self._done

    def _send(self) -> None:
        try:
            with opened(self._local_file) as file:
                self._copy(file)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()

    def _copy(self, file: Any) -> None:
        stream = _passthrough(self._fs.open_output_stream(self._path, compression=None))
        pieces = 0
        while data := file.read(_PIECE):
            if self._stop.is_set():
                with suppress(OSError):
                    stream.flush()  # parts in flight would outlive an abort
                return
            stream.write(data)
            pieces += 1
            # Only now do we have an upload in parts, which may be aborted; other uploads must not be.
            self._in_parts |= len(data) == _PIECE
            if not pieces % _PIECES_AT_ONCE:
                stream.flush()
        self._may_stand()
        if self._stop.is_set():
            return
        stream.close()
        self._done = True
        _let_go(stream)


def _passthrough(stream: Any) -> Any:
    """Return the stream with an extra reference, so that even the interpreter's exit does not collect it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
    return stream


def _let_go(stream: Any) -> None:
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(stream))


def _by_rename(fs: Any, local_file: str, path: str, location: str, may_stand: Callable[[], None]) -> None:
    """Upload to a file system with renames: write a temporary file and rename it when it is complete."""
    folder, _, name = path.rpartition("/")
    beside = f"{folder}/.{name[:100]}.kafeat-{secrets.token_hex(8)}.tmp"
    try:
        with opened(local_file) as file, fs.open_output_stream(beside, compression=None) as stream:
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
            raise unreachable(location, error) from error
        raise


_SECONDS = 10


@dataclass(frozen=True)
class _Keys:
    access: str
    secret: str
    token: str


def abort_upload(fs: Any, path: str) -> bool:
    """Abort the only unfinished upload to a bucket and key. Return true if none is left.

    If there are several, it is unknown which one is ours, and all of them stay.
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
    """Return the ids of the uploads to a key from the answer of the store."""
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
        """Return the body of the answer. Raise OSError if the request was refused."""
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
