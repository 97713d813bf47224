"""How fast evidence is made, how fast commands start, and how often a bound is too high."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from bench.figures import Figure, duration, watch
from thinveil import Categories, Curator, Dataset, Schema, batch_of, claim_named, people, trial
from thinveil.curator.neighbours import Neighbour
from thinveil.curator.tables.dataset import Held
from thinveil.verdicts.judging.intervals import epsilon_at_least

REPETITIONS = 11
TRIALS = 2000
EXPERIMENTS = 20_000
COVERAGE_TRIALS = 200
LOSSES = (0.1, 0.5, 1.0, 2.0, 4.0)
CONFIDENCES = (0.8, 0.95, 0.999)


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


def coverage(path: Path, quick: bool) -> list[Figure]:
    """Return how often the bound is above the true epsilon, with real answers.

    The attacker says "in" where the answer is above 1: there the two worlds differ by exactly
    e^epsilon, so nothing is given away to chance.
    """
    data = Dataset(Schema((Categories("a", ("x", "y")),)), np.array([[0], [1], [1], [1]]))
    other = Neighbour(
        data.schema, data.records, data.counter(), data.codes[:1], data.codes[1:2], "replaced"
    )
    claim = claim_named("dp-laplace")
    experiments = EXPERIMENTS // 20 if quick else EXPERIMENTS
    rows = []
    for epsilon in LOSSES:
        said = []
        worlds: tuple[Held, ...] = (data, other)
        for seed, world in enumerate(worlds):
            asked = batch_of([([{0: (0, 1)}], 0)], experiments * COVERAGE_TRIALS)
            answers = Curator(world, claim, seed=seed).answer(asked.stamped(("b", 1), epsilon))
            above = (answers.values > 1).reshape(experiments, COVERAGE_TRIALS)
            said.append(above.sum(axis=1).tolist())
        pairs = list(zip(*said, strict=True))
        missed = []
        for sure in CONFIDENCES:
            bounds = np.array(
                [epsilon_at_least(a, COVERAGE_TRIALS, b, COVERAGE_TRIALS, sure) for a, b in pairs]
            )
            missed.append(float(np.mean(bounds > epsilon)))
        rows.append(
            Figure(
                f"bound above a true epsilon of {epsilon:g} ({experiments:,} x "
                f"{2 * COVERAGE_TRIALS} trials of dp-laplace)",
                ", ".join(f"{each:.4%}" for each in missed),
                "at most " + ", ".join(f"{1 - sure:.1%}" for sure in CONFIDENCES),
                all(each <= 1 - sure for each, sure in zip(missed, CONFIDENCES, strict=True)),
            )
        )
    return rows


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
