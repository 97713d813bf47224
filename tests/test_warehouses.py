"""Statements for warehouses that are not at hand: kept as written, and executed in DuckDB."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from sqlglot import exp

from databases import HOSTILE, HOSTILE_TEXTS, KINDS, batches_for, contents, mixed, records_of
from thinveil import Curator, audit, idp, load
from thinveil.auditing.targets import round_seconds
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.database import fields
from thinveil.curator.database.warehouses import WAREHOUSES, open_warehouse
from thinveil.curator.database.words import column, equal, named, text
from thinveil.errors import DataError, UsageError
from warehouses import DIALECTS, GOLDEN, Translated, held, small, written
from worlds import examples

every = pytest.mark.parametrize("dialect", DIALECTS)


def content_for(dialect: str, content: pa.Table) -> pa.Table:
    """Leave out what a warehouse has no type or no name for."""
    kept = [place for place, kind in enumerate(content.schema.types) if held(kind, dialect)]
    content = content.select(kept)
    if dialect != "bigquery":  # whose names of columns hold no dots
        return content
    return content.rename_columns([each.replace(".", "_") for each in content.column_names])


@every
def test_statements_are_those_that_are_kept(dialect: str) -> None:
    """If they are to change: PYTHONPATH=src:tests python tests/warehouses.py."""
    kept = (GOLDEN / f"{dialect}.sql").read_text(encoding="utf-8")
    assert written(dialect) == kept


@every
def test_kept_statements_are_of_the_dialect_and_quote_what_they_name(dialect: str) -> None:
    kept = (GOLDEN / f"{dialect}.sql").read_text(encoding="utf-8")
    first, *others = (each for each in kept.split(";\n") if each.startswith(("SELECT", "WITH")))
    assert "information_schema" in first.lower()
    for each in others:
        tree = sqlglot.parse_one(each, read=dialect)
        names = {name for name in tree.find_all(exp.Identifier) if not name.args.get("quoted")}
        assert {name.name for name in names} <= {"v"}, "Snowflake turns others into capitals"


@every
def test_an_audit_ends_exact_with_the_counts_of_memory(dialect: str) -> None:
    content = content_for(dialect, mixed(50))
    expected = load(content)
    with open_warehouse(Translated(dialect, content), dialect, "census.people") as table:
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)
        assert any("nobody writes" in each for each in table.remarks.assumed)
        scan, counter = ScanCounter(expected.codes), table.counter()
        for batch in batches_for(expected.codes, 1, 8):
            assert counter.count(batch).tolist() == scan.count(batch).tolist()
    with open_warehouse(Translated(dialect, small()), dialect, "census.people") as table:
        verdict = audit(Curator(table, idp()), truth=load(small()))
        assert verdict.score is not None
        assert verdict.score.exact


@every
@examples(15)
@given(content=contents(tuple(each for each in KINDS if each not in ("short", "whole", "millis"))))
def test_schema_and_codes_are_those_of_memory(dialect: str, content: pa.Table) -> None:
    content = content_for(dialect, content)
    try:
        expected = load(content)
    except DataError:
        with pytest.raises(DataError):
            open_warehouse(Translated(dialect, content), dialect, "census.people")
        return
    with open_warehouse(Translated(dialect, content), dialect, "census.people") as table:
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)


# sqlglot writes MSSQL's difference of two times of the day as one of timestamps
@pytest.mark.parametrize("dialect", sorted({*DIALECTS} - {"databricks", "tsql"}))
def test_times_of_the_day(dialect: str) -> None:
    content = pa.table({"at": [dt.time(0, 0), dt.time(23, 59, 59, 123_000), dt.time(7, 30)]})
    with open_warehouse(Translated(dialect, content), dialect, "census.people") as table:
        assert records_of(table.to_dataset()) == records_of(load(content))


@pytest.mark.parametrize(
    ("dialect", "words"),
    [("trino", r"has the type time\(9\)"), ("snowflake", "1 row is finer than microseconds")],
)
def test_times_of_the_day_that_are_too_fine(dialect: str, words: str) -> None:
    content = pa.table({"at": pa.array([10**9, 1], pa.time64("ns"))})
    with pytest.raises(DataError, match=f"column 'at'.* {words}"):
        open_warehouse(Translated(dialect, content), dialect, "census.people")


def test_times_of_the_day_are_taken_by_how_fine_they_are() -> None:
    trino = WAREHOUSES["trino"](None)
    for words in ("time", *(f"time({each})" for each in range(4))):
        assert trino.kind(words).this.name == "TIME"
    for words in (*(f"time({each})" for each in range(4, 13)), "time(3) with time zone"):
        assert trino.kind(words) == words
    for dialect, plain in (("tsql", "TIME(6)"), ("snowflake", "TIME(6)")):
        engine = WAREHOUSES[dialect](None)
        fine = engine.kind("TIME")
        field = fields._field(engine, fields.Asked("at", column("at"), fine, ()))
        again = engine.words(field.sound)
        assert again.count(plain) == 1, "what is left of it in microseconds must be all of it"
        assert plain in engine.words(field.value)
    assert engine.kind("TIME").this.name == "TIME_NS"


@every
def test_rounds_are_dear(dialect: str) -> None:
    with open_warehouse(Translated(dialect, small()), dialect, "census.people") as table:
        curator = Curator(table, idp())
        assert round_seconds(curator) == 1
        asked = audit(curator).run.meter
        few = audit(Curator(load(small()), idp()), rounds="few").run.meter
        assert (asked.queries, asked.rounds) == (few.queries, few.rounds)


@every
def test_hostile_names_and_texts_are_read_back_as_themselves(dialect: str) -> None:
    engine = WAREHOUSES[dialect](None)
    for name in HOSTILE:
        if dialect == "bigquery" and "." in name:
            continue  # sqlglot reads a dot in a name as a path; BigQuery has no such columns
        tree = sqlglot.parse_one(engine.words(named({name: column(name)})), read=dialect)
        assert [each.name for each in tree.find_all(exp.Column)] == [name]
        assert tree.expressions[0].alias == name
    for each in HOSTILE_TEXTS:
        tree = sqlglot.parse_one(
            engine.words(named({"x": equal(column("y"), text(each))})), dialect
        )
        (found,) = tree.find_all(exp.National if dialect == "tsql" else exp.Literal)
        assert found.name == each
        rows = engine.inline({"key": [each, "other"], "code": np.array([1, 2])})
        tree = sqlglot.parse_one(f"SELECT * FROM {rows}", read=dialect)
        literals = [
            node.name
            for node in tree.find_all(exp.Literal, exp.National)
            if isinstance(node, exp.National) or node.is_string
        ]
        assert sorted(literals) == sorted([each, "other"])


@every
def test_a_table_is_named_with_its_schema(dialect: str) -> None:
    connection: Any = Translated(dialect, small())
    for name in ("people", ".people", "a.b.c.d"):
        with pytest.raises(UsageError, match=r"schema\.table"):
            open_warehouse(connection, dialect, name)
    with open_warehouse(connection, dialect, "lake.census.people") as table:
        assert table.records == 6
    with pytest.raises(UsageError, match="dialect is one of trino"):
        open_warehouse(connection, "oracle", "a.b")
    connection._columns = list
    with pytest.raises(DataError, match="there is no table"):
        open_warehouse(connection, dialect, "a.b")
