"""What a question that stayed undecided would have shown: the power of its test.

The yardstick is honest noise: Cauchy noise where such was attacked, else Laplace noise. Stated is
the least loss an answer that as many answers would have told the bit of, with this chance. Reaching
the wanted lead only after the last answer is enough for that, so a test that looks in between is at
least as powerful.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from thinveil.attacker.evidence.privacy_loss import (
    rounded_down,
    shifted_cauchy,
    shifted_laplace,
    summed,
)
from thinveil.language.laws import Cauchy, Laplace
from thinveil.language.laws.cauchy import CAUCHY

CHANCE: Final = 0.9
"""How likely what a null result names would have been seen: a usual power."""
_MOST: Final = 2**14  # beyond, the loss falls with the square root: sums are normal by then
_POINTS: Final = 2**16  # grid points of the sum that are about aimed at
_FINE: Final = 512  # steps up to the largest loss of Cauchy noise, which has no atoms
_SAID: Final = re.compile(r"of honest (?P<law>\w+) noise, a loss of (?P<loss>\S+) an answer .*? %")
_CLOSE: Final = 1e-3  # standard deviations, and relative width, at which the search ends


@lru_cache(maxsize=256)
def seen_loss(answers: int, nats: float, chance: float = CHANCE, law: type = Laplace) -> float:
    """Return the least loss of an honest answer at which so many lead by so many nats.

    They do with at least this chance. With more than 16,384 answers the loss falls at least with
    their square root, so what is returned there is rather too large.

    >>> round(seen_loss(4096, 20.0), 3), round(seen_loss(4096, 20.0, law=Cauchy), 2)
    (0.124, 1.06)
    """
    if answers > _MOST:
        return seen_loss(_MOST, nats, chance, law) * math.sqrt(_MOST / answers)
    normal = NormalDist()
    wanted = normal.inv_cdf(chance)

    def beyond(loss: float) -> float:
        """How far the chance lies beyond the wanted one, on a scale on which it is nearly even."""
        found = leads(answers, nats, loss, law)
        return normal.inv_cdf(min(max(found, 1e-12), 1 - 1e-12)) - wanted

    # a sum of losses is at most as many times the largest, and about normal where they are many
    low = nats / answers
    high = (wanted + math.sqrt(wanted**2 + 2 * nats)) / math.sqrt(answers)
    if law is Cauchy:  # the largest is 2 asinh(rate / 2), the Fisher information half as large
        low, high = 2 * CAUCHY * math.sinh(low / 2), math.sqrt(2) * CAUCHY * high
    high = max(high, 1.05 * low)
    under, over = beyond(low), beyond(high)
    while over < 0:
        low, under, high = high, over, 1.1 * high
        over = beyond(high)
    while not 0 <= over < _CLOSE and high / low > 1 + _CLOSE:
        share = min(max(-under / (over - under) + _CLOSE, 0.02), 0.98)
        middle = low + (high - low) * share
        found = beyond(middle)
        low, under, high, over = (
            (low, under, middle, found) if found >= 0 else (middle, found, high, over)
        )
    return high


def leads(answers: int, nats: float, loss: float, law: type = Laplace) -> float:
    """Return how likely so many answers at a loss lead by so many nats, rather too low.

    The true bit leads the other one by the sum of the privacy losses.
    """
    if law is Cauchy:
        cells = shifted_cauchy(loss / CAUCHY, _FINE)
        return summed(rounded_down(cells, float(cells.high.max()) / _FINE), answers).at_least(nats)
    steps = min(max(int(_POINTS / (17 * math.sqrt(answers))), 64), 2048)
    cells = shifted_laplace(loss, steps)
    return summed(rounded_down(cells, loss / steps), answers).at_least(nats)


def power(answers: int, nats: float, noise: object = None) -> str:
    """Say which loss an answer would have been seen, under noise of this law where we know it."""
    law = Cauchy if isinstance(noise, Cauchy) else Laplace
    loss = seen_loss(answers, round(nats, 3), law=law)
    digits = 2 - math.floor(math.log10(loss))  # three that count, and rather too large
    up = math.ceil(loss * 10.0**digits) / 10.0**digits
    return (
        f"of honest {law.title} noise, a loss of {up:.3g} an answer or more would have been seen "
        f"with probability {CHANCE:.0%}"
    ).replace("%", " %")


def weakest(said: Iterable[str]) -> list[str]:
    """Return what `power` said within these sentences, of each law the largest loss only."""
    least: dict[str, re.Match[str]] = {}
    for found in filter(None, map(_SAID.search, said)):
        law = found["law"]
        if law not in least or float(found["loss"]) > float(least[law]["loss"]):
            least[law] = found
    return [each[0] for each in least.values()]
