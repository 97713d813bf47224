"""A lab to test: its runs, a server in this process, and somebody at its page."""

from __future__ import annotations

import json
import select
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import httpx

from services import listening
from thinveil.lab.app import app_of
from thinveil.lab.session import Session
from thinveil.lab.sessions import Sessions
from thinveil.lab.setting import setting_of
from thinveil.lab.tables import Tables

KEY = "the-key_of-the-tests"
PEOPLE_CSV = b"name,age\nRumpelstiltskin,41\nSnowwhite,17\nRapunzel,23\nRumpelstiltskin,64\n"


def finished(**asked: Any) -> list[dict[str, Any]]:
    """Run an attack to its end and return its events."""
    session = Session(setting_of({"table": "people-30", "speed": 0, **asked}, Tables()))
    session.start()
    session.join(60)
    assert session.done
    return [json.loads(each) for each in session.since(0)]


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in events if each["kind"] == kind]


def serving(app: Any, port: int = 0) -> AbstractContextManager[str]:
    """Run the page in a thread of this process; yield its address."""
    return listening(app, port, timeout_graceful_shutdown=1)


def address_of(url: str, key: str = KEY) -> str:
    """Return the address that the command would print."""
    return f"{url}/#key={key}"


class Labs:
    """A page in this process, and somebody who has its key."""

    def __init__(self, url: str, runs: Sessions) -> None:
        self.url = url
        self.runs = runs
        self.address = address_of(url)
        self.port = int(url.rsplit(":", 1)[1])

    def client(self, key: str = KEY, **headers: str) -> httpx.Client:
        told = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(
            base_url=self.url, headers={**told, **headers}, trust_env=False, timeout=30
        )


@contextmanager
def open_lab() -> Iterator[Labs]:
    """Serve a lab in this process."""
    runs = Sessions()
    with serving(app_of(KEY, Tables(), runs)) as url:
        yield Labs(url, runs)
    runs.close_all()


class Relay(socketserver.ThreadingTCPServer):
    """Stands before a lab, keeps all requests, and cuts streams of events after so many bytes."""

    daemon_threads = True

    def __init__(self, lab: Labs, cuts: Iterable[int]) -> None:
        super().__init__(("127.0.0.1", 0), _Relayed)
        self.port = lab.port
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests: list[bytes] = []
        self.cuts = iter(cuts)
        self.cut = 0


class _Relayed(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.port)) as lab, suppress(OSError):
            left = None
            while True:
                for each in select.select([self.request, lab], [], [])[0]:
                    piece = each.recv(65_536)
                    if not piece:
                        # it hung up after a rest just when it was asked: browsers ask once more
                        self.server.cut += each is lab and left is not None
                        return
                    if each is self.request:
                        self.server.requests.append(piece)
                        if b"/events HTTP" in piece:
                            left = next(self.server.cuts, None)
                        lab.sendall(piece)
                        continue
                    self.request.sendall(piece[:left])
                    if left is not None:
                        left -= min(left, len(piece))
                    if left == 0:
                        self._cut()
                        return

    def _cut(self) -> None:
        """End the connection, every third time so that what is under way is lost, too."""
        self.server.cut += 1
        if self.server.cut % 3:
            time.sleep(0.1)
        else:
            at_once = struct.pack("ii", 1, 0)
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self.request.close()


@contextmanager
def relayed(lab: Labs, cuts: Iterable[int] = ()) -> Iterator[Relay]:
    """Stand between a browser and a lab."""
    with Relay(lab, cuts) as relay:
        threading.Thread(target=relay.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield relay
        finally:
            relay.shutdown()


def until_watched(lab: Labs, number: int) -> None:
    """Wait until so many streams are open."""
    for _ in range(200):
        if lab.runs.watchers == number:
            return
        time.sleep(0.05)
    raise AssertionError(f"{lab.runs.watchers} streams are open")


def go(page: Any, speed: str = "0", **chosen: str) -> None:
    """Choose and press Go."""
    page.select_option("#speed", speed)
    for name, value in chosen.items():
        if name in ("k", "epsilon", "seed"):
            page.fill(f"#{name}", value)
        else:
            page.select_option(f"#{name}", value)
    page.click("#go")


def ended(page: Any) -> str:
    page.wait_for_selector("body[data-state=ended]")
    return str(page.inner_text("#verdict"))


def number(page: Any, name: str) -> int:
    return int(page.inner_text(f"#n-{name}").split(" ")[0].replace(",", ""))
