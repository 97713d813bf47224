"""The databases that a table can stay in; a new one is a file here and a name in this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from thinveil.curator.database.engines.clickhouse import ClickHouse
from thinveil.curator.database.engines.datafusion import DataFusion
from thinveil.curator.database.engines.duckdb import DuckDB
from thinveil.curator.database.engines.mariadb import MariaDB
from thinveil.curator.database.engines.postgres import PostgreSQL
from thinveil.curator.database.engines.protocol import Engine
from thinveil.curator.database.engines.spark import Spark
from thinveil.curator.database.engines.sqlite import SQLite

ENGINES: Final[tuple[type[Engine], ...]] = (
    DuckDB,
    SQLite,
    PostgreSQL,
    MariaDB,
    Spark,
    DataFusion,
    ClickHouse,
)
BY_BACKEND: Final[Mapping[str, type[Engine]]] = {
    each.backend: each for each in ENGINES if each.backend
}
"""Databases by what Ibis calls them."""
BY_SCHEME: Final[Mapping[str, type[Engine]]] = {
    scheme: each for each in ENGINES for scheme in each.schemes
}
"""Databases by how their addresses begin."""
