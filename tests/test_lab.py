"""The live page: its runs, what it lays next to the truth, its tables and its doors."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from labs import KEY, PEOPLE_CSV, Labs, finished, of_kind, until_watched
from thinveil import claim_named, people
from thinveil.attacker.findings import ColumnFound, ColumnsFound, TableFound
from thinveil.commands.main import run
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import DataError, MissingExtra, UsageError
from thinveil.lab import app as lab_app
from thinveil.lab import pace as lab_pace
from thinveil.lab import recording
from thinveil.lab.app import HEADERS, app_of, static_files
from thinveil.lab.pace import HASTE, QUICK, Pace
from thinveil.lab.reveal import RIGHT, UNKNOWN, WRONG, Onlooker, change
from thinveil.lab.session import Session
from thinveil.lab.sessions import Gone, Sessions
from thinveil.lab.setting import (
    ATTACK_LINES,
    SPEED,
    STRATEGY_LINES,
    choices,
    setting_of,
)
from thinveil.lab.tables import LARGEST_FILE, MOST_PEOPLE, Tables, from_file
from thinveil.lab.wording import range_in_words
from thinveil.language.claims import MECHANISMS
from thinveil.language.schema import INFINITE, LOWEST, MISSING, Categories, Grid, Schema
from thinveil.verdicts.names import LINES

# runs


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
    values = [str(row[place]) for row in truth.rows()]
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
    assert set(LINES) == set(MECHANISMS)
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
    session.pace.do("question")
    session.pace.do("stop")
    session.join(30)
    assert json.loads(session.since(0)[-1])["ending"] == "interrupted"


def test_a_pace_lets_one_step_through() -> None:
    pace = Pace(speed=0, paused=True)
    for step, allowed in (("question", 1), ("round", 7)):
        pace.do(step)
        assert pace.allow(7) == allowed
        assert pace.paused
    pace.do("resume")
    assert pace.allow(7) == 7
    pace.do("stop")
    with pytest.raises(KeyboardInterrupt):
        pace.allow(7)


def test_what_cannot_be_seen_goes_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_pace, "TICK", 0.0001)
    events = finished(speed=20_000, table="people-12")
    first = next(place for place, each in enumerate(events) if each.get("values"))
    before, after = (
        max(len(each["questions"]) for each in of_kind(some, "asked"))
        for some in (events[:first], events[first:])
    )
    assert (before, after) == (2 * HASTE, 2)


@pytest.mark.parametrize("speed", [4, 30])
def test_a_speed_to_read_along_is_kept(speed: int) -> None:
    pace = Pace(speed, hasty=True)
    assert pace.allow(100) <= 2


@pytest.mark.parametrize("table", [each["name"] for each in choices(Tables())["tables"]])
def test_the_first_cells_fill_within_five_seconds(table: str) -> None:
    events = finished(table=table)
    shown = next(each for each in events if each.get("values"))
    assert shown["questions"] <= 5 * SPEED * HASTE
    assert SPEED >= QUICK


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        ("name\nZoë\n".encode("utf-16")[:-1], "save the file as UTF-8 text"),
        (b"name\nA\x00\n", "save the file as UTF-8 text"),
        (b'name\n"A\n', "correct it or leave it out"),
        (b"name,age\nA\n", "correct it or leave it out"),
        (b"size\n1\ninf\n", "correct it or leave it out"),
    ],
)
def test_a_file_that_cannot_be_read_is_mended_on_the_page(content: bytes, advice: str) -> None:
    with pytest.raises(DataError, match=f": {advice}, and open the file again$") as told:
        from_file(content, "t.csv")
    assert "--" not in str(told.value)


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


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("[bad", 421),
        ("", 421),
        ("127.0.0.1/static/", 421),
        ("127.0.0.1:{port}/static/?", 421),
        ("127.0.0.1#", 421),
        ("evil.example@127.0.0.1", 421),
        ("[::1]:{port}", 200),
        ("localhost:{port}", 200),
        ("127.0.0.1:{port}", 200),
    ],
)
def test_only_names_of_this_machine_are_answered(lab: Labs, host: str, status: int) -> None:
    with lab.client() as client:
        sent = {"Host": host.format(port=lab.port)}
        assert client.get("/api/choices", headers=sent).status_code == status


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
        assert client.get("/api/runs/unknown/events").status_code == 404
        run = client.post("/api/runs", json={"table": "people-12", "paused": True}).json()["run"]
        epsilon = client.post("/api/runs", json={"table": "people-12", "epsilon": "0"})
        assert epsilon.json()["error"].startswith("epsilon must")
        wrong = client.post(f"/api/runs/{run}/control", json={"action": "explode"})
        assert wrong.status_code == 422
        for after in (b"x", b"--", b"", b"\xb2", b"9" * 30):
            sent = {b"Last-Event-ID": after}
            assert client.get(f"/api/runs/{run}/events", headers=sent).status_code == 422
        assert client.delete(f"/api/runs/{run}").status_code == 200
        assert client.get(f"/api/runs/{run}/events").status_code == 404


def test_a_stream_goes_on_where_it_stopped(lab: Labs) -> None:
    with lab.client() as client:
        asked = {"table": "people-12", "speed": 0}
        run = client.post("/api/runs", json=asked).json()["run"]
        whole = _events(client.get(f"/api/runs/{run}/events").text)
        assert [number for number, _ in whole] == list(range(len(whole)))
        assert whole[-1][1]["kind"] == "end"
        rest = client.get(f"/api/runs/{run}/events", headers={"Last-Event-ID": "20"}).text
        assert _events(rest) == whole[21:]


def _events(text: str) -> list[tuple[int, dict[str, Any]]]:
    found = re.findall(r"^id: (\d+)\ndata: (.*)$", text, re.MULTILINE)
    return [(int(number), json.loads(event)) for number, event in found]


def test_a_stream_that_nobody_hears_is_closed(lab: Labs) -> None:
    with lab.client() as client:
        before = lab.runs.watchers
        run = client.post("/api/runs", json={"table": "people-12", "paused": True}).json()["run"]
        with client.stream("GET", f"/api/runs/{run}/events") as stream:
            heard = stream.iter_text()  # kept: whoever drops it closes the stream
            next(heard)
            until_watched(lab, before + 1)
        until_watched(lab, before)
        client.delete(f"/api/runs/{run}")


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
    with pytest.raises(MissingExtra, match=r"pip install '(thinveil|\.)\[lab\]'"):
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
            told = {"Authorization": f"Bearer {address.fragment.removeprefix('key=')}"}
            with httpx.Client(base_url=origin, headers=told, trust_env=False, timeout=30) as client:
                assert client.get("/api/choices").json()["tables"][0]["title"] == "mine.csv"
                run = client.post("/api/runs", json={"table": "own", "paused": True}).json()["run"]
                with client.stream("GET", f"/api/runs/{run}/events") as stream:
                    heard = stream.iter_text()
                    next(heard)
                    process.send_signal(signal.SIGINT)
                    assert process.wait(30) == 0
        finally:
            process.kill()
            process.communicate()
        complaints.seek(0)
        assert complaints.read() == ""


def test_a_port_in_use_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(["lab", "--no-browser", "--port", str(taken.getsockname()[1])]) == 2


# the page without a server


@pytest.mark.docs
def test_recordings_are_of_real_runs_and_always_the_same(tmp_path: Path) -> None:
    files = recording.site()
    assert b"thinveil[lab]" not in files["recordings/index.js"]  # nobody can install that yet
    assert b"../lab.html" not in files[recording.PAGE]
    assert b'<a href="../lab.html">' in recording.page("../lab.html")[recording.PAGE]
    assert recording.write(tmp_path) == sum(map(len, files.values()))
    for name, content in files.items():
        assert (tmp_path / name).read_bytes() == content
    for name, _, setting in recording.RUNS:
        said = files[f"recordings/{name}.js"].decode()
        honest = claim_named(str(setting["mechanism"])).control
        assert ("No usable difference" in said) is honest
        assert ("30 records exactly" in said) is not honest
    modules = {name[:-3] for name in static_files() if name.endswith(".js")}
    assert set(recording.MODULES) == modules
