"""A target behind HTTP: the same attacks, over a line that fails in every way."""

import json
import socketserver
import sqlite3
import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinveil
from services import Process, served
from test_plugins import GOOD as WINDOW
from test_plugins import install  # noqa: F401, a fixture
from thinveil.attacker.findings import CountFound
from thinveil.auditing.http import HttpTarget, Trips
from thinveil.curator.service.door import Settings
from thinveil.errors import BudgetError, BudgetSpent, TargetError, UsageError
from thinveil.language.claims import claim_named
from thinveil.language.policies import Policies
from thinveil.language.queries import batch_of
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.facts import facts_to_plain
from worlds import as_a, sure, sweep

DATA = thinveil.people(200)
FACTS = thinveil.Curator(DATA, thinveil.idp()).facts
PLAIN = {
    "service": "s1",
    "format": 1,
    **facts_to_plain(FACTS),
    "limits": {
        "largest_batch": 100,
        "largest_boxes": 100,
        "largest_body": 10**6,
        "largest_json": 10**6,
        "largest_pairs": 10**6,
        "arrow": False,
    },
}
BATCH = batch_of([([{0: (30, 50)}], 3), ([{0: (31, 50)}], 3)]).stamped(("run", 7), 0.01)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("mechanism", "arrow"), sweep(product(["idp", "unprotected", "bdp"], [True, False]), 6)
)
def test_the_same_attack_finds_the_same_over_http(tmp_path, mechanism, arrow):
    claim, data = thinveil.claim_named(mechanism), thinveil.people(20)
    with served(data, claim, tmp_path) as service:
        target = HttpTarget(service.url, service.tokens["analyst"], arrow=arrow)
        assert target.facts == thinveil.Curator(data, claim).facts
        verdict = thinveil.audit(target, truth=data, strategy="adaptive")
        local = thinveil.audit(data, mechanism=mechanism, strategy="adaptive")
        assert verdict.exit_code == 0
        assert sure(verdict.score).exact == sure(local.score).exact
        if mechanism != "bdp":
            assert sure(verdict.score).exact
        now = target.ledger()
        assert now["answers"] == verdict.run.meter.drawn
        assert Fraction(now["exact"]["spent"]) == verdict.run.spent
        assert target.trips.trips > verdict.run.meter.rounds
        assert target.trips.retries == 0
        target.close()


def test_round_trips_are_measured(tmp_path):
    with served(DATA, thinveil.idp(), tmp_path) as service:
        target = HttpTarget(service.url, service.tokens["analyst"])
        for number in range(5):
            target.answer(BATCH.stamped(("run", number), 0.01))
        plain = target.trips.to_plain()
        assert plain["trips"] == 6
        assert plain["bytes_sent"] > 1000
        assert plain["bytes_received"] > 1000
        assert 0 < plain["median_ms"] <= plain["p95_ms"] <= plain["slowest_ms"]
        target.close()
    assert Trips().to_plain()["median_ms"] == 0


def test_a_spent_budget_ends_the_run_with_what_was_found(tmp_path):
    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "1e-7"}) as service:
        target = HttpTarget(service.url, service.tokens["analyst"])
        verdict = thinveil.audit(target, truth=DATA)
        assert verdict.exit_code == 3
        assert verdict.run.ending == "cap"
        assert "is left" in verdict.run.reason
        assert 0 < verdict.run.spent <= Fraction(1, 10**7)
        target.close()


def test_policies_over_http_are_those_of_the_service(tmp_path):
    with served(
        DATA, thinveil.idp(), tmp_path, policies=Policies(min_epsilon=0.005, max_queries=3)
    ) as service:
        target = HttpTarget(service.url, service.tokens["analyst"])
        assert target.facts.policies == Policies(min_epsilon=0.005, max_queries=3)
        with pytest.raises(BudgetError, match="below"):
            target.answer(BATCH.stamped(("a", 1), 0.001))
        target.answer(BATCH)
        with pytest.raises(BudgetSpent, match="at most 3"):
            target.answer(BATCH.stamped(("a", 2), 0.01))
        target.close()


@pytest.mark.parametrize("arrow", sweep([True, False], 2))
@pytest.mark.parametrize(
    "settings", [Settings(largest_batch=7), Settings(largest_batch=40, largest_body=5_000)]
)
def test_large_batches_travel_in_parts(tmp_path, arrow, settings):
    """Whatever is split, the answers come back whole and in order."""
    rng = np.random.default_rng(0)
    unions = []
    for number in range(16):
        low = int(rng.integers(0, 90))
        boxes = [{0: (low, low + 3)}, {0: (low + 3, low + 20)}][: 1 + number % 2]
        unions.append((boxes, int(rng.integers(0, 30))))
    batch = batch_of(unions, repeats=rng.integers(1, 23, 16))
    with served(DATA, thinveil.unprotected(), tmp_path, settings=settings) as service:
        target = HttpTarget(service.url, service.tokens["analyst"], arrow=arrow)
        stamped = batch.stamped(("run", 1), None)
        answers = target.answer(stamped)
        truth = thinveil.Curator(DATA, thinveil.unprotected()).answer(stamped)
        assert answers.values.tolist() == truth.values.tolist()
        now = target.ledger()
        assert now["answers"] == batch.queries
        assert now["batches"] > 1
        target.answer(stamped)
        assert target.ledger() == now
        target.close()


def test_parts_keep_their_own_losses(tmp_path):
    with served(DATA, thinveil.idp(), tmp_path, settings=Settings(largest_batch=1)) as service:
        target = HttpTarget(service.url, service.tokens["analyst"])
        target.answer(BATCH.stamped(("run", 1), np.array([0.5, 0.25])))
        assert target.ledger()["exact"]["spent"] == "3/4"
        target.close()


def test_a_question_that_cannot_be_split_is_refused(tmp_path):
    union = [{0: (place, place + 1)} for place in range(5000)]
    with served(DATA, thinveil.idp(), tmp_path, settings=Settings(largest_batch=1000)) as service:
        target = HttpTarget(service.url, service.tokens["analyst"])
        with pytest.raises(TargetError, match="single question"):
            target.answer(batch_of([(union, 3)]).stamped(("run", 1), 0.01))
        target.close()


def test_the_token_is_nowhere_to_be_seen(tmp_path):
    with served(DATA, thinveil.idp(), tmp_path) as service:
        token = service.tokens["analyst"]
        target = HttpTarget(service.url, token)
        assert token not in repr(target)
        assert repr(target) == f"HttpTarget({service.url!r})"
        target.close()
        for wrong in ("thinveil-wrong", "", "ü", "a\nb"):
            with pytest.raises(TargetError, match="THINVEIL_TOKEN") as error:
                HttpTarget(service.url, wrong)
            assert not wrong or wrong not in str(error.value)


def test_addresses_that_are_none():
    for wrong in ("localhost:8321", "ftp://host", "http://", "http://me:word@host", "http://h/?a=b",
                  "http://h:99999999", "http://[::1"):  # fmt: skip
        with pytest.raises(UsageError):
            HttpTarget(wrong, "t")
    with pytest.raises(TargetError, match="ConnectError"):
        HttpTarget("http://127.0.0.1:9", "t", patience=0)


def test_proxies_do_not_stand_before_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with hostile(200, PLAIN) as url:
        HttpTarget(url, "t", patience=0).close()


class Hostile(socketserver.ThreadingTCPServer):
    """Answers requests for facts as it should, and all others by a script of raw replies."""

    allow_reuse_address = True
    daemon_threads = True
    seen: list[tuple[bytes, bytes]]


class Address(str):
    """Where a hostile server is, and what it has seen."""

    __slots__ = ("seen",)
    seen: list[tuple[bytes, bytes]]


@contextmanager
def hostile(*script):
    """Serve raw replies in order, the last one for ever; a status with content makes one."""
    replies = [bytes_of(*script)] if isinstance(script[0], int) else list(script)
    facts = bytes_of(200, PLAIN)
    lock = threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            line = self.rfile.readline()
            length = 0
            while (header := self.rfile.readline().strip()) != b"":
                if header.lower().startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            body = self.rfile.read(length)
            with lock:
                if line.startswith(b"GET /facts") and not isinstance(script[0], int):
                    reply = facts
                else:
                    reply = replies.pop(0) if len(replies) > 1 else replies[0]
            server.seen.append((line, body))
            self.wfile.write(reply)

    with Hostile(("127.0.0.1", 0), Handler) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            url = Address(f"http://127.0.0.1:{server.server_address[1]}")
            url.seen = server.seen
            yield url
        finally:
            server.shutdown()
            thread.join()


def bytes_of(status, content=b"", kind="application/json", more=""):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n{more}\r\n".encode() + body


def reply(answers=((0.0,), (1.0,)), key="run-7"):
    rows = [list(row) for row in answers]
    return {"key": key, "answers": rows, "cost": "0", "left": "1", "again": False}


GOOD = bytes_of(200, reply())


def error(kind, message="no", left=None):
    return {"error": {"kind": kind, "message": message, "field": None, "left": left}}


@contextmanager
def asked_of(*script, patience=30.0, **more):
    """Return a target at a hostile server, and the pauses that it made."""
    pauses: list[float] = []
    with hostile(*script) as url:
        target = HttpTarget(url, "t", patience=patience, sleep=pauses.append, **more)
        try:
            yield target, pauses
        finally:
            target.close()


@pytest.mark.parametrize(
    "trouble",
    [
        b"",
        GOOD[:40],
        GOOD[:-5],
        b"\0\1\2 nonsense\r\n\r\n",
        bytes_of(500),
        bytes_of(502, b"<html>"),
        bytes_of(504),
        bytes_of(408),
        bytes_of(503, error("unavailable"), more="Retry-After: 1\r\n"),
        bytes_of(429, error("too_many_requests")),
        bytes_of(200, b"{"),
        bytes_of(200, b"[" * 60_000),
        bytes_of(200, b"null"),
        bytes_of(200, {}),
        bytes_of(200, reply([[0.0]])),
        bytes_of(200, reply([[0.0], [1.0], [1.0]])),
        bytes_of(200, reply([["x"], [1.0]])),
        bytes_of(200, reply([[0.0], [1.0]], key="other")),
        bytes_of(200, b"\xff" * 99, wire_arrow.MEDIA_TYPE),
        bytes_of(200, GOOD, "text/html"),
    ],
    ids=range(20),
)
def test_what_passes_is_tried_again(trouble):
    with asked_of(trouble, trouble, trouble, GOOD) as (target, pauses):
        assert target.answer(BATCH).values.tolist() == [0.0, 1.0]
        assert target.trips.retries == len(pauses) == 3
    with (
        asked_of(trouble, patience=0) as (target, _),
        pytest.raises(TargetError, match="could not be used, after 1 attempts"),
    ):
        target.answer(BATCH)


def test_the_same_body_is_sent_again_under_the_same_key():
    with hostile(b"", bytes_of(500), GOOD) as url:
        target = HttpTarget(url, "t", sleep=lambda _: None)
        target.answer(BATCH)
        target.close()
    bodies = [body for line, body in url.seen if line.startswith(b"POST /answers")]
    assert len(bodies) == 3
    assert len(set(bodies)) == 1
    assert json.loads(bodies[0])["key"] == "run-7"


def test_pauses_grow_and_end():
    with asked_of(*[bytes_of(500)] * 12, GOOD) as (target, pauses):
        target.answer(BATCH)
        assert 0.05 <= pauses[0] <= 0.1
        assert all(pause <= 10 for pause in pauses)
        assert pauses[-1] >= 5
        assert sum(pauses[:6]) < sum(pauses[6:])


@pytest.mark.parametrize(
    ("header", "least"),
    [
        ("Retry-After: 7\r\n", 7),
        ("Retry-After: -7\r\n", 0.05),
        ("Retry-After: soon\r\n", 0.05),
        ("Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n", 0.05),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_the_service_says_how_long_to_wait(status, header, least):
    with asked_of(bytes_of(status, more=header), GOOD) as (target, pauses):
        target.answer(BATCH)
        assert len(pauses) == 1
        assert least <= pauses[0] <= least + 0.1


def test_too_long_a_wait_ends_the_run_at_once():
    trouble = bytes_of(503, more="Retry-After: 99999\r\n")
    with asked_of(trouble, GOOD) as (target, pauses):
        with pytest.raises(TargetError, match="go on when it is back"):
            target.answer(BATCH)
        assert not pauses


@pytest.mark.parametrize(
    ("trouble", "kind", "words"),
    [
        (bytes_of(401, error("unknown_token")), TargetError, "THINVEIL_TOKEN"),
        (bytes_of(403), TargetError, "THINVEIL_TOKEN"),
        (bytes_of(402, error("budget_spent", "no more", 0.25)), BudgetSpent, "0.25 is left"),
        (bytes_of(402, error("budget_spent", "no more", 3)), BudgetSpent, "3 is left"),
        (bytes_of(402, b"garbage"), BudgetSpent, "no reason"),
        (bytes_of(402, error("budget_spent", left="x")), BudgetSpent, "refuses"),
        (bytes_of(409, error("key_taken")), TargetError, "another batch"),
        (bytes_of(413, error("too_large")), TargetError, "413"),
        (bytes_of(422, error("malformed", "age\n\x1b[31m")), TargetError, r"422: age  \[31m"),
        (bytes_of(422, error("epsilon", "too small")), BudgetError, "too small"),
        (bytes_of(404, b"<html>"), TargetError, "404"),
        (bytes_of(418, b'{"error": 5}'), TargetError, "418"),
        (
            bytes_of(302, more="Location: http://elsewhere.example/\r\n"),
            TargetError,
            "sends elsewhere",
        ),
        (bytes_of(307, more="Location: /answers\r\n"), TargetError, "sends elsewhere"),
        (bytes_of(200, reply([[float("nan")], [1.0]])), TargetError, "finite"),
        (bytes_of(200, reply([[float("inf")], [1.0]])), TargetError, "finite"),
    ],
    ids=range(16),
)
def test_what_is_for_good_is_not_tried_again(trouble, kind, words):
    with asked_of(trouble, GOOD) as (target, pauses):
        with pytest.raises(kind, match=words):
            target.answer(BATCH)
        assert not pauses


def test_numbers_that_are_none_in_arrow():
    values = np.array([0.0, np.nan])
    stream = wire_arrow.encode_reply(wire.Reply("run-7", values, "0", "1", False))
    trouble = bytes_of(200, bytes(stream), wire_arrow.MEDIA_TYPE)
    with asked_of(trouble, GOOD) as (target, _), pytest.raises(TargetError, match="finite"):
        target.answer(BATCH)


def test_a_reply_that_never_comes_is_given_up():
    class Silent(socketserver.BaseRequestHandler):
        def handle(self):
            done.wait(60)

    done = threading.Event()
    with Hostile(("127.0.0.1", 0), Silent) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            with pytest.raises(TargetError, match="ReadTimeout"):
                HttpTarget(url, "t", timeout=0.1, patience=0)
        finally:
            done.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "facts",
    [
        {**PLAIN, "records": 0},
        {**PLAIN, "format": 2},
        {**PLAIN, "service": None},
        {**PLAIN, "limits": {}},
        {**PLAIN, "limits": {**PLAIN["limits"], "largest_batch": 0}},
        {**PLAIN, "limits": 5},
        {"hello": "world"},
    ],
)
def test_what_is_no_service_is_told(facts):
    with (
        hostile(200, facts) as url,
        pytest.raises(TargetError, match=r"not (a thinveil service|understood)"),
    ):
        HttpTarget(url, "t")


def test_a_run_that_lost_its_service_is_resumed(tmp_path):
    """The service is killed in the middle; the run goes on with it, and nothing is paid twice."""
    data = thinveil.load("people.csv")
    column: dict[str, Any] = {"attack": "column", "columns": ["postcode"]}
    whole = thinveil.audit(data, **column).run.meter
    with Process(tmp_path, "people.csv") as run:
        target = HttpTarget(run.url, run.tokens[0], patience=0)
        answer = target.answer

        def dying(batch):
            if batch.key[1] == 20:
                run.kill()
            return answer(batch)

        target.answer = dying  # type: ignore[method-assign]
        cut = thinveil.audit(target, **column)
        assert cut.run.ending == "target"
        assert cut.exit_code == 1
        assert Path(sure(cut.transcript)).is_file()
        target.close()
        run.start()
        fresh = HttpTarget(run.url, run.tokens[0])
        verdict = thinveil.audit(fresh, resume=cut.transcript, truth=data)
        assert verdict.result[0]["exact"]
        assert verdict.run.meter.replayed == 19
        now = fresh.ledger()
        assert verdict.run.meter.queries == whole.queries
        assert now["answers"] == verdict.run.meter.drawn
        assert Fraction(now["exact"]["spent"]) == verdict.run.spent
        fresh.close()


@pytest.fixture(autouse=True)
def _table(tmp_path):
    names = DATA.schema.names
    rows = [",".join(map(str, row)) for row in DATA.rows()]
    (tmp_path / "people.csv").write_text("\n".join([",".join(names), *rows]))


def test_a_batch_without_a_key_gets_a_fresh_one(tmp_path):
    with served(DATA, thinveil.idp(), tmp_path) as service:
        target = HttpTarget(service.url, service.tokens["analyst"])
        for _ in range(2):
            target.answer(replace(BATCH, key=None))
        odd = BATCH.stamped(("a run\nwith lines", 1), 0.01)
        for _ in range(2):
            target.answer(odd)
        assert target.ledger()["batches"] == 3
        target.close()


def test_a_mechanism_of_a_plug_in_is_served_and_attacked(tmp_path, install):  # noqa: F811
    install(WINDOW)
    site = str(tmp_path / "site" / "their-package")
    with Process(tmp_path, "--mechanism", "mine", PYTHONPATH=site) as run:
        target = HttpTarget(run.url, run.tokens[0])
        assert target.facts.claim == claim_named("mine")
        verdict = thinveil.audit(target, attack="count", known={"age": "30..50"})
        ages = thinveil.people().column(0)
        found = as_a(CountFound, verdict.run.found)
        assert found.count == ((ages >= 30) & (ages <= 50)).sum()
        target.close()


@pytest.mark.nightly
@pytest.mark.parametrize("place", sweep(["sqlite", "duckdb"], 2))
def test_a_database_is_served_and_attacked(tmp_path, place):
    pytest.importorskip("sqlglot")
    pytest.importorskip("duckdb")
    where = ["people.csv", "--engine", "duckdb"]
    if place == "sqlite":
        names = DATA.schema.names
        with closing(sqlite3.connect(tmp_path / "base.sqlite")) as base:
            base.execute(f"CREATE TABLE people ({', '.join(names)})")
            rows = [[str(value) for value in row] for row in DATA.rows()]
            base.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(names))})", rows)
            base.commit()
        where = ["sqlite://base.sqlite", "--table", "people"]
    with Process(tmp_path, *where) as run:
        target = HttpTarget(run.url, run.tokens[0])
        assert target.facts.records == 200
        verdict = thinveil.audit(target, attack="count", known={"job": "nurse"})
        found = as_a(CountFound, verdict.run.found)
        assert found.count == sum(row[2] == "nurse" for row in DATA.rows())
        run.kill()
        run.start()
        assert run.ledger()["answers"] == verdict.run.meter.drawn
        target.close()
