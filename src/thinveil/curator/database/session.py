"""A connection to a database, and what this project keeps in it.

A session writes statements and counts those it sends, names its temporary tables and takes them
away when it is closed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from thinveil.curator.database.engines.protocol import Arrays, Engine, not_interrupted
from thinveil.curator.database.words import Rows, exp, raw
from thinveil.errors import DataError, MissingExtra, TargetError, ThinveilError
from thinveil.language.queries import Codes

_FEW: Final = 64  # texts: more are joined, as a list that each statement carries; a round figure


class Session:
    """A database that was entered, with what this project keeps in it.

    A connection that is owned is closed with the session. One that stores nothing makes no
    temporary tables: what would be kept is selected anew by each statement, and what would be sent
    is written into it.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.statements = 0
        self.stores = True
        self.agrees = True
        self._token = f"thinveil_{secrets.token_hex(5)}"
        self._names: dict[str, None] = {}
        self._made = 0
        self._before = {name: engine.change(name, value) for name, value in engine.settings.items()}

    def sql(self, *parts: Rows) -> str:
        """Write a statement in the database's own words, the rows of all parts together."""
        return " UNION ALL ".join(self.engine.words(each.query) for each in parts)

    def rows(self, *parts: Rows) -> list[tuple[Any, ...]]:
        """Return the few rows of all parts."""
        self.statements += 1
        return self.engine.rows(self.sql(*parts))

    def codes(self, statement: str, width: int) -> Codes:
        """Return rows of whole numbers that a statement selects."""
        self.statements += 1
        return self.engine.codes(statement, width)

    def store_nothing(self) -> None:
        """Make no temporary tables from now on; where possible, see one state of the data."""
        self.stores = False
        for name in list(self._names):
            with suppress(Exception):
                self.engine.drop(name)
        self._names.clear()
        self.agrees = self.engine.begin()

    @property
    def few(self) -> int:
        """Up to so many texts with codes are listed in a statement."""
        return self.engine.few if self.stores else max(self.engine.few, _FEW)

    def own(self, name: str) -> str:
        """Return a name that nobody else's table has."""
        return f"{self._token}_{name}"

    def put(self, columns: Arrays, instead: Rows | None = None) -> Rows:
        """Send a small table, as a new one or instead of an earlier one of the same columns."""
        if not self.stores:
            return Rows(raw(self.engine.inline(columns)), tuple(columns))
        name = self._name() if instead is None else instead.name
        self.engine.upload(name, columns, again=instead is not None)
        return self._kept(name, tuple(columns))

    def keep(self, *parts: Rows, index: Sequence[str] = ()) -> Rows:
        """Store the rows of all parts in one temporary table and return that."""
        if not self.stores:
            (whole,) = parts
            return whole
        name = self._name()
        self.statements += 1
        self.engine.keep(name, parts[0].columns, self.sql(*parts), index)
        return self._kept(name, parts[0].columns)

    def _kept(self, name: str, columns: tuple[str, ...]) -> Rows:
        self._names[name] = None
        return Rows(exp.to_table(name), columns, name=name)

    def drop(self, table: Rows) -> None:
        """Take a temporary table away."""
        if table.name:
            self.engine.drop(table.name)
            self._names.pop(table.name, None)

    def close(self) -> None:
        """Take away all that was kept, and leave the database if it was opened here."""
        with suppress(Exception):
            self.engine.release()
        for name in list(self._names):
            with suppress(Exception):  # a server that is gone has dropped them itself
                self.engine.drop(name)
        self._names.clear()
        if not self.stores:
            with suppress(Exception):
                self.engine.end()
        for name, value in self._before.items():
            with suppress(Exception):
                self.engine.change(name, value)
        with suppress(Exception):
            self.engine.close()

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """Close the session if something goes wrong inside."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _name(self) -> str:
        self._made += 1
        return f"{self._token}_{self._made}"


_FORBIDDEN: Final = ((1044,), (1142,), (1143,))
"""The numbers that MariaDB gives to missing rights: on a database, a table, a column."""


class Refused(DataError):
    """A database refused a statement; its own words may quote values and are left out."""


@contextmanager
def opening(where: str) -> Iterator[None]:
    """Turn what a driver raises into an error without its words: they may quote values."""
    try:
        yield
    except ThinveilError:
        raise
    except ImportError:
        raise MissingExtra("A table in a database", "databases") from None
    except Exception as error:
        not_interrupted(error)
        reason = f"the database refused a statement ({_named(error)}): {_advice(error)}"
        if getattr(error, "sqlstate", None) == "42501" or error.args[:1] in _FORBIDDEN:
            reason = "no permission: the user must be allowed to read the table (GRANT SELECT ...)"
        raise Refused(f"{where}: {reason}") from None


@contextmanager
def counting(where: str) -> Iterator[None]:
    """The same while an attack is running."""
    try:
        yield
    except ThinveilError:
        raise
    except Exception as error:
        not_interrupted(error)
        raise TargetError(
            f"{where} failed while it counted ({_named(error)}): see that it is up, then resume "
            "the run from its transcript"
        ) from None


_OF_FILES: Final = ("duckdb", "_duckdb", "sqlite3", "chdb", "builtins")
"""Where the errors of databases in files come from; DataFusion has none of its own."""

_OF_SPARK: Final = ("pyspark", "py4j")
"""And those of Spark, of which nobody keeps a log where it was started here."""


def _advice(error: Exception) -> str:
    """Say what to look at: a server has a log, a file has none."""
    if type(error).__module__.partition(".")[0] in _OF_FILES:
        return (
            "see that the file is whole, that nobody else is writing to it, and that there is "
            "room for temporary files"
        )
    if type(error).__module__.partition(".")[0] in _OF_SPARK:
        return (
            "see that all files are whole and have the same columns of the same types, and that "
            "what views and columns compute can be computed for every row"
        )
    return "see its own log for the reason"


def _named(error: Exception) -> str:
    """Name an error of a driver, with the database's own code for it where there is one."""
    state = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
    return f"{type(error).__name__}, {state}" if state else type(error).__name__
