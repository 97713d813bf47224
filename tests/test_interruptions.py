"""Ctrl-C ends commands cleanly, whenever it comes."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processes import python
from thinveil.commands.main import run
from worlds import sweep


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
        from thinveil.commands import interruptions
        interruptions.at_once()
        os.kill(os.getpid(), signal.SIGINT)
        print("still here")
    """
    assert "still here" in python(code)
