"""What differs between databases: how to get in, what types there are, how arrays go in and out.

Everything else is written once, as expressions of sqlglot. A database is one file of this folder,
and a line of the table in `engines/__init__.py`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from thinveil.curator.counting.scan import Counter
from thinveil.curator.database.words import Rows, call, cast, double, exp
from thinveil.errors import DataError, MissingExtra, ThinveilError, UsageError
from thinveil.language.queries import Codes, Floats
from thinveil.passwords import shown

Arrays = Mapping[str, Codes | Floats | Sequence[str]]
"""The columns of a small table to be sent: codes or texts."""


class Engine(Protocol):
    """One kind of database, with what most have in common. Conforms: what `ENGINES` lists.

    Names of tables and columns given here are the session's own and need no quoting.
    """

    name: ClassVar[str]
    """What people call it."""
    dialect: ClassVar[str]
    """What sqlglot calls its words."""
    backend: ClassVar[str] = ""
    """What Ibis calls it, if it knows it."""
    schemes: ClassVar[tuple[str, ...]]
    """How its addresses begin."""
    settings: ClassVar[Mapping[str, str]] = {}
    """What a session must have set, by name."""
    here: ClassVar[bool] = False
    """Whether it is a file that this process reads."""
    groups: ClassVar[bool] = False
    """Whether it groups any number of records, on the disk where memory is short."""
    typed: ClassVar[bool] = True
    """Whether a column holds what its type says."""
    not_numbers: ClassVar[frozenset[str]] = frozenset({"float"})
    """The kinds of columns that can hold a NaN."""
    few: ClassVar[int] = 0
    """Up to so many texts with codes are listed in a statement; more are sent and joined."""
    gathered: ClassVar[str] = ""
    """The aggregate that lists distinct values, where one statement of it is the quicker way."""
    any_year: ClassVar[bool] = True
    """Whether dates and times can lie beyond the years 1 to 9999."""
    temporary: ClassVar[str] = "temp"
    """The schema that temporary tables are in."""
    round_seconds: ClassVar[float] = 0.01
    """About what a round costs besides its questions: a round figure, which few rounds go by."""
    snapshot: ClassVar[str] = ""
    """What begins a transaction that only reads and sees one state; empty where nothing does."""
    longest: ClassVar[int] = 250_000
    """How long a statement that carries its own rows may be, in characters: a quarter of what
    Trino, BigQuery and Snowflake take."""
    own: ClassVar[str] = "pg_catalog"
    """The schema of its own functions: by bare names, those of a hostile database may be meant."""
    say: Callable[[str], None] = staticmethod(lambda _: None)
    """Is told what takes a while."""
    _connection: Any
    _owned: bool

    def __init__(self, connection: Any, *, owned: bool = False) -> None:
        self._connection, self._owned = connection, owned

    @classmethod
    def connect(cls, address: str, rest: str, where: str) -> Engine:
        """Open an address.

        `rest` is what stands behind the address's scheme, `where` what messages call it.
        """
        ...

    # ---- tables and columns

    def table(self, name: str | None, where: str) -> Rows:
        """Return the table that is meant; the name may be left out where there is only one."""
        return self.found(name, None, where)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables of a schema, or of the usual one."""
        ...

    def inside(self, name: str | None, usual: str, where: str) -> Rows:
        """Split schema.table, unless there is a table whose name has the dot in it."""
        schema, dot, last = (name or "").partition(".")
        with listing(where):
            whole = not dot or name in self.tables(usual)
        return self.found(name, usual, where) if whole else self.found(last, schema, where)

    def found(self, table: str | None, schema: str | None, where: str) -> Rows:
        """Return a table by its name, or the only one that there is."""
        with listing(where):
            names = sorted(self.tables(schema))
            if (chosen := meant(names, table)) is not None:
                return self.described(exp.table_(chosen, db=schema, quoted=True))
        raise no_table(names, table, where)

    def described(self, source: Any) -> Rows:
        """Return what stands behind FROM, with its columns and their types."""
        pairs = self.describe(Rows(source, ()))
        return Rows(source, tuple(name for name, _ in pairs), tuple(kind for _, kind in pairs))

    def describe(self, rows: Rows) -> list[tuple[str, Any]]:
        """Return the names and types of columns; a type that is not known is a text."""
        ...

    def kind(self, words: str) -> Any:
        """Read the name of a type; one that sqlglot does not know stays a text."""
        try:
            return exp.DataType.build(words, dialect=self.dialect)
        except Exception:  # of sqlglot's own kinds, or none of them
            return words

    def check(self, columns: Sequence[str], where: str) -> None:
        """Refuse columns that are not read as they are, for the name they have."""
        return

    # ---- values

    def plain(self, value: Any) -> Any:
        """Return a text that is compared letter by letter.

        Joined to an empty one, it has no collation in SQLite, and a plain type everywhere. Where a
        collation outlives that, or may merge texts, a database names another one.
        """
        return exp.DPipe(this=value, expression=exp.Literal.string(""), safe=True)

    def holds(self, flag: Any) -> Any:
        """Return a column of truths as a condition."""
        return flag

    def is_nan(self, value: Any) -> Any:
        """Tell whether a float is not a number."""
        return exp.IsNan(this=value)

    def micros(self, moment: Any) -> Any:
        """Return microseconds since 1970."""
        return call("epoch_us", moment)

    def clock(self, time: Any) -> Any:
        """Return microseconds since midnight of a time of day."""

        def part(name: str) -> Any:
            return cast(exp.Extract(this=exp.Var(this=name), expression=time), "bigint")

        seconds = part("hour") * 3600 + part("minute") * 60
        return exp.paren(seconds * 10**6 + part("microseconds"))

    # ---- statements

    def words(self, query: Any) -> str:
        """Write a statement."""
        return str(query.sql(self.dialect))

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        ((before,),) = self.rows(f"SELECT {self.own}.current_setting('{name}')")
        self.run(f"SET {name} = '{value}'")
        return str(before)

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Send a small table, again instead of one of the same name and columns."""
        ...

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Store whole numbers that a statement selects in a temporary table, to be looked up."""
        self.run(f"CREATE TEMPORARY TABLE {name} AS {statement}")

    def drop(self, name: str) -> None:
        """Take a temporary table away."""
        self.run(f"DROP TABLE IF EXISTS {self.temporary}.{name}")

    def inline(self, columns: Arrays) -> str:
        """Write a small table into a statement: a query in parentheses, to stand behind FROM."""
        names = ", ".join(map(self.quoted, columns))
        return f"(SELECT * FROM (VALUES {self.tuples(columns)}) AS v ({names}))"

    def quoted(self, name: str) -> str:
        """Write a name."""
        return str(exp.to_identifier(name, quoted=True).sql(self.dialect))

    def tuples(self, columns: Arrays) -> str:
        """Write rows of values; whole numbers are written alike everywhere, and are most."""
        return ", ".join(map("({})".format, map(", ".join, self.written(columns))))

    def written(self, columns: Arrays, some: slice = slice(None)) -> list[tuple[str, ...]]:
        """Write the values of some rows."""
        return [*zip(*(self._written(each[some]) for each in columns.values()), strict=True)]

    def _written(self, values: Codes | Floats | Sequence[str]) -> list[str]:
        if isinstance(values, np.ndarray):
            whole = values.dtype.kind != "f"
            plain = values.tolist()
            return [*map(str, plain)] if whole else [self.words(double(each)) for each in plain]
        return [self.words(exp.Literal.string(each)) for each in values]

    def begin(self) -> bool:
        """Begin a transaction that only reads; tell whether it sees one state, whoever writes."""
        if self.snapshot:
            self.run(self.snapshot)
        return bool(self.snapshot)

    def end(self) -> None:
        """End that transaction."""
        if self.snapshot:
            self.run("ROLLBACK")

    def no_right(self, error: Exception) -> bool:
        """Tell whether an error says that we may not make temporary tables, or perhaps says so."""
        return False

    def run(self, *statements: str) -> None:
        """Run statements that select nothing."""
        for each in statements:
            self._connection.execute(each)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        return list(self._connection.execute(statement).fetchall())

    def codes(self, statement: str, width: int) -> Codes:
        """Return whole numbers that a statement selects, a row an array of this width."""
        return np.array(self.rows(statement), np.int64).reshape(-1, width)

    def counter(self, codes: Rows, records: int, where: str) -> Counter | None:
        """Return what counts a table of codes that was kept, where that is not done by SQL."""
        return None

    def release(self) -> None:
        """Let go of what counts, before tables are taken away and the database is left."""
        return

    def close(self) -> None:
        """Leave the database if it was opened here."""
        if self._owned:
            self._connection.close()


def not_interrupted(error: BaseException | None) -> None:
    """Raise an interruption again that an error has hidden: a driver may fail on its way out."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        error = error.__context__


@contextmanager
def told(what: str, advice: str) -> Iterator[None]:
    """Say in our own words what a driver could not do: its words may quote values."""
    try:
        yield
    except ThinveilError:
        raise
    except Exception as error:
        not_interrupted(error)
        raise DataError(f"{what} ({type(error).__name__}): {advice}") from None


@contextmanager
def opening_file(path: str, where: str) -> Iterator[None]:
    """Open a file as a database inside, or say that there is none or that it cannot be done."""
    if not Path(path).is_file():
        raise DataError(f"{where}: there is no such file: check the path")
    advice = "see that it is such a database, that nobody else is writing to it, and that you may"
    with told(f"{where}: cannot be opened", f"{advice} read it"):
        yield


def needed(name: str, driver: str, extra: str = "databases") -> None:
    """See that what a database is reached by is installed."""
    for module, named in ((driver, extra), ("sqlglot", "databases")):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(f"A table in {name}", named)


def listing(where: str) -> AbstractContextManager[None]:
    """Look for a table inside, or say that it cannot be done."""
    advice = "check that this is such a database and that you may read it"
    return told(f"{where}: its tables cannot be listed", advice)


def meant(names: Sequence[str], table: str | None) -> str | None:
    """Return the one of the names that is meant, if there is one."""
    if table is None:
        return names[0] if len(names) == 1 else None
    return table if table in names else None


def no_table(names: Sequence[str], table: str | None, where: str) -> ThinveilError:
    """Say that no table is meant, and which ones there are."""
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    listed = ", ".join(map(repr, names[:30])) + more
    there = f"its tables are {listed}" if names else "it has no tables"
    if table is None:
        return UsageError(f"{where}: which table? {there}; name one with --table")
    return DataError(f"{where}: there is no table {shown(table)!r}; {there}")


def everything(rows: Rows) -> Any:
    """Return the statement that selects all columns, whatever they are called."""
    return exp.select("*").from_(rows.at("t"))


def type_of(values: Codes | Floats | Sequence[str]) -> str:
    """Return the SQL type of a column to be sent."""
    if isinstance(values, np.ndarray):
        return "DOUBLE" if values.dtype.kind == "f" else "BIGINT"
    return "TEXT"


def listed_types(columns: Arrays, dialect: str) -> str:
    """Return columns with their types, as CREATE TABLE wants them."""
    return ", ".join(
        f"{name} {exp.DataType.build(type_of(values)).sql(dialect)}"
        for name, values in columns.items()
    )


def plain_rows(columns: Arrays) -> Any:
    """Return the rows of a small table as Python's own values."""
    plain = (each.tolist() if isinstance(each, np.ndarray) else each for each in columns.values())
    return zip(*plain, strict=True)


def arrow_table(columns: Arrays) -> Any:
    """Return a small table as Arrow has it."""
    import pyarrow as pa

    kinds = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "TEXT": pa.string()}
    return pa.table(
        {name: pa.array(values, kinds[type_of(values)]) for name, values in columns.items()}
    )
