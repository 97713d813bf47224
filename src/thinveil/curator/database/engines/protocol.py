"""What differs between databases: how to get in, how arrays do, how temporary tables are made.

Everything else is written once, as Ibis expressions. A database is one file of this folder, and
a line of the table in `engines/__init__.py`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from thinveil.errors import DataError, MissingExtra, ThinveilError, UsageError
from thinveil.language.queries import Codes, Floats
from thinveil.passwords import shown

Arrays = Mapping[str, Codes | Floats | Sequence[str]]
"""The columns of a small table to be sent: codes or texts."""


class _Lazy:
    """A library that is imported when it is first asked for something, not before."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("ibis"), name)


ibis: Final[Any] = _Lazy()


class Engine(Protocol):
    """One kind of database, with what most have in common. Conforms: what `ENGINES` lists.

    Names of tables and columns given here are the session's own and need no quoting.
    """

    name: ClassVar[str]
    """What people call it."""
    backend: ClassVar[str]
    """What Ibis calls it."""
    schemes: ClassVar[tuple[str, ...]]
    """How its addresses begin."""
    settings: ClassVar[Mapping[str, str]] = {}
    """What a session must have set, by name."""
    here: ClassVar[bool] = False
    """Whether it is a file that this process reads."""
    typed: ClassVar[bool] = True
    """Whether a column holds what its type says."""
    not_numbers: ClassVar[frozenset[str]] = frozenset({"float"})
    """The kinds of columns that can hold a NaN."""
    temporary: ClassVar[str] = "temp"
    """The schema that temporary tables are in."""
    own: ClassVar[str] = "pg_catalog"
    """The schema of its own functions: by bare names, those of a hostile database may be meant."""
    _backend: Any
    _connection: Any
    _owned: bool

    def __init__(self, backend: Any, *, owned: bool) -> None:
        self._backend, self._owned = backend, owned
        self._connection = getattr(backend, "con", None)

    @staticmethod
    def connect(address: str, rest: str, where: str) -> tuple[Any, bool]:
        """Open an address; return the connection as Ibis knows it, and whether it is ours.

        `rest` is what stands behind the address's scheme, `where` what messages call it.
        """
        ...

    def table(self, name: str | None, where: str) -> Any:
        """Return the table that is meant; the name may be left out where there is only one."""
        return self.found(name, None, where)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables of a schema, or of the usual one."""
        return sorted(self._backend.list_tables(**({"database": schema} if schema else {})))

    def found(self, table: str | None, schema: str | None, where: str) -> Any:
        """Return a table by its name, or the only one that there is."""
        with listing(where):
            names = self.tables(schema)
            if (chosen := meant(names, table)) is not None:
                return self._backend.table(chosen, **({"database": schema} if schema else {}))
        raise no_table(names, table, where)

    def check(self, columns: Sequence[str], where: str) -> None:
        """Refuse columns that are not read as they are, for the name they have."""
        return

    def words(self, statement: str) -> str:
        """Mend what Ibis writes for this database."""
        return statement

    def micros(self, moment: Any) -> Any:
        """Return microseconds since 1970, as an expression."""
        return builtin("epoch_us", moment)

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

    def close(self) -> None:
        """Leave the database if it was opened here."""
        if self._owned:
            self._connection.close()


@contextmanager
def told(what: str, advice: str) -> Iterator[None]:
    """Say in our own words what a driver could not do: its words may quote values."""
    try:
        yield
    except ThinveilError:
        raise
    except Exception as error:
        raise DataError(f"{what} ({type(error).__name__}): {advice}") from None


@contextmanager
def opening_file(path: str, where: str) -> Iterator[None]:
    """Open a file as a database inside, or say that there is none or that it cannot be done."""
    if not Path(path).is_file():
        raise DataError(f"{where}: there is no such file: check the path")
    advice = "see that it is such a database, that nobody else is writing to it, and that you may"
    with told(f"{where}: cannot be opened", f"{advice} read it"):
        yield


def ibis_backend(name: str, driver: str, extra: str = "databases") -> Any:
    """Import one of Ibis' backends where it is needed, not before."""
    if importlib.util.find_spec(driver) is None:
        raise MissingExtra(f"A table in {name}", extra)
    try:
        return getattr(ibis, name)
    except (ImportError, AttributeError):
        raise MissingExtra("A table in a database", "databases") from None


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


def builtin(name: str, moment: Any) -> Any:
    """Call a function of the database's own that turns a time into a whole number."""

    def function(at): ...  # type: ignore[no-untyped-def]

    signature = ((ibis.dtype("timestamp"),), "int64")
    return ibis.udf.scalar.builtin(function, name=name, signature=signature)(moment)


def type_of(values: Codes | Floats | Sequence[str]) -> str:
    """Return the SQL type of a column to be sent."""
    if isinstance(values, np.ndarray):
        return "DOUBLE" if values.dtype.kind == "f" else "BIGINT"
    return "TEXT"


def listed_types(columns: Arrays) -> str:
    """Return columns with their types, as CREATE TABLE wants them."""
    return ", ".join(f"{name} {type_of(values)}" for name, values in columns.items())


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
