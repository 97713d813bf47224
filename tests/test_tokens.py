"""Who gets a token: the address that the user names, and nobody that a file names."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import thinveil
from services import served
from test_http_target import PLAIN, Address, hostile
from thinveil.auditing.http import HttpTarget
from thinveil.auditing.network.origins import Origin, origin_and_path
from thinveil.auditing.sources import elsewhere
from thinveil.auditing.transcript import Header, Transcript
from thinveil.commands.main import run
from thinveil.curator.service.door import Settings
from thinveil.errors import TargetError, UsageError

DATA = thinveil.people(40)
COLUMN = ("--attack", "column", "--column", "job")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THINVEIL_TOKEN", "geheim")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def leading_to(table: object, name: str = "theirs") -> str:
    """Write a transcript that somebody else has made up; return its name."""
    options = {**thinveil.Options().plain(), "origin": {"table": table}}
    path = Path(name)
    path.unlink(missing_ok=True)
    transcript = Transcript(Header("service:s1", options), path)
    transcript.sent(1, b"0" * 16)
    transcript.close()
    return name


SPELLINGS = [
    "http://127.0.0.1:PORT", "HTTP://127.0.0.1:PORT", "hTTp://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/a/b", "http://127.0.0.1:PORT//", "http://127.0.0.1:PORT/..",
    "http://localhost:PORT", "http://LOCALHOST:PORT", "http://localhost.:PORT",
    "http://127.0.0.1.:PORT", "http://127.1:PORT", "http://127.0.1:PORT", "http://0x7f.1:PORT",
    "http://0x7f000001:PORT", "http://2130706433:PORT", "http://017700000001:PORT",
    "http://0177.0.0.1:PORT", "http://0:PORT", "http://0.0.0.0:PORT", "http://127.0.0.2:PORT",
    "http://[::ffff:127.0.0.1]:PORT", "http://[::FFFF:7f00:1]:PORT", "http://[::1]:PORT",
    "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT", "http://[::1%25lo]:PORT", "http://[::1%lo]:PORT",
    "http://good.example@127.0.0.1:PORT", "http://good.example:80@127.0.0.1:PORT",
    "http://good.example%40127.0.0.1:PORT", "http://@127.0.0.1:PORT", "http://:@127.0.0.1:PORT",
    "http://127.0.0.1:PORT#@good.example", "http://127.0.0.1:PORT?@good.example",
    "http://127.0.0.1:PORT\\@good.example", "http://good.example\\@127.0.0.1:PORT",
    "http:\\\\127.0.0.1:PORT", "http:/\\127.0.0.1:PORT", "http:/127.0.0.1:PORT",
    "http:127.0.0.1:PORT", "http:///127.0.0.1:PORT", "//127.0.0.1:PORT",
    " http://127.0.0.1:PORT", "http://127.0.0.1:PORT ", "\thttp://127.0.0.1:PORT",
    "http://127.0.\t0.1:PORT", "http://127.0.\n0.1:PORT", "ht\ntp://127.0.0.1:PORT",
    "http://127.0.0.1:PORT\r\nHost: good.example", "http://127.0.0.1:PORT\x00.good.example",
    "http://127\uff0e0\uff0e0\uff0e1:PORT", "http://127\u30020\u30020\u30021:PORT",
    "http://127\uff610\uff610\uff611:PORT", "http://\uff11\uff12\uff17.0.0.1:PORT",
    "http://l\u2113calhost:PORT", "http://local\u00adhost:PORT", "http://\u24db\u24deca\u24dbhost:PORT",
    "http://127.0.0.1\uff1aPORT", "http:\uff0f\uff0f127.0.0.1:PORT", "http\uff1a//127.0.0.1:PORT",
    "http://127.0.0.1:0PORT", "http://127.0.0.1:+PORT", "http://127.0.0.1: PORT",
    "http://127.0.0.1:PORT:PORT", "http://127.0.0.1:\uff11", "http://%31%32%37.0.0.1:PORT",
    "http://127.0.0.1%00.good.example:PORT", "http://127.0.0.1%2f@good.example:PORT",
    "https://127.0.0.1:PORT", "HTTPS://127.0.0.1:PORT", "http+unix://127.0.0.1:PORT",
    "ws://127.0.0.1:PORT", "view-source:http://127.0.0.1:PORT", "url:http://127.0.0.1:PORT",
]  # fmt: skip
"""Addresses of this machine as a file might have them, some of which some programs understand."""


def test_no_spelling_in_a_transcript_gets_the_token(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is asked, for there is no terminal; nobody is even connected to."""
    assert len(set(SPELLINGS)) == len(SPELLINGS) > 60
    with hostile(200, PLAIN) as url:
        port = url.rpartition(":")[2]
        for spelling in SPELLINGS:
            name = leading_to(spelling.replace("PORT", port))
            assert run(["audit", "--resume", name, "--patience", "0"]) in (1, 2), spelling
            said = capsys.readouterr().err
            assert "unexpected" not in said
            assert "geheim" not in said
        assert run(["audit", "--resume", leading_to(str(url))]) == 2
        assert f"thinveil audit {url} --resume theirs" in capsys.readouterr().err
    assert not url.seen


@pytest.mark.parametrize(
    "table", ["postgresql://127.0.0.1:1/x", "POSTGRES://127.0.0.1:1/x", "spark://127.0.0.1:1"]
)
def test_passwords_of_the_environment_stay_too(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert run(["audit", "--resume", leading_to(table)]) == 2
    assert f"leads to {table}, which would get your token or password" in capsys.readouterr().err


@pytest.mark.parametrize("table", [5, ["http://127.0.0.1:1"], {"a": 1}, True])
def test_a_table_that_is_no_text_is_refused(
    table: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "--resume", leading_to(table)]) == 1
    assert "does not say which table" in capsys.readouterr().err


def test_tables_at_hand_need_no_naming() -> None:
    for table in (None, "people.csv", "data/*.parquet", "duckdb://x.db", "sqlite://x.db"):
        assert elsewhere(table) == ""


def test_the_named_address_gets_the_token_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    with hostile(200, PLAIN) as mine, hostile(200, PLAIN) as theirs:
        run(["audit", str(mine), "--resume", leading_to(str(theirs)), "--patience", "0"])
        assert mine.seen
        assert not theirs.seen


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> Iterator[None]:
    """Make this process believe that somebody types a line at a terminal."""

    class Typed:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return typed

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", Typed())
        patch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        yield


@pytest.mark.parametrize(
    ("typed", "agreed"),
    [("y\n", True), (" YES \n", True), ("\n", False), ("", False), ("n\n", False), ("ja\n", False)],
)
def test_at_a_terminal_it_is_asked(
    typed: str,
    agreed: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with hostile(200, PLAIN) as url:
        name = leading_to(str(url), "the\x1b[31mirs")
        with terminal(monkeypatch, typed):
            run(["audit", "--resume", name, "--patience", "0"])
        assert bool(url.seen) == agreed
    said = capsys.readouterr().err
    assert f"leads to {url}. Send your token or password there? [y/N]" in said
    assert "\x1b[31mirs" not in said


def test_an_address_that_fills_the_screen_is_not_asked_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with hostile(200, PLAIN) as url:
        name = leading_to(f"{url}/{'-' * 5000}/http://agency.example")
        with terminal(monkeypatch, "y\n"):
            assert run(["audit", "--resume", name]) == 2
    assert not url.seen
    assert "[y/N]" not in capsys.readouterr().err


def test_at_a_real_terminal_no_is_the_answer() -> None:
    with hostile(200, PLAIN) as url:
        ours, theirs = pty.openpty()
        name = leading_to(str(url))
        words = [sys.executable, "-m", "thinveil", "audit", "--resume", name]
        with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            os.write(ours, b"\n")
            said = b""
            while True:
                try:
                    piece = os.read(ours, 4096)
                except OSError:  # Linux says so when the other end is closed
                    break
                if not piece:
                    break
                said += piece
            assert process.wait(60) == 2
        os.close(ours)
    assert b"[y/N]" in said
    assert not url.seen


def test_what_is_printed_to_go_on_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of one's own is resumed as comfortably as ever: the line to copy names the service."""
    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "1"}, Settings(rate=1e9)) as found:
        monkeypatch.setenv("THINVEIL_TOKEN", found.tokens["analyst"])
        answer, asked = HttpTarget.answer, []

        def failing(self: HttpTarget, batch: Any) -> Any:
            asked.append(batch)
            if len(asked) == 5:
                raise TargetError("the service is gone")
            return answer(self, batch)

        monkeypatch.setattr(HttpTarget, "answer", failing)
        assert run(["audit", found.url, *COLUMN]) == 1
        printed = re.search(r"To go on:  thinveil (audit .*)", capsys.readouterr().err)
        assert printed
        words = shlex.split(printed[1])
        assert words[1] == found.url
        assert run(words) == 0
        assert "Nothing is lost" not in capsys.readouterr().err


def test_so_does_what_is_said_of_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(meter: Any, about: Any) -> None:
        raise RuntimeError("a bug")

    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "1"}, Settings(rate=1e9)) as found:
        monkeypatch.setenv("THINVEIL_TOKEN", found.tokens["analyst"])
        with pytest.raises(RuntimeError) as error:
            thinveil.audit(found.url, attack="column", columns=["job"], observer=failing)
    assert f"thinveil audit {found.url} --resume " in error.value.__notes__[0]


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("http://agency.example", "http://agency.example"),
        ("HTTP://Agency.EXAMPLE:80/", "http://agency.example"),
        ("https://agency.example:443", "https://agency.example"),
        ("https://agency.example:80", "https://agency.example:80"),
        ("http://agency.example:", "http://agency.example"),
        ("http://agency.example:0080", "http://agency.example"),
        ("http://xn--bcher-kva.example", "http://xn--bcher-kva.example"),
        ("http://[0:0:0:0:0:0:0:1]:8321", "http://[::1]:8321"),
        ("http://[2001:DB8::1]", "http://[2001:db8::1]"),
        (" http://127.0.0.1:8321 ", "http://127.0.0.1:8321"),
    ],
)
def test_an_origin_has_one_spelling(address: str, origin: str) -> None:
    assert str(origin_and_path(address)[0]) == origin


@pytest.mark.parametrize(
    "address",
    [
        "http://", "http://a@b", "http://a:b@c", "http://a#@b", "http://a?@b", "http://a\\@b",
        "http://a\tb", "http://a b", "http://a\nb", "http://b\xfccher.example", "http://a\uff0eb",
        "http://a..b", "http://.a", "http://a:0", "http://a:65536", "http://a:x", "http://a:-1",
        "http://[::1", "http://[]", "http://[1.2.3.4]", "http://[::g]", "http://a%2eb", "http://a/\xfc",
        "http://a/b?c", "http://a/b#c", "http://a/b\\c", "http://" + "a" * 64, "ftp://a", "a", "",
    ],
)  # fmt: skip
def test_what_programs_read_in_different_ways_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="the address of a service"):
        origin_and_path(address)


def test_the_origin_is_what_is_connected_to() -> None:
    with hostile(200, PLAIN) as url:
        port = int(url.rpartition(":")[2])
        HttpTarget(f"HTTP://LocalHost:{port}/", "t").close()
        assert origin_and_path(str(Address(url)))[0] == Origin("http", "127.0.0.1", port)
        assert len(url.seen) == 1
