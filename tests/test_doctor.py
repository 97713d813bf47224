"""thinveil doctor: what is there, what is missing, and what is broken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import metadata, requires
from pathlib import Path
from typing import Any

import pytest

import thinveil
from processes import package
from thinveil.commands import doctor
from thinveil.commands.doctor import Extra, Part, problem_of
from thinveil.commands.main import run
from worlds import sweep


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THINVEIL_BANK", raising=False)


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
    package(site, "thinveil", thinveil.__version__, needs=[*CORE, *needs], extras=[*wanted, "test"])
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
    assert "four times slower" in " ".join(said.split())
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


@pytest.mark.parametrize("extras", sweep(["without", "with"], 2))
def test_the_doctor_finds_this_installation_sound(
    extras: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if extras == "without":
        provided = metadata("thinveil").get_all("Provides-Extra") or ()
        monkeypatch.setattr(doctor, "HIDDEN", tuple(provided))
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
    monkeypatch.setattr(doctor, "_PATIENCE", 1)
    assert {each: problem_of(each) for each in ("sleeps", "works")} == {
        "sleeps": "it takes more than 1 seconds", "works": "",
    }  # fmt: skip
