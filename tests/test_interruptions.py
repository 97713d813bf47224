"""Ctrl-C ends commands cleanly, whenever it comes."""

from __future__ import annotations

import importlib
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from processes import python
from thinveil.attacker.terms import Attack
from thinveil.auditing.driver import Run
from thinveil.auditing.driver import run as drive
from thinveil.commands.main import run
from thinveil.curator.curator import Curator
from thinveil.curator.tables.people import people
from thinveil.language.claims import claim_named
from thinveil.language.queries import About, batch_of
from worlds import schedule_for, sweep


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THINVEIL_BANK", raising=False)


MOMENT = """
import os, signal, sys
event, match, number = sys.argv[1].split("|")
left = int(number)
from thinveil.__main__ import main

def watch(name, details):
    global left
    if left and name == event and match in str(details[0]):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGINT)

sys.argv[:2] = ["thinveil"]
sys.addaudithook(watch)
main()
"""


def interrupted(moment: str, *words: str) -> tuple[int, str, str]:
    """Send a real SIGINT to a command at its nth event, such as the import of a module."""
    Path("moment.py").write_text(MOMENT)
    done = subprocess.run(
        [sys.executable, "moment.py", moment, *words],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def write_small() -> None:
    Path("small.csv").write_text("age,pay\n" + "".join(f"{20 + i},{i * 7}\n" for i in range(20)))


needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")


@needs_signals
@pytest.mark.parametrize(
    ("moment", "words"),
    [
        *((f"import||{number}", ["audit"]) for number in (2, 37, 160, 290)),
        *sweep(
            [
                ("import|thinveil.paper.experiments|1", ["reproduce", "sensitivity"]),
                ("import|thinveil.verdicts.comparing.compare|1", ["compare"]),
                ("import|thinveil.curator.service.app|1", ["serve", "--port", "0"]),
                ("open|small.csv|1", ["schema", "small.csv"]),
                ("open|small.csv|1", ["compare", "small.csv"]),
            ],
            3,
        ),
        ("subprocess.Popen||1", ["doctor"]),
    ],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_ctrl_c_before_anything_was_found_says_so_and_no_more(
    moment: str, words: list[str]
) -> None:
    write_small()
    code, out, errors = interrupted(moment, *words)
    assert (code, out, errors.strip()) == (3, "", "Interrupted.")


def at_round(number: int, *words: str) -> tuple[int, str, str]:
    """Send SIGINT when a command logs a round; return its exit code and what it wrote."""
    process = subprocess.Popen(
        [sys.executable, "-m", "thinveil", *words, "-vv"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        for line in process.stderr:
            if f"round {number}:" in line:
                break
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    return process.returncode, out, errors


@needs_signals
def test_ctrl_c_in_a_run_shows_what_was_found_so_far() -> None:
    write_small()
    code, out, errors = at_round(
        5, "audit", "small.csv", "--strategy", "linear", "--force", "--json", "cut.json"
    )
    assert code == 3
    assert json.loads(Path("cut.json").read_text())["ended"] == "interrupted"
    assert "Verdict" in out
    assert "thinveil audit --resume" in errors


@needs_signals
def test_ctrl_c_in_a_comparison_shows_what_was_found_so_far() -> None:
    write_small()
    code, out, _ = at_round(40, "compare", "small.csv", "--json", "cut.json", "--people", "4")
    assert code == 3
    assert out
    assert json.loads(Path("cut.json").read_text())["interrupted"]


@contextmanager
def interrupted_after(calls: int) -> Iterator[None]:
    """Send this process a SIGINT so many calls after the first round of an attack was answered."""
    left = 0

    def watch(frame: FrameType, event: str, what: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    class Rounds(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            nonlocal left
            if not left and "round 1:" in record.getMessage():
                left = calls
                sys.setprofile(watch)

    log, rounds = logging.getLogger("thinveil.auditing.driver"), Rounds()
    log.addHandler(rounds)
    log.setLevel(logging.DEBUG)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)
        log.setLevel(logging.NOTSET)
        log.removeHandler(rounds)


MOMENTS = np.random.default_rng(5).integers(1, 60_000, 150).tolist()


@needs_signals
@pytest.mark.parametrize("calls", sweep(MOMENTS, 15))
@pytest.mark.parametrize("command", ["audit", "compare"])
def test_ctrl_c_at_any_moment_is_no_bug(
    command: str, calls: int, capsys: pytest.CaptureFixture[str]
) -> None:
    write_small()
    with interrupted_after(calls):
        code = run([command, "small.csv", *(["--people", "4"] if command == "compare" else [])])
    shown = capsys.readouterr()
    assert "unexpected" not in shown.err
    if code == 0:  # it was done before
        assert command == "audit"
        return
    assert code == 3
    assert shown.out or "Interrupted." in shown.err


QUESTION = batch_of([([{0: (3, 7)}], 2)])


def driven(attack: Attack[str]) -> Run[str]:
    claim = claim_named("idp")
    return drive(attack, Curator(people(40), claim, seed=1), schedule_for(claim))


def thinks(seen: list[str], interruptions: int) -> Attack[str]:
    """Ask, think while interrupted, and ask again."""
    yield replace(QUESTION, about=About("one", 0.5, lambda: "half a thought"))
    for _ in range(interruptions):
        signal.raise_signal(signal.SIGINT)
        seen.append("thought on")
    yield replace(QUESTION, about=About("two", 0.7, lambda: "a whole thought"))
    return "done"


@needs_signals
def test_an_interruption_waits_until_a_thought_is_ended_and_a_second_does_not() -> None:
    seen: list[str] = []
    ended = driven(thinks(seen, 1))
    assert (ended.ending, ended.found, seen) == ("interrupted", "a whole thought", ["thought on"])
    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        driven(thinks(seen, 2))
    assert seen == ["thought on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@needs_signals
def test_an_interruption_in_the_last_thought_keeps_what_it_found() -> None:
    def attack() -> Attack[str]:
        yield QUESTION
        signal.raise_signal(signal.SIGINT)
        return "all of it"

    ended = driven(attack())
    assert (ended.ending, ended.found) == ("interrupted", "all of it")


def test_an_interrupted_reproduction_writes_the_figures_that_are_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce = importlib.import_module("thinveil.commands.reproduce")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce.simulation, "measure", stop)
    monkeypatch.setattr(reproduce, "_WITHOUT_DATA", ("sensitivity", "detector"))
    monkeypatch.setattr(reproduce.paper, "EXPERIMENTS", {})
    assert run(["reproduce", "all", "--json", "cut.json"]) == 3
    assert "Interrupted in the experiment detector" in capsys.readouterr().err
    assert len(json.loads(Path("cut.json").read_text())["rows"]) > 3


@needs_signals
def test_a_process_that_ignores_interruptions_goes_on_to() -> None:
    code = """
        import os, signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from thinveil.commands.shared import interruptions
        interruptions.at_once()
        os.kill(os.getpid(), signal.SIGINT)
        print("still here")
    """
    assert "still here" in python(code)
