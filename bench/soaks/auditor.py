"""The auditing process killed at random moments and resumed: the same end, nothing asked twice."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.soaks.processes import finished, thinveil
from thinveil.auditing.transcript import Transcript


@dataclass
class Outcome:
    """What many kills led to.

    Args:
        kills: How often the process was killed.
        runs: How many runs came to their end.
        damaged: How often the end of a transcript was damaged on top of that.
        noticed: How often the damage is noticed; else whole frames were cut off.
        said: In how many runs the attempt that came to its end said so.
        replayed: How many rounds were replayed from transcripts in the last attempts.
        broken: What went wrong.
    """

    kills: int = 0
    runs: int = 0
    damaged: int = 0
    noticed: int = 0
    said: int = 0
    replayed: int = 0
    broken: list[str] = field(default_factory=list)


def killed_auditor(
    folder: Path,
    seed: int,
    kills: int,
    source: str,
    options: tuple[str, ...] = (),
    token: str = "",
    longest: float = 2.0,
) -> tuple[Outcome, list[dict[str, Any]]]:
    """Kill audits of one source at random moments and resume them; compare with a calm one.

    Returns:
        What happened, and the JSON of every run that came to its end, the calm one first.
    """
    rng = np.random.default_rng(seed)
    outcome = Outcome()
    calm = _audit(folder, "calm", [source, *options], token, outcome)
    ended = [calm] if calm else []
    number = 0
    while outcome.kills < kills and not outcome.broken:
        number += 1
        name, transcript = f"run{number}", folder / f"run{number}.transcript"
        while outcome.kills < kills:
            words = _words(folder, name, transcript, [source, *options])
            process = thinveil(*words, token=token)
            time.sleep(float(rng.uniform(0.0, longest)))
            process.kill()
            said = process.communicate()
            if process.returncode != -9:  # it was quicker than the kill
                if process.returncode != 0:
                    outcome.broken.append(f"{name}: exit {process.returncode}: {said[1][-300:]}")
                break
            outcome.kills += 1
            if outcome.kills % 50 == 0:
                print(f"{outcome.kills} kills", file=sys.stderr, flush=True)
            if transcript.exists() and rng.integers(4) == 0:
                _damage(transcript, rng)
                outcome.damaged += 1
                outcome.noticed += _is_noticed(transcript)
        expected = _is_noticed(transcript)
        found = _audit(folder, name, [source, *options], token, outcome, transcript)
        if found is None or not ended:
            continue
        outcome.runs += 1
        ended.append(found)
        outcome.said += "was damaged" in found["notice"]
        if expected and "was damaged" not in found["notice"]:
            outcome.broken.append(f"{name}: a damaged transcript went on without a word")
        same = (folder / "calm.csv").read_bytes() == (folder / f"{name}.csv").read_bytes()
        if not same:
            outcome.broken.append(f"{name}: another reconstruction than without kills")
        for field_name in ("queries", "rounds", "epsilon_claimed", "exact"):
            if found[field_name] != calm[field_name]:  # type: ignore[index]
                outcome.broken.append(f"{name}: {field_name} differs from the calm run's")
    return outcome, ended


def _words(folder: Path, name: str, transcript: Path, audit: list[str]) -> list[str]:
    for leftover in (folder / f"{name}.json", folder / f"{name}.csv"):
        leftover.unlink(missing_ok=True)  # killed while it wrote its results
    ends = ["--json", str(folder / f"{name}.json"), "--output", str(folder / f"{name}.csv")]
    if transcript.exists() and b"\n" in transcript.read_bytes()[:100_000]:
        return ["audit", audit[0], "--resume", str(transcript), *ends]
    transcript.unlink(missing_ok=True)  # killed before its first line was whole: nothing was asked
    return ["audit", *audit, "--transcript", str(transcript), *ends]


def _audit(
    folder: Path,
    name: str,
    audit: list[str],
    token: str,
    outcome: Outcome,
    transcript: Path | None = None,
) -> dict[str, Any] | None:
    """Let a run come to its end, unless it is there already; return its JSON."""
    result = folder / f"{name}.json"
    if not (result.exists() and (folder / f"{name}.csv").exists()):
        path = transcript or folder / f"{name}.transcript"
        code, _, errors = finished(*_words(folder, name, path, audit), token=token)
        if code != 0:
            outcome.broken.append(f"{name}: exit {code}: {errors[-300:]}")
            return None
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def _is_noticed(transcript: Path) -> bool:
    """Tell whether a transcript is seen to be damaged."""
    if not transcript.exists() or b"\n" not in transcript.read_bytes()[:100_000]:
        return False
    return bool(Transcript.resume(transcript).notice)


def _damage(transcript: Path, rng: np.random.Generator) -> None:
    """Cut, flip or append some bytes at the end of a transcript, as a crash might."""
    data = bytearray(transcript.read_bytes())
    head = data.index(b"\n") + 1
    kind = rng.integers(3)
    near = int(rng.integers(1, 60))
    if kind == 0 and len(data) - near > head:
        del data[-near:]
    elif kind == 1 and len(data) - near > head:
        data[-near] ^= 0x41
    else:
        data += bytes(rng.integers(0, 256, near, np.uint8))
    transcript.write_bytes(data)
