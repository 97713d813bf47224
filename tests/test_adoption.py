"""The first steps of somebody new: a table to try, and messages whose way out works."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import thinveil
from thinveil.commands.doctor import Extra, Part
from thinveil.commands.main import run
from thinveil.curator.tables.doubting import doubts
from thinveil.errors import MissingExtra, to_install

BIG = [str(2**62 + 977 * number) for number in range(1, 13)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    told = capsys.readouterr()
    return " ".join((told.out + told.err).split())


# a table to try


@pytest.mark.parametrize("records", [1, 2, 60, 300])
def test_the_people_of_the_docs_can_be_written_and_read(records: int) -> None:
    assert run(["people", "--records", str(records), "--output", "people.csv"]) == 0
    made, read = thinveil.people(records), thinveil.load("people.csv")
    assert read.schema == made.schema
    assert read.rows() == made.rows()


def test_people_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["people", "--records", "5", "--seed", "7"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    Path("others.csv").write_text(told.out)
    assert thinveil.load("others.csv").rows() == thinveil.people(5, 7).rows()
    assert thinveil.people(5).rows() != thinveil.people(5, 7).rows()
    assert run(["people"]) == 0
    assert capsys.readouterr().out.count("\n") == 2001


def test_people_take_the_place_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").write_text("mine")
    assert run(["people", "--output", "people.csv"]) == 2
    assert "exists already" in said(capsys)
    assert Path("people.csv").read_text() == "mine"
    for wrong in (["--records", "0"], ["--seed", "-1"], ["--records", "10000000"]):
        assert run(["people", *wrong]) == 2


# numbers that are too large


def test_numbers_beyond_all_codes_are_rounded_down_and_that_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [f"{key},{30 + place}" for place, key in enumerate(BIG)]
    Path("keys.csv").write_text("\n".join(["key,age", *lines, ",50"]))
    assert run(["audit", "keys.csv"]) == 0
    message = said(capsys)
    assert "column 'key': rounded down to steps of 10, as neither" in message
    assert "exactly (at the stated precision)" in message
    assert not any(key in message for key in BIG)
    assert run(["schema", "keys.csv", "--output", "keys.toml"]) == 0
    key = thinveil.read_schema("keys.toml")[0]
    assert isinstance(key, thinveil.Grid)
    assert (key.kind, key.missing, key.rounded) == ("integer", True, True)
    rows = thinveil.load("keys.csv", thinveil.read_schema("keys.toml")).rows()
    assert rows[3] == (int(BIG[3]) // 10 * 10, 33)


def test_what_fits_is_drafted_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text(f"key,postcode\n{2**62 - 1},01067\n-4,97670\n")
    assert run(["schema", "t.csv", "--output", "t.toml"]) == 0
    drafted = thinveil.read_schema("t.toml")
    assert [each.kind for each in drafted] == ["integer", "category"]
    assert "Note:" not in said(capsys)


def test_decimals_that_are_too_fine_are_drafted_as_well() -> None:
    Path("t.csv").write_text("size\n1234567890123456.123456\n1.5\n")
    assert thinveil.load("t.csv").rows()[0] == (Decimal("1234567890123456.123"),)
    assert run(["schema", "t.csv", "--output", "t.toml"]) == 0
    assert thinveil.load("t.csv", thinveil.read_schema("t.toml")).records == 2


# texts that may not be public


@pytest.mark.parametrize(
    ("names", "records", "doubted"), [(12, 12, True), (5, 20, True), (5, 21, False), (4, 4, False)]
)
def test_few_names_are_doubted_too(names: int, records: int, doubted: bool) -> None:
    texts = [chr(ord("a") + place % names) * 3 for place in range(records)]
    Path("t.csv").write_text("\n".join(["name", *texts]))
    data = thinveil.load("t.csv")
    found = doubts(data.schema, data.records).doubts
    assert [each.startswith(f"the column 'name' has {names} different") for each in found] == (
        [True] if doubted else []
    )


# how to install what is missing


class _Installed:
    def __init__(self, origin: Any) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.origin if self.origin is None else json.dumps(self.origin)


@pytest.mark.parametrize(
    ("origin", "folder"),
    [
        ({"url": "file:///home/somebody/thinveil", "dir_info": {"editable": True}}, True),
        ({"url": "file:///C:/thinveil", "dir_info": {}}, True),
        ({"url": "file:///tmp/thinveil-1.whl", "archive_info": {}}, False),
        ({"url": "https://example.org/t.git", "vcs_info": {}}, False),
        ([], False),
        (None, False),
    ],
)
def test_hints_fit_the_way_it_was_installed(
    monkeypatch: pytest.MonkeyPatch, origin: Any, folder: bool
) -> None:
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: _Installed(origin))
    hint = str(MissingExtra("The live page", "lab"))
    command = Extra("lab", (Part("fastapi", "", None),)).command
    if folder:
        assert hint.endswith("python -m pip install '.[lab]'  in the folder of the repository")
        assert command == "python -m pip install '.[lab]'"
        assert to_install(bare=True) == "python -m pip install '.'"
    else:
        assert hint.endswith("run  pip install 'thinveil[lab]'")
        assert command == "pip install 'thinveil[lab]'"
    assert "file:" not in hint
    assert "somebody" not in hint


def test_hints_do_without_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", gone)
    assert to_install("lab") == "pip install 'thinveil[lab]'"


# slips


def test_a_folder_without_tables_is_called_one() -> None:
    Path("data").mkdir()
    Path("data", "people.csv").write_text("age\n1\n")
    Path("data", "old.parquet").mkdir()
    code = (
        "import sys, importlib.util as util; find = util.find_spec\n"
        "hidden = dict.fromkeys(('duckdb', 'ibis'))\n"
        "sys.modules.update(hidden)\n"
        "util.find_spec = lambda name, *more: None if name in hidden else find(name, *more)\n"
        "from thinveil.commands.main import run; sys.exit(run(['audit', 'data']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: data: this is a folder")
    assert "give a CSV or Parquet file, a folder of Parquet files, or a database" in done.stderr
    assert "install" not in done.stderr


def test_a_missing_file_is_said_in_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = []
    for command in (["audit", "gone.x"], ["report", "gone.x"]):
        assert run(command) == 1
        words.append(said(capsys))
    assert words == ["Error: gone.x: there is no such file: check the path"] * 2


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ipd", "did you mean idp?"),
        ("dp-laplas", "did you mean dp-laplace?"),
        ("xyz", None),
        ("dp", "did you mean dp-laplace?"),
        ("dp-noisy", None),
    ],
)
def test_a_slip_in_a_mechanism_is_understood(
    name: str, meant: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "--mechanism", name]) == 2
    told = said(capsys)
    assert "choose from bdp, dp-laplace" in told
    assert (meant in told) if meant else ("did you mean" not in told)
