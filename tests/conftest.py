"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from thinveil import Dataset, load, read_schema

settings.register_profile(
    "thinveil",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", parent=settings.get_profile("thinveil"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "thinveil"))

FIRST = ("test_spark.py", "test_docs.py", "test_lab.py", "test_postgres.py", "test_compare.py")
"""Modules that build something costly for all their tests, such as a Spark session."""
BANK = Path(__file__).resolve().parents[2] / "shared" / "data" / "bank-full.csv"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put them first: workers steal tests from the end, and would build it all once more."""
    items.sort(key=lambda item: item.path.name not in FIRST)


@pytest.fixture(scope="session")
def bank_path() -> Path:
    """Where the table of the published experiments is; see CONTRIBUTING."""
    path = Path(os.environ.get("THINVEIL_BANK", BANK))
    if not path.exists():
        pytest.skip(f"the bank table is not at {path}: set THINVEIL_BANK to where it is")
    return path


@pytest.fixture(scope="session")
def bank(bank_path: Path) -> Dataset:
    """The table of the published experiments, coded by its public schema."""
    return load(bank_path, read_schema("bank"))
