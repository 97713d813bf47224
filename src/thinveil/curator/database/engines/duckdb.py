"""DuckDB: in this process; what does not fit into memory goes to a temporary folder."""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    arrow_table,
    everything,
    needed,
    opening_file,
)
from thinveil.curator.database.words import Rows, cast, exp
from thinveil.curator.tables.kinds.limits import half_of_memory
from thinveil.errors import DataError
from thinveil.language.queries import Codes

_NO_EXTENSIONS: Final[dict[str, Any]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
_PATTERN: Final = re.compile(r"[*?\[]")


class DuckDB(Engine):
    """A file, or files that it reads where they are."""

    name = "DuckDB"
    dialect = backend = "duckdb"
    schemes = ("duckdb",)
    settings: ClassVar = {"TimeZone": "UTC", "preserve_insertion_order": "false"}  # saves memory
    here = True
    groups = True
    snapshot = "BEGIN TRANSACTION READ ONLY"
    longest = 2_000_000  # in this process; a round figure
    own = "system.main"

    @classmethod
    def connect(cls, address: str, rest: str, where: str) -> DuckDB:
        """Open a file to read it."""
        with opening_file(rest, where):
            if (log := Path(f"{rest}.wal")).is_symlink():  # its views may read the log
                raise DataError(f"{where}: {log} is a link: put the log itself in its place")
            return open_duckdb(rest)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables and views."""
        return [name for (name,) in self.rows("SHOW TABLES")]

    def describe(self, rows: Rows) -> list[tuple[str, Any]]:
        """Return the names and types of columns."""
        found = self.rows(f"DESCRIBE {self.words(everything(rows))}")
        return [(name, self.kind(kind.strip('"'))) for name, kind, *_ in found]

    def plain(self, value: Any) -> Any:
        """Return a text that is compared letter by letter, whatever the collation of its column."""
        return exp.Collate(this=cast(value, "text"), expression=exp.Var(this="C"))

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Show DuckDB the arrays where they are."""
        self._connection.register(name, arrow_table(columns))

    def drop(self, name: str) -> None:
        """Drop a temporary table or forget an array."""
        self._connection.unregister(name)
        super().drop(name)

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch columns as arrays."""
        found = self._connection.execute(statement).fetchnumpy()
        return np.column_stack([np.asarray(each, np.int64) for each in found.values()])

    def close(self) -> None:
        """Close the connection, and empty the temporary folder."""
        super().close()
        if self._owned:
            self.emptied()

    emptied: Any = staticmethod(lambda: None)


def open_duckdb(path: str = ":memory:", files: Sequence[str] = ()) -> DuckDB:
    """Open a database to read it, shut off from all files but some, and from extensions.

    Sandbox: a view can name any file that its reader may read, or an address in the network, and
    would be shown its content as if it were the table. What does not fit into memory goes to a
    private folder, which may fill half of the free disk.

    Args:
        path: The database; none, for files alone.
        files: The files that may be read, by absolute paths.
    """
    needed("DuckDB", "duckdb")
    import duckdb

    folder = tempfile.mkdtemp(prefix="thinveil-")
    try:
        settings = {
            "memory_limit": memory_limit(),
            "temp_directory": folder,
            "max_temp_directory_size": f"{shutil.disk_usage(folder).free // 2**21}MiB",
            **_NO_EXTENSIONS,
        }
        connection = duckdb.connect(path, read_only=path != ":memory:", config=settings)
        searched = {_searched(each) for each in files if _PATTERN.search(each)}
        connection.execute(f"SET allowed_paths = {listed(files)}")
        connection.execute(f"SET allowed_directories = {listed(sorted(searched))}")
        connection.execute("SET enable_external_access = false")  # which cannot be undone
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    engine = DuckDB(connection, owned=True)
    # not asked for later: a macro of the database can answer in the place of DuckDB
    engine.emptied = weakref.finalize(engine, shutil.rmtree, folder, ignore_errors=True)
    return engine


def literal(path: str) -> str:
    """Return the pattern that matches one file alone: DuckDB takes every path for a pattern.

    >>> print(literal("a*[1].csv"))
    a[*][[]1].csv
    """
    return _PATTERN.sub(r"[\g<0>]", path)


def listed(texts: Sequence[str]) -> str:
    """Return texts as a list of SQL."""
    return "[" + ", ".join("'" + each.replace("'", "''") + "'" for each in texts) + "]"


def _searched(file: str) -> str:
    """Return the folder in which DuckDB looks for a file whose path looks like a pattern."""
    plain = itertools.takewhile(lambda part: not _PATTERN.search(part), Path(file).parts[:-1])
    return str(Path(*plain))


def memory_limit() -> str:
    """Return half of this machine's memory, at most 4 GiB, as DuckDB wants it."""
    return f"{half_of_memory() // 2**20}MiB"
