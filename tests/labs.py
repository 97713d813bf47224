"""A lab to test: its runs, a server in this process, and somebody at its page."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx

from services import listening
from thinveil.lab.app import app_of, cookie_name
from thinveil.lab.session import Session
from thinveil.lab.sessions import Sessions
from thinveil.lab.setting import setting_of
from thinveil.lab.tables import Tables

KEY = "the key of the tests"
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


class Labs:
    """A page in this process, and somebody who has its key."""

    def __init__(self, url: str, runs: Sessions) -> None:
        self.url = url
        self.runs = runs
        self.address = f"{url}/?key={KEY}"
        self.port = int(url.rsplit(":", 1)[1])

    def client(self, key: str = KEY, **headers: str) -> httpx.Client:
        cookies = {cookie_name(self.port): key} if key else {}
        return httpx.Client(
            base_url=self.url, cookies=cookies, headers=headers, trust_env=False, timeout=30
        )


@contextmanager
def open_lab() -> Iterator[Labs]:
    """Serve a lab in this process."""
    runs = Sessions()
    with serving(app_of(KEY, Tables(), runs)) as url:
        yield Labs(url, runs)
    runs.close_all()


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
