"""Replies that leave in whole spells, whatever counting took. No test here reads a real clock."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from services import asking, served
from thinveil.commands.main import run as command
from thinveil.curator.service.door import Settings
from thinveil.curator.service.pacing import Pace
from thinveil.curator.tables.dataset import Dataset

DATA = thinveil.people(80)


class Clock:
    """A clock that goes on when somebody works or sleeps, and writes down who slept how long."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert threading.current_thread().name.startswith("curator")
        self.slept.append(seconds)
        self.now += seconds

    def pace(self, spell: float) -> Pace:
        return Pace(spell, self, self.sleep)


class Slow:
    """A counter that takes the longer the more records it finds."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.took: list[float] = []

    def count(self, batch: Any) -> Any:
        counts = COUNTER.count(batch)
        self.took.append(0.001 * float(np.sum(counts)))
        self.clock.now += self.took[-1]
        return counts


COUNTER = DATA.counter()


def about(low: int, high: int) -> Any:
    return [{"boxes": [{"age": [low, high]}], "more_than": 5}]


@pytest.fixture
def paced(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = Clock()
    slow = Slow(clock)
    monkeypatch.setattr(Dataset, "counter", lambda self: slow)
    settings = Settings(pace=clock.pace(0.2))
    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "0.1"}, settings) as service:
        yield service, clock, slow


def test_rare_and_common_boxes_take_equally_long(paced: Any) -> None:
    service, clock, slow = paced
    for nth, (low, high) in enumerate([(0, 120), (118, 119), (20, 60)]):
        before = clock.now
        assert service.ask(asking(str(nth), about(low, high))).status_code == 200
        assert clock.now - before == pytest.approx(0.2)
    assert len(set(slow.took)) == 3  # counting itself took longer for some
    assert clock.slept == pytest.approx([0.2 - took for took in slow.took])


def test_refusals_of_a_batch_wait_as_long(paced: Any) -> None:
    service, clock, slow = paced
    assert service.ask(asking("once", about(0, 120))).status_code == 200
    refused = {
        402: asking("poor", about(0, 120), epsilon=5),
        409: asking("once", about(3, 4)),
        422: asking("odd", [{"boxes": [{"age": [1, 9]}, {"age": [3, 4]}], "more_than": 1}]),
        200: asking("once", about(0, 120)),  # given again, and nothing is counted
    }
    for status, body in refused.items():
        before = clock.now
        assert service.ask(body).status_code == status
        assert clock.now - before == pytest.approx(0.2)
    assert len(slow.took) == 1  # what is refused is not even counted
    slept = len(clock.slept)
    junk = {"key": "odd", "questions": "none"}  # it never comes to the curator's thread
    assert service.ask(junk).status_code == 422
    assert service.get("/ledger").status_code == 200  # it counts nothing, and waits for its turn
    assert len(clock.slept) == slept


def test_what_takes_longer_than_a_spell_takes_two(paced: Any) -> None:
    service, clock, slow = paced
    before = clock.now
    assert service.ask(asking("large", about(0, 120) * 5)).status_code == 200
    assert 0.2 < slow.took[0] < 0.5
    assert (clock.now - before) / 0.2 == pytest.approx(round((clock.now - before) / 0.2))
    assert clock.now - before > slow.took[0]


@given(st.floats(0, 1e4), st.floats(1e-3, 60))
def test_the_end_is_a_whole_number_of_spells(took: float, spell: float) -> None:
    now: list[float] = [50.0]
    slept: list[float] = []
    pace = Pace(spell, lambda: now[0], slept.append)
    began = pace.begin()
    now[0] += took
    pace.end(began)
    assert 0 <= slept[0] <= spell * (1 + 1e-9) + 1e-9
    spells = (took + slept[0]) / spell
    assert spells == pytest.approx(round(spells), abs=1e-6 * max(spells, 1))
    assert round(spells) >= 1


def test_without_a_spell_nobody_waits() -> None:
    def never(seconds: float) -> None:
        raise AssertionError

    pace = Pace(0.0, lambda: 3.0, never)
    pace.end(pace.begin())
    assert Settings().pace.spell == 0


@pytest.mark.parametrize("text", ["-1", "60001", "nan", "inf"])
def test_spells_out_of_range(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["serve", "--answer-after", text]) == 2
    assert "--answer-after" in capsys.readouterr().err
