"""What is known of people may be written as in the table."""

import re
from pathlib import Path

import pytest

from thinveil.commands.main import run
from thinveil.curator.tables.files import load
from thinveil.language.schema_file import read_schema

ROWS = (
    'Wert;Datum;Kat;n;da\n"1.234,567";31.12.1990;x;<5;Y\n"12,25";01.02.1991;y;-;n\n'
    '"2.345";05.06.1992;z;7;N\n'
)


@pytest.mark.parametrize(
    ("known", "who"),
    [
        ("Wert=1234.567", "x"), ("Wert=2.345", "z"), ("n=-", "y"),
        ("Datum=31.12.1990", "x"), ("Datum=1992-06-05", "z"), ("n=<5", "x"), ("da=Y", "x"),
    ],
)  # fmt: skip
def test_a_known_value_is_written_as_in_the_table(
    known: str, who: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, found = tmp_path / "de.csv", tmp_path / "r.json"
    path.write_text(ROWS, "utf-8")
    words = ["--attack", "attribute", "--known", known, "--column", "Kat", "--json", str(found)]
    assert run(["audit", str(path), *words]) == 0
    assert f'"value": "{who}"' in found.read_text("utf-8")
    said = "--known Wert: read as the table writes it, like 1.234,56"
    assert (said in capsys.readouterr().err) == (known == "Wert=2.345")


def test_ranges_and_bounds_are_written_as_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "de.csv"
    path.write_text(ROWS, "utf-8")
    assert run(["audit", str(path), "--attack", "count", "--known", "Wert=1.000..2.345"]) == 0
    assert "2 records match" in capsys.readouterr().out
    words = ["--attack", "attribute", "--known", "Kat=x", "--column", "Wert"]
    assert run(["audit", str(path), *words, "--prior", "Wert=1..2.345"]) == 0
    assert "1234.567" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "meant"),
    [
        ('x;g\n"1,234";a\n"2,345";b\n', ["1.234", "2.345"]),
        ("x;g\n1,234;2,5\n2,345;1,5\n", ["1234", "2345"]),
        ("x;g\n<1,234;a\n2,345;b\n", ["1.2335", "2.3450"]),
    ],
)
def test_what_a_note_says_of_the_other_format_can_be_followed_word_by_word(
    rows: str, meant: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, draft = tmp_path / "t.csv", tmp_path / "s.toml"
    path.write_text(rows, "utf-8")
    assert run(["schema", str(path), "--output", str(draft)]) == 0
    said = capsys.readouterr().err.partition("If that is wrong, say ")[2]
    text = draft.read_text("utf-8")
    for key, value in re.findall(r'(kind|step|format) = ("[^"]*"|[\d.]+)', said.splitlines()[0]):
        text = re.sub(rf"^{key} = .*", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
    if "wider bounds or none" in said:
        text = re.sub(r"^(lower|upper) = .*\n", "", text, flags=re.MULTILINE)
    draft.write_text(text, "utf-8")
    assert [str(row[0]) for row in load(path, read_schema(draft)).rows()] == meant
