"""Text files as people have them: whatever stands around the rows is recognised, and said."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import shlex
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from thinveil.commands.main import run
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.files import load, read_columns
from thinveil.curator.tables.reading import Reading
from thinveil.curator.tables.text.unpacking import likely_encodings
from thinveil.errors import DataError, MissingExtra
from thinveil.lab.tables import from_file

Write = Callable[..., Path]


@pytest.fixture
def table(tmp_path: Path) -> Write:
    """Return a function that writes a table and returns its path."""

    def write(content: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def cells(path: Path, **how: Any) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """Return the names and the texts of a table."""
    columns = read_columns(path, Reading(**how)).columns
    texts = [[each.texts[at] for at in each.index.tolist()] for each in columns]
    return [each.name for each in columns], list(zip(*texts, strict=True))


def said(read: Dataset) -> str:
    """Return all that was assumed about the layout, in one text."""
    return "\n".join(read.remarks.assumed)


# Columns without a name ------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("name", ["", '""', " ", "Unnamed: 0", "Unnamed: 0.1"])
def test_a_column_without_a_name_that_counts_the_rows_is_left_out(
    table: Write, start: int, name: str
) -> None:
    path = table(f"{name},a\n{start},5\n{start + 1},6\n{start + 2},5\n")
    read = load(path)
    assert (read.schema.names, read.rows()) == (("a",), [(5,), (6,), (5,)])
    assert said(read) == (
        "column 1 has no name and counts the rows, so it is left out (--keep-unnamed keeps it)"
    )
    kept = load(path, keep_unnamed=True)
    assert kept.schema.names == (name if "Unnamed" in name else "column 1", "a")
    assert [row[0] for row in kept.rows()] == [start, start + 1, start + 2]
    assert "left out" not in said(kept).replace("can be left out", "")


def test_it_counts_in_the_whole_file_not_in_its_first_lines(table: Write) -> None:
    rows = "".join(f"{number},7\n" for number in range(1, 5000))
    assert load(table(",a\n" + rows)).schema.names == ("a",)
    read = load(table(",a\n" + rows + "1,7\n"))
    assert read.schema.names == ("column 1", "a")
    assert read.remarks.assumed[0] == (
        "column 1 has no name and is called 'column 1'; it can be left out (--drop 'column 1'; "
        "in Python drop=['column 1'])"
    )


@pytest.mark.parametrize("column", ["0 2 1", "2 3 4", "1 3 5", "01 02 03", "Ann Bob Eve"])
def test_a_column_without_a_name_that_does_not_count_gets_one(table: Write, column: str) -> None:
    path = table(",a\n" + "".join(f"{name},{n}\n" for n, name in enumerate(column.split())))
    assert cells(path)[0] == ["column 1", "a"]
    assert cells(path, drop=("column 1",))[0] == ["a"]
    assert cells(path, only=("column 1",))[0] == ["column 1"]
    assert cells(table("Unnamed: 0,a\nx,1\ny,2\n"))[0] == ["Unnamed: 0", "a"]


def test_a_name_given_by_its_owner_stays(table: Write) -> None:
    assert cells(table("rownames,a\n1,5\n2,6\n"))[0] == ["rownames", "a"]
    assert load(table("rownames,a\n1,5\n2,6\n")).remarks.assumed == ()
    assert cells(table(",column 1\nx,5\ny,6\n"))[0] == ["column 1 (2)", "column 1"]


def test_two_row_numbers_as_pandas_leaves_them(table: Write) -> None:
    path = table(",Unnamed: 0,a\n0,1,x\n1,2,y\n")
    assert cells(path) == (["a"], [("x",), ("y",)])
    assert said(load(path)).startswith("columns 1 and 2 have no name and count the rows, so they")
    assert cells(path, only=("Unnamed: 0",))[0] == ["Unnamed: 0"]
    assert cells(table(",\n0,0\n1,1\n"))[0] == ["column 1"]  # something must be left


def test_frames_are_read_as_their_files(table: Write) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = table(",a,b\n1,x,5\n2,y,6\n3,z,7\n")
    frame = pandas.read_csv(path)
    assert list(frame.columns) == ["Unnamed: 0", "a", "b"]
    for source in (frame, frame.rename(columns={"Unnamed: 0": ""})):
        assert load(source).schema.names == ("a", "b")
        assert load(source).remarks == load(path).remarks
    assert load(frame, keep_unnamed=True).schema.names == ("Unnamed: 0", "a", "b")
    assert load(frame, only=("a",)).schema.names == ("a",)
    assert load(frame[["a", "a"]]).schema.names == ("a", "a (2)")


def test_a_trailing_separator(table: Write) -> None:
    both, rows_only = "a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n"
    for text in (both, rows_only, both.replace(",", ";"), rows_only.replace(",", "\t")):
        read = load(table(text))
        assert (read.schema.names, read.rows()) == (("a", "b"), [(1, 2), (3, 4)])
        assert "column 3 has no name and is empty in every row, so it is left out" in said(read)
        assert cells(table(text), keep_unnamed=True)[0] == ["a", "b", "column 3"]
    assert cells(table("a,b,,\n1,2,,\n3,4,,\n"))[0] == ["a", "b"]
    assert cells(table("a,b,\n1,2,\n3,4,x\n"))[0] == ["a", "b", "column 3"]
    with pytest.raises(DataError, match="line 3 has 2 fields"):
        load(table("a,b\n1,2,\n1,2\n3,4,\n"))


def test_row_names_as_r_writes_them(table: Write) -> None:
    path = table('"age" "job"\n"1" 23 "nurse"\n"2" 44 "head nurse"\n')
    read = load(path)
    assert (read.schema.names, read.rows()) == (("age", "job"), [(23, "nurse"), (44, "head nurse")])
    assert "spaces separate the fields (--separator names another mark)" in said(read)
    assert "line 1 has a name less than the rows have fields" in said(read)
    named = table('"mpg","cyl"\n"Mazda RX4",21,6\n"Datsun 710",22.8,4\n')
    assert cells(named)[0] == ["column 1", "mpg", "cyl"]
    with pytest.raises(DataError, match="line 2 has 3 fields, and the header has 2"):
        load(table("a,b\nx,1,2\nx,1,3\n"))  # names of rows differ
    with pytest.raises(DataError, match="line 2 has 4 fields, and the header has 2"):
        load(table("a,b\n1,2,3,4\n5,6,7,8\n"))


def test_two_columns_of_one_name(table: Write) -> None:
    read = load(table("a,a,a (2),a\n1,2,3,4\n"))
    assert read.schema.names == ("a", "a (3)", "a (2)", "a (4)")
    assert "column 4 is called 'a (4)'; it can be left out (--drop 'a (4)'; " in said(read)


# Above the rows --------------------------------------------------------------------------


def test_a_line_that_names_the_separator(table: Write) -> None:
    for line in ("sep=;\r\n", '"sep=;"\n', "SEP=;\n"):
        read = load(table(line + "a;b\r\n1,5;2\r\n2,5;3\r\n"))
        assert read.schema.names == ("a", "b")
        assert "line 1 names the separator ';' and is no row (--header 1 reads it as" in said(read)
    assert cells(table("sep=|\na|b\n1|2\n"), separator="|")[0] == ["a", "b"]
    assert cells(table("sep=:\na:b\n1:2\n"))[0] == ["a", "b"]
    assert cells(table("sep=\t\na\tb\n1\t2\n"))[0] == ["a", "b"]
    assert cells(table("sep=;\n1\n2\n"), header=1, separator=",") == (["sep=;"], [("1",), ("2",)])


def test_comments(table: Write) -> None:
    above = table("# made by us, in May\n#\n\na,b\n1,2\n3,4\n")
    read = load(above)
    assert (read.schema.names, read.records) == (("a", "b"), 2)
    assert said(read) == (
        "lines 1 and 2 begin with # and are taken as comments (--comment '' reads them)"
    )
    between = load(table("a,b\n1,2\n# a break\n3,4\n#\n5,6\n"))
    assert between.rows() == [(1, 2), (3, 4), (5, 6)]
    assert said(between) == (
        "lines that begin with # are taken as comments, line 3 among them (--comment '' reads them "
        "as rows)"
    )
    with pytest.raises(DataError, match="line 3 has 1 field"):
        load(table("a,b\n1,2\n# a break\n3,4\n"), comment="")
    assert load(table("% x\na,b\n1,2\n% y\n3,4\n"), comment="%").rows() == [(1, 2), (3, 4)]
    assert load(table("//\na,b\n//\n1,2\n3,4\n"), comment="//").remarks.assumed == ()


def test_comments_are_not_looked_for_inside_of_fields(table: Write) -> None:
    text = 'a,b\n1,"x\n# no comment\ny"\n# one, two, three\n2,z\n'
    assert cells(table(text)) == (["a", "b"], [("1", "x\n# no comment\ny"), ("2", "z")])
    with pytest.raises(DataError, match="line 8 has 3 fields"):
        load(table(text + "# and, more\n1,2,3\n"), comment="#")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tag,n\n#a,1\n#b,2\n", ["tag", "n"]),
        ("#tag,n\n#a,1\n#b,2\n#c,3\n", ["#tag", "n"]),
        ("#tag,n\n#a,1\nb,2\n", ["#tag", "n"]),
        ("#tag\n#a\n#b\n", ["#tag"]),
        ("tag\n#a\n#b\n", ["tag"]),
    ],
)
def test_values_that_begin_with_the_mark_stay(table: Write, text: str, names: list[str]) -> None:
    read = cells(table(text))
    assert (read[0], len(read[1])) == (names, text.count("\n") - 1)


@pytest.mark.parametrize(
    ("text", "names", "records"),
    [
        ("# a,b,c\n1,2,3\n4,5,6\n", ["a", "b", "c"], 2),
        ("#id,name\n1,Ann\n2,Bob\n", ["id", "name"], 2),
        ("#name,job\nAnn,nurse\nBob,clerk\n", ["name", "job"], 2),
        ("# x y\n1.5 2\n2.5 3\n", ["x", "y"], 2),
        ("##fileformat=1\n##x=y\n#chrom\tpos\nx\t1\ny\t2\n", ["chrom", "pos"], 2),
        ("# in May, 2020\nname,age\nAnn,3\nBob,4\n", ["name", "age"], 2),
        ("# in May, 2020\nname,job\nAnn,nurse\nBob,clerk\n", ["name", "job"], 2),
        ("#,name\n1,Ann\n2,Bob\n", ["#", "name"], 2),
    ],
)
def test_names_in_a_comment(table: Write, text: str, names: list[str], records: int) -> None:
    found, rows = cells(table(text))
    assert (found, len(rows)) == (names, records)


def test_titles(table: Write) -> None:
    for title in ("Our people\n", "Our people\nin May\n\n", "Our people,,\n", "\n\n,,\nPeople,,\n"):
        read = load(table(title + "name,age,job\nAnn,3,x\nBob,4,y\n"))
        assert (read.schema.names, read.records) == (("name", "age", "job"), 2)
        assert "above the table (--header" in said(read)
    assert "lines 1 and 2 are taken as titles" in said(load(table("x\ny\na,b,c\n1,2,3\n4,5,6\n")))
    assert cells(table("By us, in May\n\na;b;c\n1;2;3\n1;2;4\n"))[0] == ["a", "b", "c"]
    assert cells(table("Sales, 2020\nname;pay\nAnn;3,5\nBob;4,5\n"))[0] == ["name", "pay"]
    read = load(table("178,13,class_0,class_1\n" + "1,2,3,4,5,6,7,8,0\n" * 3))
    assert (read.records, read.schema.names[8]) == (3, "column 9")


def test_one_column_of_texts_is_no_title_above_several(table: Write) -> None:
    for text in (
        "remark\nwell, yes\nno\n",
        "remark\nwell, yes\nno, no\n",
        "full name\nAnn Lee\nBob Ray\n",
        "name\nAnn Lee\nBob Ray\n",
        "when\n2020-01-01 10:00\n2020-01-02 11:00\n",
        "amount\n12 345\n67 890\n",
    ):
        names, rows = cells(table(text))
        assert (len(names), len(rows)) == (1, text.count("\n") - 1)


def test_a_given_header(table: Write) -> None:
    path = table("x,y\n\nname,age\nAnn,3\nBob,4\n")
    assert cells(path, header=3) == (["name", "age"], [("Ann", "3"), ("Bob", "4")])
    assert load(path, header=3).remarks.assumed == ()
    assert cells(path, header=1)[1][0] == ("name", "age")
    assert cells(path, header=0)[0] == ["column 1", "column 2"]
    assert len(cells(path, header=0)[1]) == 4
    assert cells(table("a,b\n1,2\n3,4\n"), header=2) == (["1", "2"], [("3", "4")])
    assert cells(table("# a,b\nx,y\n"), header=1)[0] == ["# a", "b"]
    path = table("x,y\n\nname,age\nAnn,3\n")
    for header in (2, 9):
        with pytest.raises(DataError, match=f"--header: line {header} is empty, or not among"):
            load(path, header=header)


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "23,nurse\n44,clerk\n",
        "2020-01-05,x\n2020-01-06,y\n",
        "31.12.1990;1,5\n01.01.1991;2,5\n",
        "12:30,x\n12:45,y\n",
        "NA,3,x\n2,4,y\n",
        "-.5\n1e3\n",
        "1990,1991\n1992,1993\n",
        "5,5\n6,7\n",
        "1.5 2\n 3  4\n",
    ],
)
def test_no_header(table: Write, text: str) -> None:
    path = table(text)
    names, rows = cells(path)
    assert names == [f"column {place}" for place, _ in enumerate(names, start=1)]
    assert len(rows) == 2
    notes = read_columns(path, Reading()).assumed
    assert any("(--header 1 takes it as the header)" in each for each in notes)
    assert len(cells(path, header=1)[1]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "country,2019,2020\nPeru,5,6\nChile,7,8\n",
        ",0,1\n0,5,6\n1,7,8\n",
        "0,1,2\n5,6,7\n8,9,9\n",
        ",1940,1960\nfood,22.2,86.8\nrent,10.5,46.2\n",
        ",142.24,144.78\n9.4,0,1\n9.5,1,0\n",
    ],
)
def test_names_that_are_numbers(table: Write, text: str) -> None:
    read = load(table(text))
    assert read.records == 2
    last = text.partition("\n")[0].rpartition(",")[2]
    assert read.schema.names[-1] == last
    assert len(cells(table(text), header=0)[1]) == 3


def test_words_above_words_are_names(table: Write) -> None:
    assert cells(table("a,b\nx,y\nz,w\n"))[0] == ["a", "b"]
    assert cells(table("a,b\n"[:3] + "\n1,x\n2,y\n"))[0] == ["a", "b"]


# Marks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("a;b\n1,5;2,5\n3,5;4,5\n", 2),
        ("1,5;2,5\n3,5;4,5\n", 2),
        ("a;b;c\n1,5;x;2,25\n3,5;y;4,75\n", 3),
        ("a\tb\n1,5\t2,5\n3,5\t4,5\n", 2),
        ("a|b\n1.234,5|2\n3,5|4\n", 2),
        ("a,b\nx;y,1\nz;w,2\n", 2),
        ("name,pay\nAnn,3\nBob,4\n", 2),
    ],
)
def test_the_comma_of_decimals_separates_nothing(table: Write, text: str, width: int) -> None:
    assert len(cells(table(text))[0]) == width


def test_spaces_and_tabs_that_align(table: Write) -> None:
    aligned = "  x    y\n  1   20\n 10    3\n"
    assert cells(table(aligned)) == (["x", "y"], [("1", "20"), ("10", "3")])
    assert cells(table(aligned), separator=" ") == cells(table(aligned))
    assert cells(table("x \t y\n1\t 20\n10\t\t3\n"))[1] == [("1", "20"), ("10", "3")]
    quoted = "'OBS' 'GPA'\n1 2.66\n2 2.89\n"
    assert cells(table(quoted))[0] == ["OBS", "GPA"]
    assert "the quotation mark is ' (--quote names another)" in said(load(table(quoted)))
    assert cells(table(quoted), quote='"')[0] == ["'OBS'", "'GPA'"]
    assert cells(table("a,b\nit's,1\n'tis,2\n"))[1] == [("it's", "1"), ("'tis", "2")]


def test_a_space_after_every_separator(table: Write) -> None:
    adult = "39, State-gov, 77516\n50, Self-emp, 83311\n38, Private, 215646\n"
    read = load(table(adult))
    assert read.rows()[0] == (39, "State-gov", 77516)
    assert "spaces before a field are no part of it (--separator , keeps them)" in said(read)
    assert cells(table(adult), separator=",")[1][0] == ("39", " State-gov", " 77516")
    quoted = 'name, city\nAnn, "Rome, Italy"\nBob, "Bonn, Rhine"\n'
    assert cells(table(quoted)) == (
        ["name", "city"],
        [("Ann", "Rome, Italy"), ("Bob", "Bonn, Rhine")],
    )
    some = "name, city\nAnn,Rome\nBob, Bonn\n"
    assert cells(table(some)) == (["name", "city"], [("Ann", "Rome"), ("Bob", "Bonn")])


REAL = {
    "World Bank": (
        '"Data Source","World Development Indicators",\n\n"Last Updated Date","2020-07-01",\n\n'
        '"Country Name","Country Code","1960","1961",\n"Peru","PER","10.5","10.8",\n'
        '"Chile","CHL","8.1","8.3",\n',
        ["Country Name", "Country Code", "1960", "1961"],
        2,
    ),
    "Eurostat": (
        "unit,geo\\TIME\t2015 \t2016 \nNR,AT\t8.4 \t8.6 \nNR,BE\t11.2 \t11.3 \n",
        ["unit,geo\\TIME", "2015 ", "2016 "],
        2,
    ),
    "a year": ("country,2020\nPeru,5\nChile,7\n", ["country", "2020"], 2),
    "days": (
        "country,2020-01-01,2020-02-01\nPeru,5,6\nChile,7,8\n",
        ["country", "2020-01-01", "2020-02-01"],
        2,
    ),
    "a wide title": (
        "Staff, May, draft\n\nname,age,pay\nAnn,30,5\nBob,40,6\n",
        ["name", "age", "pay"],
        2,
    ),
    "FRED": ("DATE,GDP\n1947-01-01,243.164\n1947-04-01,.\n", ["DATE", "GDP"], 2),
    "numpy": ("# x y z\n1.0e+00 2.0e+00 3.0e+00\n4.0e+00 5.0e+00 6.0e+00\n", ["x", "y", "z"], 2),
    "survey": (
        "\ufeffTimestamp;Wie alt?;\r\n31.12.2020 10:00;30;\r\n01.01.2021 11:00;40;\r\n",
        ["Timestamp", "Wie alt?"],
        2,
    ),
    "weather station": (
        "Station: 42\nHeight: 9 m\n\ndate;time;temp\n2020-01-01;10:00;1,5\n2020-01-01;11:00;2,5\n",
        ["date", "time", "temp"],
        2,
    ),
    "semicolons and words": ("name;remark\nAnn;yes, well\nBob;no, thanks\n", ["name", "remark"], 2),
    "one column": ("age\n30\n40\n", ["age"], 2),
}


@pytest.mark.parametrize("kind", REAL)
def test_files_as_programs_and_offices_write_them(table: Write, kind: str) -> None:
    text, names, records = REAL[kind]
    found, rows = cells(table(text))
    assert (found, len(rows)) == (names, records)


def test_ragged_rows_are_named_with_their_line_and_a_remedy(table: Write) -> None:
    for above, line in (("", 3), ("# x\n", 4), ("Title\n\n", 5), ("sep=,\n", 4)):
        with pytest.raises(DataError, match=f"starts on line {line} has 2 fields.*--separator"):
            load(table(above + "a,b,c\n1,2,3\n1,2\n" + "4,5,6\n" * 9))


# Bytes -----------------------------------------------------------------------------------

TEXT = "name,city\nZoë,Köln\nAnn,Łódź\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-8"]
)
def test_encodings_of_unicode(table: Write, encoding: str) -> None:
    header, _, rows = TEXT.partition("\n")
    for text in (TEXT, f"{header}\n" + rows * 3000):
        read = load(table(text.encode(encoding)))
        assert read.rows()[:2] == [("Zoë", "Köln"), ("Ann", "Łódź")]
        plain = encoding.count("-") < 2 or encoding == "utf-8-sig"
        assert read.remarks.assumed == () or (not plain and "--encoding names" in said(read))
    big = b"\xfe\xff" + TEXT.encode("utf-16-be")
    assert load(table(big)).rows()[0] == ("Zoë", "Köln")


def test_old_encodings(table: Write) -> None:
    text = "name,n\n" + "Ann,1\n" * 30_000 + "Zoë\u2019s,2\n"
    read = load(table(text.encode("cp1252")))
    assert read.rows()[-1] == ("Zoë\u2019s", 2)
    assert read.remarks.assumed == (
        "line 30002 is not UTF-8 text, so the file is read as cp1252 (--encoding names another)",
    )
    latin = load(table(b"a\n\x81\xe9\nx\n"))
    assert latin.rows()[0] == ("\x81é",)
    assert "read as latin-1" in said(latin)
    assert load(table("a\nš\nb\n".encode("iso8859-2")), encoding="iso8859-2").rows()[0] == ("š",)


def test_what_is_no_text(table: Write) -> None:
    for content in (b"\x7fELF\x02\x01\xff\xfe" * 30, bytes(range(256)) * 4):
        with pytest.raises(DataError, match=r"UTF-8|NUL"):
            load(table(content))


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zip", "zst"])
def test_compressed(table: Write, suffix: str) -> None:
    text = ("a,b\n" + "1,é\n2,x\n" * 5000).encode()
    path = table(packed(text, suffix), f"table.csv.{suffix}")
    read = load(path)
    assert (read.records, read.rows()[0]) == (10_000, (1, "é"))
    assert load(table(packed(text, suffix), "named otherwise")).records == 10_000
    assert load(table(packed(text.decode().encode("utf-16"), suffix))).records == 10_000
    assert load(table(packed(text.decode().encode("cp1252"), suffix))).records == 10_000
    with pytest.raises(DataError, match=r"is compressed.*and damaged.*unpack it"):
        load(table(packed(text, suffix)[:-20]))


def packed(content: bytes, suffix: str) -> bytes:
    """Compress a file."""
    if suffix == "zip":
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.mkdir("folder")
            archive.writestr("folder/table.csv", content)
            archive.writestr("__MACOSX/._table.csv", "x")
        return whole.getvalue()
    if suffix == "zst":
        pyarrow = pytest.importorskip("pyarrow")
        compressed: bytes = pyarrow.compress(content, codec="zstd", asbytes=True)
        return compressed
    compress: dict[str, Callable[[bytes], bytes]]
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    return compress[suffix](content)


def test_archives_of_several_files(table: Write) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    with pytest.raises(DataError, match="holds 2 files, and one table is read: unpack"):
        load(table(whole.getvalue(), "a.zip"))


def test_zstandard_without_pyarrow(table: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    content = packed(b"a\n1\n", "zst")
    for module in ("pyarrow", "compression.zstd"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtra, match=r"Zstandard.*\[arrow\]'"):
        load(table(content))


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n" + b"1,2\n" * 50_000,
        ("a,b\n" + "1,é\n" * 50).encode("cp1252"),
        gzip.compress(b"a,b\n" + b"1,2\n" * 50_000),
        packed(b"a,b\n1,2\n", "zip"),
        ",a\n0,1\n1,2\n".encode("utf-16"),
    ],
)
def test_pipes(tmp_path: Path, content: bytes) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(content))
    writer.start()
    read = load(pipe)
    writer.join(10)
    assert read.records in (1, 2, 50, 50_000)


def test_pipes_with_a_late_surprise(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = b"a,b\n" + b"1,2\n" * 50_000 + b"1,\xe9\n"
    writer = threading.Thread(target=lambda: pipe.write_bytes(content))
    writer.start()
    with pytest.raises(DataError, match="not UTF-8 text: name the file's encoding"):
        load(pipe)
    writer.join(10)


@given(st.text(max_size=40), st.sampled_from(["utf-8", "utf-16", "utf-32", "utf-8-sig"]))
def test_the_encoding_of_any_text_is_found(text: str, encoding: str) -> None:
    content = text.encode(encoding)
    assume(encoding != "utf-8" or "\0" not in text)
    assume(not text.startswith("\ufeff"))
    assert content.decode(likely_encodings(content)[0]) == text


# There and back --------------------------------------------------------------------------

ODD = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff")
    | st.sampled_from("#,;|'\" =\n\t"),
    min_size=1,
    max_size=8,
)
FIELD = ODD | st.just("") | st.integers(-999, 999).map(str) | st.sampled_from(["x", "NA", "1,5"])


@st.composite
def written(draw: st.DrawFn) -> tuple[str, str, list[str], list[list[str]]]:
    """Draw a table with odd names, as csv writes it: text, separator, names, rows."""
    width = draw(st.integers(2, 5))
    names = draw(st.lists(ODD, min_size=width, max_size=width, unique=True))
    rows = draw(st.lists(st.lists(FIELD, min_size=width, max_size=width), min_size=1, max_size=6))
    separator = draw(st.sampled_from(",;\t|"))
    text = io.StringIO()
    end = draw(st.sampled_from(["\n", "\r\n"]))
    dialect = csv.unix_dialect if draw(st.booleans()) else csv.excel  # the first quotes all
    csv.writer(text, dialect, delimiter=separator, lineterminator=end).writerows([names, *rows])
    return text.getvalue(), separator, names, rows


@settings(deadline=None)
@given(written())
def test_whatever_is_written_is_read_back_where_it_is_told(
    tmp_path_factory: pytest.TempPathFactory, table: tuple[str, str, list[str], list[list[str]]]
) -> None:
    text, separator, names, rows = table
    path = tmp_path_factory.mktemp("odd") / "a.csv"
    path.write_bytes(text.encode())
    how = {"separator": separator, "quote": '"', "comment": "", "keep_unnamed": True}
    assume(all(name.strip() for name in names))
    assert cells(path, header=1, **how) == (names, [tuple(row) for row in rows])


WORD = st.from_regex(r"[A-Za-z][a-z_]{0,6}", fullmatch=True)


@st.composite
def laid_out(draw: st.DrawFn) -> tuple[bytes, list[str], list[list[str]]]:
    """Draw a table of words and numbers, and what programs and people put around it."""
    width = draw(st.integers(3, 5))
    names = draw(st.lists(WORD, min_size=width, max_size=width, unique_by=str.lower))
    numbers = st.integers(-99, 9999).map(str) | st.sampled_from(["0.5", "-2.25"])
    kinds = [numbers, *(draw(st.sampled_from([numbers, WORD])) for _ in names[1:])]
    rows = [[draw(kind) for kind in kinds] for _ in range(draw(st.integers(2, 6)))]
    lines = [names, *rows]
    shape = draw(st.sampled_from(["plain", "pandas", "r", "trailing", "ends"]))
    if shape in ("pandas", "r"):
        lines = [["", *names], *([str(n), *row] for n, row in enumerate(rows, shape == "r"))]
    if shape == "r" and draw(st.booleans()):
        lines[0] = names
    if shape in ("trailing", "ends"):
        lines = [[*line, ""] for line in lines]
    if shape == "ends":
        lines[0] = names
    separator = draw(st.sampled_from(",;\t|"))
    above = draw(
        st.sampled_from(
            ["", "# made by us\n", "\n", f"sep={separator}\n", "A title\n", "A title\n\n"]
        )
    )
    text = io.StringIO()
    csv.writer(
        text, delimiter=separator, lineterminator=draw(st.sampled_from(["\n", "\r\n"]))
    ).writerows(lines)
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"]))
    content = (above + text.getvalue()).encode(encoding)
    return draw(st.sampled_from([content, gzip.compress(content)])), names, rows


@settings(deadline=None)
@given(laid_out())
def test_what_stands_around_a_table_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, table: tuple[bytes, list[str], list[list[str]]]
) -> None:
    content, names, rows = table
    path = tmp_path_factory.mktemp("laid") / "a.csv"
    path.write_bytes(content)
    assert cells(path) == (names, [tuple(row) for row in rows])


ANY = st.sampled_from(
    ["", "a", "b", "1", "2", "0", "3.5", "2020", "#", "# x", "x y", "'a'", "NA", " ", "Unnamed: 0"]
)


@pytest.mark.nightly
@settings(deadline=None, max_examples=2000)
@given(
    st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[ANY] * width), min_size=2)),
    st.sampled_from([",", ";", "\t", " ", "|", ", ", "  "]),
    st.sampled_from(["", "# x\n", "T\n", "sep=;\n", "\n"]),
    st.booleans(),
)
def test_whatever_is_read_has_names_and_what_is_said_can_be_overridden(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, ...]],
    separator: str,
    above: str,
    keep: bool,
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.csv"
    path.write_text(above + "\n".join(map(separator.join, rows)))
    try:
        raw = read_columns(path, Reading(keep_unnamed=keep))
    except DataError:
        return
    names = [each.name for each in raw.columns]
    assert len(set(names)) == len(names)
    assert all(map(str.strip, names))
    assert all(re.search(r" \(--.*\)$|: take (?:it|them) out ", each) for each in raw.assumed)


# Where else files are read ---------------------------------------------------------------


DUCKDB = [
    ",a\n0,x\n1,y\n",
    ",a\n2,x\n1,y\n",
    ",Unnamed: 0,a\n0,1,x\n1,2,y\n",
    "a,b,\n1,x,\n2,y,\n",
    "a,b\n1,x,\n2,y,\n",
    "a,b\nAnn,1,x\nBob,2,y\n",
    "sep=;\r\na;b\r\n1;x\r\n2;y\r\n",
    "# made by us\n\na,b\n1,x\n2,y\n",
    "# a,b,c\n1,x,2\n2,y,3\n",
    "A title\n\na,b,c\n1,x,y\n2,y,z\n",
    "1,x\n2,y\n",
    '"a",b\n1,x\n2,"y\nz"\n',
    'A "good" title\n"a",b,c\n1,x,5\n2,"y\nz",6\n',
    "a,a\n1,x\n2,y\n",
    "a b\n1 x\n2 y\n",
]


def reads_the_same(path: Path) -> None:
    """Compare what DuckDB reads with what is read into memory."""
    from thinveil.curator.database.table import open_database

    expected = load(path)
    with open_database(str(path)) as found:
        assert (found.schema, found.remarks) == (expected.schema, expected.remarks)
        rows = found.to_dataset().rows()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected.rows()))


@pytest.mark.parametrize("text", DUCKDB)
def test_duckdb_reads_the_same(table: Write, text: str) -> None:
    pytest.importorskip("sqlglot")
    pytest.importorskip("duckdb")
    reads_the_same(table(text))


@pytest.mark.parametrize(
    "text", [DUCKDB[0], *(pytest.param(each, marks=pytest.mark.nightly) for each in DUCKDB[1:])]
)
def test_duckdb_unpacks_and_decodes_the_same(table: Write, text: str) -> None:
    pytest.importorskip("sqlglot")
    pytest.importorskip("duckdb")
    reads_the_same(table(gzip.compress(text.encode())))
    reads_the_same(table(packed(text.encode(), "zst")))
    reads_the_same(table(text.encode("utf-16")))


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,x\n# note\n2,y\n",
        b"a  b\n1  2\n10 3\n",
        "a,b\n1,é\n2,x\n".encode("cp1252"),
        "a,b\n1,é\n2,x\n".encode("utf-16-be"),
        bz2.compress(b"a,b\n1,x\n2,y\n"),
        b'# 5" and more\na,b\n1,x\n2,y\n',
        b'"a\nb",c\n1,x\n2,y\n',
    ],
)
def test_what_duckdb_does_not_read_the_same_is_refused(table: Write, content: bytes) -> None:
    pytest.importorskip("sqlglot")
    pytest.importorskip("duckdb")
    from thinveil.curator.database.table import open_database

    path = table(content)
    assert load(path).records == 2
    with pytest.raises(DataError, match=r"read it into memory \(--engine memory\)"):
        open_database(str(path))


def test_the_lab_says_what_it_assumed() -> None:
    shown = from_file(b",a\n0,5\n1,6\n", "mine.csv")
    assert shown.data.schema.names == ("a",)
    assert shown.note == "Column 1 has no name and counts the rows, so it is left out."


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "Our people\n;age;pay\n0;30;5\n1;40;6\n2;50;7\n"
    Path("t.csv").write_bytes(gzip.compress(text.encode("cp1252")))
    Path("who.csv").write_text(";age\n0;40\n1;50\n")
    how = ["--keep-unnamed", "--header", "2", "--separator", ";", "--comment", ""]
    assert run(["schema", "t.csv", "--output", "t.toml", *how]) == 0
    line = capsys.readouterr().err.rpartition("Edit it, then: thinveil ")[2]
    told = shlex.split(line)
    assert set(how) <= set(told)
    assert 'name = "column 1"' in Path("t.toml").read_text()
    people = ["--attack", "attribute", "--people", "who.csv", "--column", "pay"]
    assert run([*told, *people]) == 0
    notes = " ".join(capsys.readouterr().err.split())
    assert "--people: column 1 has no name" in notes
    assert "Our people" not in notes
    assert run(["audit", "t.csv"]) == 0
    notes = " ".join(capsys.readouterr().err.split())
    assert "line 1 is taken as a title above the table (--header 1 takes" in notes
    assert run(["audit", "t.csv", "--header", "none"]) == 0
    assert "column 3" in capsys.readouterr().out
