"""What people are told of a table: the same wherever it is read, once, and legibly."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import thinveil
from thinveil.auditing.sources import opened
from thinveil.commands.shared.common import open_table
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import DataError
from thinveil.report.text.remarks import listed


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def inside(source: str, **how: Any) -> Any:
    pytest.importorskip("sqlglot")
    return opened(source, engine="duckdb", **how)


def test_numbers_that_became_public_are_named_in_the_verdict_of_a_database() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("duckdb")
    rows = [("01234", "a"), ("12345", "b"), ("99999", "a")]
    with closing(sqlite3.connect("z.sqlite")) as base, base:
        base.execute("CREATE TABLE t (x TEXT, g TEXT)")
        base.executemany("INSERT INTO t VALUES (?, ?)", rows)
    Path("folder").mkdir()
    columns = {name: [row[at] for row in rows] for at, name in enumerate("xg")}
    pq.write_table(pa.table(columns), "folder/z.parquet")
    Path("z.csv").write_text("x,g\n" + "".join(f"{x},{g}\n" for x, g in rows))
    for source in ("sqlite://z.sqlite", "folder", "z.csv"):
        with inside(source) as held:
            found = thinveil.audit(held)
        assert "column x seemed to hold numbers" in found.sentence(), source


def test_a_row_that_duckdb_does_not_read_is_named_by_its_line() -> None:
    pytest.importorskip("duckdb")
    files = {
        "ragged": "x,g\n1,2\n3,4,9\n5,6\n",
        "wide header": "x,g,h\n1,2\n3,4\n5,6\n",
        "unnamed": ",g\n1,2\n2,4,9\n3,6\n",
        "late": "x,g\n" + "1,2\n" * 3000 + "1,2,3\n",
    }
    for name, text in files.items():
        Path("t.csv").write_text(text)
        with pytest.raises(DataError) as memory:
            opened("t.csv")
        with pytest.raises(DataError) as duckdb:
            inside("t.csv")
        assert str(duckdb.value) == str(memory.value), name
    Path("t.csv").write_bytes(b"x,g\n" + b"1,a\n" * 30_000 + b"2,\xfc\n")
    with pytest.raises(DataError, match=r"line 30002 is not UTF-8 text: name the file's encoding"):
        inside("t.csv")


def test_what_duckdb_cannot_read_to_its_end_has_no_log() -> None:
    duckdb = pytest.importorskip("duckdb")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"a": list(range(9000))}), "a.parquet", compression="none")
    content = bytearray(Path("a.parquet").read_bytes())
    content[4:400] = bytes(396)  # a damaged page under a sound footer
    Path("a.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"not a Parquet file, or a damaged one") as damaged:
        inside("a.parquet")
    assert "log" not in str(damaged.value)
    with closing(duckdb.connect("b.duckdb")) as base:
        base.execute(
            "CREATE VIEW v AS SELECT 1 / (a - a) AS x, error('no') AS y FROM range(3) r(a)"
        )
    with pytest.raises(DataError) as refused:
        opened("duckdb://b.duckdb")
    assert "the database refused a statement" in str(refused.value)
    assert "own log" not in str(refused.value)


NOTED = {
    "utf-16-le": ("a,b\n" + "1,2\n" * 20).encode("utf-16-le"),
    "sep=": b"sep=;\na;b\n1;2\n3;4\n",
    "a header in a comment": b"#a,b\n1,x\n2,y\n",
    "a name less": b"a,b\nx,1,2\ny,3,4\n",
    "a column without a name": b"a,,b\n1,x,2\n3,y,4\n",
    "a row that is no number": b"a,b\n1,2\n3,x\n5,4\n6,y\n7,9\n8,10\n",
    "a name twice": b"a,a\n1,2\n3,4\n",
    "formats": b"a;b\n1,5;31.12.1990\n2,25;01.02.1991\n",
}


@pytest.mark.parametrize("name", NOTED)
def test_duckdb_notes_what_memory_notes(name: str) -> None:
    pytest.importorskip("duckdb")
    Path("t.csv").write_bytes(NOTED[name])
    here = thinveil.load("t.csv").remarks
    with inside("t.csv") as held:
        assert held.remarks == here
    assert here.all()


@pytest.mark.parametrize("ending", ["dta", "sav", "por", "sas7bdat", "xpt", "xlsx", "ods", "json"])
def test_a_file_that_is_not_there(ending: str) -> None:
    with pytest.raises(DataError, match=r"nosuch\.\w+: there is no such file: check the path"):
        thinveil.load(f"nosuch.{ending}")


def test_the_index_of_a_data_frame_is_not_lost_silently() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")

    def said(index: Any) -> tuple[str, ...]:
        return thinveil.load(pd.DataFrame({"wage": [5, 6, 7]}, index=index)).remarks.assumed

    left = "of the data frame is left out (reset_index() makes it a column)"
    assert said(pd.Index(["ann", "bob", "cid"], name="who")) == (f"the index 'who' {left}",)
    assert said(pd.Index([5, 1, 9])) == (f"the index {left}",)
    assert said(None) == said(pd.RangeIndex(4, 7)) == said(pd.Index([1, 2, 3])) == ()


def test_the_index_that_pandas_writes_into_a_file() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    for name, index in {"counts": [0, 1, 2], "kept": [5, 1, 9]}.items():
        pd.DataFrame({"wage": [5, 6, 7]}, index=pd.Index(index)).to_parquet(f"{name}.parquet")
        here = thinveil.load(f"{name}.parquet")
        with inside(f"{name}.parquet") as held:
            assert (held.schema, held.remarks) == (here.schema, here.remarks)
    assert "is the index of a pandas data frame; it can be left out" in here.remarks.assumed[0]
    assert "in Python drop=['__index_level_0__']" in here.remarks.assumed[0]
    assert thinveil.load("kept.parquet", drop="__index_level_0__").remarks.assumed == ()
    (counts,) = thinveil.load("counts.parquet").remarks.assumed
    assert counts.startswith("column 2 has no name and counts the rows, so it is left out")
    assert len(thinveil.load("counts.parquet", keep_unnamed=True).schema) == 2


def test_columns_of_parquet_files_without_a_name_count_within_each_file() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("duckdb")
    Path("folder").mkdir()
    for name in "ab":
        pq.write_table(pa.table({"Unnamed: 0": [0, 1, 2], "a": [7, 8, 9]}), f"folder/{name}.pq")
    with inside("folder") as held:
        assert held.schema.names == ("a",)
    with inside("folder", keep_unnamed=True) as held:
        assert held.schema.names == ("Unnamed: 0", "a")


def test_notes_are_printed_once_where_the_verdict_says_them_on_the_same_screen() -> None:
    text = "".join(f"{number},{chr(97 + number)}n\n" for number in range(1, 9))
    Path("t.csv").write_text(",name\n" + text)

    def printed(here: bool, there: bool) -> str:
        notices = Console(file=io.StringIO(), width=300, force_interactive=here)
        verdicts = Console(file=io.StringIO(), force_interactive=there)
        held = open_table({"table": "t.csv"}, notices, verdicts)
        assert isinstance(held, Dataset)
        assert isinstance(notices.file, io.StringIO)
        return notices.file.getvalue()

    for apart in (printed(False, True), printed(False, False), printed(True, False)):
        assert "counts the rows" in apart
        assert "leave it out (--drop name" in apart
    once = printed(True, True)
    assert "counts the rows" not in once  # the verdict says it
    assert "their list counts as public\n" in once  # worth stopping for, and brief
    assert "--drop" not in once


def test_lines_that_go_on_are_indented_further() -> None:
    console = Console(file=io.StringIO(), width=24)
    listed(console, ["short", "a line of some more words than fit"])
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "  short",
        "  a line of some more",
        "    words than fit",
    ]
