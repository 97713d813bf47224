"""Columns that are left out: --drop and --only, wherever a table comes from."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinveil
from thinveil.auditing.sources import opened
from thinveil.commands.main import run
from thinveil.curator.tables.drafting import draft_schema
from thinveil.curator.tables.reading import leaving_out, listed
from thinveil.errors import DataError, UsageError

ODD = 'City, "State"'
TABLE = (
    'age,job,"City, ""State""",key\n44,nurse,Ulm,9999999999999999999\n'
    "31,clerk,Ulm,2\n44,nurse,Bern,3\n60,judge,Rom,4\n31,clerk,Rom,5\n"
)
KEY = ("--drop", "key")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    Path("t.csv").write_text(TABLE)


def audited(*arguments: str) -> dict[str, object]:
    assert run(["audit", *arguments, "--json", "out.json"]) == 0
    found: dict[str, object] = json.loads(Path("out.json").read_text())
    return found


def inside(*source: Any, **how: Any) -> Any:
    return opened(*source, **how)


def said(capsys, *arguments: str) -> str:
    assert run(list(arguments)) in (1, 2)
    error: str = capsys.readouterr().err
    assert "Traceback" not in error
    return error


def followed(message: str) -> tuple[str, ...]:
    """Return the option that a message names, split as a shell splits it."""
    found = re.search(r"\((--drop .*?); in Python drop=.*\)", message)
    assert found is not None, message
    return tuple(shlex.split(found[1]))


def test_columns_are_left_out_or_chosen():
    for option in (["--drop", "key, job"], ["--drop", "key", "--drop", "job"]):
        assert audited("t.csv", *option)["attributes"] == ["age", ODD]
    assert audited("t.csv", "--only", "job,age")["attributes"] == ["age", "job"]
    assert audited("t.csv", "--drop", listed(["key", ODD]))["attributes"] == ["age", "job"]
    assert "age" not in inside(None, drop="age").schema.names  # the embedded people
    assert thinveil.load("t.csv", only=("age",)).schema.names == ("age",)
    assert thinveil.load("t.csv", drop=["key", "age"]).schema.names == ("job", ODD)
    assert draft_schema("t.csv", drop="key").names == ("age", "job", ODD)


def in_a_shell(line: str) -> list[str]:
    """Return the words of a line; of one with control characters, as bash reads it."""
    if "$'" not in line:
        return shlex.split(line)
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash to read $'..'")
    found = subprocess.run([bash, "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
    return found.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize(
    "name", ["a", "a b", " a", ODD, "'", '"', "a'b", "größe=x", "-x", "$a", "a\nb"]
)
def test_the_option_that_messages_name_survives_a_shell(name):
    Path("odd.csv").write_text(listed([name, "age"]) + "\n1,2\n3,4\n")
    words = in_a_shell(leaving_out(name).partition("; in Python")[0])
    assert run(["schema", "odd.csv", *words, "--output", "odd.toml"]) == 0
    assert thinveil.read_schema("odd.toml").names == ("age",)


def test_a_wrong_name_is_told_with_the_nearest_one(capsys):
    assert "did you mean --drop job?" in said(capsys, "audit", "t.csv", "--drop", "Job ")
    assert "did you mean --only age?" in said(capsys, "audit", "t.csv", "--only", "agee")
    told = said(capsys, "audit", "t.csv", "--drop", ODD)
    assert f"did you mean --drop {shlex.quote(listed([ODD]))}?" in told
    assert "leaves out all 4 columns" in said(
        capsys, "audit", "t.csv", "--drop", listed(["age", "job", ODD, "key"])
    )
    assert "exclude each other" in said(capsys, "audit", "t.csv", *KEY, "--only", "age")
    Path("p.csv").write_text("age\n44\n")
    told = said(
        capsys, "audit", "t.csv", *KEY, "--attack", "attribute", "--people", "p.csv",
        "--column", "jobb",
    )  # fmt: skip
    assert "no column 'jobb'" in told


@pytest.mark.parametrize(
    "words",
    [
        ("--attack", "column", "--column", "job"),
        ("--attack", "attribute", "--known", "job=nurse"),
        ("--order", "job"),
        ("--precision", "job=2"),
        ("--attack", "attribute", "--known", "age=44", "--prior", "job=1..2"),
    ],
)
def test_an_option_that_names_a_column_that_is_left_out_is_refused(capsys, words):
    told = said(capsys, "audit", "t.csv", "--drop", "key,job", *words)
    assert "the column 'job' is left out by --drop" in told
    told = said(capsys, "audit", "t.csv", "--only", "age", *words)
    assert "the column 'job' is not among those of --only" in told


def test_a_link_that_is_left_out_is_refused(capsys):
    told = said(capsys, "compare", "t.csv", "--drop", "key,job", "--link", "job")
    assert "--link: the column 'job' is left out by --drop" in told


def test_a_schema_may_describe_more_than_is_wanted(capsys):
    assert run(["schema", "t.csv", "--output", "all.toml"]) == 0
    assert audited("t.csv", "--schema", "all.toml", "--only", "age")["attributes"] == ["age"]
    # and less: the message names the option
    assert run(["schema", "t.csv", *KEY, "--output", "some.toml"]) == 0
    told = said(capsys, "audit", "t.csv", "--schema", "some.toml")
    again = audited("t.csv", "--schema", "some.toml", *followed(told))
    assert again["attributes"] == ["age", "job", ODD]


def test_the_next_command_of_a_draft_can_be_copied(capsys):
    assert run(["schema", "t.csv", "--drop", listed(["key", ODD]), "--output", "d.toml"]) == 0
    line = capsys.readouterr().err.partition("Edit it, then: ")[2].strip()
    assert audited(*shlex.split(line)[2:])["attributes"] == ["age", "job"]


def test_messages_that_speak_of_leaving_out_can_be_followed(capsys, tmp_path):
    Path("far.csv").write_text("key,age\n1e999,2\n3,4\n")
    told = said(capsys, "audit", "far.csv")
    assert "numbers beyond 10^400" in told
    assert followed(told) == KEY
    assert audited("far.csv", *followed(told))["exact"] is True
    Path("twice.csv").write_text("age,a,a\n1,2,3\n4,5,6\n")
    assert run(["audit", "twice.csv"]) == 0
    told = capsys.readouterr().err
    assert audited("twice.csv", *followed(told))["attributes"] == ["age", "a"]
    capsys.readouterr()
    rows = "".join(f"{name}n,{number}\n" for number, name in enumerate("abcdefgh"))
    Path("names.csv").write_text("name,age\n" + rows)
    assert run(["audit", "names.csv"]) == 0
    told = capsys.readouterr().err
    assert "their list counts as public" in told
    assert run(["audit", "names.csv", *followed(told)]) == 0
    assert "counts as public" not in capsys.readouterr().err


def test_a_column_that_is_left_out_is_not_looked_at():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"age": [1, 2], "list": [[1], [2, 3]]})
    pq.write_table(table, "t.parquet")
    for source in ("t.parquet", table):
        with pytest.raises(DataError) as refused:
            thinveil.load(source)
        _, name = followed(str(refused.value))
        assert thinveil.load(source, drop=name).rows() == [(1,), (2,)]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1, 2], "mixed": [object(), 2]})
    with pytest.raises(DataError) as refused:
        thinveil.load(frame)
    _, name = followed(str(refused.value))
    assert thinveil.load(frame, drop=name).rows() == [(1,), (2,)]


def test_columns_of_a_database_are_left_out():
    pytest.importorskip("sqlglot")
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect("t.duckdb")) as base:
        base.execute("CREATE TABLE t AS SELECT 1 AS age, [1, 2] AS list")
    with pytest.raises(DataError) as refused:
        inside("duckdb://t.duckdb")
    _, name = followed(str(refused.value))
    with inside("duckdb://t.duckdb", drop=name) as table:
        assert table.schema.names == ("age",)
    with closing(sqlite3.connect("t.sqlite")) as base:
        base.execute("CREATE TABLE t (age INTEGER, job TEXT)")
        base.execute("INSERT INTO t VALUES (1, 'x')")
        base.commit()
    schema = draft_schema("t.csv", only=("age", "job"))
    with inside("sqlite://t.sqlite", schema, only=("age",)) as table:
        assert table.schema.names == ("age",)
        assert table.to_dataset().schema.names == ("age",)
    with inside("t.csv", engine="duckdb", drop="key") as table:
        assert table.schema.names == ("age", "job", ODD)


def test_a_truth_may_have_more_columns(capsys):
    Path("some.csv").write_text("age,job\n44,nurse\n31,clerk\n44,nurse\n60,judge\n31,clerk\n")
    found = audited("some.csv", "--truth", "t.csv")
    assert found["exact"] is True
    told = capsys.readouterr().err
    assert f"--truth: it has columns that the audited table does not have: {ODD!r}, 'key'" in told
    assert audited("t.csv", "--only", "age,job", "--truth", "some.csv")["exact"] is True
    assert "--truth" not in capsys.readouterr().err
    told = said(capsys, "audit", "some.csv", "--only", "age", "--truth", "some.csv", "--drop", "x")
    assert "exclude each other" in told
    Path("less.csv").write_text("age\n44\n")
    assert "the table has no column 'job'" in said(
        capsys, "audit", "some.csv", "--truth", "less.csv"
    )
    Path("none.csv").write_text("x\n44\n")
    assert "none of the columns 'age', 'job'" in said(
        capsys, "audit", "some.csv", "--truth", "none.csv"
    )


def test_people_who_are_known_by_a_column_that_is_left_out(capsys):
    Path("p.csv").write_text("age,job\n60,judge\n44,nurse\n")
    words = ("t.csv", "--drop", "key,job", "--attack", "attribute", "--people", "p.csv")
    assert audited(*words)["attack"] == "attribute"
    assert "--people: it has a column that the audited table does not have: 'job' is left out" in (
        capsys.readouterr().err
    )
    Path("p.csv").write_text("job\njudge\n")
    assert "no column besides" in said(capsys, "audit", *words)


def test_a_resumed_run_leaves_out_the_same_columns(capsys):
    first = audited("t.csv", "--drop", "key,job", "--transcript", "run")
    again = audited("--resume", "run")
    assert again["attributes"] == first["attributes"] == ["age", ODD]
    assert "brings its own options" in said(capsys, "audit", "--resume", "run", "--drop", "age")


def test_what_is_attacked_elsewhere_brings_its_own_columns(capsys, monkeypatch):
    from thinveil.auditing import sources
    from thinveil.curator.curator import Curator
    from thinveil.language.claims import claim_named

    target = Curator(thinveil.load("t.csv", only="age"), claim_named("idp"))
    monkeypatch.setattr(sources, "kind_of", lambda *_: "plugin")
    monkeypatch.setattr(sources, "target_maker", lambda _: lambda *_a, **_k: target)
    assert "--drop: what is attacked brings its own" in said(
        capsys, "audit", "mine:t", "--drop", "age"
    )


def test_a_table_with_too_many_columns_for_the_page_says_how_to_leave_some_out():
    from thinveil.lab.tables import cut

    wide = thinveil.Dataset(
        thinveil.Schema(tuple(thinveil.Grid(f"a{n}") for n in range(30))),
        np.zeros((1, 30), np.int64),
    )
    with pytest.raises(UsageError, match=r"thinveil lab TABLE --drop A,B"):
        cut(wide, "wide", "")
