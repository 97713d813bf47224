"""A confidential table that stays in its database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.database.addresses import connected, is_file, unread
from thinveil.curator.database.codes import GAP, code_table, infer_fields
from thinveil.curator.database.counting import DatabaseCounter
from thinveil.curator.database.engines.protocol import ibis
from thinveil.curator.database.fields import counts_of, fields_of
from thinveil.curator.database.session import Refused, Session, opening
from thinveil.curator.tables.coding import NO_VALUE, UNLISTED, on_grid
from thinveil.curator.tables.dataset import Dataset, bounds_of
from thinveil.curator.tables.delimited import check_names
from thinveil.curator.tables.files import check_columns, reading_of
from thinveil.curator.tables.inferring import Inferred, odd_texts, said_of_odd
from thinveil.curator.tables.number_grids import on_steps
from thinveil.curator.tables.reading import NO_REMARKS, READ_AS_USUAL, Reading, Remarks
from thinveil.errors import DataError, UsageError
from thinveil.language.queries import Codes
from thinveil.language.schema import LIMIT, MISSING, Attribute, Grid, Schema
from thinveil.language.texts import many
from thinveil.passwords import shown

_OUTSIDE: Final = (
    "lie outside the bounds of the schema: widen the bounds of this attribute, or use a coarser "
    "step"
)
_ONE: Final = {"are": "is", "have": "has", "hold": "holds", "lie": "lies"}
"""What one row does, where several do so."""
_PRIME: Final = 2**31 - 1
_OTHER: Final = 65_521
_MIXERS: Final = ((48_271, 11), (1_583_458_089, 7_919))


@dataclass(slots=True, eq=False, repr=False)
class DatabaseTable:
    """A table in DuckDB, SQLite, PostgreSQL or Spark; it conforms to `Held`.

    Made by `DatabaseTable.of` or `open_database`. Its codes are computed inside the database
    and kept there in a temporary table, so that answers agree with each other while others
    write. Nothing stays behind once it is closed.
    """

    remote: ClassVar = True

    schema: Schema
    records: int
    remarks: Remarks
    _session: Session
    _codes: Any
    _where: str
    _digest: str = ""

    @staticmethod
    def of(
        table: Any,
        schema: Schema | None = None,
        reading: Reading = READ_AS_USUAL,
        *,
        session: Session | None = None,
        where: str = "",
        assumed: tuple[str, ...] = (),
    ) -> DatabaseTable:
        """Open a table given as an Ibis expression.

        Args:
            table: The table, bound to a connection.
            schema: What is public about the columns; inferred, as `load` does, where it is None.
            reading: Which texts mean a missing value, and which columns are wanted.
            session: The connection; one of its own unless given. Where this fails, it is closed.
            where: What to call the table in messages.
            assumed: What was assumed to read it.

        Raises:
            DataError: The table is empty, does not fit the schema, or cannot be read.
            UsageError: It is no Ibis table, or of a database that is not supported.
            MissingExtra: Ibis is not installed.
        """
        with opening(where or "the table"):
            if not isinstance(table, ibis.Table):
                kind = type(table).__name__
                raise UsageError(f"cannot count inside a {kind}: give an Ibis table")
            session = session or Session(table.get_backend())
            where = where or f"the table in {session.engine.name}"
        with session.closed_on_failure(), opening(where):
            opened = _opened(session, table, schema, reading, where)
            said = opened.remarks
            opened.remarks = Remarks(tuple(assumed)).and_also(said)
            return opened

    @property
    def statements(self) -> int:
        """How many statements were sent so far, uploads of boxes not counted."""
        return self._session.statements

    def counter(self) -> DatabaseCounter:
        """Return what counts the records of this table, inside the database."""
        return DatabaseCounter(self._session, self._codes, self.records, self._where)

    def digest(self) -> str:
        """Return a fingerprint of the columns' names and all codes, in any order of records.

        It is computed inside the database, by one statement: two sums of numbers that are
        mixed from all codes of a record.
        """
        if not self._digest:
            with opening(self._where):
                row = self._session.rows(
                    self._codes.aggregate(
                        **{f"s{n}": _mixed(self._codes, n).sum() for n in range(len(_MIXERS))}
                    )
                )[0]
            sealed = repr((self.schema.names, self.records, *map(int, row)))
            self._digest = hashlib.blake2b(sealed.encode(), digest_size=16).hexdigest()
        return self._digest

    def extremes(self) -> list[Codes]:
        """Return the smallest and the largest code of each column, missing values left out."""
        wanted: dict[str, Any] = {}
        for name in self._codes.columns:
            code = self._codes[name].nullif(GAP)
            wanted |= {f"low_{name}": code.min(), f"high_{name}": code.max()}
        with opening(self._where):
            row = self._session.rows(self._codes.aggregate(**wanted))[0]
        pairs = zip(row[::2], row[1::2], strict=True)
        return [np.array([each for each in pair if each is not None], np.int64) for pair in pairs]

    def to_dataset(self) -> Dataset:
        """Fetch all codes: every record leaves the database. For scoring, where that is allowed."""
        with opening(self._where):
            codes = self._session.codes(self._session.sql(self._codes), len(self.schema))
        return Dataset(self.schema, np.where(codes == GAP, MISSING, codes))

    def close(self) -> None:
        """Take away what was kept in the database, and leave it if it was opened here."""
        self._session.close()

    def __enter__(self) -> DatabaseTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DatabaseTable({self._where}, {many(self.records, 'record')})"


def _opened(
    session: Session, table: Any, schema: Schema | None, reading: Reading, where: str
) -> DatabaseTable:
    names = list(table.columns)
    if not names:
        raise DataError(f"{where} is empty: give a table with at least one column")
    names, remarks = reading.chosen(names, where), NO_REMARKS
    check_names(names, where)
    session.engine.check(names, where)
    if schema is not None:
        schema, told = on_steps(reading.described(schema), reading.steps)
        remarks = Remarks(told)
        check_columns(names, schema)
    session.ready(table)
    plain = table.select(**{f"x{place}": table[name] for place, name in enumerate(names)})
    fields = fields_of(session, plain, names, reading.gaps)
    texts: dict[str, list[str]] = {}
    inferred: Inferred | None = None
    if schema is None:
        inferred, texts = infer_fields(session, plain, fields, reading)
        schema = inferred.schema
    codes = session.keep(code_table(session, plain, fields, schema, reading, texts))
    records = _checked(session, codes, schema, where)
    if inferred is not None:
        remarks = inferred.remarks(records)
    return DatabaseTable(schema, records, remarks, session, codes, where)


def _checked(session: Session, codes: Any, schema: Schema, where: str) -> int:
    """Return how many records there are, or say which column does not fit its attribute."""
    tests: dict[str, Any] = {}
    for place, attribute in enumerate(schema):
        code = codes[f"c{place}"]
        lower, upper = bounds_of(attribute)
        tests[f"misfit{place}"] = code.isnull()
        if not attribute.missing:
            tests[f"gap{place}"] = code == GAP
        tests[f"outside{place}"] = (code != GAP) & ~code.between(lower, upper)
    found = counts_of(session, codes, tests)
    if not found["records"]:
        raise DataError(f"{where}: the table has no records: give at least one row of data")
    for place, attribute in enumerate(schema):
        said = {"misfit": _misfit(attribute), "gap": f"have {NO_VALUE}", "outside": _OUTSIDE}
        for test, what in said.items():
            if rows := found.get(f"{test}{place}"):
                verb, rest = what.split(" ", 1)
                which = f"{many(rows, 'row')} of column {attribute.name!r}"
                raise DataError(f"{which} {_ONE[verb] if rows == 1 else verb} {rest}")
    return found["records"]


def _misfit(attribute: Attribute) -> str:
    if not isinstance(attribute, Grid):
        return f"hold {UNLISTED}"
    return (
        f"are not {on_grid(attribute)}, or too large for it: correct the rows, change kind, step "
        "or format in the schema, or set missing = true where words such as NA stand for none"
    )


def _odd_rows(session: Session, table: Any, schema: Schema) -> Iterator[str]:
    """Say which row of a file keeps a column from being one of numbers or dates."""
    for attribute in schema:
        if odd := odd_texts(attribute):
            texts = session.put({"odd": sorted(odd)})
            rows = table.select(text=table[attribute.name].cast("string"), row=ibis.row_number())
            found = rows.semi_join(texts, rows.text == texts.odd)
            ((row,),) = session.rows(found.aggregate(first=found.row.min()))
            session.drop(texts)
            if row is not None:
                yield said_of_odd(attribute.name, row + 1)


def _mixed(codes: Any, number: int) -> Any:
    """Mix the codes of a record into one number below 2^31.

    Every product stays below 2^63, so all databases agree, and none overflows.
    """
    factor, shift = _MIXERS[number]
    mixed = None
    for place, name in enumerate(codes.columns):
        code = (codes[name] + LIMIT) % _PRIME
        spread = (code * factor + (place + 1) * shift) % _PRIME
        bent = (spread * (spread % _OTHER + 1) + 1) % _PRIME
        mixed = bent if mixed is None else (mixed * bent) % _PRIME
    return mixed


def open_database(
    address: str,
    table: str | None = None,
    schema: Schema | None = None,
    **how: Any,
) -> DatabaseTable:
    """Open a table in a database, or large files, by an address.

    Args:
        address: `postgresql://user@host:port/name`, `duckdb://path`, `sqlite://path`,
            `spark://host:port`, `spark://local[2]`; or a path, a pattern or a folder of Parquet
            files, or the path of a text file, which DuckDB reads where it is.
        table: The name of the table, where there are several; for Spark also a Parquet path.
        schema: What is public about the columns; inferred where it is None.
        **how: How it is read, the fields of `Reading`, as for `load`.

    Raises:
        DataError: The database or the table cannot be reached or read.
        UsageError: The address makes no sense.
        MissingExtra: A driver is not installed.
    """
    reading = reading_of(how)
    where = shown(address)
    try:
        with opening(where):
            session, found, assumed = connected(address, table, reading)
        opened = DatabaseTable.of(
            found, schema, reading, session=session, where=where, assumed=assumed
        )
        if schema is None and is_file(address):
            with session.closed_on_failure(), opening(where):
                odd = tuple(_odd_rows(session, found, opened.schema))
                opened.remarks = opened.remarks.and_also(Remarks(odd))
        return opened
    except Refused as refused:
        raise unread(address, reading, refused) from None
