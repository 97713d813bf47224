"""One command for every place where data can be: files, databases, services."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import thinveil
from services import served
from thinveil.auditing import sources
from thinveil.auditing.sources import kind_of, opened, truth_of
from thinveil.auditing.transcript import Transcript
from thinveil.commands.main import run
from thinveil.curator.service.door import Settings
from thinveil.errors import TargetError, UsageError
from worlds import sure

pytest.importorskip("sqlglot")

PEOPLE = thinveil.people(30)
KEPT = [0, 2, 4, 5]
DATA = thinveil.Dataset(
    thinveil.Schema(tuple(PEOPLE.schema[column] for column in KEPT)), PEOPLE.codes[:, KEPT]
)
"""Few people of whom little is known: each round of an attack costs a statement or a trip."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files(tmp_path):
    """The same table as CSV, as two Parquet files, as DuckDB and as SQLite."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    with Path("people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([DATA.schema.names, *DATA.rows()])
    columns = zip(DATA.schema.names, zip(*DATA.rows(), strict=True), strict=True)
    table = pa.table({name: list(values) for name, values in columns})
    Path("data").mkdir()
    pq.write_table(table.slice(0, 12), "data/a.parquet")
    pq.write_table(table.slice(12), "data/b.parquet")
    with closing(duckdb.connect("people.duckdb")) as base:
        base.execute("CREATE TABLE people AS SELECT * FROM 'data/*.parquet'")
        base.execute("CREATE TABLE other (x INTEGER)")
    with closing(sqlite3.connect("people.sqlite")) as base:
        base.execute("CREATE TABLE people (age INTEGER, job TEXT)")
        base.executemany("INSERT INTO people VALUES (?, ?)", [r[:2] for r in DATA.rows()])
        base.commit()


@pytest.fixture
def service(tmp_path, monkeypatch):
    settings = Settings(rate=1e9)
    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "1"}, settings) as found:
        monkeypatch.setenv("THINVEIL_TOKEN", found.tokens["analyst"])
        yield found


def audited(*words: str) -> dict[str, Any]:
    assert run(["audit", *words, "--json", "result.json"]) == 0
    result: dict[str, Any] = json.loads(Path("result.json").read_text())
    return result


def reached(address: str) -> Any:
    """Return what an address leads to: a table or a target that wants closing."""
    return closing(cast(Any, opened(address)))


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (None, "people"),
        ("people.csv", "file"),
        ("nothing.csv", "file"),
        ("data/*.parquet", "database"),
        ("data", "database"),
        ("postgresql://u@h/d", "database"),
        ("postgres://u@h/d", "database"),
        ("DuckDB://x.db", "database"),
        ("sqlite://x.db", "database"),
        ("spark://local[2]", "database"),
        ("http://h:1", "service"),
        ("HTTPS://h", "service"),
        ("C:/people.csv", "file"),
    ],
)
def test_addresses_are_told_apart(files, source, kind):
    assert kind_of(source) == kind


def test_large_files_are_left_to_duckdb(files, monkeypatch):
    assert kind_of("people.csv", "duckdb") == "database"
    monkeypatch.setattr(sources, "_IN_MEMORY", {"csv": 10**9, "parquet": 10**9})
    assert kind_of("people.csv") == "database"
    assert kind_of("data/a.parquet") == "database"
    assert kind_of("people.csv", "memory") == "file"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["oracle://h/d"], "not known here"),
        (["people.csv", "--table", "x"], "only a database has tables"),
        (["duckdb://people.duckdb"], "which table?"),
        (["duckdb://people.duckdb", "--table", "nope"], "no table 'nope'"),
        (["duckdb://nope.duckdb"], "no such file"),
        (["data/*.nothing"], "data/*.nothing"),
        (["people.csv", "--truth", "nope.csv"], "no such file"),
        (["http://127.0.0.1:1", "--schema", "bank"], "own schema"),
    ],
)
def test_what_cannot_be_opened_is_said(files, capsys, words, said):
    assert run(["audit", *words]) in (1, 2)
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    "words",
    [
        ["data/*.parquet"],
        ["data"],
        ["duckdb://people.duckdb", "--table", "people"],
        ["people.csv", "--engine", "duckdb"],
    ],
)
def test_a_database_gives_what_memory_gives(files, words):
    memory = audited("people.csv")
    found = audited(*words, "--truth", "self")
    assert found["exact"]
    for name in ("queries", "rounds", "epsilon_claimed", "records_recovered", "assumed_public"):
        assert found[name] == memory[name], name


def test_rows_stay_in_the_database_unless_the_user_allows_it(files, monkeypatch):
    from thinveil.curator.database.table import DatabaseTable

    def fetched(self):
        raise AssertionError("rows were fetched")

    monkeypatch.setattr(DatabaseTable, "to_dataset", fetched)
    found = audited("sqlite://people.sqlite")
    assert found["exact"] is None
    assert f"rebuilt {DATA.records} of {DATA.records}" in found["verdict"]
    with (
        reached("data") as table,
        pytest.raises(AssertionError, match="rows were fetched"),
    ):
        truth_of("self", table, {})


def test_another_file_can_be_the_truth(files):
    assert audited("data", "--truth", "people.csv")["exact"]


def test_other_strategies_are_warned_of(files, capsys):
    assert run(["audit", "sqlite://people.sqlite", "--strategy", "published"]) == 0
    assert "adaptive" in capsys.readouterr().err


@pytest.mark.foreign
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis 12 and DuckDB 2
def test_an_ibis_table_in_python(files):
    ibis = pytest.importorskip("ibis")
    base = ibis.duckdb.connect()
    table = base.read_parquet("data/*.parquet")
    verdict = thinveil.audit(table.select("age", "job"), truth="self", k=2)
    assert sure(verdict.score).exact
    assert sure(thinveil.audit("duckdb://people.duckdb", table="people", truth="self").score).exact
    with pytest.raises(UsageError, match="only a database"):
        thinveil.audit(table, table="x")
    base.disconnect()


def test_a_run_in_a_database_survives_without_being_asked_to(files):
    found = audited("data", "--attack", "column", "--column", "age")
    path = Path(found["transcript"])
    assert path.is_file()
    again = audited("--resume", str(path))
    assert again["result"] == found["result"]


def test_passwords_stay_out_of_transcripts_and_errors(files, capsys, monkeypatch):
    opened_with = []

    def opening(source, *given, **more):
        opened_with.append(source)
        return opened("data")

    monkeypatch.setattr("thinveil.commands.shared.common.opened", opening)
    address = "postgresql://ann:geheim@localhost/census?password=geheim"
    assert (
        run(["audit", address, "--transcript", "t", "--attack", "column", "--column", "age"]) == 0
    )
    assert opened_with == [address]
    assert b"geheim" not in Path("t").read_bytes()
    origin = Transcript.read_header(Path("t")).options["origin"]
    assert origin["table"] == "postgresql://ann@localhost/census?"
    output = capsys.readouterr()
    assert "geheim" not in output.out + output.err


def test_a_service_is_audited_with_the_same_attacks(service, capsys, files):
    memory = audited("people.csv")
    found = audited(service.url, "--truth", "people.csv")
    assert found["exact"]
    assert found["queries"] == memory["queries"]
    assert found["network"]["trips"] >= found["rounds"]
    assert found["network"]["ledger"]["answers"] == found["queries"] + found["checks"]
    assert Path(found["transcript"]).is_file()
    assert "round trips" in capsys.readouterr().out
    words = ["--attack", "membership", "--known", f"age={DATA.rows()[0][0]}"]
    assert audited(service.url, *words)["result"][0]["present"] is True


def test_a_spent_budget_ends_with_what_was_found(tmp_path, monkeypatch, capsys):
    settings = Settings(rate=1e9)
    with served(DATA, thinveil.idp(), tmp_path, {"analyst": "2e-8"}, settings) as found:
        monkeypatch.setenv("THINVEIL_TOKEN", found.tokens["analyst"])
        assert run(["audit", found.url, "--json", "result.json"]) == 3
    result = json.loads(Path("result.json").read_text())
    assert result["ended"] == "cap"
    assert 0 < result["queries"] <= 200
    assert "is left" in result["reason"]


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        ("unprotected", {}),
        ("bdp", {}),
        ("idp-integer", {}),
        pytest.param("idp", {"offset": 0.5, "post": "integer"}, marks=pytest.mark.nightly),
        ("idp", {"k": 2, "universe": "bounded"}),
        ("dp-laplace", {}),
    ],
)
def test_a_service_says_which_mechanism_it_has(mechanism, more, tmp_path, monkeypatch):
    """What the service claims decides about the attack; nothing of it has to be said again."""
    k, universe = more.pop("k", 1), more.pop("universe", "unbounded")
    claim = thinveil.claim_named(mechanism, k, universe, **more)
    schema = thinveil.Schema(
        (thinveil.Grid("x", lower=0, upper=9), thinveil.Categories("c", ("a", "b")))
    )
    data = thinveil.Dataset(schema, np.array([[row % 7, row % 2] for row in range(12)]))
    with served(data, claim, tmp_path, {"analyst": "100"}, Settings(rate=1e9)) as found:
        monkeypatch.setenv("THINVEIL_TOKEN", found.tokens["analyst"])
        with reached(found.url) as target:
            verdict = thinveil.audit(target, truth=data)
        assert verdict.facts.claim == claim
        assert verdict.options.claim() == claim
        if mechanism.startswith("dp-"):
            assert verdict.run.ending == "undecided"
        else:
            assert sure(verdict.score).exact
        assert run(["audit", found.url, "--mechanism", "idp"]) == 2


def test_the_smallest_share_of_a_service_is_offered(tmp_path, monkeypatch):
    policies = thinveil.Policies(min_epsilon=1e-6, cache=True)
    with served(
        DATA, thinveil.idp(), tmp_path, {"analyst": "1"}, Settings(rate=1e9), policies=policies
    ) as found:
        monkeypatch.setenv("THINVEIL_TOKEN", found.tokens["analyst"])
        result = audited(found.url, "--attack", "count", "--known", "insured=yes")
        assert result["epsilon_claimed"] >= 1e-6 * result["queries"] * 0.99


def test_a_service_that_is_gone_or_does_not_know_the_token(service, monkeypatch, capsys):
    monkeypatch.setenv("THINVEIL_TOKEN", "wrong")
    assert run(["audit", service.url]) == 1
    assert "THINVEIL_TOKEN" in capsys.readouterr().err
    monkeypatch.delenv("THINVEIL_TOKEN")
    with pytest.raises(TargetError, match="THINVEIL_TOKEN"):
        opened(service.url)


def test_other_commands_need_the_table_itself(files, capsys):
    for command in ("compare",):
        assert run([command, "http://127.0.0.1:1"]) == 2
        assert run([command, "data/*.parquet"]) == 2
        assert "file" in capsys.readouterr().err


def test_a_schema_is_drafted_for_a_table_in_a_database(files, capsys):
    assert run(["schema", "people.csv", "--output", "memory.toml"]) == 0
    assert run(["schema", "data/*.parquet", "--output", "database.toml"]) == 0
    memory, database = (thinveil.read_schema(f"{name}.toml") for name in ("memory", "database"))
    assert database == memory
    assert run(["schema", "duckdb://people.duckdb", "--table", "people"]) == 0
    assert thinveil.read_schema("memory.toml").names[0] in capsys.readouterr().out
    assert audited("data", "--schema", "database.toml", "--truth", "self")["exact"]
    assert run(["schema", "http://127.0.0.1:1"]) == 2
    assert run(["schema", "people.csv", "--table", "x"]) == 2


def test_a_service_does_not_hand_its_rows_out(service, capsys):
    assert run(["audit", service.url, "--truth", "self"]) == 2
    assert "does not hand its rows out" in capsys.readouterr().err


def test_a_transcript_of_another_service_is_refused(service, tmp_path, monkeypatch, capsys):
    words = ["--attack", "column", "--column", "job", "--transcript", "t"]
    assert run(["audit", service.url, *words]) == 0
    other = tmp_path / "other"
    other.mkdir()
    with served(DATA, thinveil.idp(), other, {"analyst": "1"}, Settings(rate=1e9)) as found:
        monkeypatch.setenv("THINVEIL_TOKEN", found.tokens["analyst"])
        assert run(["audit", found.url, "--resume", "t"]) == 1
        assert found.get("/ledger").json()["answers"] == 0
    assert "another table or target" in capsys.readouterr().err


def test_a_changed_table_is_refused(files, capsys):
    words = ["--attack", "column", "--column", "age", "--transcript", "t"]
    assert run(["audit", "sqlite://people.sqlite", *words]) == 0
    with closing(sqlite3.connect("people.sqlite")) as base:
        base.execute("UPDATE people SET age = age + 1 WHERE rowid = 1")
        base.commit()
    assert run(["audit", "--resume", "t"]) == 1
    assert "another table or target" in capsys.readouterr().err


def test_a_data_frame_with_a_column_called_counter_is_a_data_frame():
    import pandas

    frame = pandas.DataFrame({"counter": [1, 2, 2, 5], "remote": ["a", "b", "a", "a"]})
    assert sure(thinveil.audit(frame).score).exact
