"""A connection to a database, and what this project keeps in it.

A session compiles Ibis expressions, counts the statements it sends, names its temporary tables
and takes them away when it is closed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from thinveil.curator.database.engines import ENGINES, Arrays, type_of
from thinveil.errors import DataError, MissingExtra, TargetError, ThinveilError, UsageError
from thinveil.language.queries import Codes


class Session:
    """A connection with what this project keeps in it.

    Args:
        backend: The connection, as Ibis knows it.
        owned: Whether the connection is closed with the session.
    """

    def __init__(self, backend: Any, *, owned: bool = False) -> None:
        engine = ENGINES.get(backend.name)
        if engine is None:
            raise UsageError(
                f"tables of Ibis' {backend.name} backend cannot be audited: use DuckDB, SQLite, "
                "PostgreSQL or Spark"
            )
        self.engine = engine(backend)  # type: ignore[call-arg]
        self.kind: str = backend.name
        self.statements = 0
        self._backend = backend
        self._owned = owned
        self._token = f"thinveil_{secrets.token_hex(5)}"
        self._names: dict[str, None] = {}
        self._made = 0
        self._forget: Callable[[], object] = lambda: None
        self._before = {
            name: self.engine.change(name, value) for name, value in self.engine.settings.items()
        }

    def spill(self, limit: str) -> None:
        """Let DuckDB hold so much in memory and the rest in a temporary folder."""
        folder = tempfile.mkdtemp(prefix="thinveil-")
        self._forget = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        quoted = folder.replace("'", "''")
        self._backend.con.execute(f"SET memory_limit = '{limit}'")
        self._backend.con.execute(f"SET temp_directory = '{quoted}'")

    def sql(self, *expressions: Any) -> str:
        """Write expressions in the database's own words, the rows of all of them together."""
        return " UNION ALL ".join(self._words(each) for each in expressions)

    def _words(self, expression: Any) -> str:
        written = str(self._backend.compile(expression))
        if self.kind == "sqlite":
            written = _exact_remainders(written)
        return written

    def rows(self, expression: Any) -> list[tuple[Any, ...]]:
        """Return the few rows of an expression."""
        self.statements += 1
        return self.engine.rows(self.sql(expression))

    def codes(self, statement: str, width: int) -> Codes:
        """Return rows of whole numbers that a statement selects."""
        self.statements += 1
        return self.engine.codes(statement, width)

    def put(self, columns: Arrays, instead: Any = None) -> Any:
        """Send a small table, as a new one or instead of an earlier one of the same columns."""
        import ibis

        name = self._name() if instead is None else instead.get_name()
        self.engine.upload(name, columns)
        self._names[name] = None
        kinds = {"BIGINT": "int64", "TEXT": "string"}
        return ibis.table({key: kinds[type_of(each)] for key, each in columns.items()}, name=name)

    def keep(self, *expressions: Any, index: Sequence[str] = ()) -> Any:
        """Store the rows of all expressions in one temporary table and return that."""
        import ibis

        name = self._name()
        self.statements += 1
        self.engine.keep(name, expressions[0].columns, self.sql(*expressions), index)
        self._names[name] = None
        return ibis.table(expressions[0].schema(), name=name)

    def drop(self, table: Any) -> None:
        """Take a temporary table away."""
        name = table.get_name()
        self.engine.drop(name)
        self._names.pop(name, None)

    def ready(self, expression: Any) -> None:
        """Let Ibis send what an expression holds in this process."""
        hooks = getattr(self._backend, "_run_pre_execute_hooks", None)
        if hooks is not None:
            hooks(expression)

    def close(self) -> None:
        """Take away all that was kept, and leave the database if it was opened here."""
        for name in list(self._names):
            with suppress(Exception):  # a server that is gone has dropped them itself
                self.engine.drop(name)
        self._names.clear()
        for name, value in self._before.items():
            with suppress(Exception):
                self.engine.change(name, value)
        if self._owned:
            with suppress(Exception):
                self.engine.close()
        self._forget()

    def _name(self) -> str:
        self._made += 1
        return f"{self._token}_{self._made}"


def _exact_remainders(statement: str) -> str:
    """Write remainders for SQLite by its operator: its function MOD() goes by floats."""
    import sqlglot
    from sqlglot import expressions

    if "MOD(" not in statement:
        return statement
    tree = sqlglot.parse_one(statement, read="sqlite")
    for node in reversed(list(tree.find_all(expressions.Mod))):  # inner ones first
        node.replace(expressions.Paren(this=node.copy()))
    return tree.sql("sqlite")


@contextmanager
def opening(where: str) -> Iterator[None]:
    """Turn what a driver raises into an error without its words: they may quote values."""
    try:
        yield
    except ThinveilError:
        raise
    except Exception as error:
        raise DataError(f"{where}: {_reason(error)}") from None


@contextmanager
def counting(where: str) -> Iterator[None]:
    """The same while an attack is running."""
    try:
        yield
    except ThinveilError:
        raise
    except Exception as error:
        raise TargetError(
            f"{where} failed while it counted ({_named(error)}): see that it is up, then resume "
            "the run from its transcript"
        ) from None


def _named(error: Exception) -> str:
    """Name an error of a driver, with the database's own code for it where there is one."""
    state = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
    return f"{type(error).__name__}, {state}" if state else type(error).__name__


def _reason(error: Exception) -> str:
    state = getattr(error, "sqlstate", None)
    if state == "42501":
        return (
            "no permission: the user must be allowed to read the table and to create temporary "
            "tables (GRANT TEMPORARY ON DATABASE ...)"
        )
    if isinstance(error, ImportError):
        raise MissingExtra("A table in a database", "databases") from None
    return f"the database refused a statement ({_named(error)}): see its own log for the reason"


def memory_limit() -> str:
    """Return half of this machine's memory, at most 4 GiB, as DuckDB wants it."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):  # not every system tells
        memory = 2 * 2**30
    return f"{min(memory, 4 * 2**30) // 2**20}MiB"
