"""DuckDB: in this process; what does not fit into memory goes to a temporary folder."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any, ClassVar

import numpy as np

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    arrow_table,
    ibis_backend,
    opening_file,
)
from thinveil.language.queries import Codes


class DuckDB(Engine):
    """A file, or files that it reads where they are."""

    name = "DuckDB"
    backend = "duckdb"
    schemes = ("duckdb",)
    settings: ClassVar = {"TimeZone": "UTC", "preserve_insertion_order": "false"}  # saves memory
    here = True

    def __init__(self, backend: Any, *, owned: bool) -> None:
        super().__init__(backend, owned=owned)
        if owned:
            folder = tempfile.mkdtemp(prefix="thinveil-")
            self._forget = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            quoted = folder.replace("'", "''")
            self.run(f"SET memory_limit = '{memory_limit()}'", f"SET temp_directory = '{quoted}'")

    @staticmethod
    def connect(address: str, rest: str, where: str) -> tuple[Any, bool]:
        """Open a file to read it."""
        module = ibis_backend("duckdb", "duckdb")
        with opening_file(rest, where):
            return module.connect(rest, read_only=True), True

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
            self._forget()


def memory_limit() -> str:
    """Return half of this machine's memory, at most 4 GiB, as DuckDB wants it."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):  # not every system tells
        memory = 2 * 2**30
    return f"{min(memory, 4 * 2**30) // 2**20}MiB"
