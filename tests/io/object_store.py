"""A real S3 server on loopback, and a gate in front of it that slows, fails and counts requests."""

import contextlib
import http.client
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import quote, unquote
from xml.sax.saxutils import unescape

BUCKET = "rows"


class Store:
    """The objects of the server, listed without pyarrow."""

    def __init__(self, port: int) -> None:
        self.port = port

    def uri(self, key: str, *, user: str = "", port: int | None = None) -> str:
        return f"s3://{user}{BUCKET}/{key}?endpoint_override=127.0.0.1:{port or self.port}&scheme=http&region=us-east-1"

    def ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        # It looks for a signature, and believes any.
        signed = "Credential=test/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        headers = {"Authorization": f"AWS4-HMAC-SHA256 {signed}", "Content-Type": "application/octet-stream"}
        url = f"http://127.0.0.1:{self.port}/{BUCKET}{path}"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read()

    def keys(self) -> list[str]:
        listed = self.ask("GET", "?list-type=2").decode()
        return [unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", listed)]

    def uploads(self) -> list[str]:
        return re.findall(r"<UploadId>(.*?)</UploadId>", self.ask("GET", "?uploads").decode())

    def put(self, key: str, data: bytes) -> None:
        self.ask("PUT", f"/{quote(key)}", data)

    def get(self, key: str) -> bytes:
        return self.ask("GET", f"/{quote(key)}")

    def clear(self) -> None:
        for key in self.keys():
            self.ask("DELETE", f"/{quote(key)}")
        for one in re.findall(r"<Upload>.*?</Upload>", self.ask("GET", "?uploads").decode(), re.DOTALL):
            key, name = (re.findall(f"<{tag}>(.*?)</{tag}>", one)[0] for tag in ("Key", "UploadId"))
            self.ask("DELETE", f"/{quote(unescape(key))}?uploadId={name}")


@contextlib.contextmanager
def running() -> Iterator[Store]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        store, limit = Store(port), time.monotonic() + 60
        while True:
            try:
                store.ask("PUT", "")
                break
            except OSError:
                if time.monotonic() > limit or server.poll() is not None:
                    raise
                time.sleep(0.1)
        yield store
    finally:
        server.terminate()
        server.wait(20)


class Gate:
    """Hands requests on to the server; parts may be held, or refused from some number on."""

    def __init__(self, port: int, held: bool = False, broken_part: int | None = None) -> None:
        self.parts, self.asked = 0, []
        self.second_part, self.released = threading.Event(), threading.Event()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _hand_on(self) -> None:
                body = self._body()
                gate.asked.append(f"{self.command} {unquote(self.path)}")
                part = re.search(r"partNumber=(\d+)", self.path)
                if part:
                    gate.parts += 1
                    if gate.parts >= 2:
                        gate.second_part.set()
                    if held:
                        gate.released.wait(60)
                if part and broken_part is not None and int(part[1]) >= broken_part:
                    self.send_response(403)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                onward = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                headers = {k: v for k, v in self.headers.items() if k.lower() != "transfer-encoding"}
                onward.request(self.command, self.path, body, headers | {"Content-Length": str(len(body))})
                answer = onward.getresponse()
                data = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)
                onward.close()

            def _body(self) -> bytes:
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                return b"".join(parts)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _hand_on  # noqa: N815

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # those who are killed leave in the middle
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
