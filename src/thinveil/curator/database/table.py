"""A confidential table that stays in its database."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import Counter
from thinveil.curator.database.addresses import connected, is_file, unread
from thinveil.curator.database.checking import check_joined, checked
from thinveil.curator.database.codes import GAP, code_table, infer_fields
from thinveil.curator.database.counting import DatabaseCounter
from thinveil.curator.database.engines.spark import Spark
from thinveil.curator.database.fields import fields_of
from thinveil.curator.database.mixing_codes import WAYS, mixed, names_of
from thinveil.curator.database.scanning import ScanningCounter
from thinveil.curator.database.session import Refused, Session, opening
from thinveil.curator.database.spark.jobs import quiet
from thinveil.curator.database.spark.picking import wished
from thinveil.curator.database.words import (
    Rows,
    all_rows,
    cases,
    cast,
    column,
    different,
    largest,
    number,
    records_of,
    row_number,
    smallest,
    total,
)
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.delimited import check_names
from thinveil.curator.tables.files import check_columns, reading_of
from thinveil.curator.tables.inferring import Inferred, odd_texts, said_of_odd
from thinveil.curator.tables.kinds.limits import half_of_memory
from thinveil.curator.tables.number_grids import on_steps
from thinveil.curator.tables.reading import NO_REMARKS, READ_AS_USUAL, Reading, Remarks
from thinveil.errors import DataError, UsageError
from thinveil.language.queries import Codes
from thinveil.language.schema import MISSING, Schema
from thinveil.language.texts import many
from thinveil.passwords import shown

# Round figures that hardly matter: they choose between two ways to the same counts.
_LARGE: Final = 50_000  # records, of which equal ones are put together
_FEW_COLUMNS: Final = 32  # on more, hardly any two records agree
_A_CODE: Final = 32  # bytes that an index of different records takes for each code, about
_NO_RIGHT: Final = (
    "the database lets this user make no temporary tables, so each statement scans the whole table "
    "(as with --no-temporary-tables), and a run takes several times longer: a user who may make "
    "some is faster"
)
_DISAGREE: Final = (
    "nothing is stored in the database, and it shows no single state to all statements: answers "
    "agree with each other only as long as nobody writes to the table"
)


@dataclass(slots=True, eq=False, repr=False)
class DatabaseTable:
    """A table in a database, of those that `ENGINES` lists; it conforms to `Held`.

    Made by `DatabaseTable.of` or `open_database`. Its codes are computed inside the database
    and kept there in a temporary table, so that answers agree with each other while others
    write; in a session that stores nothing, each statement computes them anew. Nothing stays
    behind once it is closed. Of a large table in DuckDB each different record is kept once, with
    how often it occurs.
    """

    remote: ClassVar = True

    schema: Schema
    records: int
    remarks: Remarks
    _session: Session
    _codes: Rows
    _where: str
    _different: int | None = None  # rows that are kept, where equal records are kept once
    _digest: str = ""
    _counter: Counter | None = None

    @staticmethod
    def of(
        session: Session,
        rows: Rows,
        schema: Schema | None = None,
        reading: Reading = READ_AS_USUAL,
        *,
        where: str = "",
        assumed: tuple[str, ...] = (),
    ) -> DatabaseTable:
        """Open a table.

        Args:
            session: The database. Where this fails, it is closed.
            rows: The table in it.
            schema: What is public about the columns; inferred, as `load` does, where it is None.
            reading: Which texts mean a missing value, and which columns are wanted.
            where: What to call the table in messages.
            assumed: What was assumed to read it.

        Raises:
            DataError: The table is empty, does not fit the schema, or cannot be read.
        """
        where = where or f"the table in {session.engine.name}"
        with session.closed_on_failure(), opening(where):
            try:
                opened = _opened(session, rows, schema, reading, where)
            except Exception as error:
                if not (session.stores and session.engine.no_right(error)):
                    raise
                session.store_nothing()
                opened = _opened(session, rows, schema, reading, where)
                assumed = (*assumed, _NO_RIGHT)
            if not session.agrees:
                assumed = (*assumed, _DISAGREE)
            said = opened.remarks
            opened.remarks = Remarks(tuple(assumed)).and_also(said)
            return opened

    @property
    def statements(self) -> int:
        """How many statements were sent so far, uploads of boxes not counted."""
        return self._session.statements

    def counter(self) -> Counter:
        """Return what counts the records of this table, inside the database; one for all who ask.

        Where that is in this process, and the different records of a large table fit, an index of
        them counts: the same numbers, without a statement a round.
        """
        if self._counter is None:
            self._counter = self._made()
        return self._counter

    def _made(self) -> Counter:
        codes = (self._different or 0) * len(self.schema)
        if self._session.engine.here and 0 < codes * _A_CODE <= half_of_memory():
            with opening(self._where):
                return IndexCounter(*self._rows())
        given = (self._codes, self.records, self._where)
        if not self._session.stores:
            return ScanningCounter(self._session, *given)
        return self._session.engine.counter(*given) or DatabaseCounter(self._session, *given)

    def digest(self) -> str:
        """Return a fingerprint of the columns' names and all codes, in any order of records.

        It is computed inside the database, by one statement: two sums of numbers that are
        mixed from all codes of a record.
        """
        if not self._digest:
            with opening(self._where):
                sums = {f"s{n}": total(mixed(self._codes, n)) for n in range(WAYS)}
                row = self._session.rows(self._codes.select(sums))[0]
            sealed = repr((self.schema.names, self.records, *map(int, row)))
            self._digest = hashlib.blake2b(sealed.encode(), digest_size=16).hexdigest()
        return self._digest

    def extremes(self) -> list[Codes]:
        """Return the smallest and the largest code of each column, missing values left out."""
        wanted: dict[str, Any] = {}
        for name in names_of(self._codes):
            code = cases((different(column(name), number(GAP)), column(name)))
            wanted |= {f"low_{name}": smallest(code), f"high_{name}": largest(code)}
        with opening(self._where):
            row = self._session.rows(self._codes.select(wanted))[0]
        pairs = zip(row[::2], row[1::2], strict=True)
        return [np.array([each for each in pair if each is not None], np.int64) for pair in pairs]

    def to_dataset(self) -> Dataset:
        """Fetch all codes: every record leaves the database. For scoring, where that is allowed."""
        with opening(self._where):
            codes, many = self._rows()
        return Dataset(self.schema, codes if many is None else np.repeat(codes, many, axis=0))

    def _rows(self) -> tuple[Codes, Codes | None]:
        """Return the codes of all rows that are kept, and for how many records each stands."""
        width = len(self.schema)
        rows = self._session.codes(self._session.sql(self._codes), len(self._codes.columns))
        codes = np.asfortranarray(rows[:, :width])
        codes[codes == GAP] = MISSING
        return codes, None if self._different is None else rows[:, width].copy()

    def close(self) -> None:
        """Take away what was kept in the database, and leave it if it was opened here."""
        self._counter = None
        self._session.close()

    def __enter__(self) -> DatabaseTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DatabaseTable({self._where}, {many(self.records, 'record')})"


def _opened(
    session: Session, rows: Rows, schema: Schema | None, reading: Reading, where: str
) -> DatabaseTable:
    names = list(rows.columns)
    if not names:
        raise DataError(f"{where} is empty: give a table with at least one column")
    names, remarks = reading.chosen(names, where), NO_REMARKS
    check_names(names, where)
    session.engine.check(names, where)
    if schema is not None:
        schema, told = on_steps(reading.described(schema), reading.steps)
        remarks = Remarks(told)
        check_columns(names, schema)
    kinds = dict(zip(rows.columns, rows.kinds, strict=True))
    plain = rows.select({f"x{place}": column(name) for place, name in enumerate(names)})
    plain = replace(plain, kinds=tuple(kinds[name] for name in names))
    fields = fields_of(session, plain, names, reading.gaps)
    texts: dict[str, list[str]] = {}
    inferred: Inferred | None = None
    if schema is None:
        inferred, texts = infer_fields(session, plain, fields, reading)
        schema = inferred.schema
    coded = code_table(session, plain, fields, schema, reading, texts)
    codes = _kept(session, coded)
    records = checked(session, codes, schema, where)
    check_joined(session, plain, coded, records, where)
    if inferred is not None:
        remarks = inferred.remarks(records)
    different = None
    if "n" in codes.columns:
        ((different,),) = session.rows(codes.select({"rows": all_rows()}))
    return DatabaseTable(schema, records, remarks, session, codes, where, different)


def _kept(session: Session, codes: Rows) -> Rows:
    """Keep a table of codes; of a large one in which some records are equal, each record once.

    Where no two of the first s rows are equal, hardly any others are: that is s^2 / 2 pairs. What
    cannot be grouped is kept as it is.
    """
    if session.stores and session.engine.groups and len(codes.columns) <= _FEW_COLUMNS:
        first = _once(Rows(codes.query.limit(_LARGE), codes.columns))
        looked = first.select({"records": records_of(first), "different": all_rows()})
        ((records, different),) = session.rows(looked)
        if different < (records or 0) == _LARGE:
            with suppress(Exception):  # no room for all groups at once
                return session.keep(_once(codes))
    return session.keep(codes)


def _once(codes: Rows) -> Rows:
    """Return each different row of codes, and how often it occurs."""
    return codes.grouped({name: column(name) for name in codes.columns}, {"n": all_rows()})


def _odd_rows(session: Session, rows: Rows, schema: Schema) -> Iterator[str]:
    """Say which row of a file keeps a column from being one of numbers or dates."""
    for attribute in schema:
        if odd := odd_texts(attribute):
            texts = session.put({"odd": sorted(odd)})
            value = cast(column(attribute.name), "text")
            numbered = rows.select({"text": value, "row": row_number()})
            known = column("text").isin(query=texts.query)
            ((row,),) = session.rows(numbered.select({"first": smallest(column("row"))}, known))
            session.drop(texts)
            if row is not None:
                yield said_of_odd(attribute.name, row + 1)


def open_database(
    address: str,
    table: str | None = None,
    schema: Schema | None = None,
    *,
    temporary_tables: bool = True,
    spark: str = "auto",
    say: Callable[[str], None] | None = None,
    **how: Any,
) -> DatabaseTable:
    """Open a table in a database, or large files, by an address.

    Args:
        address: `postgresql://user@host:port/name`, `mariadb://user@host:port/name`,
            `duckdb://path`, `sqlite://path`, `chdb://folder`, `datafusion://path`,
            `spark://host:port`, `spark://local[2]`, `sc://host:port`; or a path, a pattern or a
            folder of Parquet files, or the path of a text file, which DuckDB reads where it is.
        table: The name of the table, where there are several; for Spark also a Parquet path.
        schema: What is public about the columns; inferred where it is None.
        temporary_tables: Whether some may be made. Where not, each statement scans the table.
        spark: How Spark counts: auto, standing, jobs or sql; HOST behind a colon (standing:HOST)
            is where its executors reach this machine.
        say: Is told what takes a while.
        **how: How it is read, the fields of `Reading`, as for `load`.

    Raises:
        DataError: The database or the table cannot be reached or read.
        UsageError: The address makes no sense.
        MissingExtra: A driver is not installed.
    """
    reading = reading_of(how)
    where = shown(address)
    wish = wished(spark)
    say = say or quiet
    say(f"opening {where}")
    try:
        with opening(where):
            session, found, assumed = connected(address, table, reading, wish, say)
            if not temporary_tables:
                with session.closed_on_failure():
                    session.store_nothing()
                session.agrees &= not is_file(address)
        opened = DatabaseTable.of(session, found, schema, reading, where=where, assumed=assumed)
        if schema is None and is_file(address):
            with session.closed_on_failure(), opening(where):
                odd = tuple(_odd_rows(session, found, opened.schema))
                opened.remarks = opened.remarks.and_also(Remarks(odd))
        return opened
    except Refused as refused:
        raise unread(address, reading, refused) from None


def open_frame(
    frame: Any,
    schema: Schema | None = None,
    *,
    temporary_tables: bool = True,
    spark: str = "auto",
    say: Callable[[str], None] | None = None,
    **how: Any,
) -> DatabaseTable:
    """Open a data frame of Spark, in its own session, which stays open.

    Args:
        frame: The data frame, also one of Spark Connect.
        schema: What is public about the columns; inferred where it is None.
        temporary_tables: Whether some may be made, as for `open_database`.
        spark: How Spark counts, as for `open_database`.
        say: Is told what takes a while.
        **how: How it is read, the fields of `Reading`, as for `load`.

    Raises:
        DataError: It cannot be read.
        UsageError: It is something else of Spark.
    """
    if not hasattr(frame, "sparkSession") or not hasattr(frame, "createOrReplaceTempView"):
        raise UsageError(f"cannot count inside a {type(frame).__name__}: give a data frame")
    if frame.isStreaming:
        raise UsageError("a stream has no end: write it to a table, and give that")
    where = "the data frame in Spark"
    with opening(where):
        engine = Spark(frame.sparkSession)
        engine.wish, engine.say = wished(spark), say or quiet
        session = Session(engine)
        if not temporary_tables:
            session.store_nothing()
        with session.closed_on_failure():
            rows = engine.named(frame, where)
    return DatabaseTable.of(session, rows, schema, reading_of(how), where=where)
