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
    claim, cached, said = facts.claim, facts.policies.cache, []
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
        coins = claim.post == "binary"
        if (
            (judge.exact and not (coins and cached))
            if exact
            else judge.noisy >= enough(wide, alpha)
        ):
            how = "" if exact and not coins else mostly
            said.append(f"Another group size or number of records would have been seen{how}.")
    laplace = isinstance(claim.noise, Laplace) and claim.post == "none"
    known = judge.noisy >= enough(_WIDER, alpha) and not cached
    passing = claim.offset == 0 and judge.scattered >= enough(_WIDER, judge.alpha("fit"))
    if laplace and (known or passing):
        said.append(f"Noise twice or half as wide would have been seen{mostly}.")
    elif claim.protected:
        said.append("Noise a few times as wide or as narrow may not have been seen.")
    if judge.explains:
        said.append(
            "Another table in place of this one, half-way, nearly always shows in what was found."
        )
    return [*said, "A record that changed after it was read would not have been seen."]
