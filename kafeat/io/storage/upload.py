"""Upload a complete local file as an object that appears complete or not at all.

When an output stream of pyarrow is closed or garbage collected, the object is complete with the bytes so far
(apache/arrow issue 40502). A stream cannot be cancelled. So each stream is used in a thread, where signals raise no
exceptions, and is closed only after its last byte. An abandoned stream is kept until the process ends.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

from kafeat.contract.threads import settle
from kafeat.errors import SystemRefusedError
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.object_store import ObjectUri, file_system, unreachable
from kafeat.io.storage.temporary_files import uploads_to_call_off

# pyarrow uploads parts of this size. It would first copy smaller pieces together.
_PIECE = 10 << 20
# pyarrow's threads accept any number of parts, which stay in memory. So after this many, wait until all are sent.
_PIECES_AT_ONCE = 4
# Seconds to wait for parts that are being sent. Without a network, pyarrow itself gives up after half a minute.
_GRACE_SECONDS = 15.0

_PRECONDITION_FAILED = 412

_LEFT = "parts that were uploaded may remain until a lifecycle rule of the bucket removes them: see docs/scaling.md"


def upload(local_file: str, location: ObjectUri, may_stand: Callable[[], None]) -> None:
    """Copy a local file to a remote location. `may_stand` may raise an error right before the object gets its name."""
    fs, path = file_system(location)
    sender = _Sender(fs, local_file, path, may_stand)
    try:
        sender.run()
    except BaseException as error:
        uploads_to_call_off.add(path)
        left = sender.give_up() and not (fs.type_name == "s3" and abort_upload(fs, path))
        uploads_to_call_off.discard(path)
        if isinstance(error, OSError):
            refusal = unreachable(location, error)
            more = f"; {_LEFT}" if left else ""
            raise SystemRefusedError(f"{refusal}{more}", retry=refusal.retry) from error
        raise


class _Sender:
    """A thread that sends the file. A signal may interrupt the caller, which waits in `run`, but not the thread."""

    def __init__(self, fs: Any, local_file: str, path: str, may_stand: Callable[[], None]) -> None:
        self._fs, self._local_file, self._path, self._may_stand = fs, local_file, path, may_stand
        self._stop, self._sent = threading.Event(), Future[None]()
        self._in_parts = self._done = False

    def run(self) -> None:
        """Send the whole file, or raise the error of the thread."""
        # Not a join: after an interrupted join, Python 3.11 assumes that the thread has ended.
        threading.Thread(
            target=settle, args=(self._sent, self._send), name="kafeat-upload", daemon=True
        ).start()
        self._sent.result()

    def give_up(self) -> bool:
        """Stop the thread, and wait at most 15 seconds for it. Return true if an upload stays unfinished."""
        self._stop.set()
        wait([self._sent], _GRACE_SECONDS)
        return self._in_parts and not self._done

    def _send(self) -> None:
        with LocalPath(self._local_file).open() as file:
            self._copy(file)

    def _copy(self, file: Any) -> None:
        stream = self._fs.open_output_stream(self._path, compression=None)
        # An extra reference, so that the stream is not collected even when the interpreter exits.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
        pieces = 0
        while data := file.read(_PIECE):
            if self._stop.is_set():
                with suppress(OSError):
                    stream.flush()  # wait for parts that are being sent: they would outlive an abort
                return
            stream.write(data)
            pieces += 1
            # Only a full piece starts an upload in parts. Before that, an unfinished upload to this key is not ours.
            self._in_parts |= len(data) == _PIECE
            if not pieces % _PIECES_AT_ONCE:
                stream.flush()
        self._may_stand()
        if self._stop.is_set():
            return
        stream.close()
        self._done = True
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(stream))


def put_new(local_file: str, location: ObjectUri) -> bool | None:
    """Send a local file in one request, which the store rejects if the object exists.

    Return true if the file was sent, and false if the object exists. Return None after another failure, such
    as a missing boto3 or too large a file. The caller then calls `upload`, which reports remaining errors.
    """
    fs, path = file_system(location)
    if fs.type_name != "s3":
        return None
    bucket, _, key = path.partition("/")

    def put(client: Any) -> bool:
        try:
            with open(local_file, "rb") as file:
                client.put_object(Bucket=bucket, Key=key, Body=file, IfNoneMatch="*")
        except client.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == _PRECONDITION_FAILED:
                return False
            raise
        return True

    return _by_boto3(fs, put)


def abort_upload(fs: Any, path: str) -> bool:
    """Abort the only unfinished upload to a bucket and key, with boto3. Return true if no upload is left.

    Of several uploads, none is aborted, because some may belong to other processes.
    """
    bucket, _, key = path.partition("/")

    def abort(client: Any) -> bool:
        answer = client.list_multipart_uploads(Bucket=bucket, Prefix=key)
        ours = [one["UploadId"] for one in answer.get("Uploads", ()) if one["Key"] == key]
        if len(ours) == 1:
            client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=ours[0])
        return len(ours) < 2

    return _by_boto3(fs, abort) or False


def _by_boto3(fs: Any, ask: Callable[[Any], bool]) -> bool | None:
    """Call `ask` with a client of boto3, and return its result, or None without boto3 or after an error."""
    try:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return None
    try:
        return ask(_client(fs))
    except (Boto3Error, BotoCoreError, ClientError, OSError, ValueError):
        return None


def _client(fs: Any) -> Any:
    """Return a client of boto3 for S3 with the options of pyarrow's file system. boto3 finds other options itself."""
    import boto3
    from botocore.config import Config

    _, (options,) = fs.__reduce__()
    host = options["endpoint_override"]
    # boto3's default checksums may be too new for stores that are not Amazon's.
    plain = {"request_checksum_calculation": "when_required"}
    style = "virtual" if options["force_virtual_addressing"] else "path"
    return boto3.Session().client(
        "s3",
        region_name=fs.region,
        endpoint_url=f"{options['scheme'] or 'https'}://{host}"
        if host and "://" not in host
        else host or None,
        verify=options["tls_ca_file_path"] or None,
        aws_access_key_id=options["access_key"] or None,
        aws_secret_access_key=options["secret_key"] or None,
        aws_session_token=options["session_token"] or None,
        config=Config(
            connect_timeout=5,
            read_timeout=10,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": style},
            **{name: value for name, value in plain.items() if name in Config.OPTION_DEFAULTS},
        ),
    )
