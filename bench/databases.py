"""Tables in databases: whole reconstructions, and three attributes of very large tables."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql

from bench.bank import bank
from bench.figures import Figure, duration, memory, watch
from bench.synthetic import SCHEMA, synthetic
from thinveil import Curator, Dataset, Grid, Schema, audit, idp
from thinveil.attacker.findings import TableFound
from thinveil.curator.database.addresses import connected
from thinveil.curator.database.session import Session
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.curator.tables.reading import Reading

SPARK_RECORDS, QUICK_SPARK_RECORDS = 5_000, 200
ATTRIBUTES = 3
CHUNK = 1_000_000
MEMORY_BAR = 8 * 2**30
SECONDS_BARS = {"duckdb": 60, "postgresql": 240}


def whole(path: Path, quick: bool, engine: str) -> list[Figure]:
    """Reconstruct the bank's customers inside a database; a sample of them inside Spark."""
    records = QUICK_SPARK_RECORDS if quick else SPARK_RECORDS
    data = bank(path, True, records) if engine == "spark" else bank(path, quick)
    with ENGINES[engine](data) as (address, name):
        with watch() as opened:
            table = open_database(address, name, data.schema)
        with table:
            what = f"{engine}, bank-full, {table.records:,} records"
            figures = [duration(f"{what}: open", opened.seconds)]
            truth = Counter(map(tuple, data.codes.tolist()))
            figures += _attacked(table, what, truth, SECONDS_BARS.get(engine), held=data)
    return figures


def parquet(
    path: Path | None, quick: bool, records: str, strategy: str = "adaptive"
) -> list[Figure]:
    """Reconstruct three attributes of a synthetic table in Parquet files."""
    size = int(records)
    with tempfile.TemporaryDirectory() as folder:
        # A process of its own, so that its memory is not taken for the counter's.
        writer = multiprocessing.get_context("spawn").Process(target=_write, args=(folder, size))
        writer.start()
        writer.join()
        if writer.exitcode:
            raise SystemExit("the synthetic table could not be written")
        bytes_ = sum(each.stat().st_size for each in Path(folder).iterdir())
        what = f"DuckDB, Parquet, {strategy}, {size:,} records ({bytes_ / 1e6:,.0f} MB)"
        with watch() as opened:
            session, found, _ = connected(folder, None, Reading())
            schema = Schema(SCHEMA.attributes[:ATTRIBUTES])
            table = DatabaseTable.of(found.select(*schema.names), schema, session=session)
        with table:  # and its session
            figures = [duration(f"{what}: open", opened.seconds)]
            truth = _counted(session, found, schema)
            figures += _attacked(table, what, truth, None, strategy)
    return [*figures, memory(f"{what}: peak memory", MEMORY_BAR)]


def _attacked(
    table: DatabaseTable,
    what: str,
    truth: Counter[tuple[int, ...]],
    bar: int | None,
    strategy: str = "adaptive",
    held: Dataset | None = None,
) -> list[Figure]:
    """Reconstruct the whole table, and hold what was found against the truth.

    Where the same table is at hand in memory, the same attack there is the measure.
    """
    target = Curator(table, idp())
    before = table.statements
    with watch() as took:
        verdict = audit(target, strategy=strategy)
    asked = table.statements - before
    found = verdict.run.found
    if verdict.run.ending != "complete" or not isinstance(found, TableFound):
        raise SystemExit(f"the attack did not end: {verdict.run.reason}")
    order = np.argsort(found.columns)
    claimed: Counter[tuple[int, ...]] = Counter()
    for row, many in zip(found.codes[:, order].tolist(), found.counts.tolist(), strict=True):
        claimed[tuple(row)] += many
    if claimed != truth:
        raise SystemExit("some records are wrong")
    meter = verdict.run.meter
    each = f"{meter.queries / table.records:.4f} queries a record"
    rounds = f"{meter.rounds:,} rounds, {asked:,} statements"
    if held is not None:
        with watch() as memory_took:
            audit(Curator(held, idp()), strategy=strategy)
        rounds += (
            f"; {took.seconds / memory_took.seconds:.1f} x memory's {memory_took.seconds:.2f} s"
        )
    return [
        duration(f"{what}: reconstruct exactly", took.seconds, bar, rounds),
        Figure(f"{what}: a round", f"{1000 * took.seconds / meter.rounds:.1f} ms", ratio=each),
        duration(f"{what}: a million queries", took.seconds / meter.queries * 1e6),
    ]


def _counted(session: Session, table: Any, schema: Schema) -> Counter[tuple[int, ...]]:
    """Return how many records of each kind there are, as DuckDB itself counts them."""
    names = schema.names
    rows = session.rows(table.group_by(*names).aggregate(n=table.count()))
    return Counter(
        {
            tuple(one.encode(value) for one, value in zip(schema, row[:-1], strict=True)): row[-1]
            for row in rows
        }
    )


# ---- where the bank's customers are put


@contextmanager
def _duckdb(data: Dataset) -> Iterator[tuple[str, str | None]]:
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(_arrow(data), Path(folder) / "bank.parquet")
        yield str(Path(folder) / "*.parquet"), None


@contextmanager
def _postgresql(data: Dataset) -> Iterator[tuple[str, str | None]]:
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from servers import postgres

    kinds = [
        sql.SQL("bigint" if isinstance(each, Grid) else "text") for each in data.schema.attributes
    ]
    listed = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), kind)
        for name, kind in zip(data.schema.names, kinds, strict=True)
    )
    with postgres() as address:
        with psycopg.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("CREATE TABLE bank ({})").format(listed))
            with cursor.copy("COPY bank FROM STDIN") as copy:
                for row in data.rows():
                    copy.write_row(row)
        yield address, "bank"


@contextmanager
def _spark(data: Dataset) -> Iterator[tuple[str, str | None]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.parquet"
        pq.write_table(_arrow(data), path)
        yield "spark://local[2]", str(path)


ENGINES: dict[str, Callable[[Dataset], AbstractContextManager[tuple[str, str | None]]]] = {
    "duckdb": _duckdb,
    "postgresql": _postgresql,
    "spark": _spark,
}


def _write(folder: str, records: int) -> None:
    """Write a synthetic table, a file for each million records."""
    for number, start in enumerate(range(0, records, CHUNK)):
        data, _ = synthetic(min(CHUNK, records - start), number)
        pq.write_table(_arrow(data), Path(folder) / f"part-{number:03d}.parquet")


def _arrow(data: Dataset) -> pa.Table:
    """Return a table with its values, each distinct value decoded once."""
    columns = {}
    for place, attribute in enumerate(data.schema):
        codes, index = np.unique(data.column(place), return_inverse=True)
        values = pa.array([attribute.decode(code) for code in codes.tolist()])
        columns[attribute.name] = values.take(pa.array(index))
    return pa.table(columns)
