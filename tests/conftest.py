"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from thinveil import Dataset, load, read_schema

if TYPE_CHECKING:
    from labs import Labs

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
LONG = ("nightly", "soak")
"""Marks of tests of which `--part` runs a part."""
FROZEN = ("frozen", "test_guard.py", "test_published_figures.py")
"""What the names of frozen counts have: every part holds all of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what chooses a part of the long tests; `-m` chooses the marks."""
    group = parser.getgroup("thinveil")
    group.addoption(
        "--part", type=int, default=1, metavar="N",
        help="of the tests marked nightly or soak, run one in N, drawn by --seed",
    )  # fmt: skip
    group.addoption("--seed", default="0", metavar="TEXT", help="which part; any text")
    group.addoption(
        "--no-skips", action="store_true", help="a test that skips is an error, as in .ci/run"
    )


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: many tests wait for a process, a disk or a server."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn skips into errors where everything must run."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("no_skips"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} must run here, and skips: {call.excinfo}"
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw the part that was asked for, and put first what is costly to build.

    Workers steal tests from the end, and would build it all once more.
    """
    parts, seed = config.getoption("part"), config.getoption("seed")
    if parts > 1:
        drawn = [each for each in items if _in_part(each, parts, seed)]
        kept = set(drawn)
        config.hook.pytest_deselected(items=[each for each in items if each not in kept])
        items[:] = drawn
    items.sort(key=lambda item: item.path.name not in FIRST)


def _in_part(item: pytest.Item, parts: int, seed: str) -> bool:
    marked = any(item.get_closest_marker(each) for each in LONG)
    if not marked or any(each in item.nodeid for each in FROZEN):
        return True
    drawn = sha256(f"{seed} {item.nodeid}".encode()).digest()
    return int.from_bytes(drawn[:8]) % parts == 0


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


@pytest.fixture(scope="module")
def lab() -> Iterator[Labs]:
    """A lab that is served, and somebody with its key."""
    from labs import open_lab  # needs the extra lab

    with open_lab() as lab:
        yield lab


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    from browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def connect_address() -> Iterator[str]:
    """A server of Spark Connect with Java."""
    from servers import spark_connect

    with spark_connect() as address:
        yield address


@pytest.fixture(scope="module")
def sail_address() -> Iterator[str]:
    """A server of Spark Connect without Java."""
    from servers import sail

    with sail() as address:
        yield address
