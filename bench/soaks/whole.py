"""Everything that tries to break thinveil, at full length: `python -m bench soak`."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.soaks import auditor, canary, disk, files, load, network, service
from bench.soaks.fuzzing import running
from bench.soaks.processes import Served, finished
from thinveil import people

KILLS, QUICK_KILLS = 1_000, 5
AUDITS_KILLED, QUICK_AUDITS_KILLED = 1_000, 4
CLIENTS = 64
MINUTES, QUICK_MINUTES = 60.0, 0.5
CASES, QUICK_CASES = 5_000, 100
FILES, QUICK_FILES = 3_000, 100
QUICK_FUZZED = 25


def part(path: Path, quick: bool, what: str) -> list[Figure]:
    """Run one soak and return what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        return PARTS[what](Path(folder), quick)


def table(folder: Path, records: int) -> Path:
    """Write synthetic people to a CSV file."""
    data = people(records)
    path = folder / "people.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([data.schema.names, *data.rows()])
    return path


def killed_service(folder: Path, quick: bool) -> list[Figure]:
    """Kill the service under load."""
    kills = QUICK_KILLS if quick else KILLS
    found = service.killed_service(folder, table(folder, 300), 1, kills)
    said = (
        f"{found.kills} kills, {found.answered:,} batches answered, {found.lost:,} requests "
        f"without a reply, {found.again:,} asked again under an old key"
    )
    bar = "spent = what was answered, each key charged once, caps kept"
    return [_figure("service killed with SIGKILL under load", said, bar, found.broken)]


def race(folder: Path, quick: bool) -> list[Figure]:
    """Let clients race for one budget."""
    found = service.racing_clients(folder, table(folder, 300), 1, CLIENTS, "2" if quick else "40")
    said = f"{found.answered:,} batches answered, {found.statuses[402]:,} refused"
    bar = "never over the cap, within one batch of it"
    return [_figure(f"{CLIENTS} clients racing for one budget", said, bar, found.broken)]


def memory(folder: Path, quick: bool) -> list[Figure]:
    """Load the service for an hour and look at its memory."""
    minutes = QUICK_MINUTES if quick else MINUTES
    found = load.loaded(folder, table(folder, 2_000), 1, minutes)
    said = (
        f"{found.first / 2**20:.1f} MiB after {minutes / 12:g} minutes, {found.last / 2**20:.1f} "
        f"after {minutes:g} ({found.ratio:.2f} times); {found.outcome.answered:,} batches "
        f"answered, {found.rude:,} rude requests, statuses {found.statuses}"
    )
    broken = found.outcome.broken
    if not quick and found.ratio > 1.2:
        broken.append("more than 1.2 times")
    bar = "at most 1.2 times; charged for what was answered"
    return [_figure("memory of a service under load", said, bar, broken)]


def killed_auditor(folder: Path, quick: bool) -> list[Figure]:
    """Kill audits of a service and resume them; hold the service's ledger to one run each."""
    served = Served(folder, table(folder, 1_000), ("--rate", "100000"), {"ann": "1000"})
    served.start()
    kills = QUICK_AUDITS_KILLED if quick else AUDITS_KILLED
    strategy = ("--strategy", "published")  # many small rounds: more moments to be killed in
    try:
        found, ended = auditor.killed_auditor(
            folder, 1, kills, served.url, strategy, served.tokens["ann"], longest=4.0
        )
        stands = _account(served)
    finally:
        served.stop()
    asked = sum(each["queries"] + each["checks"] for each in ended)
    if stands["answers"] != asked or stands["batches"] < sum(each["rounds"] for each in ended):
        found.broken.append(f"the service answered {stands['answers']}, the runs asked {asked}")
    said = (
        f"{found.kills} kills, {found.runs} runs finished; {found.damaged} transcripts damaged on "
        f"top, {found.noticed} noticed, {found.said} runs finished with a notice"
    )
    bar = "same reconstruction, no question answered twice"
    return [_figure("auditing process killed and resumed", said, bar, found.broken)]


def bad_network(folder: Path, quick: bool) -> list[Figure]:
    """Audit a service over a network that spoils a part of the replies."""
    path = table(folder, 300 if quick else 2_000)
    served = Served(folder, path, ("--rate", "100000"), {"ann": "1000"})
    served.start()
    broken = []
    result = folder / "result.json"
    try:
        with network.BadNetwork(served.url, 1, 0.25) as between:
            code, _, errors = finished(
                "audit", between.url, "--truth", str(path), "--json", str(result),
                "--transcript", str(folder / "net.transcript"), token=served.tokens["ann"],
            )  # fmt: skip
        if code != 0:
            return [_figure("a bad network", "", "", [f"exit {code}: {errors[-300:]}"])]
        stands = _account(served)
    finally:
        served.stop()
    found = json.loads(result.read_text())
    if not found["exact"]:
        broken.append("the reconstruction is not exact")
    if Fraction(stands["exact"]["spent"]) != Fraction(found["queries"] + found["checks"], 10**10):
        broken.append("the ledger charged more or less than what was asked")
    spoiled = sum(times for fault, times in between.counted.items() if fault != "none")
    said = (
        f"{spoiled:,} of {between.counted.total():,} requests spoiled in {len(network.FAULTS)} ways"
    )
    return [_figure("a bad network", said, "exact, charged once", broken)]


def openapi(folder: Path, quick: bool) -> list[Figure]:
    """Let schemathesis make up requests from the OpenAPI page."""
    from bench.soaks.openapi import made_up

    cases, broken = made_up(folder, 1, QUICK_CASES if quick else CASES, table(folder, 100))
    return [_figure("schemathesis against the OpenAPI page", f"{cases:,} cases", "no 5xx", broken)]


def damaged_files(folder: Path, quick: bool) -> list[Figure]:
    """Read damaged files."""
    found = files.damaged_files(1, QUICK_FILES if quick else FILES)
    codes = ", ".join(f"exit {code}: {times:,}" for code, times in sorted(found.codes.items()))
    said = f"{found.files:,} files; {codes}"
    return [_figure("damaged CSV and Parquet files", said, "never a traceback", found.broken)]


def fuzz(folder: Path, quick: bool) -> list[Figure]:
    """Feed every reader with hostile content, each in processes of its own."""
    figures = []
    for reader, cases in running.CASES.items():
        found = running.apart(reader, 1, QUICK_FUZZED if quick else cases)
        refused = ", ".join(f"{name}: {times:,}" for name, times in found.refused.most_common())
        said = f"{found.cases:,} cases, {found.read:,} read ({refused}); {found.peak >> 20} MiB"
        figures.append(_figure(f"fuzz: {reader}", said, "read or a clear error", found.broken))
    return figures


def full_disk(folder: Path, quick: bool) -> list[Figure]:
    """Fill the disk under the transcript and under the ledger."""
    path = table(folder, 500)
    broken = []
    rooms = (300, 1_500, 5_000, 20_000)
    for room in rooms:
        inside = folder / str(room)
        inside.mkdir()
        broken += disk.full_under_transcript(inside, path, room)
    said = f"{len(rooms)} sizes of disk"
    figures = [_figure("full disk under the transcript", said, "nothing lost", broken)]
    refused, broken = disk.full_under_ledger(folder, path)
    said = f"{refused:,} batches refused, answered again once there was room"
    return [*figures, _figure("full disk under the ledger", said, "nothing unrecorded", broken)]


def canaries(folder: Path, quick: bool) -> list[Figure]:
    """Search errors, logs and headers for confidential values."""
    (folder / "service").mkdir()
    one = canary.wrong_commands(folder)
    other = canary.service_replies(folder / "service")
    said = (
        f"{one.commands} commands and {other.replies} replies, "
        f"{one.characters + other.characters:,} characters searched"
    )
    return [_figure("canary", said, "no value found", one.broken + other.broken)]


def _account(served: Served) -> dict[str, Any]:
    """Return how the analyst's account stands."""
    with closing(service.Client(served, "ann", 0, 0, service.Outcome())) as client:
        return client.ledger()


def _figure(what: str, said: str, bar: str, broken: list[str]) -> Figure:
    shown = "; ".join(broken[:3])
    return Figure(what, f"{said}; broken: {shown}" if broken else said, bar, not broken)


PARTS: dict[str, Callable[[Path, bool], list[Figure]]] = {
    "service": killed_service,
    "race": race,
    "memory": memory,
    "auditor": killed_auditor,
    "network": bad_network,
    "openapi": openapi,
    "files": damaged_files,
    "fuzz": fuzz,
    "disk": full_disk,
    "canary": canaries,
}
