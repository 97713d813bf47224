"""A census of any size in Parquet files, rebuilt whole: how time, questions and memory grow."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.census import SCHEMA, write_census
from bench.figures import peak_memory, watch
from bench.sizes import Census
from thinveil import Categories, Curator, audit, idp
from thinveil.attacker.findings import TableFound
from thinveil.curator.database.table import open_database
from thinveil.language.queries import Codes
from thinveil.language.schema import Attribute

TRUTH = "truth.npy"


def measure(path: Path | None, quick: bool, records: str) -> list[Census]:
    """Write a table of so many records and rebuild it."""
    with tempfile.TemporaryDirectory() as folder:
        apart(write_census, Path(folder), int(records))
        return [rebuild(Path(folder), int(records))]


def rebuild(folder: Path, records: int) -> Census:
    """Rebuild the table in a folder of Parquet files, and hold it against the truth."""
    size = sum(each.stat().st_size for each in folder.glob("*.parquet"))
    with watch() as opened:
        table = open_database(str(folder), None, SCHEMA)
    with table, watch() as took:
        verdict = audit(Curator(table, idp()))
    peak = peak_memory()
    found, meter = verdict.run.found, verdict.run.meter
    if verdict.run.ending != "complete" or not isinstance(found, TableFound):
        raise SystemExit(f"the attack did not end: {verdict.run.reason}")
    truth = truth_of(folder)
    return Census(
        records,
        size,
        len(truth),
        opened.seconds,
        took.seconds,
        meter.questions,
        meter.rounds,
        peak,
        np.array_equal(numbered(found), truth),
    )


def numbered(found: TableFound) -> Codes:
    """Return a number for each different record that was found and how many there are, sorted."""
    key = np.zeros(len(found.codes), np.int64)
    for place, attribute in enumerate(SCHEMA):
        lower, many = _span(attribute)
        key = key * many + found.codes[:, found.columns.index(place)] - lower
    order = np.argsort(key)
    return np.stack([key[order], found.counts[order]], axis=1)


def truth_of(folder: Path) -> Codes:
    """Return the same of the files, as a plain statement counts it."""
    apart(_count_truth, folder)
    truth: Codes = np.load(folder / TRUTH)
    (folder / TRUTH).unlink()
    return truth


def _count_truth(folder: Path) -> None:
    import duckdb

    key = "0"
    for attribute in SCHEMA:
        lower, many = _span(attribute)
        code = f"{attribute.name} - {lower}"
        if isinstance(attribute, Categories):
            listed = ", ".join(f"'{value}'" for value in attribute.values)
            code = f"list_position([{listed}], {attribute.name}) - 1"
        key = f"({key}) * {many} + {code}"
    names = ", ".join(SCHEMA.names)
    counted = f"SELECT {names}, count(*) AS n FROM '{folder}/*.parquet' GROUP BY ALL"
    with duckdb.connect(config={"memory_limit": "4GiB", "temp_directory": str(folder)}) as base:
        found = base.execute(f"SELECT ({key})::BIGINT AS key, n FROM ({counted}) ORDER BY key")
        columns = found.fetchnumpy()
    np.save(folder / TRUTH, np.stack([columns["key"], columns["n"]], axis=1))


def _span(attribute: Attribute) -> tuple[int, int]:
    """Return the lowest code of an attribute, and how many there are."""
    assert attribute.lower is not None
    assert attribute.upper is not None
    return attribute.lower, attribute.upper - attribute.lower + 1


def apart(work: Callable[..., None], *given: object) -> None:
    """Do something in a process of its own, so that its memory is not taken for the counter's."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=given)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("a process beside the benchmark failed: see its message above")
