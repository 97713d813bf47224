"""What right guesses of a fair coin, and recovered canaries, say about epsilon.

Lower bounds on epsilon by membership guesses (Steinke, Nasr and Jagielski, "Privacy auditing
with one training run", 2023), with abstention.

In each trial a fair coin chooses one of two neighbouring worlds, the attacker sees what the
mechanism says, and guesses the coin or says nothing. Under epsilon-differential privacy no output
is more than e^epsilon times as likely in one world as in the other, so that, whatever came out,
the odds of either side of the coin are at most e^epsilon. Hence, given all outputs of all
trials, the coins are independent, and each guess that follows from outputs is right with chance
at most

    p = e^epsilon / (1 + e^epsilon).

Which trials are guessed, and how, may hang on all outputs, and on the coins of trials that do
not count (held-out ones): given these, the number of right guesses among `made` is still at most
binomial with share p, in the sense of stochastic order. So the one-sided interval of Clopper and
Pearson holds: epsilon is at least the log-odds of its lower end. Nothing is asked of the scores.
They may be wrong, reversed, or all alike: the bound is then low, and still true. Which guesses
are worth making is chosen in `abstaining`.

**Delta.** For a pair of worlds, an (epsilon, delta)-private mechanism is a post-processing of
randomised response that shows the coin with chance delta, whatever the coin is, and else turns
it round with odds e^epsilon (Kairouz, Oh and Viswanath, "The composition theorem for
differential privacy", 2015). Think that this response is drawn first. Given it, a guess where
the coin was not shown is right with chance at most p, as above. How many coins were shown in all
trials, K, is binomial with share delta. If K is at most k0, the number of guesses with a shown
coin is so too, and the right ones are in stochastic order at most k0 plus a binomial of
`made` - k0 with share p. So k0 right guesses are taken away before the interval is computed, where
K exceeds k0 with at most a hundredth of the error, and the interval has the rest of it. (Which
trials are guessed may hang on K; so the average over K would not be a bound.)

**When a run ends.** What is reported of a run that ended where it was planned uses nine tenths
of the error. One that somebody stopped, perhaps since it looked good, has the other tenth:
for u in (0, 1] the product over guesses of

    1 + u e^-epsilon  where it is right,    1 - u  where it is wrong

has under epsilon-differential privacy a mean of at most 1 at each step, and so has a mixture
over u: a test supermartingale, which ever reaches 1 / error with at most the chance `error`
(Ville 1939). It falls as epsilon grows, so that everything below the epsilon at which it is
1 / error is ruled out, whenever one looks. A trial may count or not by what came out in it
and by everything before it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import Final

import numpy as np

from thinveil.verdicts.judging.intervals import at_least, chance_of

PLANNED: Final = 0.9
"""The share of the error that a planned end uses; the rest is for runs that were stopped."""
_SHOWN: Final = 0.01  # of the error, for more shown coins than taken away: a round figure
_HALVINGS: Final = 100
_STEPS: Final = np.linspace(-6.0, 6.0, 15)
_STAKES: Final = np.append(1 / (1 + np.exp(-_STEPS)), 1.0)
"""The mixture over u: even in log-odds, and all-in. Any stakes are valid; sixteen cost at most
2.8 nats, and these span what matters from twenty trials to a million."""
_LOST: Final = np.append(np.log1p(-_STAKES[:-1]), -np.inf)


def epsilon_by_guesses(
    right: int,
    made: int,
    confidence: float,
    *,
    delta: float = 0.0,
    trials: int = 0,
    planned: bool = True,
) -> float:
    """Return a lower bound on epsilon from right guesses, at the confidence.

    Args:
        right: How many guesses were right.
        made: How many were made.
        confidence: The chance with which the bound holds, at least.
        delta: Of (epsilon, delta); for a bound on epsilon alone it is 0.
        trials: How many trials there were, held-out ones too; it matters with a delta.
        planned: Whether the trials ended where it was planned; else see `epsilon_anytime`.

    >>> round(epsilon_by_guesses(2000, 2000, 0.999), 2), round(epsilon_by_guesses(20, 20, 0.999), 3)
    (5.65, 0.868)
    """
    if not planned:
        return epsilon_anytime(right, made, confidence, delta=delta, trials=trials)
    error = (1 - confidence) * PLANNED
    shown, error = shown_by(max(trials, made), delta, error)
    return epsilon_at_error(right - shown, made - shown, error)


def epsilon_at_error(right: int, made: int, error: float) -> float:
    """Return the epsilon that is too high with at most this chance, by right guesses.

    >>> round(epsilon_at_error(2000, 2000, 0.001), 2), round(epsilon_at_error(20, 20, 0.001), 3)
    (5.67, 0.885)
    """
    if 2 * right <= made:
        return 0.0
    low = at_least(right, made, error)
    return max(0.0, math.log(low / (1 - low)))


def epsilon_anytime(
    right: int, made: int, confidence: float, *, delta: float = 0.0, trials: int = 0
) -> float:
    """Return a lower bound on epsilon that holds whenever somebody stops, at the confidence.

    It uses the part of the error that a planned end leaves. With a delta, `trials` is how many
    were planned. Trials must have been chosen to count as `abstaining.as_it_goes` does.

    >>> round(epsilon_anytime(2000, 2000, 0.999), 2), round(epsilon_anytime(20, 20, 0.999), 2)
    (5.26, 0.4)
    """
    error = (1 - confidence) * (1 - PLANNED)
    shown, error = shown_by(max(trials, made), delta, error)
    right, wrong, enough = right - shown, made - right, -math.log(error)
    if right <= wrong or evidence(right, wrong, 0.0) <= enough:
        return 0.0
    low, high = 0.0, 1.0
    while evidence(right, wrong, high) > enough:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if evidence(right, wrong, middle) > enough:
            low = middle
        else:
            high = middle
    return low


def evidence(right: int, wrong: int, epsilon: float) -> float:
    """Return the logarithm of the test supermartingale against this epsilon."""
    lost = wrong * _LOST if wrong else 0.0
    logs = right * np.log1p(_STAKES * math.exp(-epsilon)) + lost
    return float(np.logaddexp.reduce(logs)) - math.log(len(_STAKES))


@lru_cache(maxsize=256)
def shown_by(trials: int, delta: float, error: float) -> tuple[int, float]:
    """Return how many right guesses delta may explain, and the error that is left."""
    if delta <= 0:
        return 0, error
    low, high = 0, trials  # the fewest that are rarely exceeded
    while low < high:
        middle = (low + high) // 2
        if chance_of(middle + 1, trials, delta) <= _SHOWN * error:
            high = middle
        else:
            low = middle + 1
    return low, (1 - _SHOWN) * error


def epsilon_by_canaries(
    right: int, canaries: int, values: int, confidence: float, *, delta: float = 0.0
) -> float:
    """Return a lower bound on epsilon from planted values that an attack recovered.

    Canaries, each drawn evenly and independently from N public values. Let a mechanism be
    (epsilon, delta)-private for a change of the value, and let the attack name v with chance
    P(v | w) where w was planted. Sum P(v | v) <= e^epsilon P(v | w) + delta over all pairs v, w
    that differ. The left side is N (N - 1) p, where p is the chance to be right; on the right,
    for each w, the P(v | w) of all v other than w add up to at most 1 - P(w | w), so

        (N - 1) (p - delta) <= e^epsilon (1 - p).

    This is increasing in p, so the lower end of Clopper and Pearson takes its place; with N = 2 and
    delta = 0 it is the bound by right guesses. Where each canary has a run of its own, they are
    independent. Where all are planted in one table, delta must be 0: then, whatever came out
    and whatever the other canaries are, each is named with chance at most
    e^epsilon / (e^epsilon + N - 1), so the number of right ones is at most binomial.

    A canary that was not reached, since somebody stopped the run, counts as not recovered;
    `canaries` is how many were planned, so the whole error may be used here.

    >>> round(epsilon_by_canaries(40, 40, 10**12, 0.999), 1)
    29.3
    """
    low = at_least(right, canaries, 1 - confidence)
    if values < 2 or low <= delta:
        return 0.0
    return max(0.0, math.log(values - 1) + math.log((low - delta) / (1 - low)))


def seen_loss(
    trials: int,
    confidence: float,
    chance: float = 0.9,
    *,
    delta: float = 0.0,
    planned: bool = True,
) -> float:
    """Return the least epsilon that so many trials would have shown with this chance.

    Power: of a mechanism that gives away exactly epsilon in each trial (randomised response), a
    bound above 0 comes with that chance. It is infinite where no outcome shows anything.

    >>> round(seen_loss(2000, 0.999), 2), round(seen_loss(20, 0.999), 2), seen_loss(8, 0.999)
    (0.2, 2.82, inf)
    """

    def shows(right: int) -> bool:
        return epsilon_by_guesses(right, trials, confidence, delta=delta, planned=planned) > 0

    share = _seen(trials, 0.5, bisect_left(range(trials + 1), True, key=shows), chance)
    return math.log(share / (1 - share)) if share < 1 else math.inf


def seen_share(
    canaries: int, values: int, confidence: float, chance: float = 0.9, *, delta: float = 0.0
) -> float:
    """Return the least share of recovered canaries that would have been seen with this chance.

    Power: if each canary is recovered with this chance by itself, a bound above 0 comes with the
    chance asked for. It is infinite where no outcome shows anything.

    >>> round(seen_share(40, 10**12, 0.999), 3)
    0.056
    """

    def shows(right: int) -> bool:
        return epsilon_by_canaries(right, canaries, values, confidence, delta=delta) > 0

    return _seen(canaries, 1 / values, bisect_left(range(canaries + 1), True, key=shows), chance)


def _seen(trials: int, idle: float, fewest: int, chance: float) -> float:
    """Return the least share of successes that shows with this chance that it is above idle.

    It shows from the fewest successes on that idle luck would seldom have. The chance of that
    many successes rises with the share, so that halving finds the share.
    """
    if fewest > trials:
        return math.inf
    below, above = idle, 1.0
    for _ in range(_HALVINGS):
        share = (below + above) / 2
        if chance_of(fewest, trials, share) < chance:
            below = share
        else:
            above = share
    return above
