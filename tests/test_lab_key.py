"""The key of the live page: who has it, who never sees it, and what is shut without it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from labs import KEY, Labs
from thinveil.commands import lab as lab_command
from thinveil.commands.main import run
from thinveil.lab import signpost as lab_signpost
from thinveil.lab.app import app_of, static_files
from thinveil.lab.signpost import Signpost
from thinveil.lab.tables import Tables

BROWSER = """
import json, os, pathlib, sys, time
record = pathlib.Path(sys.argv[1])
part = record.with_suffix(".part")
part.write_text(json.dumps(sys.argv))
os.replace(part, record)
for _ in range(600):
    if not record.exists():
        break
    time.sleep(0.1)
"""
"""Notes what it is called with, and stays until the note is removed, for a minute at most."""


def _api() -> list[tuple[str, str]]:
    """Return every way in but those to the page itself, as method and path."""
    routes = [each for each in app_of(KEY, Tables()).routes if each.path.startswith("/api/")]
    return [(method, each.path) for each in routes for method in sorted(each.methods)]


@pytest.mark.parametrize(
    ("where", "sent"),
    [
        ("", {}),
        ("", {"Authorization": "Bearer wrong"}),
        ("", {"Authorization": f"Bearer {KEY}x"}),
        ("", {"Authorization": f"Bearer {KEY[:-1]}"}),
        ("", {"Authorization": "Bearer"}),
        ("", {"Authorization": KEY}),
        ("", {"Authorization": f"Basic {KEY}"}),
        ("", {b"Authorization": f"Bearer {KEY}é".encode()}),
        ("", {"Cookie": f"thinveil-lab-{{port}}={KEY}; thinveil-lab={KEY}; key={KEY}"}),
        (f"?key={KEY}", {}),
        (f"?Authorization=Bearer+{KEY}", {}),
        (f"/{KEY}", {}),
    ],
)
def test_nobody_comes_in_without_the_key(lab: Labs, where: str, sent: dict[Any, Any]) -> None:
    ways = _api()
    assert {("GET", "/api/choices"), ("POST", "/api/runs")} < set(ways)
    if "Cookie" in sent:
        sent = {"Cookie": sent["Cookie"].format(port=lab.port)}
    before = len(lab.runs)
    with lab.client(key="") as client:
        for method, path in [*ways, ("GET", "/nowhere"), ("GET", "//")]:
            path = path.replace("{name}", "people-30")
            url = f"{lab.url}{path}{where}"
            refused = client.request(method, url, headers=sent, content=b'{"table": "people-30"}')
            assert refused.status_code == 401, (method, path)
            assert refused.headers["WWW-Authenticate"] == "Bearer"
            assert "address that thinveil lab printed" in refused.json()["error"]
    assert len(lab.runs) == before


def test_the_page_itself_is_the_same_for_everybody_and_nothing_sets_a_cookie(lab: Labs) -> None:
    page = ["/", f"/?key={KEY}", *(f"/static/{name}" for name in static_files())]
    with lab.client(key="") as stranger, lab.client() as friend:
        for path in [*page, "/api/choices", "/api/tables/people-30", "/api/runs", "/nowhere"]:
            replies = [client.get(path) for client in (stranger, friend)]
            for reply in replies:
                assert "set-cookie" not in reply.headers, path
                assert KEY not in reply.text + str(reply.headers), path
            if path in page:
                assert [each.status_code for each in replies] == [200, 200], path
                assert replies[0].content == replies[1].content, path


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_of_another_place_may_not_even_ask(lab: Labs, origin: str) -> None:
    """A header of one's own makes a browser ask first whether it may be sent (CORS preflight)."""
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization",
    }
    with lab.client() as client:
        for path in ("/", "/api/choices", "/api/runs"):
            reply = client.options(path, headers=asked)
            assert reply.status_code == 403
            assert not [each for each in reply.headers if each.startswith("access-control")]


# the page that leads to the lab


class _Leading(HTMLParser):
    """Reads where a page leads, by itself and by its link."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if given.get("http-equiv") == "refresh":
            found = re.fullmatch(r"0; url=(.*)", given["content"] or "")
            assert found is not None
            self.leads.append(found[1])
        if tag == "a":
            self.leads.append(given["href"] or "")


def _path(uri: str) -> Path:
    assert uri.startswith("file:///")
    return Path(unquote(urlsplit(uri).path))


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_the_leading_page_is_private_and_removed() -> None:
    address = 'http://127.0.0.1:8322/#key=a&"b<c'
    post = Signpost(address)
    post.take_down()  # there is nothing yet
    before = os.umask(0)
    try:
        path = _path(post.put_up())
        other = Signpost(address)
        assert path.name != _path(other.put_up()).name
        other.take_down()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    page = _Leading(path.read_text("utf-8"))
    assert page.leads == [address] * 2
    assert "script" not in page.tags
    for _ in range(2):
        post.take_down()
        assert not path.parent.exists()


def test_without_a_private_file_no_browser_is_opened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(**named: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lab_signpost, "TemporaryDirectory", full)
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("it was opened"))
    lab_command._open_browser(Signpost(f"http://127.0.0.1/#key={KEY}"))
    said = capsys.readouterr()
    assert said.out == ""
    assert "No space left on device" in said.err
    assert "open the address yourself" in said.err
    assert KEY not in said.err


@pytest.mark.parametrize(
    ("screen", "arguments", "opened"),
    [(":0", [], True), (":0", ["--no-browser"], False), ("", [], False)],
)
def test_a_browser_is_opened_where_there_is_a_screen(
    monkeypatch: pytest.MonkeyPatch, screen: str, arguments: list[str], opened: bool
) -> None:
    wanted: list[bool] = []
    monkeypatch.setattr(lab_command, "_serve", lambda *given: wanted.append(given[-1]))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", screen)
    assert run(["lab", "--port", "0", *arguments]) == 0
    assert wanted == [opened]


class _Opened:
    """`thinveil lab` as a process of its own, and the browser that it opened."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        assert process.stdout is not None
        self.process = process
        process.stdout.readline()
        self.address = process.stdout.readline().strip()
        self.key = self.address.rpartition("key=")[2]
        assert len(self.key) == 32
        note = folder / "note.json"
        for _ in range(600):
            if note.exists():
                break
            time.sleep(0.1)
        self.called: list[str] = json.loads(note.read_text())[2:]

    def get(self, path: str, key: str = "") -> int:
        url = self.address.partition("?")[0].partition("#")[0].rstrip("/") + path
        told = {"Authorization": f"Bearer {key}"} if key else {}
        with httpx.Client(trust_env=False, timeout=30, headers=told) as client:
            return client.get(url).status_code


@contextmanager
def _command(folder: Path) -> Iterator[_Opened]:
    script, note, private = folder / "browser.py", folder / "note.json", folder / "tmp"
    script.write_text(BROWSER)
    private.mkdir()
    browser = shlex.join([sys.executable, str(script), str(note)])
    with open(folder / "complaints", "w") as complaints:
        process = subprocess.Popen(
            [sys.executable, "-m", "thinveil", "lab", "--port", "0"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env={
                **os.environ,
                "BROWSER": f"{browser} %s",
                "DISPLAY": ":0",
                "TMPDIR": str(private),
                "PYTHONUNBUFFERED": "1",
            },
        )
        try:
            yield _Opened(process, folder)
        finally:
            process.kill()
            note.unlink(missing_ok=True)  # the browser ends by that
            process.communicate()
    assert (folder / "complaints").read_text() == ""


def _arguments() -> bytes:
    """Return the arguments of all processes, as everybody may read them."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_bytes())
        except OSError:  # it has ended, or is hidden
            continue
    return b"\0".join(found)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="arguments in /proc")
def test_no_argument_holds_the_key_and_the_page_is_gone_once_it_was_used(tmp_path: Path) -> None:
    with _command(tmp_path) as opened:
        seen = _arguments()
        assert opened.key.encode() not in seen
        [uri] = opened.called
        assert uri.encode() in seen
        path = _path(uri)
        assert path.is_relative_to(tmp_path / "tmp")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert _Leading(path.read_text("utf-8")).leads == [opened.address] * 2
        assert urlsplit(opened.address).fragment == f"key={opened.key}"
        assert urlsplit(opened.address).query == ""
        assert opened.get("/") == 200
        assert opened.get("/api/choices", "wrong") == 401
        assert path.exists()  # nobody was in yet
        assert opened.get("/api/choices", opened.key) == 200
        assert list((tmp_path / "tmp").iterdir()) == []
        opened.process.send_signal(signal.SIGINT)
        assert opened.process.wait(30) == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_page_is_gone_when_the_lab_is_ended_before_it_was_used(tmp_path: Path) -> None:
    with _command(tmp_path) as opened:
        [uri] = opened.called
        assert _path(uri).exists()
        opened.process.send_signal(signal.SIGTERM)
        assert opened.process.wait(30) == 0
        assert list((tmp_path / "tmp").iterdir()) == []
