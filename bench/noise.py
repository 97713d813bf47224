"""How many answers the sequential test needs, and how fast exact noise is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.figures import Figure, rate, watch
from thinveil.curator.drawing import NoiseStream, RandomWords, SystemEntropy, Truth, distances, draw
from thinveil.language.claims import Claim, claim_named
from thinveil.paper.figures import SEQUENTIAL
from thinveil.paper.simulation import measure as simulate

SIMULATIONS, QUICK_SIMULATIONS = 200_000, 20_000
ERROR = 1e-6
WITHIN = 0.1
DRAWN, QUICK_DRAWN = 1_000_000, 100_000
LOSS = 0.01  # of each answer; how fast one is drawn hardly hangs on it
SLOWEST = 1_000_000  # exact Laplace answers a second, from a seed
RECORDS = 2_000


def measure(path: Path | None, quick: bool) -> list[Figure]:
    """Return the mean number of answers for each kind of noise, beside the noted one."""
    walks = simulate(simulations=QUICK_SIMULATIONS if quick else SIMULATIONS).walks
    figures = []
    for walk in walks:
        if walk.wanted != ERROR:
            continue
        noted = SEQUENTIAL[ERROR][walk.noisier]
        figures.append(
            Figure(
                f"sequential test, error {ERROR:g}, scale {1 + walk.noisier}: mean answers "
                f"({walk.runs:,} runs, {walk.wrong} wrong)",
                f"{walk.mean:.2f} ± {walk.standard_error:.2f}",
                f"{noted} within {WITHIN:.0%}",
                abs(walk.mean - noted) <= WITHIN * noted,
                f"{walk.mean / noted:.3f} x {noted}",
            )
        )
    return figures


def draws(path: Path | None, quick: bool) -> list[Figure]:
    """Return how many answers of the controls are drawn a second, and how many in doubles."""
    many = QUICK_DRAWN if quick else DRAWN
    figures = []
    for name in ("dp-laplace", "dp-smooth"):
        honest = claim_named(name)
        for source, said in ((NoiseStream(1), "a seed"), (SystemEntropy(), "entropy")):
            plain, exact = (
                _seconds(each, source, many) for each in (replace(honest, sampler="own"), honest)
            )
            bar = SLOWEST if (name, said) == ("dp-laplace", "a seed") else None
            beside = f"{plain / exact:.2f} x in doubles"
            figures.append(rate(f"{name}: drawn exactly, from {said}", many, exact, bar, beside))
    return figures


def _seconds(claim: Claim, source: RandomWords, many: int) -> float:
    """Return the shortest of three times that so many draws take."""
    counts, threshold = np.arange(many) % (RECORDS + 1), np.full(many, RECORDS // 2)
    never = np.zeros(many, np.bool_)
    bits, scale = claim.law(counts, threshold, never, RECORDS, LOSS)
    times = []
    for _ in range(3):
        far = distances(claim, counts, threshold, never)
        truth = Truth(bits.astype(np.float64), scale, far)
        with watch() as taken:
            draw(claim, source, source.take(many), truth, LOSS)
        times.append(taken.seconds)
    return min(times)
