"""What differs between databases: how to get in, how arrays do, how temporary tables are made.

Everything else is written once, as Ibis expressions. A database is one file of this folder, and
a line of the table in `engines/__init__.py`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from thinveil.errors import DataError, MissingExtra, ThinveilError, UsageError
from thinveil.language.queries import Codes

Arrays = Mapping[str, Codes | Sequence[str]]
"""The columns of a small table to be sent: codes or texts."""


class Engine(Protocol):
    """One kind of database, with what most have in common. Conforms: what `ENGINES` lists.

    Names of tables and columns given here are the session's own and need no quoting.

    Args:
        backend: The connection, as Ibis knows it.
        owned: Whether it was opened here, and is closed in the end.
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
    _backend: Any
    _connection: Any
    _owned: bool

    def __init__(self, backend: Any, *, owned: bool) -> None:
        self._backend, self._owned = backend, owned
        self._connection = getattr(backend, "con", None)

    @staticmethod
    def connect(address: str, rest: str, where: str) -> tuple[Any, bool]:
        """Open an address; return the connection as Ibis knows it, and whether it is ours.

        Args:
            address: The whole address.
            rest: What stands behind its scheme.
            where: What messages call it.
        """
        ...

    def table(self, name: str | None, where: str) -> Any:
        """Return the table that is meant; the name may be left out where there is only one."""
        return found_table(self._backend, name, None, where)

    def words(self, statement: str) -> str:
        """Mend what Ibis writes for this database."""
        return statement

    def micros(self, moment: Any) -> Any:
        """Return microseconds since 1970, as an expression."""
        return builtin("epoch_us", moment)

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        ((before,),) = self.rows(f"SELECT current_setting('{name}')")
        self._connection.execute(f"SET {name} = '{value}'")
        return str(before)

    def upload(self, name: str, columns: Arrays) -> None:
        """Send a small table; one of the same name and columns is replaced."""
        ...

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Store whole numbers that a statement selects in a temporary table, to be looked up."""
        ...

    def drop(self, name: str) -> None:
        """Take a temporary table away."""
        ...

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


def ibis_backend(name: str, driver: str, extra: str = "databases") -> Any:
    """Import one of Ibis' backends where it is needed, not before.

    Raises:
        MissingExtra: It or its driver is not installed.
    """
    if importlib.util.find_spec(driver) is None:
        raise MissingExtra(f"A table in {name}", extra)
    try:
        import ibis

        return getattr(ibis, name)
    except (ImportError, AttributeError):
        raise MissingExtra("A table in a database", "databases") from None


def found_table(backend: Any, table: str | None, schema: str | None, where: str) -> Any:
    """Return a table of a database by its name, or the only one that there is.

    Raises:
        DataError: There is no such table, or the tables cannot be listed.
        UsageError: There are several, and none is named.
    """
    inside = {"database": schema} if schema else {}
    try:
        names = sorted(backend.list_tables(**inside))
        if table is None and len(names) == 1:
            table = names[0]
        if table is not None and table in names:
            return backend.table(table, **inside)
    except ThinveilError:
        raise
    except Exception as error:
        raise DataError(
            f"{where}: its tables cannot be listed ({type(error).__name__}): check that this is "
            "such a database and that you may read it"
        ) from None
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    listed = ", ".join(map(repr, names[:30])) + more
    there = f"its tables are {listed}" if names else "it has no tables"
    if table is None:
        raise UsageError(f"{where}: which table? {there}; name one with --table")
    raise DataError(f"{where}: there is no table {table!r}; {there}")


def builtin(name: str, moment: Any) -> Any:
    """Call a function of the database's own that turns a time into a whole number."""
    import ibis

    def function(at): ...  # type: ignore[no-untyped-def]

    signature = ((ibis.dtype("timestamp"),), "int64")
    return ibis.udf.scalar.builtin(function, name=name, signature=signature)(moment)


def type_of(values: Codes | Sequence[str]) -> str:
    """Return the SQL type of a column to be sent."""
    return "BIGINT" if isinstance(values, np.ndarray) else "TEXT"


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

    kinds = {"BIGINT": pa.int64(), "TEXT": pa.string()}
    return pa.table(
        {name: pa.array(values, kinds[type_of(values)]) for name, values in columns.items()}
    )
