"""Who may import whom: the layers, the wall between them, and an attacker with empty hands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import thinveil

ROOT = Path(thinveil.__file__).parent
ORDER = (
    "errors",
    "files",
    "passwords",
    "language",
    "testing",
    "curator",
    "attacker",
    "auditing",
    "verdicts",
    "paper",
    "report",
    "lab",
    "commands",
)
"""A package imports only what stands to its left, or itself."""
WALLS = {
    ("curator", "attacker"),
    ("attacker", "curator"),
    ("attacker", "auditing"),
    # a report is made from a verdict, and from nothing that knows tables or attacks
    ("report", "attacker"),
    ("report", "curator"),
}
EXCEPTIONS = {
    # `verdict.report(path)` is for people at a Python prompt; it imports when it is called
    ("verdicts/verdict.py", "thinveil.report.html"),
    ("verdicts/verdict.py", "thinveil.report.html.page"),
}
"""Imports against the order, each with its reason."""
TOP = ("verdicts", "paper", "report", "commands")
"""Layers above everything that the top of the package gathers; they may import it."""
WORLDLY = {
    "os", "io", "sys", "time", "datetime", "random", "secrets", "pathlib", "socket", "http",
    "urllib", "subprocess", "threading", "multiprocessing", "asyncio", "tempfile", "shutil",
    "logging", "json", "pickle", "uuid", "glob", "fileinput", "sqlite3", "ctypes", "importlib",
    "builtins", "rich", "click",
}  # fmt: skip
WORLDLY_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}


def layer(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports(tree: ast.AST) -> Iterator[str]:
    """Return every imported module by its full name, also what is imported late."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer they come from"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


TOP_FILES = {ROOT / "__init__.py", ROOT / "__main__.py"}  # they stand above every layer
MODULES = sorted(path for path in ROOT.rglob("*.py") if path not in TOP_FILES)


def faults(path: Path, source: str) -> list[str]:
    """Return what a module imports and must not."""
    mine = layer(path)
    found = []
    for name in imports(ast.parse(source)):
        parts = name.split(".")
        if parts[0] != "thinveil" or (path.relative_to(ROOT).as_posix(), name) in EXCEPTIONS:
            continue
        if len(parts) == 1 or parts[1] not in ORDER:
            if mine not in TOP:
                found.append(f"{mine} imports the top of the package: {name}")
        elif ORDER.index(parts[1]) > ORDER.index(mine) or (mine, parts[1]) in WALLS:
            found.append(f"{mine} imports {name}")
    # `from thinveil import x` yields both `thinveil` and `thinveil.x`: judge the second only
    return [each for each in found if not each.endswith(": thinveil")] or found


def test_every_package_has_a_place_in_the_order() -> None:
    assert {layer(path) for path in MODULES} <= {*ORDER}
    assert {"language", "curator", "attacker", "auditing"} <= {layer(path) for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_keep_the_order(path: Path) -> None:
    assert faults(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("attacker/x.py", "from thinveil.curator.tables.dataset import Dataset"),
        ("attacker/x.py", "def f():\n    import thinveil.auditing.driver"),
        ("attacker/x.py", "from thinveil import Curator"),
        ("attacker/x.py", "import thinveil"),
        ("curator/x.py", "from thinveil.attacker import found"),
        ("language/x.py", "from thinveil.curator.ledger import Ledger"),
        ("auditing/x.py", "from thinveil.report import text"),
        ("curator/x.py", "import thinveil.paper.theory"),
        ("report/x.py", "from thinveil.curator.tables.dataset import Dataset"),
        ("report/x.py", "from thinveil.attacker.findings import TableFound"),
        ("verdicts/x.py", "from thinveil.report.html import page"),
    ],
)
def test_the_guard_sees_a_breach(module: str, line: str) -> None:
    assert faults(ROOT / module, line)


@pytest.mark.parametrize(
    "path", [path for path in MODULES if layer(path) == "attacker"], ids=lambda path: path.name
)
def test_attacks_touch_no_file_no_clock_and_no_chance(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert {name.split(".")[0] for name in imports(tree)} & WORLDLY == set()
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert names & WORLDLY_CALLS == set()
    reached = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert reached & {"random", "default_rng", "tofile", "fromfile", "loadtxt", "memmap"} == set()
