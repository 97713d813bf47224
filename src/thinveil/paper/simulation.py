"""Simulates noise and puts it to the tests of `attacker.evidence.noise_tests`.

Half of the simulations draw Laplace(1) and half Laplace(2): a mechanism with an offset of
1, its answers in units of 1/epsilon, where the true bit (1e-10 of a unit) is left out.
Every answer of every simulation is drawn. The work is cut into tasks with a random stream
each, so the result depends on the seed and not on how many threads there are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.attacker.evidence.noise_tests import MeanMagnitude, Variance
from thinveil.auditing.driver import Meter, Observer
from thinveil.errors import UsageError
from thinveil.language.queries import About, Codes, Flags, Floats
from thinveil.paper import figures as paper
from thinveil.paper.wald import Sequential

_CURVE: Final = (2, 3, 5, 20, 30, 50, 200, 300, 500)  # further m, for the figure only
_CURVE_SHARE: Final = 10
_BLOCK: Final = 2**17  # answers in hand at a time: fits a cache, keeps threads apart
_TASK: Final = 10_000_000  # answers a task: a twentieth of a second
_RUNS: Final = 20_000  # sequential tests a task
_CHUNK: Final = 16  # answers that a sequential test is given at a time


@dataclass(frozen=True, slots=True)
class Score:
    """How often a test on m answers was right."""

    test: str
    repeats: int
    right: int
    simulations: int

    @property
    def percent(self) -> float:
        """The share of simulations that were decided rightly."""
        return 100 * self.right / self.simulations


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """How many answers the sequential test used, for one wanted error and kind of noise.

    So many runs decided wrongly, for the other kind. At place j of `lengths` stands how many runs
    used j answers.
    """

    wanted: float
    noisier: bool
    wrong: int
    lengths: Codes

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return int(self.lengths.sum())

    @property
    def mean(self) -> float:
        """The mean number of answers."""
        return float(self.lengths @ np.arange(len(self.lengths))) / self.runs

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        far = np.arange(len(self.lengths)) - self.mean
        return math.sqrt(float(self.lengths @ far**2)) / self.runs


@dataclass(frozen=True, slots=True)
class Measured:
    """What was simulated: fixed numbers of answers, and sequential runs."""

    scores: tuple[Score, ...]
    walks: tuple[Walks, ...]

    def score(self, test: str, repeats: int) -> Score:
        """Return the score of one test at one m."""
        return next(each for each in self.scores if (each.test, each.repeats) == (test, repeats))


def laplace(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Draw from Laplace(1): exponential magnitudes with one random bit each as the sign."""
    draws = rng.standard_exponential(shape)
    words = rng.integers(2**64, size=-(-draws.size // 64), dtype=np.uint64)
    signs = (words[:, None] << np.arange(64, dtype=np.uint64)) & np.uint64(2**63)
    draws.reshape(-1).view(np.uint64)[:] ^= signs.reshape(-1)[: draws.size]
    return draws


def printed_psi(answers: Floats) -> Floats:
    """Return psi_m as the text has it, centred on (z_1 + z_m)/m (erratum 4)."""
    repeats = answers.shape[-1]
    centred = answers - (answers[..., :1] + answers[..., -1:]) / repeats
    psi: Floats = np.einsum("...j,...j", centred, centred) / (repeats - 1)
    return psi


PSI: Final = Variance()
MAGNITUDE: Final = MeanMagnitude()
PRINTED: Final = "psi_m as printed"

_TESTS: Final[dict[str, Callable[[Floats], Flags]]] = {
    PSI.name: lambda answers: PSI.decide(answers, 1.0),
    MAGNITUDE.name: lambda answers: MAGNITUDE.decide(answers, 1.0),
    PRINTED: lambda answers: printed_psi(answers) >= PSI.threshold,
}


@dataclass(frozen=True, slots=True)
class _Task:
    """Simulations of one kind of noise, with a random stream of their own.

    Each is m answers that are put to every test, or a run of the sequential test for a wanted
    error; `of` is the one or the other.
    """

    of: float
    noisier: bool
    many: int
    stream: tuple[int, ...]

    @property
    def answers(self) -> int:
        """How many answers are drawn, about."""
        each = self.of if self.of >= 1 else Sequential(self.of).expected(self.noisier)
        return round(self.many * each)

    def run(self) -> Codes:
        """Count as `_right` or `_lengths` does."""
        rng = np.random.Generator(np.random.SFC64(self.stream))
        scale = 2.0 if self.noisier else 1.0

        def draw(rows: int, repeats: int) -> Floats:
            return scale * laplace(rng, (rows, repeats))

        return self._right(draw) if self.of >= 1 else self._lengths(draw)

    def _right(self, draw: Callable[[int, int], Floats]) -> Codes:
        """Count simulations (first) and how often each test is right (the rest)."""
        repeats = int(self.of)
        right = np.zeros(len(_TESTS), np.int64)
        for rows in _shares(self.many, max(1, _BLOCK // repeats)):
            answers = draw(rows, repeats)
            flags = [decide(answers) for decide in _TESTS.values()]
            right += [np.count_nonzero(each == self.noisier) for each in flags]
        return np.concatenate([[self.many], right])

    def _lengths(self, draw: Callable[[int, int], Floats]) -> Codes:
        """Count wrong runs (first) and the runs of each length (the rest)."""
        ended = Sequential(self.of).run(self.many, lambda rows: draw(len(rows), _CHUNK), 1.0)
        wrong = np.count_nonzero(ended.noisier != self.noisier)
        return np.concatenate([[wrong], np.bincount(ended.used)])


def _tasks(simulations: int, seed: int) -> list[_Task]:
    """Cut the work into tasks."""
    half = simulations // 2
    sizes = dict.fromkeys(paper.PSI, half) | dict.fromkeys(_CURVE, half // _CURVE_SHARE)
    work = [
        *((m, size, max(1, _TASK // m), (0, m)) for m, size in sizes.items()),
        *((wanted, half, _RUNS, (1, place)) for place, wanted in enumerate(paper.SEQUENTIAL)),
    ]
    return [
        _Task(of, noisier, many, (seed, *stream, int(noisier), number))
        for noisier in (False, True)
        for of, size, most, stream in work
        for number, many in enumerate(_shares(size, most))
    ]


def _shares(size: int, most: int) -> list[int]:
    return [min(most, size - start) for start in range(0, size, most)]


def measure(
    observer: Observer = lambda meter, about: None,
    seed: int = 0,
    simulations: int = paper.PSI_SIMULATIONS,
    threads: int | None = None,
) -> Measured:
    """Run so many simulations for each m, half of each kind of noise; same seed, same result.

    As many tasks run side by side as there are processors unless given; after each of them the
    observer is told the number of answers drawn.
    """
    if not 0 <= seed < 2**128:
        raise UsageError("the seed must be a whole number from 0 to 2^128 - 1")
    tasks = _tasks(simulations, seed)
    total = sum(task.answers for task in tasks)
    counted: dict[tuple[float, bool], Codes] = {}
    meter = Meter(0)
    pool = ThreadPoolExecutor(threads or os.cpu_count() or 1)
    try:
        for task, counts in zip(tasks, pool.map(lambda task: task.run(), tasks), strict=True):
            key = task.of, task.noisier
            counted[key] = _added(counted.get(key, counts[:0]), counts)
            meter.queries += task.answers
            observer(meter, About("telling noise from noise", meter.queries / total))
    finally:
        pool.shutdown(cancel_futures=True)
    scores = []
    for repeats in sorted((*paper.PSI, *_CURVE)):
        many, *right = (counted[repeats, False] + counted[repeats, True]).tolist()
        scores += [
            Score(test, repeats, each, many) for test, each in zip(_TESTS, right, strict=True)
        ]
    walks = [
        Walks(wanted, noisier, int(counted[wanted, noisier][0]), counted[wanted, noisier][1:])
        for wanted in paper.SEQUENTIAL
        for noisier in (False, True)
    ]
    return Measured(tuple(scores), tuple(walks))


def _added(left: Codes, right: Codes) -> Codes:
    """Add counts of which either may have more places."""
    both = np.zeros(max(len(left), len(right)), np.int64)
    both[: len(left)] += left
    both[: len(right)] += right
    return both
