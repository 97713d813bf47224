"""Tables of Ibis: what it would ask is read like any other table of the same database.

Ibis itself is not needed for anything else.
"""

from __future__ import annotations

from typing import Any

from thinveil.curator.database.engines import BY_BACKEND
from thinveil.curator.database.session import Session, opening
from thinveil.curator.database.words import Rows, raw
from thinveil.errors import UsageError


def of_ibis(table: Any) -> tuple[Session, Rows]:
    """Return the database and the rows of a table of Ibis.

    Raises:
        UsageError: It is no table, or of a database that is not supported.
    """
    if not hasattr(table, "get_backend") or not hasattr(table, "columns"):
        raise UsageError(f"cannot count inside a {type(table).__name__}: give an Ibis table")
    with opening("the table"):
        backend = table.get_backend()
        if backend.name not in BY_BACKEND:
            *most, last = (each.name for each in BY_BACKEND.values())
            raise UsageError(
                f"tables of Ibis' {backend.name} backend cannot be audited: use "
                f"{', '.join(most)} or {last}"
            )
        if (hooks := getattr(backend, "_run_pre_execute_hooks", None)) is not None:
            hooks(table)  # sends what the table holds in this process
        connection = backend._session if backend.name == "pyspark" else backend.con
        session = Session(BY_BACKEND[backend.name](connection))
        with session.closed_on_failure():
            return session, session.engine.described(raw(f"({backend.compile(table)})"))
