"""The live page: its runs, its doors, and the page itself in a real browser."""

from __future__ import annotations

import functools
import http.server
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

from browser import chromium, page_of, until
from thinveil import people
from thinveil.attacker.found import ColumnFound, ColumnsFound, TableFound
from thinveil.curator.dataset import Dataset
from thinveil.errors import MissingExtra, UsageError
from thinveil.lab import app as lab_app
from thinveil.lab import pace as lab_pace
from thinveil.lab import recording
from thinveil.lab.app import HEADERS, app_of, cookie_name, static_files
from thinveil.lab.pace import Pace
from thinveil.lab.reveal import RIGHT, UNKNOWN, WRONG, Onlooker, change
from thinveil.lab.session import Session
from thinveil.lab.sessions import Gone, Sessions
from thinveil.lab.setting import ATTACK_LINES, MECHANISM_LINES, STRATEGY_LINES, choices, setting_of
from thinveil.lab.tables import LARGEST_FILE, MOST_PEOPLE, Tables, from_file
from thinveil.lab.wording import range_in_words
from thinveil.language.claims import MECHANISMS
from thinveil.language.schema import INFINITE, LOWEST, MISSING, Categories, Grid, Schema

KEY = "the key of the tests"
DOCS = Path(__file__).resolve().parents[1] / "docs" / "lab"
PEOPLE_CSV = b"name,age\nRumpelstiltskin,41\nSnowwhite,17\nRapunzel,23\nRumpelstiltskin,64\n"


# runs


def finished(**asked: Any) -> list[dict[str, Any]]:
    """Run an attack to its end and return its events."""
    session = Session(setting_of({"table": "people-30", "speed": 0, **asked}, Tables()))
    session.start()
    session.join(60)
    assert session.done
    return [json.loads(each) for each in session.since(0)]


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in events if each["kind"] == kind]


@pytest.mark.parametrize("mechanism", ["idp", "idp-binary", "idp-noisy", "bdp", "unprotected"])
def test_a_run_tells_everything_it_asked_and_found(mechanism: str) -> None:
    events = finished(mechanism=mechanism, table="people-12")
    start, end = events[0], events[-1]
    rounds, asked = of_kind(events, "round"), of_kind(events, "asked")
    assert (start["kind"], end["kind"], end["ending"]) == ("start", "end", "complete")
    assert sum(len(each["questions"]) for each in asked) == end["questions"]
    assert sum(each["answers"] for each in asked) == end["answers"] == rounds[-1]["answers"]
    assert [each["number"] for each in rounds] == list(range(1, end["rounds"] + 1))
    assert end["people"] == 12
    assert end["values"] == 12 * 8
    known: set[int] = set()
    for each in [*rounds, end]:
        cells = each.get("cells", {})
        known |= set(cells.get("right", []))
        known -= set(cells.get("gone", [])) | {cell for cell, _ in cells.get("wrong", [])}
    assert known == set(range(12 * 8))
    if mechanism == "unprotected":
        assert end["claimed"] is None
    else:
        assert end["claimed"] == pytest.approx(1e-10 * end["answers"])


def test_how_a_round_is_cut_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_pace, "TICK", 0.0002)
    whole, cut = (finished(speed=speed, table="people-12") for speed in (0, 20_000))
    assert len(of_kind(cut, "asked")) > len(of_kind(whole, "asked"))
    questions = [
        [each for event in of_kind(events, "asked") for each in event["questions"]]
        for events in (whole, cut)
    ]
    assert questions[0] == questions[1]
    assert of_kind(whole, "round") == of_kind(cut, "round")
    assert whole[-1] == cut[-1]


def test_ranges_know_their_people() -> None:
    """The people in every range of the journal are those whose values its words name."""
    events = finished(table="people-30", attack="column", columns=["job"])
    truth = people(30)
    place = truth.schema.column("job")
    values = [row[place] for row in truth.rows()]
    ranges = [each for event in of_kind(events, "asked") for each in event["ranges"]]
    assert ranges
    for words, column, mask in ranges:
        assert column == place
        named = re.fullmatch(r"job (?:(.*) or )?(.+)", words)
        between = re.fullmatch(r"job between (.+) and (.+)", words)
        inside = {person for person in range(30) if int(mask, 16) >> person & 1}
        if between:
            fits = {person for person in range(30) if between[1] <= values[person] <= between[2]}
        else:
            assert named is not None
            listed = {*(named[1] or "").split(", "), named[2]}
            fits = {person for person in range(30) if values[person] in listed}
        assert inside == fits, words


def test_the_baseline_is_measured_like_the_attack() -> None:
    base = finished(table="people-12")[0]["baseline"]
    assert base["people"] == 0
    assert 0 < base["values"] < 12 * 8 / 2
    assert finished(attack="column", columns=["age"])[0]["baseline"]["values"] == 0
    assert finished(table="incomes")[0]["baseline"] == {"people": 0, "values": 0}


def test_honest_noise_gives_nothing_away() -> None:
    end = finished(mechanism="dp-laplace")[-1]
    assert (end["ending"], end["values"], end["people"]) == ("undecided", 0, 0)
    assert "No usable difference" in end["sentence"]


@pytest.mark.parametrize(
    ("asked", "person"),
    [
        ({"attack": "membership", "columns": ["age", "job"], "person": 4}, {"present": True}),
        (
            {"attack": "membership", "columns": ["age", "job"], "person": 4, "absent": True},
            {"present": False},
        ),
        ({"attack": "uniqueness", "columns": ["insured"], "person": 4}, {"unique": False}),
    ],
)
def test_one_person_can_be_asked_about(asked: dict[str, Any], person: dict[str, bool]) -> None:
    end = finished(**asked)[-1]
    assert person.items() <= end["person"].items()


def test_the_other_values_of_one_person_are_found() -> None:
    events = finished(attack="attribute", columns=["age", "job"], person=4)
    assert events[0]["fitting"] == [4]
    assert events[-1]["values"] == 6


def test_the_line_of_python_repeats_the_run() -> None:
    import thinveil

    setting = setting_of({"table": "people-12", "k": 2, "seed": 3, "mechanism": "idp"}, Tables())
    verdict = eval(setting.code, {"thinveil": thinveil})
    end = finished(table="people-12", k=2, seed=3)[-1]
    assert verdict.run.meter.queries == end["answers"]
    incomes = Tables()["incomes"]
    assert eval(incomes.code, {"thinveil": thinveil}).rows() == incomes.data.rows()


def test_every_choice_has_a_line() -> None:
    assert set(MECHANISM_LINES) == set(MECHANISMS)
    offered = choices(Tables())
    assert {each["name"] for each in offered["strategies"]} == set(STRATEGY_LINES)
    assert {each["name"] for each in offered["attacks"]} == set(ATTACK_LINES)
    assert offered["mechanisms"][0]["name"] == "idp"


# what is laid next to the true table


def _found(truth: Dataset, codes: Any, known: Any = None, distinct: bool = False) -> TableFound:
    rows = np.asarray(codes, np.int64)
    depth = np.full(len(rows), rows.shape[1]) if known is None else np.asarray(known)
    ones = np.ones(len(rows), np.int64)
    return TableFound(tuple(range(rows.shape[1])), rows, depth, ones, (1, 1), distinct)


@pytest.fixture
def pairs() -> Dataset:
    schema = Schema((Grid("age"), Categories("job", ("cook", "nurse", "pilot"))))
    return Dataset(schema, np.array([[30, 0], [30, 0], [41, 1], [52, 2]]))


def test_a_wrong_value_is_marked_wrong(pairs: Dataset) -> None:
    found = _found(pairs, [[30, 0], [41, 1], [30, 0], [52, 1]])
    seen = Onlooker(pairs).look(found)
    assert seen.state.tolist() == [[RIGHT] * 2] * 3 + [[RIGHT, WRONG]]
    assert (seen.people, seen.values) == (3, 7)
    told = change(None, seen, pairs)
    assert told["wrong"] == [[7, "nurse"]]
    nothing = Onlooker(pairs).look(None)
    assert change(seen, nothing, pairs)["gone"] == list(range(8))


def test_a_record_found_once_is_not_laid_next_to_two(pairs: Dataset) -> None:
    seen = Onlooker(pairs).look(_found(pairs, [[30, 0], [41, 1]], known=[2, 1]))
    assert seen.state.tolist() == [[RIGHT] * 2, [UNKNOWN] * 2, [RIGHT, UNKNOWN], [UNKNOWN] * 2]
    existing = Onlooker(pairs).look(_found(pairs, [[30, 0]], distinct=True))
    assert existing.people == 2


def test_values_of_a_column_are_a_multiset(pairs: Dataset) -> None:
    found = ColumnsFound((ColumnFound(1, [(0, 1), (1, 2), (2, 1)]),))
    seen = Onlooker(pairs).look(found)
    assert seen.state[:, 1].tolist() == [RIGHT, WRONG, RIGHT, RIGHT]


@pytest.mark.parametrize(
    ("attribute", "low", "high", "words"),
    [
        (Grid("age"), MISSING, INFINITE, ""),
        (Grid("age", missing=True), LOWEST, INFINITE, "age not missing"),
        (Grid("age", missing=True), MISSING, 18, "age missing or at most 17"),
        (Grid("age"), MISSING, 18, "age at most 17"),
        (Grid("age"), 18, INFINITE, "age at least 18"),
        (Grid("day", "date"), 0, 2, "day 1970-01-01 to 1970-01-02"),
        (Categories("x", tuple("abcdef")), 1, 5, "x between b and e"),
        (Categories("x", tuple("abcdef")), 9, 12, "x impossible"),
        (Grid("age"), 5, 5, "age impossible"),
    ],
)
def test_ranges_in_words(attribute: Any, low: int, high: int, words: str) -> None:
    assert range_in_words(attribute, low, high) == words


# tables and settings


def test_a_long_table_is_cut_and_says_so() -> None:
    rows = "\n".join(str(number) for number in range(MOST_PEOPLE + 50))
    table = from_file(f"age\n{rows}\n".encode(), "long.csv")
    assert table.data.records == MOST_PEOPLE
    assert f"first {MOST_PEOPLE} of 250" in table.note


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"k": 16}, "below 2k = 32"),
        ({"epsilon": "0"}, "above zero"),
        ({"epsilon": "-1"}, "above zero"),
        ({"epsilon": "much"}, "must be a number"),
        ({"k": 1.5}, "whole number"),
        ({"seed": -1}, "from 0 on"),
        ({"table": "people-9999"}, "between 1 and"),
        ({"table": "file-gone"}, "open the file again"),
        ({"mechanism": "magic"}, "no mechanism"),
        ({"attack": "magic"}, "no attack"),
        ({"strategy": "magic"}, "no strategy"),
        ({"attack": "column"}, "--column NAME"),
        ({"attack": "membership"}, "at least one column"),
        ({"attack": "membership", "columns": ["age"], "person": 30}, "people 1 to 30"),
        ({"attack": "column", "columns": ["shoe"]}, "no column 'shoe'"),
        ({"columns": "age"}, "a list of names"),
        ({"speed": -3}, "questions a second"),
        ({"mechanism": "bdp", "strategy": "published"}, "use adaptive or thrifty"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Session(setting_of({"table": "people-30", **asked}, Tables()))


def test_a_stopped_run_ends_with_what_was_found() -> None:
    session = Session(setting_of({"table": "people-30", "paused": True}, Tables()))
    session.start()
    session.pace.step("question")
    session.pace.stop()
    session.join(30)
    assert json.loads(session.since(0)[-1])["ending"] == "interrupted"


def test_a_pace_lets_one_step_through() -> None:
    pace = Pace(speed=0, paused=True)
    for step, allowed in (("question", 1), ("round", 7)):
        pace.step(step)  # type: ignore[arg-type]
        assert pace.allow(7) == allowed
        assert pace.paused
    pace.resume()
    assert pace.allow(7) == 7
    pace.stop()
    with pytest.raises(KeyboardInterrupt):
        pace.allow(7)


def test_runs_that_nobody_watches_are_dropped() -> None:
    now = 0.0
    runs = Sessions(most=2, idle=60, clock=lambda: now)
    paused = setting_of({"table": "people-30", "paused": True}, Tables())
    first, second = runs.open(paused), runs.open(paused)
    dropped = runs[first]
    with runs.watching(second):
        third = runs.open(paused)  # makes room by ending the one that nobody watches
        with pytest.raises(Gone):
            runs[first]
        dropped.join(30)
        assert dropped.done
        with runs.watching(third), pytest.raises(UsageError, match="2 runs are being watched"):
            runs.open(paused)
        now = 61.0
        runs.sweep()
        assert len(runs) == 1  # of the third, the watcher left at 0
    runs.sweep()
    assert len(runs) == 1
    now = 200.0
    runs.sweep()
    assert len(runs) == 0


# the doors


@contextmanager
def serving(app: Any, port: int = 0) -> Iterator[str]:
    """Run the page in a thread of this process; yield its address."""
    listener = socket.create_server(("127.0.0.1", port))
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
        assert not thread.is_alive()


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


@pytest.fixture(scope="module")
def lab() -> Iterator[Labs]:
    runs = Sessions()
    with serving(app_of(KEY, Tables(), runs)) as url:
        yield Labs(url, runs)
    runs.close_all()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("[bad", 421),
        ("localhost:{port}", 200),
        ("127.0.0.1:{port}", 200),
    ],
)
def test_only_names_of_this_machine_are_answered(lab: Labs, host: str, status: int) -> None:
    with lab.client() as client:
        sent = {"Host": host.format(port=lab.port)}
        assert client.get("/api/choices", headers=sent).status_code == status


@pytest.mark.parametrize("key", ["", "wrong", "the key of the test\u00e9"])
def test_nobody_comes_in_without_the_key(lab: Labs, key: str) -> None:
    with lab.client(key="") as client:
        sent = {"Cookie": f"{cookie_name(lab.port)}={key}".encode()} if key else {}
        for path in ("/api/choices", "/api/tables/people-30", "/api/runs"):
            assert client.get(path, headers=sent).status_code == 403
        assert client.post("/api/runs", json={"table": "people-30"}).status_code == 403
        shut = client.get("/", params={"key": key})
        assert shut.status_code == 403
        assert "thinveil lab" in shut.text
        assert client.get("/static/main.js").status_code == 200  # the same for everybody


def test_the_key_becomes_a_cookie_that_other_sites_cannot_use(lab: Labs) -> None:
    with lab.client(key="") as client:
        page = client.get("/", params={"key": KEY})
        cookie = page.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/api/choices").status_code == 200


def test_other_pages_drive_nothing(lab: Labs) -> None:
    with lab.client(Origin="http://evil.example") as client:
        assert client.post("/api/runs", json={"table": "people-30"}).status_code == 403
    with lab.client(Origin=f"http://localhost:{lab.port}") as client:
        assert client.get("/api/choices").status_code == 403  # not the name it is asked by
    with lab.client(Origin=lab.url) as client:
        assert client.get("/api/choices").status_code == 200


def test_every_reply_forbids_what_is_not_needed(lab: Labs) -> None:
    with lab.client() as client:
        for path in ("/", "/static/lab.css", "/api/choices", "/nowhere"):
            headers = client.get(path).headers
            assert HEADERS.items() <= dict(headers).items() or {
                name: headers[name] for name in HEADERS
            } == dict(HEADERS)
    for name, content in static_files().items():
        found = set(re.findall(r"https?://[^\s\"')]+", content.decode()))
        assert found <= {"http://www.w3.org/2000/svg"}, name
        assert b"style=" not in content, name


def test_large_and_broken_requests_are_refused(lab: Labs) -> None:
    with lab.client() as client:
        large = client.post("/api/tables", content=b"a" * (LARGEST_FILE + 1))
        assert (large.status_code, "command line" in large.json()["error"]) == (413, True)
        assert client.post("/api/runs", content=b" " * 70_000).status_code == 413
        for content in (b"", b"[]", b"{", b"[" * 60_000):
            assert client.post("/api/runs", content=content).status_code == 422
        for path in ("/api/runs/unknown", "/api/runs/unknown/events"):
            assert client.get(path).status_code == 404
        run = client.post("/api/runs", json={"table": "people-12", "paused": True}).json()["run"]
        wrong = client.post(f"/api/runs/{run}/control", json={"action": "explode"})
        assert wrong.status_code == 422
        for after in ("x", "--", "\u00b2", "9" * 30):
            assert client.get(f"/api/runs/{run}/events", params={"after": after}).status_code == 422
        assert client.delete(f"/api/runs/{run}").status_code == 200
        assert client.get(f"/api/runs/{run}").status_code == 404


def test_a_stream_goes_on_where_it_stopped(lab: Labs) -> None:
    with lab.client() as client:
        asked = {"table": "people-12", "speed": 0}
        run = client.post("/api/runs", json=asked).json()["run"]
        whole = _events(client.get(f"/api/runs/{run}/events").text)
        assert [number for number, _ in whole] == list(range(len(whole)))
        assert whole[-1][1]["kind"] == "end"
        rest = client.get(f"/api/runs/{run}/events", headers={"Last-Event-ID": "20"}).text
        assert _events(rest) == whole[21:]
        again = client.get(f"/api/runs/{run}/events", params={"after": "20"}).text
        assert _events(again) == whole[21:]


def _events(text: str) -> list[tuple[int, dict[str, Any]]]:
    found = re.findall(r"^id: (\d+)\ndata: (.*)$", text, re.MULTILINE)
    return [(int(number), json.loads(event)) for number, event in found]


def test_no_value_of_a_table_reaches_a_log_or_a_message(
    lab: Labs, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with lab.client() as client:
        opened = client.post("/api/tables", params={"name": "t.csv"}, content=PEOPLE_CSV).json()
        broken = PEOPLE_CSV + b'"Bluebeard,1\n'
        refused = client.post("/api/tables", params={"name": "t.csv"}, content=broken)
        assert refused.status_code == 422
        assert "t.csv: the row that starts on line 6" in refused.json()["error"]
        asked = {"table": opened["name"], "speed": 0, "attack": "membership", "columns": ["name"]}
        run = client.post("/api/runs", json=asked).json()["run"]
        assert "nurse" not in client.get(f"/api/runs/{run}/events").text
    said = caplog.text + "".join(capfd.readouterr()) + refused.text
    for secret in ("Rumpelstiltskin", "Rapunzel", "Bluebeard", KEY):
        assert secret not in said


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_app, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=re.escape("thinveil[lab]")):
        app_of(KEY, Tables())


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_command_serves_and_ends_by_an_interruption(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(PEOPLE_CSV)
    command = [sys.executable, "-m", "thinveil", "lab", "mine.csv", "--port", "0", "--no-browser"]
    with open(tmp_path / "complaints", "w+") as complaints:
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=complaints, text=True
        )
        try:
            assert process.stdout is not None
            process.stdout.readline()
            address = httpx.URL(process.stdout.readline().strip())
            assert address.host == "127.0.0.1"
            origin = f"http://127.0.0.1:{address.port}"
            with httpx.Client(base_url=origin, trust_env=False, timeout=30) as client:
                assert client.get(address).status_code == 200
                assert client.get("/api/choices").json()["tables"][0]["title"] == "mine.csv"
                run = client.post("/api/runs", json={"table": "own", "paused": True}).json()["run"]
                with client.stream("GET", f"/api/runs/{run}/events") as stream:
                    next(stream.iter_text())
                    process.send_signal(signal.SIGINT)
                    assert process.wait(30) == 0
        finally:
            process.kill()
            process.communicate()
        complaints.seek(0)
        assert complaints.read() == ""


def test_a_port_in_use_is_said() -> None:
    from thinveil.commands.main import run

    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(["lab", "--no-browser", "--port", str(taken.getsockname()[1])]) == 2


# the page without a server


def test_recordings_are_of_real_runs_and_up_to_date() -> None:
    stale = "run: python docs/lab/record.py"
    for name, content in recording.page().items():
        assert (DOCS / name).read_bytes() == content, stale
    for name, text in recording.recordings().items():
        assert (DOCS / "recordings" / name).read_text(encoding="utf-8") == text, stale
    modules = {name[:-3] for name in static_files() if name.endswith(".js")}
    assert set(recording.MODULES) == modules


# the page in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Any, lab: Labs) -> Iterator[Any]:
    with page_of(browser, width=1024, height=768) as page:
        page.goto(lab.address)
        page.wait_for_selector("body[data-state=idle] tbody tr")
        yield page
        assert page.watched.hosts == {"127.0.0.1"}


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


def test_everything_is_recovered_before_everybodys_eyes(page: Any) -> None:
    assert page.url.endswith("/")  # the key is not left in the address
    assert page.locator("td.unknown").count() == 240
    assert page.inner_text("td >> nth=0") == "?"
    go(page, k="3")
    assert "recovered all 30 records exactly" in ended(page)
    until(page, lambda: page.locator("td.right").count() == 240)
    assert page.locator("td.wrong, td.unknown").count() == 0
    truth = people(30).rows()
    assert page.inner_text("tbody tr >> nth=1 >> td >> nth=2") == str(truth[1][2])
    assert page.inner_text("#n-people") == "30 of 30"
    assert page.inner_text("#n-guessed").startswith("0 records")
    meter = page.locator("#claimed")
    assert float(meter.get_attribute("aria-valuenow")) < 1e-6
    assert page.locator("#recovered").get_attribute("aria-valuenow") == "1"
    assert "seed=0" in page.inner_text("#provenance")
    with page.expect_download() as download:
        page.click("#save")
    saved = json.loads(Path(download.value.path()).read_text())
    assert saved == [json.loads(each) for each in recording.record(k=3)]
    assert page.watched.complaints == []


def test_a_person_shows_the_questions_that_gave_them_away(page: Any) -> None:
    go(page)
    ended(page)
    page.click("tbody tr >> nth=3 >> button")
    many = int(page.inner_text("#place").split(" of ")[1])
    assert 2 <= many <= 18
    assert page.is_disabled("#previous")
    seen = []
    for _ in range(many):
        words = page.inner_text("#dialogue .question")
        assert re.match(r"(Are there more than \d+ (people|person)|Is there anybody) ", words)
        answer, told = page.inner_text("#dialogue .answer"), page.inner_text("#dialogue .told")
        if "noise" in answer:
            assert told.startswith("Noise only appears where the count is")
            zone = [int(each) for each in re.findall(r"\d+", told)]
            fits = int(re.findall(r"In truth (\d+) of 30", page.inner_text("#dialogue .fine"))[0])
            assert min(zone) <= fits <= max(zone)
        else:
            assert re.search(r"exactly (yes \(1\)|no \(0\))", answer)
        assert page.locator("tr.lit").count() >= 1
        assert page.locator("tr.lit.chosen").count() == 1  # all are about this person
        seen.append(words)
        page.keyboard.press("ArrowRight")
    assert page.is_disabled("#next")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#dialogue .question") == seen[-2]
    page.click("#previous")
    assert page.inner_text("#dialogue .question") == seen[-3]
    page.uncheck("#few")
    assert int(page.inner_text("#place").split(" of ")[1]) > many
    page.keyboard.press("Escape")
    assert page.is_hidden("#drawer")
    assert page.watched.complaints == []


def test_a_run_is_paused_stepped_and_resumed(page: Any) -> None:
    page.click("#step")
    until(page, lambda: number(page, "rounds") == 1)
    asked = number(page, "questions")
    page.click("#one")
    until(page, lambda: number(page, "questions") == asked + 1)
    page.click("#step")  # the rest of this round
    until(page, lambda: number(page, "rounds") == 2)
    assert page.locator("body[data-state=paused]").count() == 1
    page.select_option("#speed", "30")
    page.click("#pause")  # resumes
    until(page, lambda: number(page, "rounds") > 3)
    page.click("#pause")
    page.wait_for_timeout(300)  # what was on its way has arrived
    before = [number(page, each) for each in ("questions", "rounds", "answers")]
    page.wait_for_timeout(400)
    assert [number(page, each) for each in ("questions", "rounds", "answers")] == before
    page.click("#step")
    until(page, lambda: number(page, "rounds") == before[1] + 1)
    page.select_option("#speed", "0")
    page.click("#pause")
    assert "recovered all 30" in ended(page)
    page.click("#reset")
    assert page.locator("td.unknown").count() == 240
    assert number(page, "questions") == 0
    assert page.watched.complaints == []


def test_honest_noise_is_seen_to_hold(page: Any) -> None:
    go(page, mechanism="dp-laplace")
    said = ended(page)
    answers = page.inner_text("#n-answers")
    assert f"No usable difference found in {answers} answers" in said
    assert page.locator("td.unknown").count() == 240
    page.click("#truth")
    assert page.locator("td.ghost").count() == 240
    page.click("#truth")
    assert page.locator("td.unknown").count() == 240
    assert page.watched.complaints == []


def test_a_file_of_ones_own_and_what_is_wrong_with_another(page: Any, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_bytes(b"name,age\nAda,36\nGrace\n")
    good.write_bytes(PEOPLE_CSV)
    page.set_input_files("#file", bad)
    page.wait_for_selector("#alert:not([hidden])")
    assert "bad.csv: the row that starts on line 3 has 1 fields" in page.inner_text("#alert")
    page.set_input_files("#file", good)
    until(page, lambda: page.locator("tbody tr").count() == 4)
    assert page.is_hidden("#alert")
    go(page, k="3")
    page.wait_for_selector("#alert:not([hidden])")
    assert "below 2k = 6 records" in page.inner_text("#alert")
    go(page, k="1", epsilon="0")
    until(page, lambda: "above zero" in page.inner_text("#alert"))
    go(page, epsilon="1e-10", attack="attribute")
    page.uncheck("#known input[value=name]")
    page.check("#known input[value=age]")
    page.fill("#person-number", "3")
    assert page.locator("td.known").count() == 1
    page.click("#go")
    assert "1 attribute of the person" in ended(page)
    assert page.inner_text("tr.lit td.right, tbody tr >> nth=2 >> td.right") == "Rapunzel"
    complaints = [each for each in page.watched.complaints if "422" not in each]
    assert complaints == []  # a browser reports refused requests in its console


def test_two_tabs_run_side_by_side(page: Any, browser: Any, lab: Labs) -> None:
    with page_of(browser) as other:
        other.goto(lab.address)
        other.wait_for_selector("body[data-state=idle] tbody tr")
        go(page, speed="100", mechanism="idp")
        go(other, mechanism="idp-noisy", attack="column", column="ward")
        assert "recovered the column ward" in ended(other)
        assert other.locator("td.right").count() == 30
        assert page.locator("body[data-state=running]").count() == 1
        page.select_option("#speed", "0")
        assert "recovered all 30" in ended(page)
        assert other.inner_text("#n-questions") != page.inner_text("#n-questions")


def test_many_tabs_share_the_connections_of_one_browser(page: Any, lab: Labs) -> None:
    """A browser has six connections for all tabs; more runs than that can still be driven."""
    tabs = [page, *(page.context.new_page() for _ in range(6))]
    for tab in tabs:
        if tab is not page:
            tab.goto(lab.address)
            tab.wait_for_selector("body[data-state=idle] tbody tr")
        tab.bring_to_front()  # others are drawn once a second
        tab.click("#step")
        until(tab, lambda tab=tab: number(tab, "rounds") == 1)
    page.bring_to_front()
    page.click("#step")
    until(page, lambda: number(page, "rounds") == 2)
    for tab in tabs:
        assert tab.is_hidden("#lost")
        tab.close()
    until_watched(lab, 0)


def until_watched(lab: Labs, number: int) -> None:
    """Wait until so many streams are open."""
    for _ in range(200):
        if lab.runs.watchers == number:
            return
        time.sleep(0.05)
    raise AssertionError(f"{lab.runs.watchers} streams are open")


def test_a_stream_that_nobody_hears_is_closed(lab: Labs) -> None:
    with lab.client() as client:
        before = lab.runs.watchers
        run = client.post("/api/runs", json={"table": "people-12", "paused": True}).json()["run"]
        with client.stream("GET", f"/api/runs/{run}/events") as stream:
            next(stream.iter_text())
            until_watched(lab, before + 1)
        until_watched(lab, before)
        client.delete(f"/api/runs/{run}")


def test_a_server_that_is_gone_is_said_and_found_again(browser: Any) -> None:
    runs, leaving = Sessions(), threading.Event()
    app = app_of(KEY, Tables(), runs, leaving.is_set)
    with page_of(browser) as page:
        with serving(app) as url:
            page.goto(f"{url}/?key={KEY}")
            page.wait_for_selector("body[data-state=idle] tbody tr")
            go(page, speed="30")
            until(page, lambda: number(page, "questions") > 5)
            leaving.set()
        page.wait_for_selector("#lost:not([hidden])")
        assert "still running in its terminal" in page.inner_text("#lost")
        leaving.clear()
        with serving(app, int(url.rsplit(":", 1)[1])):
            page.click("#reconnect")
            page.wait_for_selector("#lost", state="hidden")
            page.select_option("#speed", "0")
            assert "recovered all 30" in ended(page)
            until(page, lambda: page.locator("td.right").count() == 240)
    runs.close_all()


def test_the_page_fits_small_screens_and_both_themes(browser: Any, lab: Labs) -> None:
    paper = set()
    for width, height, dark in ((390, 844, False), (1024, 768, True)):
        with page_of(browser, width=width, height=height, dark=dark) as page:
            page.goto(lab.address)
            page.wait_for_selector("body[data-state=idle] tbody tr")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("#go").bounding_box()["y"] < height
            paper.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            unnamed = page.evaluate(
                "[...document.querySelectorAll('input, select, button')].filter((each) => "
                "!(each.labels?.length || each.textContent.trim() || each.ariaLabel)).length"
            )
            assert unnamed == 0
    assert len(paper) == 2


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_can_be_told_apart(theme: int) -> None:
    """All pairs of text and ground have the contrast of WCAG's level AA."""
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", static_files()["lab.css"].decode())
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[theme]))

    def light(name: str) -> float:
        parts = [int(colour[name][at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for text, grounds in {
        "ink": ("paper", "card", "lit"),
        "soft": ("paper", "card", "lit"),
        "accent": ("paper", "card"),
        "calm": ("card",),
        "right-ink": ("right-paper",),
        "wrong-ink": ("wrong-paper",),
        "known-ink": ("known-paper",),
        "calm-ink": ("calm-paper",),
        "on-strong": ("strong", "chosen"),
    }.items():
        for ground in grounds:
            low, high = sorted([light(text), light(ground)])
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


def test_recordings_play_from_a_disk(browser: Any) -> None:
    with page_of(browser) as page:
        page.goto((DOCS / recording.PAGE).as_uri())
        page.wait_for_selector("body[data-state=idle] tbody tr")
        go(page, mechanism="bdp")
        assert "recovered the distinct set of 30 records exactly" in ended(page)
        assert page.watched.complaints == []
        assert {each.partition(":")[0] for each in page.watched.requests} == {"file"}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def test_recordings_play_without_the_server(browser: Any, tmp_path: Path) -> None:
    handler = functools.partial(_Quiet, directory=str(DOCS))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with page_of(browser) as page:
                page.goto(f"http://127.0.0.1:{server.server_port}/{recording.PAGE}")
                page.wait_for_selector("body[data-state=idle] tbody tr")
                assert "recordings of real runs" in page.inner_text("#setup")
                page.click("#step")
                until(page, lambda: number(page, "rounds") == 1)
                asked = number(page, "questions")
                page.click("#one")
                until(page, lambda: number(page, "questions") == asked + 1)
                page.select_option("#speed", "0")
                page.click("#pause")
                assert "recovered all 30" in ended(page)
                page.click("tbody tr >> nth=7 >> button")
                page.keyboard.press("ArrowRight")
                assert "people" in page.inner_text("#dialogue")
                page.keyboard.press("Escape")
                go(page, mechanism="dp-laplace")
                assert "No usable difference" in ended(page)
                assert "thinveil.people(30)" in page.inner_text("#provenance")
                saved, other = tmp_path / "mine.lab.json", tmp_path / "other.json"
                saved.write_text(json.dumps(finished(table="incomes")))
                other.write_text("{}")
                page.set_input_files("#file", other)
                page.wait_for_selector("#alert:not([hidden])")
                assert "other.json is not a run" in page.inner_text("#alert")
                page.set_input_files("#file", saved)
                until(page, lambda: page.locator("tbody tr").count() == 6)
                page.click("#go")
                assert "recovered all 6 records" in ended(page)
                assert page.watched.complaints == []
                assert page.watched.hosts == {"127.0.0.1"}
        finally:
            server.shutdown()
