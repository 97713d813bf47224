"""The house: inner orders, bounds of rooms and modules, names, and the page that shows it all."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import thinveil
from test_wall import imports

REPOSITORY = Path(__file__).parent.parent
ROOT = Path(thinveil.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.stem != "__init__")
INNER = {
    "attacker": (
        ("terms", "findings", "fixed_order"),
        ("evidence",),
        ("beliefs",),
        ("engines",),
        ("attacks",),
        ("strategies", "staircase", "code_length"),
    )
}
"""Inside a package, rooms and modules import only what stands before them or beside them."""
MOST_MODULES = 14
MOST_LINES = 400
SAME_NAME = {
    "commands": "a command's module has the command's name",
    "report/html": "a section of the report has the name of what it shows",
    "language/wire": "a form on the wire has the name of what it carries, or of its format",
    "language/mechanisms": "a mechanism's file has the mechanism's name",
    "curator/database": "a table, its counting and its session, as a database has them",
    "paper/theory": "the paper's own words, on small worlds",
    "lab": "the lab's own server and sessions",
}
"""Folders whose modules may have a name that stands elsewhere too, and why."""


def place(dotted: str) -> tuple[str, int] | None:
    """Return the package of a module with an inner order, and its rank there."""
    parts = dotted.split(".")
    if len(parts) < 3 or parts[0] != "thinveil" or parts[1] not in INNER:
        return None
    for rank, names in enumerate(INNER[parts[1]]):
        if parts[2] in names:
            return parts[1], rank
    return None


def faults(path: Path, source: str) -> list[str]:
    """Return what a module imports from a later room of its own package."""
    mine = place("thinveil." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
    found = []
    for name in imports(ast.parse(source)):
        other = place(name)
        if mine and other and mine[0] == other[0] and other[1] > mine[1]:
            found.append(name)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_keep_their_inner_order(path: Path) -> None:
    assert faults(path, path.read_text("utf-8")) == []


def test_every_part_of_the_attacker_has_a_rank() -> None:
    for path in (ROOT / "attacker").iterdir():
        if path.stem not in ("__init__", "__pycache__"):
            assert place(f"thinveil.attacker.{path.stem}"), path.stem


def test_the_guard_sees_a_breach() -> None:
    line = "from thinveil.attacker.attacks import table"
    assert faults(ROOT / "attacker" / "beliefs" / "x.py", line)
    assert not faults(ROOT / "attacker" / "strategies.py", line)


def test_rooms_and_modules_stay_small() -> None:
    folders = defaultdict(list)
    for path in MODULES:
        folders[path.parent].append(path)
        assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES, path
    for folder, modules in folders.items():
        if folder != ROOT / "commands":
            assert len(modules) <= MOST_MODULES, folder


def test_no_name_stands_twice_without_a_reason() -> None:
    homes = defaultdict(list)
    for path in MODULES:
        folder = path.parent.relative_to(ROOT).as_posix()
        if folder not in SAME_NAME:
            homes[path.stem].append(folder)
    assert {name: folders for name, folders in homes.items() if len(folders) > 1} == {}
    for folder in SAME_NAME:
        assert (ROOT / folder).is_dir(), folder


def test_the_page_shows_the_house_as_it_is() -> None:
    sys.path.insert(0, str(REPOSITORY / "tools"))
    import house

    page = house.PAGE.read_text("utf-8")
    assert house.written(page) == page, "python tools/house.py writes it anew"
    for path in MODULES:
        assert house.first_line(path), path
