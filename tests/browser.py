"""A real browser for tests: Debian's Chromium, driven by Playwright, with a record of its doings.

Use it as `with chromium() as browser, page_of(browser) as page:`. Where Chromium or Playwright
is missing, a test skips and says so; with CI=true it fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from servers import absent

ARGUMENTS = (
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-quic",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 20_000  # milliseconds until something must be seen
_LOOK = 25  # milliseconds between two looks
_USUAL = Path("/usr/bin/chromium")


def program() -> str | None:
    """Return where Chromium is, if it is anywhere."""
    return shutil.which("chromium") or (str(_USUAL) if _USUAL.exists() else None)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a headless Chromium; a Playwright `Browser`. Ends with the block."""
    at = program()
    if at is None:
        absent("Chromium is not installed (Debian: chromium)")
    if find_spec("playwright") is None:
        absent("Playwright is not installed (pip install playwright)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=at, args=list(ARGUMENTS), env={**os.environ, "NO_AT_BRIDGE": "1"}
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """What a page did: its requests by address, and everything it complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> set[str]:
        """The hosts that were asked for anything; data and blob addresses stay at home."""
        split = [urlsplit(each) for each in self.requests]
        return {each.hostname or "" for each in split if each.scheme not in ("data", "blob")}


@contextmanager
def page_of(
    browser: Any,
    *,
    width: int = 1280,
    height: int = 800,
    dark: bool = False,
    calm: bool = True,
    **more: Any,
) -> Iterator[Any]:
    """Open an empty page in a context of its own; `page.watched` keeps what it does.

    Args:
        browser: From `chromium()`.
        width: Of the window.
        height: Of the window.
        dark: Whether dark colours are preferred.
        calm: Whether reduced motion is preferred.
        **more: Further arguments of Playwright's `new_context`.
    """
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce" if calm else "no-preference",
        **more,
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.watched = watch(page)
    try:
        yield page
    finally:
        context.close()


def until(page: Any, check: Callable[[], bool], what: str = "") -> None:
    """Wait until something is so. A page's own policy may forbid Playwright's waiting in it."""
    for _ in range(PATIENCE // _LOOK):
        if check():
            return
        page.wait_for_timeout(_LOOK)
    raise AssertionError(f"it never came true {what}")


def watch(page: Any) -> Watched:
    """Keep what a page requests and complains about from now on."""
    watched = Watched()
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("pageerror", lambda error: watched.complaints.append(f"error: {error}"))
    page.on("console", lambda message: _note(watched, message))
    return watched


def _note(watched: Watched, message: Any) -> None:
    if message.type in ("error", "warning"):
        watched.complaints.append(f"{message.type}: {message.text}")
