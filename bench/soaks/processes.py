"""The command line as processes that can be killed at any moment."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PATIENCE = 60.0


def thinveil(*words: str, token: str = "", **more: Any) -> subprocess.Popen[str]:
    """Start the command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "thinveil", *words],
        env={**os.environ, "THINVEIL_TOKEN": token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def finished(*words: str, token: str = "", **more: Any) -> tuple[int, str, str]:
    """Run the command line to its end; return its exit code and what it said."""
    process = thinveil(*words, token=token, **more)
    said, errors = process.communicate(timeout=10 * _PATIENCE)
    return process.returncode, said, errors


def free_port() -> int:
    """Return a port of the loopback interface that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Served:
    """A service over a table that is started, killed and started again on one ledger.

    Args:
        folder: Where the ledger, the tokens and the log are.
        table: The file that is served.
        options: More words of the command line.
        analysts: The budget of each analyst.
    """

    folder: Path
    table: Path
    options: tuple[str, ...] = ()
    analysts: dict[str, str] = field(default_factory=lambda: {"ann": "1"})
    tokens: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = self.folder / "service.log"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the service and wait until it is healthy; tokens are read the first time."""
        tokens = self.folder / "tokens"
        words = [
            "serve", str(self.table), "--port", str(self.port), "--ledger",
            str(self.folder / "ledger.db"), *self.options,
        ]  # fmt: skip
        if not self.tokens:
            words += ["--token-file", str(tokens)]
        for name, budget in self.analysts.items():
            words += ["--analyst", f"{name}={budget}"]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "thinveil", *words], stdout=log, stderr=log, text=True
            )
        due = time.monotonic() + _PATIENCE
        while not self.healthy():
            if self.process.poll() is not None or time.monotonic() > due:
                raise AssertionError(f"the service did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.02)
        if not self.tokens:
            names = ["analyst", *self.analysts]
            self.tokens = dict(zip(names, tokens.read_text().split(), strict=True))

    def healthy(self) -> bool:
        """Tell whether the service answers."""
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=5) as reply:
            return bool(reply.status == 200)
        return False

    def kill(self) -> None:
        """End the service as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """End the service kindly; return its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout=_PATIENCE)
