"""Which lies would have been seen, in sentences; and which no answer shows."""

from __future__ import annotations

import math
from typing import Final

from thinveil.attacker.checks.judging import Judge
from thinveil.language.facts import PublicFacts
from thinveil.language.laws import Laplace

SIGMAS: Final = 3.2
"""A likelihood ratio falls short of its mean by more deviations in 1 of 1,000 runs (normal law)."""
_SPARE: Final = math.log(2 * 12 * 2**4)  # nats that a mixture of 12 laws and 4 more rows may cost
_MANY: Final = 10  # exact answers that coins give with a probability below 0.001
_WIDER: Final = 2.0  # how many times wider, or narrower, noise is to be seen


def enough(wide: float, alpha: float) -> int:
    """Return how many answers tell noise from noise so many times as wide, 999 times in 1,000.

    For Laplace noise of widths 1 and r the log likelihood ratio has mean log r + 1/r - 1 and
    deviation 1 - 1/r under the narrow law, r - 1 - log r and r - 1 under the wide one.
    """
    nats = _SPARE - math.log(alpha)
    most = 1.0
    for mean, deviation in (
        (math.log(wide) + 1 / wide - 1, 1 - 1 / wide),
        (wide - 1 - math.log(wide), wide - 1),
    ):
        spread = SIGMAS * deviation
        root = (spread + math.sqrt(spread * spread + 4 * mean * nats)) / (2 * mean)
        most = max(most, root * root)
    return math.ceil(most)


def power_of(facts: PublicFacts, judge: Judge) -> list[str]:
    """Say which lies would have been seen, given what was asked."""
    claim, said = facts.claim, []
    if judge.exact >= _MANY:
        chance = max(2.0**-judge.exact, 1e-15)
        said.append(
            "Noise in place of exact answers would have been seen, and coins but for a "
            f"probability of {chance:.1g}."
        )
    wide = 1 + 1 / claim.offset if claim.offset else _WIDER
    alpha = judge.alpha("known")
    mostly = " with a probability of at least 0.999"
    if claim.leaks and claim.reach and claim.universe == "unbounded":
        exact = claim.offset == 0
        if judge.exact if exact else judge.noisy >= enough(wide, alpha):
            how = "" if exact else mostly
            said.append(f"Another group size or number of records would have been seen{how}.")
    laplace = isinstance(claim.noise, Laplace) and claim.post == "none"
    if laplace and judge.noisy >= enough(_WIDER, alpha):
        said.append(f"Noise twice or half as wide would have been seen{mostly}.")
    if judge.explains:
        said.append("Another table in place of this one, half-way, shows in what was found.")
    return [*said, "A record that changed after it was read would not have been seen."]
