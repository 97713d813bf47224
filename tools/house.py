"""The house on one page: every module with the first line of its docstring, as Markdown.

python tools/house.py            # prints it; the site shows it, made anew at each build
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "thinveil"
ROOMS = (
    "language", "curator", "attacker", "auditing", "verdicts", "paper", "report", "lab", "testing",
    "commands",
)  # fmt: skip
"""The packages in the order in which they may import each other."""


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return text.partition("\n")[0].strip().removesuffix(".")


def rows(folder: Path, depth: int) -> list[str]:
    """Return a line for each module of a folder, then those of the folders inside it."""
    lines = [
        f"{'  ' * depth}{path.stem:<{20 - 2 * depth}} {first_line(path)}"
        for path in sorted(folder.glob("*.py"))
        if path.stem != "__init__"
    ]
    for inner in sorted(each for each in folder.iterdir() if (each / "__init__.py").exists()):
        lines += room(inner, depth)
    return lines


def room(folder: Path, depth: int) -> list[str]:
    """Return the lines of a package: its own, then its modules'."""
    name = f"{'  ' * depth}{folder.name}/"
    return [f"{name:<20} {first_line(folder / '__init__.py')}", *rows(folder, depth + 1)]


def house() -> str:
    """Return the whole house as Markdown: a heading and a block for each package."""
    top = [f"{each.stem:<20} {first_line(each)}" for each in sorted(SOURCE.glob("*.py"))]
    blocks = [("thinveil", top)]
    blocks += [(name, room(SOURCE / name, 0)) for name in ROOMS if (SOURCE / name).exists()]
    return "# Every module\n\n" + "\n".join(
        f"## {name}\n\n```text\n" + "\n".join(lines) + "\n```\n" for name, lines in blocks
    )


if __name__ == "__main__":
    print(house(), end="")
