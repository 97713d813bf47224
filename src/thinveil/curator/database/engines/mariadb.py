"""MariaDB: a server; arrays go in by INSERT, many rows a statement."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    listing,
    needed,
    plain_rows,
    told,
    type_of,
)
from thinveil.curator.database.words import Rows, call, cases, column, exp, rewritten, text
from thinveil.errors import DataError, UsageError

_LETTERS: Final = "utf8mb4_nopad_bin"
"""The collation that compares letter by letter, also spaces at the end."""
_OPTIONS: Final = ("ssl_ca", "ssl_cert", "ssl_key", "unix_socket")
"""What an address may say besides, as PyMySQL calls it; all of them name files."""
_MOST_KEYS: Final = 30  # MariaDB takes at most 32 columns in an index
_SENT: Final = {"TEXT": f"LONGTEXT CHARACTER SET utf8mb4 COLLATE {_LETTERS}"}
_DAY: Final = 86_400 * 10**6  # microseconds
_TEXTS: Final = ("char", "varchar", "tinytext", "mediumtext", "longtext", "enum", "set")


class MariaDB(Engine):
    """A server that is reached over a socket."""

    name = "MariaDB"
    dialect = "mysql"
    snapshot = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
    longest = 1_000_000  # of 16 MB that it takes by default; a round figure
    schemes = ("mariadb", "mysql")
    settings: ClassVar = {
        "time_zone": "+00:00",
        "sql_mode": "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        "collation_connection": _LETTERS,
        "join_cache_level": "8",  # texts are joined by their hash
        "sql_select_limit": str(2**64 - 1),
    }
    not_numbers: ClassVar[frozenset[str]] = frozenset()  # it stores none

    @classmethod
    def connect(cls, address: str, rest: str, where: str) -> MariaDB:
        """Connect as its own programs do, which also know ~/.my.cnf and MYSQL_PWD.

        The server may not ask for files of ours (LOAD DATA LOCAL).
        """
        needed("MariaDB", "pymysql", "mariadb")
        how = _parts(rest, where)
        advice = "check host, port, user, password and the database's name, and that the server is"
        with told(f"{where}: no connection", f"{advice} running"):
            import pymysql

            engine = cls(pymysql.connect(**how), owned=True)
            ((version,),) = engine.rows("SELECT version()")
        if "MariaDB" not in version:
            engine.close()
            raise DataError(
                f"{where}: this is a server of MySQL, which opens a temporary table only once in "
                "a statement: use MariaDB, or export the table as Parquet"
            )
        return engine

    def table(self, name: str | None, where: str) -> Rows:
        """Return a table of the database of the address, or of another: database.table."""
        with listing(where):
            ((usual,),) = self.rows("SELECT database()")
        return self.inside(name, usual, where)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables and views of a database."""
        asked = (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND "
            "table_type IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED')"
        )
        return [name for (name,) in self._asked(asked, [schema])]

    def describe(self, rows: Rows) -> list[tuple[str, Any]]:
        """Return the names and types of columns."""
        asked = (
            "SELECT column_name, data_type, column_type, numeric_precision, numeric_scale FROM "
            "information_schema.columns WHERE table_schema = %s AND table_name = %s "
            "ORDER BY ordinal_position"
        )
        found = []
        for name, *described in self._asked(asked, [rows.source.db, rows.source.name]):
            flag = described[1] == "tinyint(1)" and self._is_flag(rows, name)
            found.append((name, self.kind("boolean" if flag else _kind(*described))))
        return found

    def kind(self, words: str) -> Any:
        """Read the name of a type; one that sqlglot does not know stays a text."""
        plain = exp.DataType.Type.__members__.get(words.upper())
        return super().kind(words) if plain is None else exp.DataType(this=plain)

    def _is_flag(self, rows: Rows, name: str) -> bool:
        """Tell whether a column of small numbers is one of truths: it holds no others."""
        other = exp.not_(column(name).isin(exp.Literal.number(0), exp.Literal.number(1)))
        ((others,),) = self.rows(self.words(exp.select(exp.Max(this=other)).from_(rows.at("t"))))
        return not others

    def inline(self, columns: Arrays) -> str:
        """Write a small table; what follows the first row takes its names."""
        first = ", ".join(
            f"{value} AS {self.quoted(name)}"
            for name, value in zip(columns, self.written(columns, slice(1))[0], strict=True)
        )
        rest = self.tuples({name: each[1:] for name, each in columns.items()})
        return f"(SELECT {first}{f' UNION ALL VALUES {rest}' if rest else ''})"

    def begin(self) -> bool:
        """Begin a transaction that sees one state, whatever the server's usual isolation is."""
        self._connection.commit()
        self._within = True
        self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return super().begin()

    def end(self) -> None:
        """End that transaction."""
        super().end()
        self._within = False

    _within = False  # whether that transaction runs

    def no_right(self, error: Exception) -> bool:
        """Tell by the numbers for a missing right, and for a server or session that only reads."""
        return error.args[:1] in ((1044,), (1142,), (1290,), (1792,))

    def plain(self, value: Any) -> Any:
        """Return a text that is compared letter by letter."""
        letters = exp.Cast(this=value, to=exp.DataType.build("text"))
        return exp.Collate(this=letters, expression=exp.Var(this=_LETTERS))

    def micros(self, moment: Any) -> Any:
        """Return microseconds since 1970; there are none of a day without a month."""
        start = exp.cast(text("1970-01-01"), "timestamp")
        return call("timestampdiff", exp.Var(this="MICROSECOND"), start, moment)

    def clock(self, time: Any) -> Any:
        """Return microseconds since midnight; a duration, which a time here may be, has none."""
        seconds = call("time_to_sec", time) * 10**6
        inside = exp.paren((seconds >= 0).and_(seconds < _DAY))
        return exp.cast(cases((inside, seconds)), "bigint")

    def words(self, query: Any) -> str:
        """Write a statement in which moments have microseconds."""
        return super().words(rewritten(query, (exp.Cast,), _own))

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        ((before,),) = self.rows(f"SELECT @@SESSION.{name}")
        self.run(f"SET SESSION {name} = {value if value.isdigit() else repr(value)}")
        return str(before)

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Insert all rows, many by one statement."""
        kinds = {each: type_of(values) for each, values in columns.items()}
        listed = ", ".join(f"`{each}` {_SENT.get(kind, kind)}" for each, kind in kinds.items())
        made = f"CREATE TEMPORARY TABLE {name} ({listed})"
        self.run(f"DELETE FROM {name}" if again else made)
        marks = ", ".join(["%s"] * len(columns))
        with self._connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", list(plain_rows(columns)))
        self._connection.commit()

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Create a temporary table of numbers of eight bytes, and its index."""
        parts = [f"`{each}` BIGINT" for each in columns]
        parts += [f"KEY ({', '.join(index[:_MOST_KEYS])})"] if index else []
        self.run(f"CREATE TEMPORARY TABLE {name} ({', '.join(parts)}) AS {statement}")

    def drop(self, name: str) -> None:
        """Take a temporary table away."""
        self.run(f"DROP TEMPORARY TABLE IF EXISTS {name}")

    def run(self, *statements: str) -> None:
        """Run statements that select nothing."""
        for each in statements:
            self._asked(each)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        return self._asked(statement)

    def _asked(self, statement: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement, with values in the places of its marks."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            found = list(cursor.fetchall())
        if not self._within:
            self._connection.commit()  # the next one sees what others wrote
        return found


def _parts(rest: str, where: str) -> dict[str, Any]:
    """Return what PyMySQL is told of an address."""
    try:
        parts = urlsplit(f"mariadb://{rest}")
        host, port, query = parts.hostname, parts.port, dict(parse_qsl(parts.query))
    except ValueError:
        host, port, query = None, None, {"?": ""}
    if unknown := [each for each in query if each not in _OPTIONS]:
        what = "no address" if unknown == ["?"] else f"an address with an unknown {unknown[0]!r}"
        raise UsageError(
            f"{where}: this is {what}: give mariadb://user@host:port/database, behind which may "
            f"stand ?{'=FILE&'.join(_OPTIONS)}=FILE"
        )
    database = unquote(parts.path[1:])
    if not database:
        raise UsageError(f"{where}: which database? give mariadb://user@host:port/database")
    given = {
        "host": host or "localhost",
        "port": port,
        "user": parts.username and unquote(parts.username),
        "password": os.environ.get("MYSQL_PWD") if parts.password is None else parts.password,
        **query,
    }
    if parts.password is not None:
        given["password"] = unquote(parts.password)
    own = Path("~/.my.cnf").expanduser()
    known: dict[str, Any] = {key: value for key, value in given.items() if value}
    if "ssl_ca" in known:  # PyMySQL checks nothing unless it is told to
        known |= {"ssl_verify_cert": True, "ssl_verify_identity": True}
    if own.is_file():
        known["read_default_file"] = str(own)
    return {**known, "database": database, "charset": "utf8mb4", "local_infile": False}


def _kind(data: str, whole: str, precision: int | None, scale: int | None) -> str:
    """Return the type of a column: all texts are alike, and numbers have the sizes of most."""
    if data == "decimal":
        return f"decimal({precision}, {scale})"
    if "unsigned" in whole and data.endswith("int"):
        return "ubigint" if data == "bigint" else "bigint"
    return "text" if data in _TEXTS else data


def _own(node: Any) -> Any:
    """Return a cast to a moment with all its microseconds."""
    if node.to.this.name != "TIMESTAMP":
        return node
    return exp.Cast(this=node.this, to=exp.DataType.build("datetime(6)", dialect="mysql"))
