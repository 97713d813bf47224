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

BANK = Path(__file__).resolve().parents[2] / "shared" / "data" / "bank-full.csv"


@pytest.fixture(scope="session")
def bank() -> Dataset:
    """The table of the published experiments; see CONTRIBUTING for where it comes from."""
    path = Path(os.environ.get("THINVEIL_BANK", BANK))
    if not path.exists():
        pytest.skip(f"the bank table is not at {path}: set THINVEIL_BANK to where it is")
    return load(path, read_schema("bank"))
