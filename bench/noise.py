"""How many answers the sequential test needs to tell noise from more noise."""

from __future__ import annotations

from pathlib import Path

from bench.figures import Figure
from thinveil.paper.figures import SEQUENTIAL
from thinveil.paper.simulation import measure as simulate

SIMULATIONS, QUICK_SIMULATIONS = 200_000, 20_000
ERROR = 1e-6
WITHIN = 0.1


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
