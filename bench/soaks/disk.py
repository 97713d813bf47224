"""A disk that is full: what cannot be recorded is not asked or answered, and nothing is lost."""

from __future__ import annotations

import json
import resource
from pathlib import Path

from bench.soaks.processes import finished


def full_under_transcript(folder: Path, table: Path, room: int) -> list[str]:
    """Audit a file with so many bytes of room for the transcript, then go on with more.

    Returns:
        What went wrong; nothing where all went well.
    """
    broken = []
    transcript, calm, result = (
        folder / name for name in ("full.transcript", "calm.json", "full.json")
    )

    def tight() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    finished("audit", str(table), "--json", str(calm))
    code, _, errors = finished(
        "audit", str(table), "--transcript", str(transcript), preexec_fn=tight
    )
    if code != 1 or "cannot write" not in errors:
        broken.append(f"a full disk ended with exit {code} and: {errors[-300:]}")
    if not transcript.exists():  # no room for a single batch, so none was asked
        return broken if "--resume" not in errors else [*broken, "there is nothing to resume"]
    if "--resume" not in errors:
        broken.append("it is not said how to go on")
    code, _, errors = finished("audit", "--resume", str(transcript), "--json", str(result))
    if code != 0:
        return [*broken, f"it did not go on: exit {code}: {errors[-300:]}"]
    before, after = json.loads(calm.read_text()), json.loads(result.read_text())
    return broken + [
        f"{name} is not what it is without the full disk"
        for name in ("queries", "rounds", "exact", "epsilon_claimed")
        if before[name] != after[name]
    ]
