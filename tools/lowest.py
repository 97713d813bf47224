#!/usr/bin/env python3
"""Turns the bounds of pyproject.toml into the lowest versions that it allows.

What is printed are constraints for pip: `name==1.2` for each requirement `name>=1.2` of the package
and of its extras. Requirements without a lower bound are left to pip.

    python tools/lowest.py > lowest.txt
    python -m pip install -e '.[test]' -c lowest.txt
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LOWEST = re.compile(r">=\s*([^\s,;]+)")


def constraints(project: dict[str, Any]) -> list[str]:
    """Return a constraint for each requirement that has a lower bound.

    >>> constraints({"dependencies": ["b[x]>=2,<3"], "optional-dependencies": {"y": ["a>=1", "c"]}})
    ['a==1', 'b==2']
    """
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})
    wanted = [
        *project.get("dependencies", []),
        *(each for extra in extras.values() for each in extra),
    ]
    found: dict[str, str] = {}
    for requirement in wanted:
        name, bound = _NAME.match(requirement), _LOWEST.search(requirement)
        if name and bound and found.setdefault(name[0], bound[1]) != bound[1]:
            raise SystemExit(f"pyproject.toml has two lower bounds for {name[0]}")
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    print("\n".join(constraints(settings["project"])))
