"""Text files read column by column with Arrow: just what reading row by row makes of them."""

from __future__ import annotations

import codecs
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from both_readers import outcome, took_columns
from thinveil import load
from thinveil.curator.tables import delimited
from thinveil.curator.tables.kinds.limits import LONGEST, unpacking_at_most
from thinveil.curator.tables.reading import Reading
from thinveil.curator.tables.text import columns
from worlds import examples

pytest.importorskip("pyarrow")

HERE = Path(__file__).parent
Write = Callable[[str | bytes], Path]
MANY = "".join(f"{n % 7},w{n % 5},{n * 0.25}\n" for n in range(400))

TAKEN: dict[str, str | bytes] = {
    "plain": "a,b\n1,x\n2,y\n",
    "no end of the last line": "a,b\n1,x\n2,y",
    "blank lines": "a,b\n\n1,x\n\r\n\n2,y\n\n\n",
    "CRLF": "a,b\r\n1,x\r\n2,y\r\n",
    "CR": "a,b\r1,x\r2,y\r",
    "mixed ends": "a,b\r1,x\n2,y\r\n3,z\r\r\n4,u\n",
    "empty fields": 'a,b,c\n,"",\n"",,""\n1,,\n',
    "quoted": '"a","b"\n"1","x, y"\n"2","say ""hi"""\n"3",""""\n',
    "lines in quotes": 'a,b\n1,"x\ny"\n2,"x\r\n\r\ny"\n3,"\n"\n',
    "a separator in quotes, and doubled quotes": 'a,b\n1,""","""\n2,"x"",""y"\n',
    "missing words": "a,b\nNA,NULL\nnan,None\n1,#N/A\n",
    "spaces": "a,b\n1 ,x \n2 ,  y  z \n",
    "a title": "A title\n\na,b,c\n1,x,y\n2,y,z\n",
    "a title in quotes": 'A "good" title\n"a",b,c\n1,x,5\n2,"y\nz",6\n',
    "comments above": "# made by us\n\na,b\n1,x\n2,y\n",
    "no header": "1,x\n2,y\n",
    "Excel": "sep=;\r\na;b\r\n1;x\r\n2;y\r\n",
    "row names": ",a\n0,x\n1,y\n",
    "trailing separators": "a,b,\n1,x,\n2,y,\n",
    "tabs": "a\tb\n1\t\n\ty\n",
    "single quotes": "'a','b'\n'1','x''y'\n'2','z, w'\n",
    "texts of many bytes": "ä,ß\n\u20ac,\U0001f600\nx,\ufeff\n",
    "a byte order mark": codecs.BOM_UTF8 + b"a,b\n1,x\n2,y\n",
    "UTF-16": "a,b\n1,\u20ac\n2,y\n".encode("utf-16"),
    "an old code page": "a,b\n1,Köln\n2,y\n".encode("cp1252"),
    "gzip": gzip.compress(b"a,b\n1,x\n2,y\n"),
    "many rows": "n,w,x\n" + MANY,
    "many rows, in quotes": 'n,w,x\n"1,","2\n","3"\n' * 200,
}
LEFT: dict[str, str | bytes] = {
    "one column": "a\n1\n\n2\n",
    "too few fields": "a,b\n1,x\n2\n3,y\n4,z\n",
    "too many fields": "a,b\n1,x\n2,y,z\n3,y\n4,z\n",
    "a line of spaces": "a,b\n1,x\n   \n2,y\n",
    "an open quote": 'a,b\n1,x\n2,"y\n3,z\n',
    "a quote that closes within": 'a,b\n1,x\n2,"y"z\n3,z\n',
    "a quote within": 'a,b\n1,x\n2,5" pipe\n3,z\n',
    "a quote behind a space": 'a,b\n1,x\n2,"y" \n3,z\n',
    "comments between": "a,b\n1,x\n# note\n2,y\n",
    "spaces before": 'a, b\n1, "x, y"\n2, z\n',
    "a byte order mark below the names": "a,b\n\ufeff1,x\n2,y\n",
    "aligned": "a  b\n1  2\n10 3\n",
    "a NUL": "a,b\n1,x\n2,\0\n",
    "not UTF-8 after much that is": ("a,b\n" + "1,x\n" * 40_000).encode() + b"2,\xff\n",
    "only a header": "a,b\n",
    "nothing": "",
    "cut off": gzip.compress(b"a,b\n" + os.urandom(99).hex().encode() + b",1\n2,y\n")[:-20],
    "a separator of two bytes": "a\u00a61\nb\u00a62\n",
}
HOW = {
    "a separator of two bytes": Reading(separator="\u00a6"),
    "not UTF-8 after much that is": Reading(encoding="utf-8"),
}


@pytest.fixture
def table(tmp_path: Path) -> Write:
    """Return a function that writes a table and returns its path."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "a.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize("kind", TAKEN)
def test_what_arrow_reads_alike_is_read_by_column(table: Write, kind: str) -> None:
    usual, _ = took_columns(table(TAKEN[kind]), Reading())
    assert usual


@pytest.mark.parametrize("kind", LEFT)
def test_what_is_in_doubt_is_read_by_row(table: Write, kind: str) -> None:
    path = table(LEFT[kind])
    for reading in (HOW.get(kind, Reading()), Reading(quote=""), Reading(header=1)):
        took_columns(path, reading)
    assert not took_columns(path, HOW.get(kind, Reading()))[0]


def test_blocks_end_where_rows_do(table: Write) -> None:
    path = table(TAKEN["many rows"])
    assert took_columns(path, Reading()) == [True, True]
    path = table(TAKEN["many rows, in quotes"])
    assert took_columns(path, Reading()) == [True, True]
    path = table("a,b\n1,x\n" + "2," + "y" * 200 + "\n3,z\n")
    assert took_columns(path, Reading()) == [True, False]


def test_lines_that_are_too_long_are_refused_alike(table: Write) -> None:
    for long in ("y" * (LONGEST + 1), '"' + "y\n" * (LONGEST // 2 + 1) + '"'):
        path = table(f"a,b\n1,x\n2,{long}\n")
        assert not any(took_columns(path, Reading()))


def test_a_bomb_is_refused_alike(table: Write) -> None:
    path = table(gzip.compress(b"a,b\n" + b"1,2\n" * 300_000))
    with unpacking_at_most(2**21):
        assert not any(took_columns(path, Reading()))
    different = "".join(f"{n},{-n}\n" for n in range(20_000))
    path = table(gzip.compress(f"a,b\n{different}".encode()))
    with unpacking_at_most(2**21):
        assert not any(took_columns(path, Reading()))
    assert all(took_columns(path, Reading()))


FIELD = st.sampled_from(
    ["", "a", "1", "2.50", " x", "y ", '"', '""', '"b"', '"b,c"', '"b""c"', '"d\ne"', 'f"', '"g"h',
     "\u00e9", "#", "NA", "\r", "'i'", "\0"]
)  # fmt: skip
LIKELY = FIELD.filter(lambda text: text not in ('"', '"g"h', "\0", "\r"))
LINE = st.lists(LIKELY, min_size=3, max_size=3) | st.lists(FIELD, max_size=4)


@examples(1000)
@given(
    st.lists(st.lists(LIKELY, min_size=3, max_size=3), min_size=1, max_size=12)
    | st.lists(LINE, max_size=9),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([Reading(), Reading(quote=""), Reading(header=1), Reading(quote='"')]),
)
@example([['"', '"', "a"]], ",", "\n", Reading())
def test_both_ways_agree_on_rows_of_all_kinds(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    separator: str,
    end: str,
    reading: Reading,
) -> None:
    path = tmp_path_factory.mktemp("both") / "a.csv"
    lines = ["n,m,o".replace(",", separator), *map(separator.join, rows)]
    path.write_bytes(end.join(lines).encode())
    took_columns(path, reading)


@examples(1000)
@given(st.text(st.sampled_from('ab1,;" \t\n\r\0é#'), max_size=60) | st.binary(max_size=40))
def test_both_ways_agree_on_any_text(
    tmp_path_factory: pytest.TempPathFactory, content: str | bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.csv"
    path.write_bytes(b"a,b\n1,2\n" + (content.encode() if isinstance(content, str) else content))
    took_columns(path, Reading())


def test_codes_notes_and_schema_are_the_same(table: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    days = "".join(f"{n % 28 + 1}.01.1990;{n / 7};1.{n % 10}0;NA;{'<5' if n % 9 else 7}\n"
                   for n in range(3000))  # fmt: skip
    path = table(";a;b;c;d;e\n" + "".join(f"{n};{r}\n" for n, r in enumerate(days.splitlines())))
    by_row = load(path)
    monkeypatch.setattr(columns, "WORTHWHILE", 0)
    monkeypatch.setattr(columns, "BLOCK", 5000)
    monkeypatch.setattr(delimited, "_read", None)  # so that rows cannot be read
    by_column = load(path)
    assert by_column.schema == by_row.schema
    assert by_column.remarks == by_row.remarks
    assert by_column.digest() == by_row.digest()


def test_without_arrow_rows_are_read(table: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(TAKEN["many rows"])
    expected = outcome(path, Reading())
    monkeypatch.setattr(columns, "WORTHWHILE", 0)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert outcome(path, Reading()) == expected


def test_small_files_do_without_arrow(table: Write) -> None:
    code = "import sys, thinveil; thinveil.load(sys.argv[1]); print('pyarrow' in sys.modules)"
    for content, imports in (MANY, "False"), (MANY * (columns.WORTHWHILE // len(MANY) + 1), "True"):
        path = table("n,w,x\n" + content)
        told = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        )
        assert told.stdout.strip() == imports


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["as_written", "doubting", "formats", "layouts", "reading",
                                  "rough_layouts", "tables"])  # fmt: skip
def test_the_files_of_other_tests_are_read_alike(name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "both_readers"]
    paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    told = subprocess.run(
        [*command, str(HERE / f"test_{name}.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert told.returncode == 0, told.stdout[-3000:]
    assert "read in both ways: {'files':" in told.stdout
