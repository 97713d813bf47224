"""Services to test against: in this process, and as a process of their own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx

from thinveil.commands.shared.serving import server_of
from thinveil.curator.service.accounts import Accounts
from thinveil.curator.service.app import app_of
from thinveil.curator.service.door import Settings
from thinveil.language.wire.arrow import MEDIA_TYPE


def question(**more: Any) -> dict[str, Any]:
    """Return a question about the embedded people."""
    return {"boxes": [{"age": [30, 50]}], "more_than": 5, **more}


def asking(
    key: str, questions: int | list[Any] = 1, epsilon: float | None = 0.01, **more: Any
) -> dict[str, Any]:
    """Return a batch as plain JSON: the given questions, or so many of the same one."""
    asked = [question()] * questions if isinstance(questions, int) else questions
    return {"key": key, "epsilon": epsilon, "questions": asked, **more}


class Served:
    """A service in this process, and what an analyst sees of it."""

    def __init__(
        self, accounts: Accounts, tokens: dict[str, str], client: httpx.Client, url: str
    ) -> None:
        self.accounts = accounts
        self.tokens = tokens
        self.client = client
        self.url = url

    def headers(self, name: str = "analyst") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[name]}"}

    def head(self, length: int, kind: str = "application/json", name: str = "analyst") -> bytes:
        """Return the header of a batch whose body is to follow."""
        lines = {"Host": "x", "Content-Type": kind, "Content-Length": length, **self.headers(name)}
        return (
            "POST /answers HTTP/1.1\r\n"
            + "".join(f"{field}: {value}\r\n" for field, value in lines.items())
            + "\r\n"
        ).encode()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", int(self.url.rsplit(":", 1)[1])), 30)

    def get(self, path: str, name: str = "analyst") -> Any:
        return self.client.get(path, headers=self.headers(name))

    def ask(self, body: Any, name: str = "analyst") -> Any:
        return self.client.post("/answers", json=body, headers=self.headers(name))

    def post(self, content: bytes, kind: str = MEDIA_TYPE, name: str = "analyst") -> Any:
        headers = {**self.headers(name), "Content-Type": kind}
        return self.client.post("/answers", content=bytes(content), headers=headers)


@contextmanager
def served(
    data: Any,
    claim: Any,
    folder: Path,
    budgets: dict[str, str] | None = None,
    settings: Settings | None = None,
    tokens: dict[str, str] | None = None,
    **more: Any,
) -> Iterator[Served]:
    """Serve a table in this process; give the tokens of before to go on with its ledger."""
    accounts = Accounts(data, claim, folder / "ledger", **more)
    wanted = [(name, Fraction(text)) for name, text in (budgets or {"analyst": "1"}).items()]
    tokens = {**(tokens or {}), **accounts.admit(wanted)}
    try:
        with listening(app_of(accounts, settings)) as url:
            limits = httpx.Limits(max_connections=100)
            with httpx.Client(base_url=url, trust_env=False, timeout=60, limits=limits) as client:
                yield Served(accounts, tokens, client, url)
    finally:
        accounts.close()


@contextmanager
def listening(app: Any, port: int = 0, **more: Any) -> Iterator[str]:
    """Run an application in a thread of this process; return its address."""
    listener = socket.create_server(("127.0.0.1", port))
    server = server_of(app, **more)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()
        assert not thread.is_alive()


class Process:
    """`thinveil serve` as a process of its own, in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder = folder
        self.arguments = arguments
        self.environment = environment
        self.tokens: list[str] = []
        self.url = ""
        self.printed = ""
        self.port = 0

    def __enter__(self) -> Process:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.stop()

    def start(self) -> None:
        """Start, or start again on the same port."""
        command = [sys.executable, "-m", "thinveil", "serve", *self.arguments]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
            )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if re.match(r"  thinveil audit |Tokens were shown|The tokens of", line):
                break
        self.printed = "".join(lines)
        found = re.search(r"address +(http://\S+:(\d+))", self.printed)
        assert found, self.printed + self.log
        self.url, self.port = found[1], int(found[2])
        self.tokens += re.findall(r"TOKEN=(\S+)", self.printed)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[0]}"}

    def ask(self, body: Any) -> httpx.Response:
        with httpx.Client(trust_env=False, timeout=60) as client:
            return client.post(f"{self.url}/answers", json=body, headers=self.headers)

    def ledger(self) -> dict[str, Any]:
        with httpx.Client(trust_env=False, timeout=60) as client:
            told: dict[str, Any] = client.get(f"{self.url}/ledger", headers=self.headers).json()
            return told

    def kill(self) -> None:
        """End it without any warning."""
        self.process.kill()
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it as an operator would."""
        self.process.send_signal(how)
        return self._wait()

    def _wait(self) -> int:
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code
