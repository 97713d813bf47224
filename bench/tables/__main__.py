"""Audit some files and say how well they came back: `python -m bench.tables FILE ...`."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.tables.gathering import ODD, Layout, Table
from bench.tables.whole import one


def main(*files: str) -> None:
    """Audit files; those that a package ships in an odd form are known by their names."""
    for path in map(Path, files):
        name = path.name.partition(".")[0]
        odd = [layout for key, layout in ODD.items() if key.endswith(f"/{name}")]
        layout = odd[0] if odd and "raw" in path.parts else Layout()
        outcome = one(Table("", "", str(path), path, layout))
        print(f"{path}: {outcome.kind} {outcome.why}".rstrip())
        print(f"  {outcome.records:,} x {outcome.columns:,}, {outcome.seconds:.1f} s", end="")
        print("".join(f"; {column!r} public without a note" for column in outcome.public))


if __name__ == "__main__":
    main(*sys.argv[1:])
