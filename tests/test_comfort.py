"""Small comforts: a quick start, completion, help, logs and colours."""

from __future__ import annotations

import ast
import copy
import json
import logging
import os
import pickle
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

import thinveil
from pages import examples
from processes import package, python
from services import served
from thinveil.commands import doctor, main
from thinveil.commands.doctor import Extra, Part
from thinveil.commands.main import _COMMANDS, cli, run
from thinveil.language import plugins
from thinveil.language.claims import claim_named
from worlds import sweep

TEXT = "Kanarienvogel"
NUMBER = 918_273_645
COMPLETING = {
    "_THINVEIL_COMPLETE": "bash_complete", "COMP_WORDS": "thinveil a", "COMP_CWORD": "1",
}  # fmt: skip
HEAVY = ("numpy", "rich", "pyarrow", "pandas", "vl_convert", "fastapi", "thinveil.auditing.driver")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "THINVEIL_BANK"):
        monkeypatch.delenv(name, raising=False)
    logging.getLogger("thinveil").setLevel(logging.NOTSET)
    yield
    assert logging.getLogger("thinveil").level == logging.NOTSET


# -- a quick start -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["--help"], {}),
        (["--version"], {}),
        (["completion", "bash"], {}),
        (["completion", "--help"], {}),
        (["doctor", "--help"], {}),
        ([], COMPLETING),
    ],
    ids=["help", "version", "completion", "completion help", "doctor help", "completing"],
)
def test_what_needs_no_table_imports_nothing_heavy(
    words: list[str], environment: dict[str, str]
) -> None:
    code = """
        import json, sys
        from thinveil.__main__ import main
        try:
            main()
        except SystemExit as leaving:
            assert not leaving.code, leaving.code
        print("\\n" + json.dumps(sorted(sys.modules)))
    """
    said, _, modules = python(code, *words, **environment).rstrip().rpartition("\n")
    assert said
    assert not {*HEAVY} & {*json.loads(modules)}


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = """
        import json, sys
        before = set(sys.modules)
        import thinveil
        print(json.dumps(sorted(set(sys.modules) - before)))
    """
    found = json.loads(python(code))
    assert not {*HEAVY} & {*found}
    assert [each for each in found if each.startswith("thinveil")] == ["thinveil"]


def test_each_public_name_is_written_once_in_each_place() -> None:
    source = Path(thinveil.__file__).read_text("utf-8")
    [block] = [each for each in ast.parse(source).body if isinstance(each, ast.If)]
    for_tools = {
        alias.name: each.module
        for each in block.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    assert for_tools == {name: f"thinveil.{home}" for name, home in thinveil._HOME.items()}
    assert set(thinveil.__all__) == set(for_tools)


def test_public_names_work_in_whatever_order_modules_are_imported() -> None:
    code = """
        import thinveil.auditing.driver
        from thinveil.auditing import options
        import thinveil, importlib
        assert callable(thinveil.audit), thinveil.audit
        assert thinveil.Options is options.Options
        assert issubclass(thinveil.ThinveilError, thinveil.errors.ThinveilError)
        assert {*thinveil.__all__, "__version__"} <= set(dir(thinveil))
        from thinveil import *
        assert audit is thinveil.audit and people(3).records == 3
        importlib.reload(thinveil)
        assert thinveil.audit is audit
        try:
            thinveil.nothing
        except AttributeError as error:
            print(error)
    """
    assert "has no attribute 'nothing'" in python(code)
    first = (
        "import thinveil\nassert thinveil.people(2).records == 2\nimport thinveil.verdicts.audit\n"
    )
    python(first + "assert callable(thinveil.audit)")


def test_public_values_can_be_pickled_and_copied() -> None:
    for value in (thinveil.Options(k=2), thinveil.idp(2), thinveil.people(2).schema):
        assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)


def test_the_version_stands_where_the_build_looks_for_it() -> None:
    from hatchling.version.source.regex import RegexSource

    root = Path(thinveil.__file__).parents[2]
    if not (root / "pyproject.toml").exists():
        pytest.skip("only sources have a build")
    found = RegexSource(str(root), {"path": "src/thinveil/__init__.py"}).get_version_data()
    assert found["version"] == thinveil.__version__


# -- completion ----------------------------------------------------------------------------


@pytest.fixture
def completed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """Return what a shell is told for the last word of a line."""

    def complete(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_THINVEIL_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit) as leaving:
            run([])
        assert leaving.value.code == 0
        return capfd.readouterr().out.split()

    return complete


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("thinveil comp", ["plain,compare", "plain,completion"]),
        ("thinveil --ver", ["plain,--version", "plain,--verbose"]),
        ("thinveil audit --strategy p", ["plain,posterior", "plain,published"]),
        ("thinveil audit --attack co", ["plain,column", "plain,count"]),
        ("thinveil audit --mechanism idp-i", ["plain,idp-integer"]),
        ("thinveil compare --mechanism bd", ["plain,bdp"]),
        ("thinveil serve --mechanism un", ["plain,unprotected"]),
        ("thinveil audit peo", ["file,peo"]),
        ("thinveil audit people.csv --json ou", ["file,ou"]),
        ("thinveil audit --schema ", ["file,"]),
        ("thinveil schema peo", ["file,peo"]),
        ("thinveil reproduce se", ["plain,sensitivity"]),
        ("thinveil completion f", ["plain,fish"]),
        ("thinveil audit --known a", []),
        ("thinveil audit --column a", []),
    ],
)  # fmt: skip
def test_values_complete(
    line: str, expected: list[str], completed: Callable[[str], list[str]]
) -> None:
    assert completed(line) == expected


def test_all_commands_and_options_complete(completed: Callable[[str], list[str]]) -> None:
    assert completed("thinveil ") == [f"plain,{name}" for name in sorted(_COMMANDS)]
    options = completed("thinveil audit --")
    assert {"plain,--mechanism", "plain,--verbose", "plain,--json"} <= {*options}


def test_mechanisms_of_plugins_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, completed: Callable[[str], list[str]]
) -> None:
    package(tmp_path, "their-mechanisms", points={"thinveil.mechanisms": "staircase = x:y"})
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.forget()
    try:
        assert completed("thinveil audit --mechanism sta") == ["plain,staircase"]
    finally:
        monkeypatch.undo()
        plugins.forget()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_with_the_printed_script(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "thinveil"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m thinveil "$@"\n')
    program.chmod(0o755)
    script = """
        source <(thinveil completion bash) || exit 1
        complete -p thinveil || exit 2
        COMP_WORDS=(thinveil audit --strategy po) COMP_CWORD=3
        _thinveil_completion thinveil
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "posterior"
    assert "-F _thinveil_completion thinveil" in done.stdout


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "function ")]
)
def test_each_shell_has_a_script(shell: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert word in said
    assert f"_THINVEIL_COMPLETE={shell}_complete" in said


# -- help ----------------------------------------------------------------------------------


def test_help_ends_with_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "0 the command ran to its end, 1 an error, 2 wrong usage, 3 ended early" in said


@pytest.mark.parametrize("name", [None, *sorted(_COMMANDS)])
def test_examples_are_there_and_can_be_parsed(
    name: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*([name] if name else []), "--help"]) == 0
    said = capsys.readouterr().out
    assert "Examples:" in said
    assert "-v, --verbose" in said
    lines = [line for line in examples(name or "").lines() if line.startswith("thinveil ")]
    assert any(line.startswith(f"thinveil {name or ''}") for line in lines)
    for line in lines:
        words = shlex.split(line.partition(" > ")[0])[1:]
        for word in words[1:]:
            if re.fullmatch(r"[\w-]+\.\w+", word):
                Path(word).touch()  # some commands want their files there
        with cli.make_context("thinveil", [*words]) as context:
            _, command, rest = cli.resolve_command(
                context, [*context._protected_args, *context.args]
            )
            assert command is not None
            command.make_context(words[0], rest, parent=context)


# -- logs ----------------------------------------------------------------------------------


@pytest.fixture
def canaries(tmp_path: Path) -> str:
    lines = [f"{TEXT}-{each % 7:03},{NUMBER + 1000 * each}" for each in range(12)]
    path = tmp_path / "canaries.csv"
    path.write_text("\n".join(["name,pay", *lines]) + "\n")
    return str(path)


def logged(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run a command with -vv; return what it writes to the error stream, free of canaries."""
    assert run(["-vv", *words]) == code
    errors = capsys.readouterr().err
    plain = errors.replace(",", "").replace("_", "").lower()
    assert TEXT.lower() not in plain
    assert str(NUMBER)[:6] not in plain
    assert not re.search(r"\bmore_than|threshold|\bpay=|name=", errors)
    assert logging.getLogger("thinveil").handlers == []
    return errors


WATCHED = [
    *sweep([
        ["--strategy", "published"], ["--strategy", "thrifty"], ["--strategy", "posterior"],
        ["--mechanism", "bdp"], ["--mechanism", "idp-noisy", "--epsilon-per-query", "2"],
    ], 3),
    ["--engine", "duckdb"],
    ["--attack", "column", "--column", "pay"],
    ["--attack", "membership", "--known", f"name={TEXT}-003"],
    ["--attack", "attribute", "--known", f"pay={NUMBER}"],
    ["--attack", "count", "--known", f"pay={NUMBER}..{NUMBER + 5000}"],
]  # fmt: skip


@pytest.mark.parametrize("words", WATCHED, ids=lambda words: " ".join(words[:2]))
def test_logs_hold_no_value(
    words: list[str], canaries: str, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = logged(capsys, "audit", canaries, *words)
    assert "thinveil.auditing.sources: opening" in errors
    assert "canaries.csv" in errors
    assert re.search(r"auditing\.driver: round 1: \d+ questions, \d+ answers drawn", errors)
    assert "ended (complete)" in errors


def test_logs_of_an_interrupted_and_resumed_run_hold_no_value(
    canaries: str, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = logged(capsys, "audit", canaries, "--transcript", "run", "--max-queries", "60", code=3)
    assert "keeping the transcript in run" in errors
    assert "ended (cap)" in errors
    errors = logged(capsys, "audit", "--resume", "run", code=3)
    assert re.search(r"run holds \d+ answered batches", errors)
    assert "answers replayed" in errors


def test_logs_of_a_service_hold_neither_value_nor_token(
    canaries: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with served(thinveil.load(canaries), claim_named("idp"), tmp_path) as service:
        monkeypatch.setenv("THINVEIL_TOKEN", service.tokens["analyst"])
        errors = logged(capsys, "audit", service.url, "--attack", "column", "--column", "name")
    assert f"{service.url} answers; batches travel as Arrow" in errors
    assert service.tokens["analyst"] not in errors
    errors = logged(capsys, "audit", service.url, "--patience", "0.3", code=1)
    assert re.search(r"ConnectError; attempt 2 in \d\.\d s", errors)


def test_a_password_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    errors = logged(capsys, "audit", "postgresql://ann:geheim@127.0.0.1:1/x", code=1)
    assert "opening postgresql://ann@127.0.0.1:1/x" in errors
    assert "geheim" not in errors


def test_logs_are_off_unless_asked_for_and_come_in_two_depths(
    canaries: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def errors(*words: str) -> str:
        assert run([*words]) == 0
        return capsys.readouterr().err

    assert "thinveil.audit" not in errors("audit", canaries)
    for words in (["-v", "audit", canaries], ["audit", canaries, "--verbose"]):
        said = errors(*words)
        assert "ended (complete)" in said
        assert "round 1:" not in said
    for words in (["-v", "audit", canaries, "-v"], ["audit", "-vv", canaries]):
        said = errors(*words)
        assert said.count("round 1:") == said.count("asking under") == 1
    assert "thinveil.audit" not in errors("audit", canaries)


# -- colours and widths --------------------------------------------------------------------

ESCAPE = "\x1b["


def written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, **environment: str
) -> tuple[str, str]:
    with monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm-256color")
        for name, value in environment.items():
            patch.setenv(name, value)
        assert run(["audit", "--attack", "membership", "--known", "age=34"]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_escape_codes_are_written_only_where_they_are_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, errors = written(capsys, monkeypatch)
    assert ESCAPE not in out + errors
    out, errors = written(capsys, monkeypatch, FORCE_COLOR="1")
    assert ESCAPE in out
    assert not re.search(r"\x1b\[(\?25|\d*[AK]|2K)", out + errors)  # nothing that moves
    out, errors = written(capsys, monkeypatch, FORCE_COLOR="1", NO_COLOR="1")
    assert ESCAPE not in out + errors
    out, errors = written(capsys, monkeypatch, FORCE_COLOR="1", TERM="dumb")
    assert ESCAPE not in out + errors


def on_a_terminal(*words: str, **environment: str) -> str:
    """Run a command on a terminal of its own; return everything that appears there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "thinveil", *words], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:  # Linux says that the other end is gone
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=60) == 0
    return seen.decode()


COLUMN = ("audit", "--attack", "column", "--column", "age", "--strategy", "published")


def test_a_terminal_gets_colours_and_bars() -> None:
    coloured = on_a_terminal(*COLUMN)
    assert re.search(r"\x1b\[\d+(;\d+)*m", coloured)
    assert "\x1b[?25l" in coloured  # the bar hides the cursor


@pytest.mark.nightly
def test_a_terminal_gets_neither_where_it_is_told_otherwise() -> None:
    plain = on_a_terminal(*COLUMN, NO_COLOR="1")
    assert not re.search(r"\x1b\[[\d;]*m", plain)
    assert ESCAPE not in on_a_terminal(*COLUMN, TERM="dumb")


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "small.csv"],
        ["audit", "small.csv", "--attack", "column", "--column", "age"],
        ["compare", "small.csv", "--mechanism", "idp", "--people", "4"],
        ["theory", "--records", "4"],
        ["reproduce", "sensitivity"],
        ["doctor"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_narrow_terminals_lose_nothing(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("small.csv").write_text("age,pay\n" + "".join(f"{20 + i},{i * 7}\n" for i in range(20)))
    monkeypatch.setattr(doctor, "extras", lambda: [Extra("spark", (Part("pyspark", ">=4", None),))])
    monkeypatch.setenv("COLUMNS", "60")
    assert run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert [line for line in lines if len(line) > 60] == []
    assert not any("…" in line for line in lines)


# -- the output goes away ------------------------------------------------------------------


@pytest.mark.parametrize("words", ["--help", "theory"])
def test_nobody_reads_the_output(words: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m thinveil {words} | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "thinveil", "theory", "--records", "4"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip() == "Error: cannot read or write: No space left on device"


def test_an_import_that_fails_points_to_the_doctor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str) -> click.Command:
        raise ImportError("bits are missing")

    monkeypatch.setattr(main, "_loaded", fail)
    assert run(["audit"]) == 1
    assert "thinveil doctor" in capsys.readouterr().err
