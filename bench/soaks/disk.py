"""A disk that is full: what cannot be recorded is not asked or answered, and nothing is lost."""

from __future__ import annotations

import json
import resource
from fractions import Fraction
from pathlib import Path

from bench.soaks.processes import Served, finished
from bench.soaks.service import Client, Outcome


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


def full_under_ledger(folder: Path, table: Path) -> tuple[int, list[str]]:
    """Leave a service no room for its ledger for a while; nothing may be answered unrecorded.

    Returns:
        How many batches were refused, and what went wrong.
    """
    served = Served(folder, table, ("--rate", "100000"), {"ann": "1000"})
    served.start()
    assert served.process is not None
    broken, refused, unanswered = [], 0, []
    try:
        client = Client(served, "ann", 0, 1, Outcome())
        facts = client.facts()
        usual = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
        for number in range(60):
            if number == 20:
                resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (1, usual[1]))
            if number == 40:
                resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, usual)
            key, batch = f"k{number}", client.new_batch(facts)
            before = client.ledger() if number < 20 or number >= 40 else None
            status, reply = client.send(key, batch)
            if status == 503:
                refused += 1
                unanswered.append((key, batch))
            elif reply is None:
                broken.append(f"batch {number} got status {status}")
            else:
                client.keep(key, batch, reply)
            if before is not None and reply is None:
                broken.append(f"batch {number} was refused although there was room")
        for key, batch in unanswered:
            status, reply = client.send(key, batch)
            if reply is None or reply.again:
                broken.append(f"{key}: status {status} where a first answer was due")
            else:
                client.keep(key, batch, reply)
        stands = client.ledger()
        if Fraction(stands["exact"]["spent"]) != client.cost() or stands["batches"] != 60:
            broken.append("the ledger does not hold what was answered")
        if refused != 20:
            broken.append(f"{refused} of 20 batches were refused while there was no room")
        served.kill()
        served.start()
        client.close()
        client = Client(served, "ann", 0, 1, Outcome())
        if client.ledger() != stands:
            broken.append("the ledger reads differently after a restart")
        client.close()
    finally:
        served.stop()
    return refused, broken
