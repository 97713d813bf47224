"""Python in processes of its own, and packages as it sees them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def python(code: str, *arguments: str, **environment: str) -> str:
    """Run Python in a process of its own and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def package(
    site: Path,
    name: str,
    version: str = "1.0",
    *,
    source: str | None = None,
    needs: list[str] | None = None,
    extras: list[str] | None = None,
    points: dict[str, str] | None = None,
) -> None:
    """Install a package as Python sees it: a folder with metadata, and perhaps a module."""
    module = name.replace("-", "_")
    info = site / f"{module}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in needs or ()]
    lines += [f"Provides-Extra: {each}" for each in extras or ()]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    if source is not None:
        (site / module).mkdir()
        (site / module / "__init__.py").write_text(source)
        (info / "RECORD").write_text(f"{module}/__init__.py,,\n")
    if points:
        text = "\n".join(f"[{group}]\n{line}\n" for group, line in points.items())
        (info / "entry_points.txt").write_text(text)
