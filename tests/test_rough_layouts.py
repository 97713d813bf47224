"""Text files written by hand: spaces, decimal commas, titles, blank lines and no header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from thinveil.commands.main import run
from thinveil.curator.tables.files import load, read_columns
from thinveil.curator.tables.reading import Reading
from thinveil.errors import DataError

SPACES = "spaces before a field are no part of it (--separator , keeps them)"


def read(folder: Path, text: str, **how: Any) -> tuple[list[str], list[tuple[str, ...]], str]:
    """Write a table, and return its names, its rows, and what was said."""
    path = folder / "table.csv"
    path.write_bytes(text.encode())
    raw = read_columns(path, Reading(**how))
    texts = [[each.texts[at] or "" for at in each.index.tolist()] for each in raw.columns]
    return (
        [each.name for each in raw.columns],
        list(zip(*texts, strict=True)),
        "; ".join(raw.assumed),
    )


@pytest.mark.parametrize(
    ("text", "names", "row"),
    [
        ('a,b\n1, "x, y"\n2, "z"\n', ["a", "b"], ("1", "x, y")),
        ('a,b\n1, "x"\n2, "y"\n', ["a", "b"], ("1", "x")),
        ("a, b\n1, x\n2,y\n3, x\n", ["a", "b"], ("1", "x")),
        ("a,b,c\n1, x,2\n2, y,3\n3,z,4\n", ["a", "b", "c"], ("1", "x", "2")),
        ('a,b,c\n1,x, "p"\n2,y,q\n3,z,r\n4,z,r\n', ["a", "b", "c"], ("1", "x", "p")),
        ('a,b\n1,  5" x\n2, 6" y\n', ["a", "b"], ("1", '5" x')),
    ],
)
def test_spaces_before_fields(
    tmp_path: Path, text: str, names: list[str], row: tuple[str, ...]
) -> None:
    found, rows, said = read(tmp_path, text)
    assert (found, rows[0], said) == (names, row, SPACES)


def test_a_quotation_mark_after_another_separator_and_spaces(tmp_path: Path) -> None:
    assert read(tmp_path, 'a;b\n1; "x; y"\n2; "z"\n')[1] == [("1", "x; y"), ("2", "z")]
    with pytest.raises(DataError, match="line 3 has 3 fields"):  # and no table parted by spaces
        read(tmp_path, 'a,b\n1, "x y"\n2, "z",\n3, "w"\n')


def test_spaces_that_stay(tmp_path: Path) -> None:
    for text, kept, row in (
        ("a,b\nx,1\n y,2\nz,3\n", 1, ("x", "1")),
        ('a,b\nAnn, said "no"\nBob, "well" he\n', 2, ("Ann", ' said "no"')),
    ):
        _, rows, said = read(tmp_path, text)
        assert rows[0] == row
        assert said.startswith(f"words begin with spaces in {kept} of the first ")
    for text in ("a,b\n1, 2\n3, 4\n", '"a","b"\n"1"," x"\n"2"," y"\n', 'a,b\n1,"x, ""y"""\n'):
        assert read(tmp_path, text)[2] == ""  # numbers, and what is quoted


@pytest.mark.parametrize(
    "numbers", ["1,5 2,5 3,75", "12,5 7,25 3,75", "12,5 7 -3,75", "1.234,5 2,5", "1,5% 2,5%"]
)
def test_one_column_with_decimal_commas(tmp_path: Path, numbers: str) -> None:
    texts = numbers.split()
    found = read(tmp_path, "the price\n" + "\n".join(texts) + "\n")
    assert found == (["the price"], [(each,) for each in texts], "")


def test_rows_that_only_look_like_decimals(tmp_path: Path) -> None:
    assert read(tmp_path, '"x"\n"1",5\n"2",6\n')[:2] == (["x"], [("5",), ("6",)])  # R
    assert read(tmp_path, "1,5\n2,6\n")[0] == ["column 1", "column 2"]


@pytest.mark.parametrize(
    "lines",
    [
        "address/12 Main/13 Oak/14 Elm",
        "address/1 Main/2 Oak/3 Elm",
        "text/hello world 5/bye world 6",
        "sizes/12 13 14/15 16 17",
    ],
)
def test_a_word_above_words_and_numbers_is_one_name(tmp_path: Path, lines: str) -> None:
    name, *texts = lines.split("/")
    found = read(tmp_path, "\n".join([name, *texts]) + "\n")
    assert found == ([name], [(each,) for each in texts], "")


def test_where_spaces_separate(tmp_path: Path) -> None:
    for text, names in (
        ("a b\n1 x\n2 y\n", ["a", "b"]),
        ('"x"\n"1" "head nurse"\n"2" "nurse"\n', ["x"]),
        ("x\n1 5\n2 6\n3 7\n", ["x"]),
        ("Title\nx y\n1 2\n3 4\n", ["x", "y"]),
        ("1 2\n3 4\n", ["column 1", "column 2"]),
    ):
        found, _, said = read(tmp_path, text)
        assert (found, "spaces separate the fields" in said) == (names, True)
    found, rows, said = read(tmp_path, "12 Main\n13 Oak\n")
    assert (found, rows) == (["column 1"], [("12 Main",), ("13 Oak",)])
    assert "line 1 has numbers like the lines below" in said


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ("Report,,\n,,\n", "lines 1 and 2 are"),
        ("Report,,\nof May,,\n", "lines 1 and 2 are"),
        ("Report,,\n,,\nof May,,\n,,\n", "lines 1 to 4 are"),
    ],
)
def test_titles_and_empty_rows_as_spreadsheets_save_them(
    tmp_path: Path, above: str, said: str
) -> None:
    names, rows, told = read(tmp_path, above + "a,b,c\n1,2,3\n4,5,6\n")
    assert (names, rows) == (["a", "b", "c"], [("1", "2", "3"), ("4", "5", "6")])
    assert told.startswith(f"{said} taken as titles above the table")
    ends = "".join(f"{line},\n" for line in (above + "a,b,c\nx,2,3\ny,5,6").split("\n"))
    assert read(tmp_path, ends)[0] == ["a", "b", "c"]


def test_titles_above_two_columns_and_rows_with_gaps(tmp_path: Path) -> None:
    assert read(tmp_path, "Report,\n,\na,b\n1,2\n3,4\n")[0] == ["a", "b"]
    assert read(tmp_path, "name,,\nann,,\nbob,1,2\ncid,,\n")[0][0] == "name"
    assert len(read(tmp_path, "a,b,c\nx,,\n,,\ny,5,6\n")[1]) == 3


def test_blank_lines_of_one_column(tmp_path: Path) -> None:
    assert read(tmp_path, "name\nann\nbob\n\n\n") == (["name"], [("ann",), ("bob",)], "")
    assert read(tmp_path, 'name\nann\n""\n\n')[1:] == ([("ann",), ("",)], "")
    _, rows, said = read(tmp_path, "name\nann\n\n\nbob\n\n")
    assert rows == [("ann",), ("",), ("",), ("bob",)]
    assert said == (
        "2 blank lines above the last value are read as missing values: take them out where no "
        "record is meant"
    )


def test_a_first_row_whose_texts_occur_again(tmp_path: Path) -> None:
    for text in ("red,blue\nblue,red\nred,red\nblue,blue\n", "yes\nno\nyes\nyes\n"):
        names, rows, said = read(tmp_path, text)
        assert (names[0], len(rows)) == ("column 1", 4)
        assert said.startswith("line 1 has texts that all occur in the lines below, so no line")
        assert "red" not in said
        assert len(read(tmp_path, text, header=1)[1]) == 3
    names, rows, said = read(tmp_path, "Ann,F\nBob,M\nCid,M\nDora,F\n")
    assert (names, len(rows)) == (["Ann", "F"], 3)
    assert said == (
        "line 1 is taken as the header, though 1 of its 2 names also is among the values below "
        "(--header none reads it as a row)"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,age\nname,5\nx,6\n", False),
        ("name,job\nx,y\nname,job\nz,w\n", True),
        ("age\n5\nage\n6\n", False),
        ("word\nname\nword\nlist\n", True),
        ("NA,x\nNA,y\nNA,z\n", False),
    ],
)
def test_headers_that_stay(tmp_path: Path, text: str, said: bool) -> None:
    names, rows, told = read(tmp_path, text)
    assert (names, len(rows)) == (text.split("\n")[0].split(","), text.count("\n") - 1)
    assert ("is taken as the header, though" in told) == said


@pytest.mark.parametrize(
    "text",
    [
        "price\n1,5\n2,5\n",
        "address\n12 Main\n13 Oak\n",
        "Report,,\n,,\na,b,c\n1,2,3\n4,5,6\n",
        "red,blue\nblue,red\nred,red\n",
        'name\nann\n""\nbob\n',
    ],
)
def test_duckdb_reads_the_same(tmp_path: Path, text: str) -> None:
    pytest.importorskip("sqlglot")
    pytest.importorskip("duckdb")
    from thinveil.curator.database.table import open_database

    path = tmp_path / "table.csv"
    path.write_text(text)
    expected = load(path)
    with open_database(str(path)) as found:
        assert (found.schema, found.remarks) == (expected.schema, expected.remarks)
        rows = found.to_dataset().rows()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected.rows()))


@pytest.mark.parametrize("text", ['a,b\n1, "x"\n2, "y"\n', "x\n5\n6\n\n", "x\n5\n\n6\n"])
def test_or_refuses(tmp_path: Path, text: str) -> None:
    pytest.importorskip("sqlglot")
    pytest.importorskip("duckdb")
    from thinveil.curator.database.table import open_database

    path = tmp_path / "table.csv"
    path.write_text(text)
    assert load(path).records in (2, 3)
    with pytest.raises(DataError, match=r"read it into memory \(--engine memory\)"):
        open_database(str(path))


def test_an_only_column_with_gaps_is_read_back_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text('n\n5\n""\n6\n""\n')
    assert run(["audit", "a.csv", "--output", "b.csv"]) == 0
    assert sorted(map(repr, load("b.csv").rows())) == sorted(map(repr, load("a.csv").rows()))
