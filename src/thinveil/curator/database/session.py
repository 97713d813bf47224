"""A connection to a database, and what this project keeps in it.

A session compiles Ibis expressions, counts the statements it sends, names its temporary tables
and takes them away when it is closed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from thinveil.curator.database.engines import BY_BACKEND, ENGINES
from thinveil.curator.database.engines.protocol import Arrays, ibis, type_of
from thinveil.errors import DataError, MissingExtra, TargetError, ThinveilError, UsageError
from thinveil.language.queries import Codes


class Session:
    """A connection, as Ibis knows it, with what this project keeps in it.

    A connection that is owned is closed with the session.
    """

    def __init__(self, backend: Any, *, owned: bool = False) -> None:
        if backend.name not in BY_BACKEND:
            *most, last = (each.name for each in ENGINES)
            raise UsageError(
                f"tables of Ibis' {backend.name} backend cannot be audited: use "
                f"{', '.join(most)} or {last}"
            )
        self.engine = BY_BACKEND[backend.name](backend, owned=owned)
        self.statements = 0
        self._backend = backend
        self._token = f"thinveil_{secrets.token_hex(5)}"
        self._names: dict[str, None] = {}
        self._made = 0
        self._before = {
            name: self.engine.change(name, value) for name, value in self.engine.settings.items()
        }

    def sql(self, *expressions: Any) -> str:
        """Write expressions in the database's own words, the rows of all of them together."""
        compiled = (str(self._backend.compile(each)) for each in expressions)
        return " UNION ALL ".join(map(self.engine.words, compiled))

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
        name = self._name() if instead is None else instead.get_name()
        self.engine.upload(name, columns, again=instead is not None)
        self._names[name] = None
        kinds = {"BIGINT": "int64", "DOUBLE": "float64", "TEXT": "string"}
        return ibis.table({key: kinds[type_of(each)] for key, each in columns.items()}, name=name)

    def keep(self, *expressions: Any, index: Sequence[str] = ()) -> Any:
        """Store the rows of all expressions in one temporary table and return that."""
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
        reason = f"the database refused a statement ({_named(error)}): {_advice(error)}"
        if getattr(error, "sqlstate", None) == "42501":
            reason = (
                "no permission: the user must be allowed to read the table and to create temporary "
                "tables (GRANT TEMPORARY ON DATABASE ...)"
            )
        raise Refused(f"{where}: {reason}") from None


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


def _advice(error: Exception) -> str:
    """Say what to look at: a server has a log, a file has none."""
    if type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "sqlite3"):
        return (
            "see that the file is whole, that nobody else is writing to it, and that there is "
            "room for temporary files"
        )
    return "see its own log for the reason"


def _named(error: Exception) -> str:
    """Name an error of a driver, with the database's own code for it where there is one."""
    state = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
    return f"{type(error).__name__}, {state}" if state else type(error).__name__
