"""Tables in databases: whole reconstructions."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql

from bench.bank import bank
from bench.census import SCHEMA, write_census
from bench.figures import MIB, Figure, duration, watch
from bench.parquet import apart, numbered, truth_of
from thinveil import Curator, Dataset, Grid, audit, idp
from thinveil.attacker.findings import TableFound
from thinveil.curator.database.engines.spark import Spark
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.language.texts import many

SECONDS_BARS = {"duckdb": 60, "postgresql": 240, "spark": 40, "spark-jobs": 120, "sail": 60}
OPENING_BARS = {"spark": 6, "spark-jobs": 6}
LOCAL = "local[2]"
CENSUS, CENSUS_SECONDS, CENSUS_MEMORY = 10_000_000, 300, 12 * 2**30
SPARK_WAYS = {"spark": "standing", "spark-jobs": "jobs"}


def whole(path: Path, quick: bool, engine: str) -> list[Figure]:
    """Reconstruct the bank's customers inside a database."""
    data = bank(path, quick)
    with ENGINES[engine](data) as (address, name):
        with watch() as opened:
            how = SPARK_WAYS.get(engine, "auto")
            table = open_database(address, name, data.schema, spark=how)
            target = Curator(table, idp())
        with table:
            what = f"{engine}, bank-full, {table.records:,} records"
            figures = [duration(f"{what}: open", opened.seconds, OPENING_BARS.get(engine))]
            truth = Counter(map(tuple, data.codes.tolist()))
            bar = SECONDS_BARS.get(engine)
            figures += _attacked(target, table, what, truth, bar, held=data)
        if engine in OPENING_BARS:
            with watch() as again:
                table = open_database(address, name, data.schema, spark=how)
                Curator(table, idp())
            table.close()
            figures.insert(1, duration(f"{what}: open once more", again.seconds))
    return figures


def census(path: Path | None, quick: bool) -> list[Figure]:
    """Rebuild a census of ten million records, five columns, inside Spark."""
    with tempfile.TemporaryDirectory() as folder, _started(), _memory() as held:
        apart(write_census, Path(folder), CENSUS)
        with watch() as opened:
            table = open_database(f"spark://{LOCAL}", folder, SCHEMA)
            target = Curator(table, idp())
        with table, watch() as took:
            run = audit(target).run
        if not isinstance(run.found, TableFound):
            raise SystemExit(f"the attack did not end: {run.reason}")
        if not np.array_equal(numbered(run.found), truth_of(Path(folder))):
            raise SystemExit("some records are wrong")
    what, seconds = f"spark, census, {CENSUS:,} records", opened.seconds + took.seconds
    each = f"{run.meter.queries:,} queries, {run.meter.rounds:,} rounds"
    room = f"at most {CENSUS_MEMORY // MIB:,} MiB"
    return [
        duration(f"{what}: open", opened.seconds),
        duration(f"{what}: open and rebuild exactly", seconds, CENSUS_SECONDS, each),
        duration(f"{what}: a million queries", took.seconds / run.meter.queries * 1e6, 30),
        Figure(f"{what}: memory", f"{max(held) / MIB:,.0f} MiB", room, max(held) <= CENSUS_MEMORY),
    ]


def _attacked(
    target: Curator,
    table: DatabaseTable,
    what: str,
    truth: Counter[tuple[int, ...]],
    bar: int | None,
    held: Dataset,
) -> list[Figure]:
    """Reconstruct the whole table, and hold what was found against the truth.

    The same attack on the same table in memory is the measure.
    """
    before = table.statements
    with watch() as took:
        verdict = audit(target)
    asked = table.statements - before
    found = verdict.run.found
    if verdict.run.ending != "complete" or not isinstance(found, TableFound):
        raise SystemExit(f"the attack did not end: {verdict.run.reason}")
    order = np.argsort(found.columns)
    claimed: Counter[tuple[int, ...]] = Counter()
    for row, often in zip(found.codes[:, order].tolist(), found.counts.tolist(), strict=True):
        claimed[tuple(row)] += often
    if claimed != truth:
        raise SystemExit("some records are wrong")
    meter = verdict.run.meter
    each = f"{meter.queries / table.records:.4f} queries a record"
    rounds = f"{meter.rounds:,} rounds, {many(asked, 'statement')}"
    with watch() as memory_took:
        audit(Curator(held, idp()))
    rounds += f"; {took.seconds / memory_took.seconds:.1f} x memory's {memory_took.seconds:.2f} s"
    return [
        duration(f"{what}: reconstruct exactly", took.seconds, bar, rounds),
        Figure(f"{what}: a round", f"{1000 * took.seconds / meter.rounds:.1f} ms", ratio=each),
        duration(f"{what}: a million queries", took.seconds / meter.queries * 1e6),
    ]


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
    with tempfile.TemporaryDirectory() as folder, _started():
        path = Path(folder) / "bank.parquet"
        pq.write_table(_arrow(data), path)
        yield f"spark://{LOCAL}", str(path)


@contextmanager
def _sail(data: Dataset) -> Iterator[tuple[str, str | None]]:
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from servers import sail

    with tempfile.TemporaryDirectory() as folder, sail() as address:
        path = Path(folder) / "bank.parquet"
        pq.write_table(_arrow(data), path)
        yield address, str(path)


@contextmanager
def _started() -> Iterator[None]:
    """Start Spark, whose start is nobody's opening."""
    engine = Spark.connect(f"spark://{LOCAL}", LOCAL, "Spark")
    try:
        yield
    finally:
        engine.close()


@contextmanager
def _memory() -> Iterator[list[int]]:
    """Note every second what this process and all below it hold, shared memory by its share."""
    held, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(1.0):
            held.append(sum(map(_share, _below(os.getpid()))))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield held
    finally:
        over.set()
        thread.join()


def _share(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(each.split()[1]) for each in lines if each.startswith("Pss:"))


def _below(first: int) -> list[int]:
    """Return a process and all that it has started."""
    children: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(each.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(each.parent.name))
    found = [first]
    for process in found:  # it grows meanwhile
        found += children.get(process, [])
    return found


ENGINES: dict[str, Callable[[Dataset], AbstractContextManager[tuple[str, str | None]]]] = {
    "duckdb": _duckdb,
    "postgresql": _postgresql,
    "spark": _spark,
    "spark-jobs": _spark,
    "sail": _sail,
}


def _arrow(data: Dataset) -> pa.Table:
    """Return a table with its values, each distinct value decoded once."""
    columns = {}
    for place, attribute in enumerate(data.schema):
        codes, index = np.unique(data.column(place), return_inverse=True)
        values = pa.array([attribute.decode(code) for code in codes.tolist()])
        columns[attribute.name] = values.take(pa.array(index))
    return pa.table(columns)
