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
import uvicorn

from thinveil.curator.accounts import Accounts
from thinveil.curator.service import Settings, app_of
from thinveil.language.wire_arrow import MEDIA_TYPE


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
def listening(app: Any) -> Iterator[str]:
    """Run an application in a thread of this process; return its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
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
            return client.get(f"{self.url}/ledger", headers=self.headers).json()

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


def _name(body: Any, names: list[str]) -> None:
    """Give the ranges of a generated batch the names of attributes, so that some fit."""
    questions = body.get("questions") if isinstance(body, dict) else None
    for question in questions if isinstance(questions, list) else []:
        boxes = question.get("boxes") if isinstance(question, dict) else None
        for box in boxes if isinstance(boxes, list) else []:
            if isinstance(box, dict):
                spans = list(box.values())[: len(names)]
                box.clear()
                box.update(zip(names, spans, strict=False))


def fuzz(url: str, token: str, cases: int, seed: int | None = None) -> int:
    """Send generated requests to a service; return how many.

    Every reply must be one that the OpenAPI page describes, and none a server error. Which
    batches are well formed beyond their shape (overlaps, budgets) is for other tests.
    """
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS

    schemathesis.openapi.media_type(MEDIA_TYPE, st.binary(max_size=2000))
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    # what breaks the shape and asks for too much may be refused for either
    refused = ["401", "402", "409", "413", "415", "422"]
    schema.config.checks.negative_data_rejection.expected_statuses = refused
    facts = httpx.get(
        f"{url}/facts", headers={"Authorization": f"Bearer {token}"}, trust_env=False
    ).json()
    names = [each["name"] for each in facts["attributes"]]
    skipped = [CHECKS.get_one("positive_data_acceptance")]
    kinds = [
        (found.ok(), mode)
        for found in schema.get_all_operations()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        if mode == GenerationMode.POSITIVE or found.ok().path == "/answers"
    ]
    weights = {"/answers": 10}
    whole = sum(weights.get(operation.path, 1) for operation, _ in kinds)
    sent = 0
    for operation, mode in kinds:
        share = max(1, -(-cases * weights.get(operation.path, 1) // whole))

        @settings(
            max_examples=share,
            deadline=None,
            database=None,
            derandomize=seed is None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: Any) -> None:
            nonlocal sent
            sent += 1
            _name(case.body, names)
            case.call_and_validate(
                headers={"Authorization": f"Bearer {token}"}, excluded_checks=skipped
            )

        (run if seed is None else seeded(seed)(run))()
    return sent
