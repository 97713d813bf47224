"""The curator behind HTTP: its contract, its statuses, and what it survives."""

import json
import logging
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np
import pytest
from bench.soaks.openapi import fuzz

import thinveil
from services import Process, asking, question, served
from thinveil.commands.main import run as command
from thinveil.curator.service import openapi
from thinveil.curator.service.door import Settings
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import LedgerError
from thinveil.language.policies import Policies
from thinveil.language.schema import Grid, Schema
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.facts import facts_from_plain
from thinveil.language.wire.limits import Limits
from worlds import sweep

DATA = thinveil.people(80)
LIMITS = Limits(10**6, 10**6, 10**8)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    settings = Settings(largest_batch=1000, largest_body=100_000)
    with served(DATA, thinveil.idp(), folder, {"analyst": "1", "poor": "0.01"}, settings) as made:
        yield made


def error_of(response, status, kind):
    """Return what an error says, after a look at its form."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == {"kind", "message", "field", "left"}
    assert error["kind"] == kind
    return error


def in_arrow(body):
    """Return a JSON body as an Arrow stream."""
    asked = wire.decode_batch(json.dumps(body).encode(), DATA.schema, LIMITS)
    return wire_arrow.encode_batch(asked)


def test_what_is_public(service):
    plain = service.get("/facts").json()
    facts = facts_from_plain(plain)
    assert facts == thinveil.Curator(DATA, thinveil.idp()).facts
    assert plain["limits"]["largest_batch"] == 1000
    assert plain["limits"]["largest_body"] == 100_000
    assert plain["service"] == service.accounts.ledger.service
    assert DATA.digest() not in json.dumps(plain)


def test_health_needs_no_token(service):
    response = service.client.get("/health")
    assert response.json() == {"status": "ok", "recording": True}
    assert response.headers["cache-control"] == "no-store"
    assert "server" not in response.headers


@pytest.mark.parametrize("path", ["/facts", "/ledger", "/answers"])
@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer thinveil-x", "Basic {}", "{}", "\xff"]
)
def test_who_is_unknown_gets_nothing(service, path, authorization):
    headers = {}
    if authorization is not None:
        headers = {
            "Authorization": authorization.format(service.tokens["analyst"]).encode("latin1")
        }
    method = "POST" if path == "/answers" else "GET"
    response = service.client.request(method, path, headers=headers)
    error_of(response, 401, "unknown_token")
    assert response.headers["www-authenticate"] == "Bearer"


def test_answers_are_answers(service):
    ages = DATA.column(0)
    body = asking("truth", questions=[
        {"boxes": [{"age": [None, None]}], "more_than": 3, "repeats": 2},
        {"boxes": [{"age": [1000, 2000]}], "more_than": 40},
        {"boxes": [{"age": [None, 60]}, {"age": [60, None]}], "more_than": -1},
    ])  # fmt: skip
    reply = service.ask(body).json()
    assert reply["answers"] == [[1.0, 1.0], [0.0], [1.0]]
    assert reply["key"] == "truth"
    assert reply["cost"] == "1/25"
    assert len(ages) == 80


def test_one_batch_in_two_forms_is_charged_once(service):
    before = service.get("/ledger").json()
    body = asking("both forms", 3, epsilon=0.001, repeats=2)
    first = service.ask(body).json()
    response = service.post(in_arrow(body))
    assert response.headers["content-type"] == wire_arrow.MEDIA_TYPE
    second = wire_arrow.decode_reply(response.content)
    assert second.again
    assert second.values.tolist() == [value for row in first["answers"] for value in row]
    after = service.get("/ledger").json()
    assert after["batches"] == before["batches"] + 1
    assert after["answers"] == before["answers"] + 6
    spent = Fraction(after["exact"]["spent"]) - Fraction(before["exact"]["spent"])
    assert spent == Fraction(6, 1000)


def test_a_key_with_another_body_is_refused(service):
    assert service.ask(asking("mine")).status_code == 200
    for other in (asking("mine", 2), asking("mine", epsilon=0.02), asking("mine", repeats=2)):
        assert error_of(service.ask(other), 409, "key_taken")["field"] == "key"
        error_of(service.post(in_arrow(other)), 409, "key_taken")
    assert service.ask(asking("mine"), "poor").status_code == 200  # another analyst's key


def test_a_spent_budget_is_told_with_what_is_left(tmp_path):
    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "0.025"}) as service:
        service.ask(asking("a", 2))
        error = error_of(service.ask(asking("b")), 402, "budget_spent")
        assert error["left"] == 0.005
        assert service.ask(asking("b", epsilon=0.005)).json()["left"] == "0"
        assert service.ask(asking("a", 2)).json()["again"]
        assert error_of(service.ask(asking("c")), 402, "budget_spent")["left"] == 0


def test_the_largest_batch_at_the_largest_loss_is_priced(service):
    error = error_of(service.ask(asking("huge", repeats=1000, epsilon=1e100)), 402, "budget_spent")
    assert 0 <= error["left"] <= 1


def test_policies_are_told_and_kept(tmp_path):
    policies = Policies(min_epsilon=0.005, max_queries=3)
    with served(DATA, thinveil.idp(), tmp_path, policies=policies) as service:
        assert service.get("/facts").json()["policies"] == {
            "min_epsilon": 0.005, "max_queries": 3, "cache": False,
        }  # fmt: skip
        error = error_of(service.ask(asking("a", epsilon=0.001)), 422, "epsilon")
        assert error["field"] == "epsilon"
        error_of(service.ask(asking("a", epsilon=None)), 422, "epsilon")
        assert service.ask(asking("a", 3)).status_code == 200
        assert error_of(service.ask(asking("b")), 402, "budget_spent")["left"] == 0.97


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (asking("m", questions=[question(more_than="x")]), "questions[0].more_than"),
        (asking("m", questions=[question(boxes=[{"wage": [1, 2]}])]), "questions[0].boxes[0]"),
        (asking("m", epsilon=-1), "epsilon"),
        (asking("m", repeats=0), "repeats"),
        (asking("m", questions=[question(boxes=[{"age": [1, 9]}, {"age": [3, 4]}])]), "questions"),
        ([], ""),
    ],
)
def test_what_is_malformed_is_named(service, body, field):
    assert error_of(service.ask(body), 422, "malformed")["field"] == field


def test_malformed_streams_are_named(service):
    assert error_of(service.post(b"no stream"), 422, "malformed")["field"] == ""
    nan = in_arrow(asking("m")).obj.to_pybytes().replace(
        np.float64(0.01).tobytes(), np.float64("nan").tobytes()
    )  # fmt: skip
    assert error_of(service.post(nan), 422, "malformed")["field"] == "epsilon"


def test_what_is_too_large_is_refused(service):
    error_of(service.ask(asking("l", 1001)), 413, "too_large")
    error_of(service.ask(asking("l", repeats=1001)), 413, "too_large")
    error_of(service.ask(asking("l", repeats=10**30)), 413, "too_large")
    error_of(service.post(b"x" * 100_001), 413, "too_large")

    def pieces():
        for _ in range(30):
            yield b"x" * 5_000

    headers = {**service.headers(), "Content-Type": wire_arrow.MEDIA_TYPE}
    response = service.client.post("/answers", content=pieces(), headers=headers)
    error_of(response, 413, "too_large")


def test_other_kinds_of_body_are_refused(service):
    for kind in ("text/plain", "application/xml", ""):
        error_of(service.post(b"{}", kind), 415, "wrong_type")
    headers = {**service.headers(), "Content-Encoding": "gzip"}
    response = service.client.post("/answers", json={}, headers=headers)
    error_of(response, 415, "wrong_type")


def test_other_addresses_and_methods(service):
    error_of(service.get("/nothing"), 404, "not_found")
    response = service.client.delete("/answers", headers=service.headers())
    error_of(response, 405, "wrong_method")
    assert response.headers["allow"] == "POST"


def test_too_many_requests_are_told_to_wait(tmp_path):
    budgets = {"analyst": "1", "other": "1"}
    with served(DATA, thinveil.idp(), tmp_path, budgets, Settings(rate=0.5)) as service:
        assert service.get("/ledger").status_code == 200
        response = service.get("/ledger")
        error_of(response, 429, "too_many_requests")
        assert response.headers["retry-after"] in ("1", "2")
        assert service.get("/ledger", "other").status_code == 200


def test_a_body_that_does_not_arrive_is_given_up(tmp_path):
    with served(DATA, thinveil.idp(), tmp_path, settings=Settings(body_seconds=0.2)) as service:
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 30) as line:
            line.sendall(
                f"POST /answers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {service.tokens['analyst']}\r\n"
                "Content-Length: 1000\r\n\r\n{".encode()
            )
            said = line.recv(10_000)
        assert said.startswith(b"HTTP/1.1 408 ")


def test_who_holds_much_is_refused_and_others_are_not(tmp_path):
    """Bodies that never end: the next of the same analyst is refused before it is read."""
    largest = 2**18
    settings, budgets = Settings(largest_body=largest), {"analyst": "1", "other": "1"}
    with served(DATA, thinveil.idp(), tmp_path, budgets, settings) as service:
        with ExitStack() as lines:
            for _ in range(3):
                line = lines.enter_context(service.connect())
                line.sendall(service.head(largest) + b" " * (largest - 1))
            until = time.monotonic() + 30
            said = b""
            while b" 503 " not in said and time.monotonic() < until:
                with service.connect() as late:
                    late.settimeout(0.2)
                    late.sendall(service.head(largest))
                    with suppress(TimeoutError):
                        said = late.recv(10_000)
            assert said.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1\r\n" in said
            assert service.ask(asking("a"), "other").status_code == 200
            spaces = b" " * (largest - 200)
            large = json.dumps(asking("b")).encode() + spaces
            assert service.post(large, "application/json", "other").status_code == 200
        while service.ask(asking("a")).status_code == 503 and time.monotonic() < until:
            time.sleep(0.02)
        assert service.ask(asking("a")).status_code == 200


class Gate:
    """Counts like another counter, once it is allowed to."""

    def __init__(self, counter):
        self.counter = counter
        self.open = threading.Event()
        self.reached = threading.Event()

    def count(self, batch):
        self.reached.set()
        assert self.open.wait(60)
        return self.counter.count(batch)


class Gated:
    """A table whose counter waits at a gate."""

    schema, records = DATA.schema, DATA.records

    def __init__(self):
        self.gate = Gate(DATA.counter())

    def digest(self):
        return DATA.digest()

    def counter(self):
        return self.gate


def test_health_answers_while_the_curator_works_and_the_queue_is_short(tmp_path):
    table = Gated()
    settings = Settings(waiting=1)
    with served(table, thinveil.idp(), tmp_path, settings=settings) as service:
        with ThreadPoolExecutor(1) as other:
            slow = other.submit(service.ask, asking("slow"))
            try:
                assert table.gate.reached.wait(60)
                assert service.client.get("/health").status_code == 200
                response = service.ask(asking("next"))
                error_of(response, 503, "unavailable")
                assert response.headers["retry-after"] == "1"
            finally:
                table.gate.open.set()
            assert slow.result().status_code == 200
        assert service.ask(asking("next")).status_code == 200


def test_without_a_ledger_there_are_no_answers(tmp_path, monkeypatch):
    with served(DATA, thinveil.idp(), tmp_path) as service:
        service.ask(asking("a"))

        def full(*given):
            raise LedgerError("there is no room")

        monkeypatch.setattr(service.accounts.ledger, "record", full)
        response = service.ask(asking("b"))
        error_of(response, 503, "unavailable")
        assert response.headers["retry-after"] == "2"
        assert service.client.get("/health").json()["recording"] is False
        monkeypatch.undo()
        assert service.get("/ledger").json()["batches"] == 1
        assert not service.ask(asking("b")).json()["again"]
        assert service.client.get("/health").json()["recording"] is True


def test_the_unexpected_says_nothing(tmp_path, monkeypatch, caplog):
    with served(DATA, thinveil.idp(), tmp_path) as service:

        def broken(*given):
            raise RuntimeError("canary 4711")

        monkeypatch.setattr(service.accounts, "answer", broken)
        with caplog.at_level(logging.DEBUG):
            error_of(service.ask(asking("a")), 500, "internal")
        assert "RuntimeError" in caplog.text
        assert "4711" not in caplog.text


def test_the_manual_works_without_the_rest_of_the_world(service):
    page = service.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "POST /answers" in page.text
    assert "<script" not in page.text
    assert "http" not in page.text
    document = service.client.get("/openapi.json").json()
    assert set(document["paths"]) == {"/facts", "/answers", "/ledger", "/health"}
    assert "salary" not in json.dumps(document)  # what the table is about needs a token


def test_the_json_in_the_docs_is_what_a_service_says(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "service.md").read_text("utf-8")
    facts, reply = map(json.loads, re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    [question] = re.findall(r"-d '(.*?)'\n", page, re.DOTALL)
    openapi.Facts.model_validate(facts)
    openapi.Answers.model_validate(reply)
    public = facts_from_plain(facts)
    table = Dataset(public.schema, np.array([[31, 0], [57, 2], [44, 1]]))
    with served(table, public.claim, tmp_path, {"analyst": "1"}) as service:
        assert {**service.get("/facts").json(), "service": facts["service"]} == facts
        given = service.ask(json.loads(question)).json()
    assert given["answers"][0] == reply["answers"][0]  # far from every count, so without noise
    assert len(given["answers"][1]) == len(reply["answers"][1])
    assert {**given, "answers": reply["answers"]} == reply


@pytest.mark.foreign
def test_generated_requests_get_documented_replies(tmp_path):
    pytest.importorskip("schemathesis")
    settings = Settings(rate=1e9)
    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "1000000"}, settings) as service:
        assert fuzz(service.url, service.tokens["analyst"], 120) > 70


def test_a_race_for_one_budget_ends_at_the_cap(tmp_path):
    """32 clients, each batch its own key: nothing passes the cap, and less than one is left."""
    batch, epsilon = 3, 0.001
    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "0.1"}) as service:

        def client(number):
            answered = 0
            for turn in range(20):
                response = service.ask(asking(f"{number}-{turn}", batch, epsilon))
                if response.status_code == 402:
                    break
                assert response.status_code == 200, response.text
                answered += sum(map(len, response.json()["answers"]))
            return answered

        with ThreadPoolExecutor(32) as clients:
            answered = sum(clients.map(client, range(32)))
        now = service.get("/ledger").json()
        assert now["answers"] == answered
        spent = Fraction(now["exact"]["spent"])
        assert spent == answered * Fraction(1, 1000)
        assert Fraction(1, 10) - batch * Fraction(1, 1000) < spent <= Fraction(1, 10)


def test_a_race_for_one_key_is_charged_once(tmp_path):
    with served(DATA, thinveil.claim_named("idp-noisy"), tmp_path) as service:
        with ThreadPoolExecutor(16) as clients:
            replies = list(clients.map(lambda _: service.ask(asking("one", 5)).json(), range(16)))
        assert len({json.dumps(reply["answers"]) for reply in replies}) == 1
        assert sum(not reply["again"] for reply in replies) == 1
        assert service.get("/ledger").json()["exact"]["spent"] == "1/20"


CANARIES = 718281828459 + 1_000_003 * np.arange(300)


def test_no_reply_header_or_log_holds_a_confidential_value(tmp_path, caplog):
    """Every way to go wrong, over a table of numbers that nobody could have by chance."""
    schema = Schema((Grid("secret"), Grid("other")))
    data = thinveil.Dataset(schema, np.stack([CANARIES, CANARIES[::-1] * 3], axis=1))
    said = []
    box = [{"secret": [None, 10**15], "other": [10**9, None]}]
    fine = {"key": "k", "epsilon": 0.01, "questions": [{"boxes": box, "more_than": 150}]}
    settings = Settings(largest_batch=50, largest_body=20_000)
    with (
        caplog.at_level(logging.DEBUG),
        served(data, thinveil.claim_named("idp-noisy"), tmp_path, settings=settings) as service,
    ):
        bodies = [
            fine,
            fine,
            {**fine, "epsilon": 0.02},
            {**fine, "key": "l", "epsilon": 5.0},
            {**fine, "key": "m", "epsilon": None},
            {**fine, "key": "n", "repeats": 51},
            {**fine, "questions": [{"boxes": box * 2, "more_than": 1}]},
            {**fine, "questions": [{"boxes": [{"x": []}], "more_than": 1}]},
            {**fine, "key": None},
            7,
        ]
        said += [service.ask(body) for body in bodies]
        said += [service.post(b"x"), service.post(b"x" * 30_000), service.post(b"x", "a/b")]
        said += [
            service.get(path) for path in ("/facts", "/ledger", "/docs", "/nothing", "/health")
        ]
        said += [service.client.get("/facts"), service.client.delete("/answers")]
    assert {each.status_code for each in said} >= {200, 401, 402, 404, 405, 409, 413, 415, 422}
    texts = [caplog.text]
    texts += [f"{each.headers} {each.text}" for each in said]
    numbers = {str(value) for value in data.codes.reshape(-1).tolist()}
    assert len(numbers) == 600
    for text in texts:
        assert not [number for number in numbers if number in text]
    assert "key='k' questions=1 answers=1 cost=1/100 again=False status=200" in caplog.text
    assert service.tokens["analyst"] not in caplog.text


def test_serve_prints_a_token_once_and_goes_on_where_it_stopped(tmp_path):
    with Process(tmp_path, "--mechanism", "idp", "--budget", "0.5", "--analyst", "ada=2") as run:
        assert len(run.tokens) == 2
        assert "people.ledger" in run.printed
        first = run.ask(asking("a")).json()
        assert run.stop() == 0
        assert run.tokens[0] not in run.log
        run.start()
        assert len(run.tokens) == 2
        assert "--new-token" in run.printed
        assert run.ask(asking("a")).json()["answers"] == first["answers"]
        assert run.ledger()["batches"] == 1
        assert run.ledger()["budget"] == 0.5
        assert run.stop(signal.SIGINT) == 0
        run.arguments = ("--mechanism", "idp", "--new-token", "analyst")
        run.start()
        assert len(run.tokens) == 3
        assert run.ask(asking("a")).status_code == 401
        run.tokens.reverse()
        assert run.ask(asking("a")).json()["again"]


def test_serve_refuses_what_cannot_be(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("thinveil.commands.serve._run", lambda *_: pytest.fail("it serves"))
    (tmp_path / "t.csv").write_text("age\n" + "\n".join(map(str, range(30))))
    with Process(tmp_path, "t.csv", "--token-file", "token") as run:
        token = tmp_path / "token"
        assert token.stat().st_mode & 0o777 == 0o600
        assert not run.tokens
        run.tokens.append(token.read_text().strip())
        assert run.ask(asking("a")).status_code == 200
        for code, words, others in (
            (1, "in use by another service", ("--port", "0")),
            (2, "cannot listen", ("--port", str(run.port), "--ledger", "other")),
        ):
            assert command(["serve", "t.csv", *others]) == code
            assert words in " ".join(capsys.readouterr().err.split())
    for code, words, arguments in (
        (1, "another table, mechanism or policy", ("t.csv", "--k", "2")),
        (2, "for good", ("t.csv", "--budget", "7")),
        (2, "exists already", ("t.csv", "--token-file", "token")),
        (2, "NAME=BUDGET", ("t.csv", "--analyst", "ada")),
        (2, "above zero", ("t.csv", "--ledger", "new", "--budget", "0")),
        (2, "above zero", ("t.csv", "--rate", "0")),
        (2, "at least 1", ("t.csv", "--largest-batch", "0")),
        (2, "knows no analyst", ("t.csv", "--new-token", "eve")),
    ):
        assert command(["serve", "--port", "0", *arguments]) == code
        assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("missing", sweep(["fastapi", "uvicorn"], 2))
def test_without_the_extra_nothing_is_made(tmp_path, missing):
    code = (
        "import sys, importlib.util as util; find = util.find_spec\n"
        f"util.find_spec = lambda name, *more: None if name == {missing!r} else find(name, *more)\n"
        "from thinveil.commands.main import run; sys.exit(run(['serve']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "[service]'" in done.stderr
    assert not list(tmp_path.iterdir())


def test_other_machines_are_warned_of(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("thinveil.commands.serve._run", lambda *_: None)
    assert command(["serve", "--host", "0.0.0.0", "--port", "0"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Warning: 0.0.0.0 can be reached from other machines" in printed


@pytest.mark.parametrize(("deaths", "fewest"), sweep([(1, 1), (4, 5)], 2))
def test_killed_at_random_moments_it_owes_nothing(tmp_path, deaths, fewest):
    """What was answered is in the ledger, once, wherever the process was when it died."""
    epsilon, budget = Fraction(1, 1000), Fraction(1, 2)
    chance = random.Random(0)
    got = {}
    with Process(tmp_path, "--mechanism", "idp-noisy", "--budget", "0.5") as run:
        for number in range(deaths):
            dying = threading.Timer(chance.uniform(0.05, 0.4), run.process.kill)
            dying.start()
            for turn in range(10_000):
                key = f"{number}-{turn}"
                try:
                    reply = run.ask(asking(key, 2, float(epsilon)))
                except httpx.TransportError:
                    break
                if reply.status_code == 402:
                    break
                got[key] = reply.json()["answers"]
            dying.join()
            run.kill()
            run.start()
            now = run.ledger()
            spent = Fraction(now["exact"]["spent"])
            assert spent == now["answers"] * epsilon
            assert len(got) * 2 * epsilon <= spent <= budget
            assert now["batches"] - len(got) <= number + 1  # at most one lost reply a death
            again = run.ask(asking(key, 2, float(epsilon)))
            if again.status_code == 200:
                got[key] = again.json()["answers"]
        assert len(got) >= fewest
        for key, answers in list(got.items())[::7]:
            reply = run.ask(asking(key, 2, float(epsilon))).json()
            assert reply["again"]
            assert reply["answers"] == answers
        assert run.ledger()["batches"] == len(got)


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit")
def test_a_full_disk_refuses_and_room_mends_it(tmp_path):
    with Process(tmp_path) as run:
        first = run.ask(asking("a")).json()
        free = resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (100, free[1]))
        for _ in range(3):
            response = run.ask(asking("b", 4))
            error_of(response, 503, "unavailable")
            assert response.headers["retry-after"] == "2"
        assert run.ledger()["exact"]["spent"] == "1/100"
        assert run.ask(asking("a")).json()["answers"] == first["answers"]
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, free)
        assert not run.ask(asking("b", 4)).json()["again"]
        assert run.ledger()["exact"]["spent"] == "1/20"
        run.kill()
        run.start()
        assert run.ledger()["exact"]["spent"] == "1/20"


@pytest.mark.nightly
def test_the_same_question_has_one_answer_for_ever(tmp_path):
    with Process(tmp_path, "--cache", "--mechanism", "idp-noisy") as run:
        first = run.ask(asking("a")).json()
        run.kill()
        run.start()
        second = run.ask(asking("b", epsilon=0.5)).json()
        assert second["answers"] == first["answers"]
        assert (first["cost"], second["cost"]) == ("1/100", "0")
        assert run.ledger()["answers"] == 2


def test_a_client_that_goes_away_leaves_nothing_behind(tmp_path, caplog):
    with (
        caplog.at_level(logging.DEBUG, "thinveil"),
        served(DATA, thinveil.idp(), tmp_path) as service,
    ):
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 30) as line:
            line.sendall(
                f"POST /answers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {service.tokens['analyst']}\r\n"
                "Content-Length: 1000\r\n\r\n{".encode()
            )
        until = time.monotonic() + 30
        while "went away" not in caplog.text and time.monotonic() < until:
            time.sleep(0.02)
        assert "went away" in caplog.text
        assert service.get("/ledger").json()["batches"] == 0
