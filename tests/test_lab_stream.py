"""The key and the stream of the live page, in a real browser."""

from __future__ import annotations

import http.server
import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from browser import page_of, until, watch
from labs import KEY, Labs, address_of, ended, go, number, relayed, serving
from thinveil.lab import app as lab_app
from thinveil.lab import recording
from thinveil.lab.app import app_of
from thinveil.lab.sessions import Sessions
from thinveil.lab.signpost import Signpost
from thinveil.lab.tables import Tables

pytestmark = pytest.mark.browser


def enter(page: Any, url: str) -> None:
    page.goto(address_of(url))
    page.wait_for_selector("body[data-state=idle] tbody tr")


def is_shut(page: Any) -> bool:
    page.wait_for_selector("#shut:not([hidden])")
    said = page.inner_text("main")
    return "address that thinveil lab printed" in said and not page.is_visible("#go")


def saved(page: Any) -> list[Any]:
    """Return the events that the page has heard."""
    with page.expect_download() as download:
        page.click("#save")
    events: list[Any] = json.loads(Path(download.value.path()).read_text())
    return events


def test_a_tab_keeps_the_key_and_shows_it_nowhere(browser: Any, lab: Labs) -> None:
    with relayed(lab) as relay, page_of(browser) as page:
        enter(page, relay.url)
        assert page.url == f"{relay.url}/"
        go(page, table="incomes")
        assert "recovered all 6 records" in ended(page)
        page.reload()
        page.wait_for_selector("body[data-state=idle] tbody tr")
        go(page, table="incomes")
        assert "recovered all 6 records" in ended(page)
        assert saved(page) == [json.loads(each) for each in recording.record(table="incomes")]
        assert page.url == f"{relay.url}/"
        assert page.context.cookies() == []
        assert page.watched.complaints == []
        page.go_back()  # to the empty page, not to an address with the key
        assert page.url == "about:blank"
        other = page.context.new_page()
        watched = watch(other)
        other.goto(relay.url)
        assert is_shut(other)
        assert not [each for each in watched.requests if "/api/" in each]
        assert watched.complaints == []
        heads = b"".join(relay.requests).decode("latin-1")
        said = [line for line in heads.split("\r\n") if KEY in line]
        assert set(said) == {f"Authorization: Bearer {KEY}"}
        streams = re.findall(r"GET \S+/events HTTP.*?\r\n\r\n", heads, re.DOTALL)
        assert len(streams) >= 2
        assert all(f"Bearer {KEY}" in each and "Last-Event-ID: -1" in each for each in streams)


def test_an_address_pasted_into_a_shut_tab_opens_it(browser: Any, lab: Labs) -> None:
    with page_of(browser) as page:
        page.goto(f"{lab.url}/#key=wrong")
        assert is_shut(page)
        page.reload()
        assert is_shut(page)
        page.goto(lab.address)  # the same page: a browser does not load it again for that
        page.wait_for_selector("body[data-state=idle] tbody tr")
        assert page.is_hidden("#shut")
        assert page.url == f"{lab.url}/"


def test_a_tab_of_an_earlier_lab_is_told(browser: Any) -> None:
    runs, leaving = Sessions(), threading.Event()
    with page_of(browser) as page:
        with serving(app_of(KEY, Tables(), runs, leaving.is_set)) as url:
            enter(page, url)
            page.click("#step")
            until(page, lambda: number(page, "rounds") == 1)
            leaving.set()
        page.wait_for_selector("#lost:not([hidden])")
        with serving(app_of("another-key", Tables()), int(url.rsplit(":", 1)[1])):
            until(page, lambda: "started again" in page.inner_text("#lost-text"))
            assert page.is_hidden("#reconnect")
            assert number(page, "rounds") == 1  # what was there is kept
            page.reload()
            assert is_shut(page)
            assert page.evaluate("sessionStorage.length") == 0
    runs.close_all()


def test_the_leading_page_opens_the_lab_and_is_gone(browser: Any) -> None:
    posts: list[Signpost] = []
    app = app_of(KEY, Tables(), entered=lambda: posts[0].take_down())
    with serving(app) as url, page_of(browser) as page:
        posts.append(Signpost(address_of(url)))
        uri = posts[0].put_up()
        try:
            page.goto(uri)
            page.wait_for_selector("body[data-state=idle] tbody tr")
            assert page.url == f"{url}/"
            assert not Path(uri.removeprefix("file://")).parent.exists()
            assert page.watched.complaints == []
        finally:
            posts[0].take_down()


# events


LINES = (
    ": here",
    "",
    "id: 0",
    'data: {"name":"Zoë"}',
    "",
    "id:1",
    "data: 🦊 €",
    "data:",
    "data:  two spaces: one is dropped",
    "",
    ": still here",
    "",
    "event: other",
    "retry: 5",
    "nonsense",
    "",
    "data",
    "",
    "id: 2",
    "data: last",
    "",
    "id: 3",
    "data: never ended",
)
HEARD = [
    ["0", '{"name":"Zoë"}'],
    ["1", "🦊 €\n\n two spaces: one is dropped"],
    ["1", ""],
    ["2", "last"],
]
READ = """async ([bytes, cuts]) => {
  const { Stream } = await import("/static/stream.js");
  const heard = [];
  for (const places of cuts) {
    const stream = new Stream(), events = [];
    const ends = [...places, bytes.length];
    stream.reply = { body: new ReadableStream({ start(to) {
      let from = 0;
      for (const end of ends) { to.enqueue(Uint8Array.from(bytes.slice(from, end))); from = end; }
      to.close();
    } }) };
    const whole = await stream.read(({ id, data }) => events.push([id, data]));
    heard.push(JSON.stringify([whole, events]));
  }
  return [heard.length, [...new Set(heard)].map((each) => JSON.parse(each))];
}"""


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_events_are_whole_wherever_the_stream_is_cut(browser: Any, lab: Labs, ending: str) -> None:
    """Every cut in two, and one byte at a time: amid letters, and between CR and LF, too."""
    content = ending.join(LINES).encode()
    places = range(len(content))
    cuts = [[], *([place] for place in places), list(places)]
    with page_of(browser) as page:
        enter(page, lab.url)
        times, heard = page.evaluate(READ, [list(content), cuts])
    assert times == len(content) + 2
    assert heard == [[True, HEARD]]


SILENT = """async () => {
  const { Stream } = await import("/static/stream.js");
  const stream = new Stream(), real = setTimeout;
  let late;
  globalThis.setTimeout = (act, wait) => { late = { act, wait }; };
  stream.reply = { body: new ReadableStream({ start(to) {
    stream.leaving.signal.addEventListener("abort", () => to.error(new Error("aborted")));
  } }) };
  const reading = stream.read(() => {});
  globalThis.setTimeout = real;
  late.act();
  return [await reading, late.wait];
}"""


def test_a_silent_stream_counts_as_broken(browser: Any, lab: Labs) -> None:
    with page_of(browser) as page:
        enter(page, lab.url)
        whole, wait = page.evaluate(SILENT)
    assert not whole
    assert wait > 2_000 * lab_app._BEAT  # two signs of life may be late


@pytest.mark.parametrize("seed", [0, 1])
def test_a_stream_that_is_cut_loses_and_doubles_nothing(browser: Any, lab: Labs, seed: int) -> None:
    dice = random.Random(seed)
    cuts = [2_000, *(dice.randrange(5_000, 12_000) for _ in range(9))]  # the first event is larger
    with relayed(lab, cuts) as relay, page_of(browser) as page:
        enter(page, relay.url)
        go(page, k="3")
        assert "recovered all 30 records exactly" in ended(page)
        heard = saved(page)
        assert relay.cut >= 3
        assert heard == [json.loads(each) for each in recording.record(k=3)]
        asked = re.findall(rb"Last-Event-ID: (-?\d+)", b"".join(relay.requests))
        assert len(asked) == relay.cut + 1
        last = [int(each) for each in asked]
        assert last == sorted(last)
        assert page.is_hidden("#lost")


def test_leaving_ends_the_stream(browser: Any, lab: Labs) -> None:
    with page_of(browser) as page:
        enter(page, lab.url)
        page.click("#step")
        until(page, lambda: lab.runs.watchers == 1)
        page.goto("about:blank")
        until(page, lambda: lab.runs.watchers == 0)
        until(page, lambda: len(lab.runs) == 0 or not lab.runs.to_plain()["running"])


# other places


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    heads: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.heads.append(str(self.headers))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def elsewhere() -> Iterator[str]:
    """Serve a page at another port of this machine, as anybody on it may."""
    _Elsewhere.heads = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


TRIED = """async ([url, key]) => {
  const ways = [
    ["api/choices", { headers: { Authorization: `Bearer ${key}` } }],
    ["api/choices", { credentials: "include" }],
    ["api/choices", { mode: "no-cors", credentials: "include" }],
    ["api/runs", { method: "POST", mode: "no-cors", body: '{"table":"incomes"}' }],
    ["", {}],
  ];
  const told = [];
  for (const [path, options] of ways) {
    told.push(await fetch(`${url}/${path}`, options).then((reply) => reply.type, () => "failed"));
  }
  return [told, Object.keys(sessionStorage)];
}"""


def test_another_port_of_the_machine_gets_nothing_of_the_key(browser: Any, lab: Labs) -> None:
    with page_of(browser) as page, elsewhere() as url:
        enter(page, lab.url)
        before = len(lab.runs)
        other = page.context.new_page()
        other.goto(url)
        told, kept = other.evaluate(TRIED, [lab.url, KEY])  # even if it knew the key
        assert told == ["failed"] * 5
        assert kept == []
        assert len(lab.runs) == before
        page.goto(url)  # in the same tab, too
        assert page.evaluate("[document.referrer, ...Object.keys(sessionStorage)]") == [""]
        assert _Elsewhere.heads
        for head in _Elsewhere.heads:
            assert KEY not in head
            assert "cookie" not in head.lower()
