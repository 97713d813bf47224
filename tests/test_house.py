"""The house: inner orders, bounds of rooms and modules, names, and the page that shows it all."""

from __future__ import annotations

import ast
import re
import runpy
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import thinveil
from test_wall import imports

REPOSITORY = Path(__file__).parent.parent
ROOT = Path(thinveil.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.stem != "__init__")
INNER = {
    "attacker": (
        ("terms", "findings", "fixed_order", "doubling", "ways", "code_length", "known_bits"),
        ("evidence",),
        ("beliefs",),
        ("engines",),
        ("attacks",),
        ("strategies", "staircase", "channel", "scored", "checks", "longest"),
    )
}
"""Inside a package, rooms and modules import only what stands before them or beside them."""
MOST_MODULES = 14
MOST_LINES = 400
TWICE = {
    "accuracy": "judged in verdicts, drawn in charts",
    "app": "the service and the lab are servers of their own",
    "arrow": "as a format on the wire, and as files and frames",
    "audit": "the function, and the command that calls it",
    "compare": "the comparison, and the command that runs it",
    "facts": "what is public, and how it travels",
    "files": "the one writer, files of tables, files of charts",
    "laplace": "the law that is drawn, and the paper's definition on small worlds",
    "ledger": "of one curator, and the command that looks after a service's",
    "limits": "of a batch that travels, and of what a file unpacks to",
    "mechanisms": "the paper's finite ones, their chart, their suite",
    "membership": "judged in verdicts, drawn in charts",
    "people": "attacks on people, the embedded people, the command that writes them",
    "progress": "of a run at the terminal, and drawn in charts",
    "protocol": "each kind of engine, an attacker's and a database's, has its own",
    "replies": "made by a service, read by who asked",
    "risk": "measured in verdicts, drawn in charts",
    "schema": "the description of a table, and the command that drafts one",
    "session": "with a database, and of the lab",
    "shapes": "of a sensitivity, and of cells",
    "staircase": "asked by the attacker, kept in verdicts, drawn in charts",
    "table": "the attack on it, one in a database, one as CSV",
    "targets": "what can be audited, and their suite",
    "watch": "over a target beside an attack, and over a ledger's files",
    "words": "of questions that unions are made of, and of statements in SQL",
}
"""Names that stand in several packages, each of which makes plain what is meant."""


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
        assert len(modules) <= MOST_MODULES, folder


def test_no_name_stands_twice_without_a_reason() -> None:
    times = Counter(path.stem for path in MODULES)
    assert sorted(name for name, many in times.items() if many > 1) == sorted(TWICE)


def test_the_rooms_of_the_papers_results_are_there() -> None:
    page = (REPOSITORY / "docs" / "design.md").read_text("utf-8")
    rooms = page.partition("## Which room")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z_]+/[a-z_/]*)`", rooms)
    assert len(named) > 20
    for each in named:
        assert (ROOT / each).is_dir() or (ROOT / f"{each}.py").exists(), each


def test_the_list_names_every_module_once_with_its_first_line() -> None:
    listed = runpy.run_path(str(REPOSITORY / "tools" / "house.py"))["house"]()
    blocks = re.findall(r"^```text\n(.*?)^```$", listed, re.MULTILINE | re.DOTALL)
    rows = "".join(blocks).splitlines()
    first = [ast.get_docstring(ast.parse(path.read_text("utf-8"))) for path in ROOT.rglob("*.py")]
    for row in rows:
        assert re.fullmatch(r" *\w+/? +\S.*", row), row
    said = [re.split(r" *\w+/? +", row, maxsplit=1)[1] for row in rows]
    assert sorted(said) == sorted(str(each).partition("\n")[0].rstrip(".") for each in first)
    named = Counter(re.match(r" *(\w+/?)", row)[1] for row in rows)  # type: ignore[index]
    assert named == Counter(
        f"{path.parent.name}/" if path.stem == "__init__" and path.parent != ROOT else path.stem
        for path in ROOT.rglob("*.py")
    )
