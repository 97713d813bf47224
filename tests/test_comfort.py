"""Small comforts: a quick start, completion, help, the doctor, logs, colours and Ctrl-C."""

from __future__ import annotations

import ast
import copy
import importlib
import json
import logging
import os
import pickle
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import click
import pytest

import thinveil
from services import served
from thinveil.commands import doctor, main, parts
from thinveil.commands.main import _COMMANDS, cli, run
from thinveil.commands.parts import Extra, Part, problems_of
from thinveil.language import plugins
from thinveil.language.claims import claim_named

TEXT = "Kanarienvogel"
NUMBER = 918_273_645
COMPLETING = {
    "_THINVEIL_COMPLETE": "bash_complete", "COMP_WORDS": "thinveil a", "COMP_CWORD": "1",
}  # fmt: skip
HEAVY = ("numpy", "rich", "pyarrow", "pandas", "matplotlib", "fastapi", "thinveil.audit.driver")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "THINVEIL_BANK"):
        monkeypatch.delenv(name, raising=False)
    logging.getLogger("thinveil").setLevel(logging.NOTSET)
    yield
    assert logging.getLogger("thinveil").level == logging.NOTSET


# -- a quick start -------------------------------------------------------------------------


def python(code: str, *arguments: str, **environment: str) -> str:
    """Run Python in a process of its own and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    assert [each for each in found if each.startswith("thinveil")] == ["thinveil", "thinveil.audit"]


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
        import thinveil.audit.driver
        from thinveil.audit import options
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
    first = "import thinveil\nassert thinveil.people(2).records == 2\nimport thinveil.audit.audit\n"
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
    lines = [line.strip() for line in said.partition("Examples:")[2].splitlines()]
    examples = [line for line in lines if line.startswith("thinveil ")]
    assert any(line.startswith(f"thinveil {name or ''}") for line in examples)
    for line in examples:
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


# -- the doctor ----------------------------------------------------------------------------


def package(
    site: Path,
    name: str,
    version: str = "1.0",
    *,
    source: str | None = None,
    needs: list[str] | None = None,
    extras: list[str] | None = None,
    points: dict[str, str] | None = None,
) -> None:
    """Install a package as Python sees it: a folder with metadata, and perhaps a module."""
    module = name.replace("-", "_")
    info = site / f"{module}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in needs or ()]
    lines += [f"Provides-Extra: {each}" for each in extras or ()]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    if source is not None:
        (site / module).mkdir()
        (site / module / "__init__.py").write_text(source)
        (info / "RECORD").write_text(f"{module}/__init__.py,,\n")
    if points:
        text = "\n".join(f"[{group}]\n{line}\n" for group, line in points.items())
        (info / "entry_points.txt").write_text(text)


CORE = ["click>=8.1.7", "rich>=13"]


def examined(site: Path, *, code: int) -> tuple[dict[str, Any], str]:
    """Run the doctor where a folder of packages comes first."""
    done = subprocess.run(
        [sys.executable, "-m", "thinveil", "doctor", "--json", "-"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), done.stderr


def test_the_doctor_finds_what_is_broken(tmp_path: Path) -> None:
    site = tmp_path / "site"
    wanted = {
        "good": ["goodpart>=1"], "gone": ["nowhere-to-be-found>=1"], "fails": ["failing-part"],
        "dies": ["dying-part", "goodpart"], "late": ["goodpart<1"],
        "half": ["goodpart<1", "nowhere-to-be-found"], "both": ["thinveil[good,fails]"],
    }  # fmt: skip
    needs = [f"{each}; extra == '{name}'" for name, parts in wanted.items() for each in parts]
    package(site, "thinveil", thinveil.__version__, needs=[*CORE, *needs], extras=[*wanted, "dev"])
    package(site, "goodpart", "1.5", source="print('noise of its own')")
    package(site, "failing-part", source="raise RuntimeError('libnothing.so is missing')")
    package(site, "dying-part", source="import os\nos._exit(7)")
    package(site, "bad-plugin", points={"thinveil.mechanisms": "odd = nowhere:make"})
    found, said = examined(site, code=1)
    states = {each["name"]: each["state"] for each in found["extras"]}
    assert states == {
        "thinveil": "there", "good": "there", "gone": "missing", "fails": "broken",
        "dies": "broken", "late": "broken", "half": "missing", "both": "broken",
    }  # fmt: skip
    by_name = {each["name"]: each for each in found["extras"]}
    assert [part["name"] for part in by_name["both"]["parts"]] == ["failing-part", "goodpart"]
    assert "libnothing.so is missing" in by_name["fails"]["parts"][0]["problem"]
    assert "ends the interpreter (code 7)" in by_name["dies"]["parts"][0]["problem"]
    assert by_name["dies"]["parts"][1]["problem"] == ""
    assert by_name["gone"]["command"] == "pip install 'thinveil[gone]'"
    assert by_name["late"]["command"] == "pip install 'thinveil[late]'"
    assert by_name["fails"]["command"] == "pip install --force-reinstall 'failing-part'"
    assert [(each["name"], bool(each["problem"])) for each in found["plugins"]] == [("odd", True)]
    assert len(found["broken"]) == 5
    assert not found["sound"]
    for each in (
        "goodpart 1.5: needs <1",
        "no nowhere-to-be-found",
        "pip install 'thinveil[gone]'",
    ):
        assert each in " ".join(said.split())


def test_missing_extras_are_no_error(tmp_path: Path) -> None:
    site = tmp_path / "site"
    needs = [*CORE, "nowhere>=2; extra == 'fast'"]
    package(site, "thinveil", thinveil.__version__, needs=needs, extras=["fast"])
    found, said = examined(site, code=0)
    assert found["sound"]
    assert [each["state"] for each in found["extras"]] == ["there", "missing"]
    assert "hundred times slower" in " ".join(said.split())
    assert "pip install 'thinveil[fast]'" in said


def test_the_doctor_speaks_where_numpy_or_rich_are_broken(tmp_path: Path) -> None:
    for name in ("numpy", "rich"):
        site = tmp_path / name
        package(site, "thinveil", thinveil.__version__, needs=["click", name])
        package(site, name, "99", source="raise ImportError('bits are missing')")
        found, _ = examined(site, code=1)
        assert (
            f"{name} 99: cannot be imported (ImportError: bits are missing)" in found["broken"][0]
        )


def test_the_doctor_says_that_the_code_is_not_the_package(tmp_path: Path) -> None:
    package(tmp_path, "thinveil", "0.0.1", needs=CORE)
    found, _ = examined(tmp_path, code=1)
    assert "differ" in found["broken"][0]


def test_the_doctor_finds_this_installation_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json", "health.json"]) == 0
    found = json.loads(Path("health.json").read_text())
    said = capsys.readouterr().out
    core = [each for each in requires("thinveil") or () if "extra" not in each]
    names = {re.split(r"[^\w-]", each)[0] for each in core}
    assert {part["name"] for part in found["extras"][0]["parts"]} == names
    assert {"click", "numpy", "rich"} <= names
    for each in (
        "thinveil " + thinveil.__version__,
        "Nothing that is installed is broken",
        "numpy",
    ):
        assert each in said
    assert not re.search(r"https?://|pypi|index", said + json.dumps(found))


def test_parts_are_judged_together() -> None:
    sound, late = Part("a", ">=1", "1"), Part("b", "<2", "3", fits=False)
    gone, fails = Part("c", "", None), Part("d", ">=1", "1", problem="ImportError: x")
    assert Extra("x", (sound,)).state == "there"
    assert Extra("x", (sound, late)).state == "broken"
    assert Extra("x", (late, gone)).state == "missing"  # pandas 3 alone does no harm to Spark
    assert Extra("", (sound, gone)).state == "broken"
    assert Extra("x", (sound, fails)).command == "pip install --force-reinstall 'd>=1'"


def test_known_traps_are_noted() -> None:
    def notes(java: str | None, *extras: Extra) -> str:
        return " ".join(doctor._notes(extras, java))

    spark = Extra("spark", (Part("pyspark", ">=4", "4.0.1"),))
    assert "Java 17 or later: on Debian" in notes(None, spark)
    assert "finds 11.0.2" in notes("11.0.2", spark)
    assert notes("17.0.15", spark) == ""
    late = Extra("databases", (Part("sqlglot", "<28", "28.1", fits=False),))
    assert "Ibis 12 breaks with sqlglot 28" in notes(None, late)
    assert "uncompiled" in notes(None, Extra("fast", (Part("numba", "", None),)))


def test_java_is_asked_for_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.java_version() is None
    for said, found in (
        ('openjdk version "21.0.1" 2023', "21.0.1"),
        ('java version "1.8.0_1"', "8.0"),
    ):
        java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
        java.chmod(0o755)
        assert doctor.java_version() == found


def test_an_import_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sleeps.py").write_text("import time\ntime.sleep(600)")
    (tmp_path / "works.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(parts, "_PATIENCE", 1)
    assert problems_of(["sleeps", "works"]) == {
        "sleeps": "it takes more than 1 seconds", "works": "",
    }  # fmt: skip


# -- logs ----------------------------------------------------------------------------------


@pytest.fixture
def canaries(tmp_path: Path) -> str:
    lines = [f"{TEXT}-{each % 7:03},{NUMBER + 1000 * each}" for each in range(25)]
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
    ["--strategy", "thrifty"], ["--strategy", "published"], ["--strategy", "posterior"],
    ["--mechanism", "bdp"], ["--mechanism", "idp-noisy", "--epsilon-per-query", "2"],
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
    assert "thinveil.audit.sources: opening" in errors
    assert "canaries.csv" in errors
    assert re.search(r"thinveil\.audit\.driver: round 1: \d+ questions, \d+ answers drawn", errors)
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
        errors = logged(capsys, "audit", service.url)
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


def test_a_terminal_gets_colours_and_bars_unless_it_is_told_otherwise() -> None:
    words = ("audit", "--attack", "column", "--column", "age", "--strategy", "published")
    coloured = on_a_terminal(*words)
    assert re.search(r"\x1b\[\d+(;\d+)*m", coloured)
    assert "\x1b[?25l" in coloured  # the bar hides the cursor
    plain = on_a_terminal(*words, NO_COLOR="1")
    assert not re.search(r"\x1b\[[\d;]*m", plain)
    assert ESCAPE not in on_a_terminal(*words, TERM="dumb")


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


# -- Ctrl-C --------------------------------------------------------------------------------

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


needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")


@needs_signals
@pytest.mark.parametrize(
    ("moment", "words"),
    [
        *((f"import||{number}", ["audit"]) for number in (2, 37, 160, 290)),
        ("import|thinveil.experiments.compare|1", ["compare"]),
        ("import|thinveil.curator.service|1", ["serve", "--port", "0"]),
        ("import|thinveil.experiments.paper|1", ["reproduce", "sensitivity"]),
        ("open|small.csv|1", ["schema", "small.csv"]),
        ("open|small.csv|1", ["compare", "small.csv"]),
        ("subprocess.Popen||1", ["doctor"]),
    ],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_ctrl_c_before_anything_was_found_says_so_and_no_more(
    moment: str, words: list[str]
) -> None:
    Path("small.csv").write_text("age,pay\n" + "".join(f"{20 + i},{i * 7}\n" for i in range(20)))
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
    code, out, errors = at_round(
        5, "audit", "--strategy", "linear", "--force", "--json", "cut.json"
    )
    assert code == 3
    assert json.loads(Path("cut.json").read_text())["ended"] == "interrupted"
    assert "Verdict" in out
    assert "thinveil audit --resume" in errors


@needs_signals
def test_ctrl_c_in_a_comparison_shows_what_was_found_so_far() -> None:
    code, out, _ = at_round(40, "compare", "--json", "cut.json", "--people", "10")
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
