"""How fast evidence is made, and how fast commands start."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.figures import Figure, duration, watch
from thinveil import people, trial

REPETITIONS = 11
TRIALS = 2000


def start(path: Path, quick: bool) -> list[Figure]:
    """Return how long it takes until something is there to be read."""
    plain = _median(["-c", "pass"])
    rows = [Figure("python alone", f"{plain:.3f} s")]
    for what, arguments, bar in (
        ("import thinveil", ["-c", "import thinveil"], 0.5),
        ("import thinveil and use it", ["-c", "import thinveil; thinveil.audit"], None),
        ("thinveil --help", ["-m", "thinveil", "--help"], 0.3),
        ("thinveil audit --help", ["-m", "thinveil", "audit", "--help"], None),
    ):
        seconds = _median(arguments)
        ratio = f"{seconds / plain:.1f} x python alone"
        met = None if bar is None else seconds <= bar
        said = "" if bar is None else f"at most {bar} s"
        rows.append(Figure(what, f"{seconds:.3f} s", said, met, ratio))
    return rows


def _median(arguments: list[str]) -> float:
    times = []
    for _ in range(REPETITIONS):
        with watch() as took:
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(took.seconds)
    return median(times)


def trials(path: Path, quick: bool, mechanism: str) -> list[Figure]:
    """Return how long trials of membership take, and what they show."""
    honest = mechanism.startswith("dp-")
    with watch() as took:
        found = trial(people(), mechanism=mechanism, trials=200 if quick else TRIALS)
    shown = (
        f"TPR {found.tpr:.3f}, FPR {found.fpr:.3f}, epsilon at least "
        f"{found.epsilon_at_least:.2f} (most to show {found.ceiling:.2f}), {took.seconds:.1f} s"
    )
    wanted = 0.0 if honest else found.ceiling
    return [
        Figure(
            f"{found.trials:,} trials, {mechanism}",
            shown,
            "no bound above 0" if honest else "at the ceiling",
            abs(found.epsilon_at_least - wanted) < 1e-9,
            f"{found.queries / found.trials:,.1f} answers a trial",
        )
    ]


def report(path: Path, quick: bool, what: str) -> list[Figure]:
    """Return how long an audit with its report takes, and how large the page is."""
    given = [] if what == "people" else [str(path), "--schema", "bank"]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "out.html"
        command = [sys.executable, "-m", "thinveil", "audit", *given]
        with watch() as alone:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with watch() as took:
            subprocess.run(
                [*command, "--report", str(page)],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        size = page.stat().st_size
    ratio = f"{took.seconds / alone.seconds:.1f} x the audit alone; {size / 1e6:.2f} MB"
    return [duration(f"audit with report, {what}", took.seconds, ratio=ratio)]
