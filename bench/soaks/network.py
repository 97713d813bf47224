"""A bad network between an audit and a service: cut, slow, lost and garbled replies."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import numpy as np

FAULTS = (
    "unheard", "lost", "cut", "slow", "500", "502", "503", "429", "garbled", "short", "empty",
)  # fmt: skip
"""What goes wrong: before the service hears of a request, or after it has answered."""


class BadNetwork:
    """Stands between a client and a service, and spoils some of what passes.

    Args:
        upstream: The address of the service.
        seed: Decides what goes wrong.
        share: How many of the requests for answers are spoiled.
        faults: What may go wrong.
    """

    def __init__(
        self, upstream: str, seed: int, share: float, faults: tuple[str, ...] = FAULTS
    ) -> None:
        self.upstream = urlsplit(upstream)
        self.rng = np.random.default_rng(seed)
        self.share = share
        self.faults = faults
        self.counted: Counter[str] = Counter()
        self.lock = threading.Lock()
        network = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                network.pass_on(self)

            def do_POST(self) -> None:
                network.pass_on(self)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> BadNetwork:
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def pass_on(self, handler: BaseHTTPRequestHandler) -> None:
        """Carry one request to the service and its reply back, unless something goes wrong."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        with self.lock:
            spoiled = handler.command == "POST" and self.rng.random() < self.share
            fault = str(self.rng.choice(self.faults)) if spoiled else "none"
            at = float(self.rng.random())
            self.counted[fault] += 1
        if fault == "unheard":
            handler.close_connection = True
            return
        if fault.isdigit():
            self._reply(handler, int(fault), b"sorry", {"Retry-After": "0"})
            return
        status, headers, content = self._asked(handler, body)
        if fault == "lost":
            handler.close_connection = True
            return
        if fault == "slow":
            time.sleep(0.3)
        elif fault == "garbled":
            content = bytes(255 - byte for byte in content)
        elif fault == "short":
            content = content[: int(len(content) * at)]
        elif fault == "empty":
            content = b""
        self._reply(handler, status, content, headers, at if fault == "cut" else 1.0)

    def _asked(
        self, handler: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        assert self.upstream.hostname is not None
        line = http.client.HTTPConnection(self.upstream.hostname, self.upstream.port, timeout=60)
        kept = {
            name: value
            for name, value in handler.headers.items()
            if name.lower() in ("authorization", "content-type", "accept")
        }
        try:
            line.request(handler.command, handler.path, body or None, kept)
            reply = line.getresponse()
            content = reply.read()
            some = ("content-type", "retry-after")
            headers = {name: value for name, value in reply.headers.items() if name in some}
            return reply.status, headers, content
        finally:
            line.close()

    def _reply(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        content: bytes,
        headers: dict[str, str],
        share: float = 1.0,
    ) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        sent = int(len(content) * share)
        handler.wfile.write(content[:sent])
        if sent < len(content):
            handler.close_connection = True
