"""Words at the command line: made-up people without doubts, nouns in the singular, suggestions."""

from __future__ import annotations

from pathlib import Path

import pytest

import thinveil
from thinveil.commands.main import run
from thinveil.curator.tables.inferring import doubts


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- made-up people ------------------------------------------------------------------------


@pytest.mark.parametrize("records", [*range(1, 40, 3), 60, 200])
def test_made_up_people_raise_no_doubt_of_their_own(records: int, here: Path):
    assert run(["people", "--records", str(records), "--output", "people.csv"]) == 0
    data = thinveil.load("people.csv")
    assert doubts(data.schema, data.records) == []


def test_the_same_texts_in_another_column_are_doubted(here: Path):
    assert run(["people", "--records", "40", "--output", "people.csv"]) == 0
    text = (here / "people.csv").read_text().replace("postcode", "patient", 1)
    (here / "others.csv").write_text(text)
    data = thinveil.load("others.csv")
    assert [each.split("'")[1] for each in doubts(data.schema, data.records)] == ["patient"]


def test_the_same_people_are_written_again_without_complaint(here: Path, capsys):
    line = ["people", "--records", "30", "--output", "people.csv"]
    assert run(line) == 0
    assert "Wrote people.csv: 30 made-up people." in capsys.readouterr().err
    assert run(line) == 0
    assert "people.csv holds 30 made-up people already." in capsys.readouterr().err
    assert run([*line, "--seed", "7"]) == 2, "other people are never written over"
    assert "exists already" in capsys.readouterr().err
    assert run(["people", "--records", "1", "--output", "one.csv"]) == 0
    assert "1 made-up person." in capsys.readouterr().err


def test_a_value_outside_what_was_believed_is_marked(here: Path, capsys):
    assert run(["people", "--records", "60", "--output", "people.csv"]) == 0
    line = ["audit", "people.csv", "--attack", "attribute", "--known", "age=40"]
    for prior, marked in (("2000..4000", False), ("20000..40000", True)):
        capsys.readouterr()
        assert run([*line, "--column", "salary", "--prior", f"salary={prior}"]) == 0
        assert ("2640.62 (outside --prior)" in capsys.readouterr().out) is marked
