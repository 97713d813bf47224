"""How often a bound of trials is too high, and how high it is: audits whose truth is known.

Each audit draws coins, scores as some mechanism and attacker would, chooses its guesses and
computes its bound, as a real one does. The bound is missed where it is above the true epsilon.
Nothing here hangs on the machine, only on the seed.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist, fmean

import numpy as np

from bench.sheets import Audits
from thinveil import Categories, Curator, Dataset, Schema, batch_of, claim_named
from thinveil.curator.neighbours import Neighbour
from thinveil.curator.tables.dataset import Held
from thinveil.language.queries import Flags, Floats
from thinveil.verdicts.judging.abstaining import choose, counting
from thinveil.verdicts.judging.guesses import PLANNED, epsilon_by_guesses, evidence
from thinveil.verdicts.judging.intervals import at_least, chance_of
from thinveil.verdicts.judging.tradeoff import Curve, trade_off

AUDITS = 4000
TRIALS = 2000
FEWER = 400
"""Trials of an audit that draws many answers in each, or that is looked at after each."""
ANSWERS = 48
CONFIDENCES = (0.95, 0.999)
REJECTED = 1e-3
"""Misses that come as rarely from the nominal error speak against it."""
LOSSES = (0.5, 1.0, 2.0, 4.0)
BARS = {
    "randomised response": (0.35, 0.83, 1.75, 3.45),
    "one Laplace answer": (0.33, 0.80, 1.70, 3.25),
}
"""Mean bounds at these losses, 2,000 trials and 99.9 %, set before this was built."""

Scorer = Callable[[np.random.Generator, Flags], Floats]


def response(loss: float) -> Scorer:
    """Randomised response: all that epsilon allows, in each trial."""

    def score(rng: np.random.Generator, inside: Flags) -> Floats:
        kept = rng.random(len(inside)) < 1 / (1 + math.exp(-loss))
        return np.where(kept == inside, loss, -loss)

    return score


def laplace(loss: float, answers: int = 1) -> Scorer:
    """Some Laplace answers to a count of 0 or 1, which lose so much together."""

    def score(rng: np.random.Generator, inside: Flags) -> Floats:
        each = loss / answers
        noise = rng.laplace(scale=1 / each, size=(answers, len(inside)))
        found: Floats = (each * (np.abs(noise + inside) - np.abs(noise + inside - 1))).sum(axis=0)
        return found

    return score


def drawn(loss: float) -> Scorer:
    """One answer of dp-laplace in each trial, which a curator really draws."""
    data = Dataset(Schema((Categories("a", ("x", "y")),)), np.array([[0], [1], [1], [1]]))
    other = Neighbour(
        data.schema, data.records, data.counter(), data.codes[:1], data.codes[1:2], "replaced"
    )
    claim = claim_named("dp-laplace")

    def score(rng: np.random.Generator, inside: Flags) -> Floats:
        asked = batch_of([([{0: (0, 1)}], 0)], len(inside)).stamped(("bench", 1), loss)
        held: tuple[Held, ...] = (other, data)
        said = [Curator(each, claim, seed=_seed(rng)).answer(asked).values for each in held]
        values = np.where(inside, said[1], said[0])
        found: Floats = loss * (np.abs(values) - np.abs(values - 1))
        return found

    return score


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**62))


def gaussian(mu: float) -> Scorer:
    """One answer with normal noise, mu deviations between the worlds."""

    def score(rng: np.random.Generator, inside: Flags) -> Floats:
        return mu * (rng.standard_normal(len(inside)) + mu * (inside - 0.5))

    return score


def shown(loss: float, delta: float) -> Scorer:
    """Randomised response that shows the coin with chance delta: all that delta allows."""
    usual = response(loss)

    def score(rng: np.random.Generator, inside: Flags) -> Floats:
        plain = np.where(inside, 1e4, -1e4)
        return np.where(rng.random(len(inside)) < delta, plain, usual(rng, inside))

    return score


def sized(loss: float, spread: float) -> Scorer:
    """Randomised response whose scores have made-up sizes, so that the threshold is idle."""
    usual = response(loss)

    def score(rng: np.random.Generator, inside: Flags) -> Floats:
        sizes = np.exp(spread * rng.standard_normal(len(inside)))
        return np.clip(usual(rng, inside) * sizes, -1e4, 1e4)

    return score


def by_others(loss: float) -> Scorer:
    """Randomised response whose scores are as sure as the trial before it looked."""
    usual = response(loss)

    def score(rng: np.random.Generator, inside: Flags) -> Floats:
        said = usual(rng, inside)
        return said * np.where(np.roll(said, 1) > 0, 3.0, 0.3)

    return score


def reversed_(loss: float) -> Scorer:
    """Scores that are the wrong way round."""
    usual = laplace(loss)
    return lambda rng, inside: -usual(rng, inside)


def constant(rng: np.random.Generator, inside: Flags) -> Floats:
    """Scores that always say "in", as surely as they can."""
    return np.full(len(inside), 1e4)


def loss_of_gaussian(mu: float, delta: float) -> float:
    """Return the epsilon of a normal mechanism at a delta (Balle and Wang 2018, theorem 8)."""
    low, high, normal = 0.0, 100.0, NormalDist()
    for _ in range(100):
        middle = (low + high) / 2
        upper = normal.cdf(mu / 2 - middle / mu)
        if upper - math.exp(middle) * normal.cdf(-mu / 2 - middle / mu) > delta:
            low = middle
        else:
            high = middle
    return high


CELLS: dict[str, tuple[Scorer, float, float, int]] = {
    **{f"randomised response, {e:g}": (response(e), e, 0.0, TRIALS) for e in LOSSES},
    **{f"one Laplace answer, {e:g}": (laplace(e), e, 0.0, TRIALS) for e in LOSSES},
    "dp-laplace as a curator draws it, 1": (drawn(1.0), 1.0, 0.0, FEWER),
    "48 Laplace answers, 2": (laplace(2.0, ANSWERS), 2.0, 0.0, FEWER),
    "48 Laplace answers, 20": (laplace(20.0, ANSWERS), 20.0, 0.0, FEWER),
    **{
        f"normal noise, mu 1, delta {delta:g}": (
            gaussian(1.0),
            loss_of_gaussian(1.0, delta),
            delta,
            TRIALS,
        )
        for delta in (1e-5, 0.05)
    },
    "response shown at times, 1, delta 0.01": (shown(1.0, 0.01), 1.0, 0.01, TRIALS),
    "response shown at times, 1, delta 1e-06": (shown(1.0, 1e-6), 1.0, 1e-6, TRIALS),
    "made-up sizes, 1": (sized(1.0, 1.0), 1.0, 0.0, TRIALS),
    "made-up sizes, far too sure, 1": (sized(1.0, 6.0), 1.0, 0.0, TRIALS),
    "as sure as the trial before, 1": (by_others(1.0), 1.0, 0.0, TRIALS),
    "reversed, 1": (reversed_(1.0), 1.0, 0.0, TRIALS),
    'always "in", 0': (constant, 0.0, 0.0, TRIALS),
    "twenty trials, randomised response, 1": (response(1.0), 1.0, 0.0, 20),
}
"""What is audited: its scores, the true epsilon and delta, and how many trials an audit has."""
STOPPED: dict[str, tuple[Scorer, float]] = {
    "randomised response, 1": (response(1.0), 1.0),
    "one Laplace answer, 1": (laplace(1.0), 1.0),
    "made-up sizes, 1": (sized(1.0, 1.0), 1.0),
}
CURVES: dict[str, tuple[Scorer, Callable[[float, bool], float], float]] = {
    "normal noise, mu 1": (
        gaussian(1.0),
        lambda t, inside: 1 - NormalDist(0.5 if inside else -0.5, 1).cdf(t),
        1.0,
    ),
    "randomised response, 1": (
        response(1.0),
        lambda t, inside: _response_rate(1.0, t, inside),
        2 * NormalDist().inv_cdf(1 / (1 + math.exp(-1))),
    ),
    'always "in"': (constant, lambda t, inside: float(t <= 1e4), 0.0),
}
"""Curves: scores, the true chance of at least t in either world, and the true mu."""


def _response_rate(loss: float, threshold: float, inside: bool) -> float:
    kept = 1 / (1 + math.exp(-loss))
    if threshold <= -loss:
        return 1.0
    return 0.0 if threshold > loss else kept if inside else 1 - kept


def worlds(name: str, trials: int, audits: int) -> Iterator[tuple[np.random.Generator, Flags]]:
    """Yield a generator and the coins of each audit; the name of a cell is its seed."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for _ in range(audits):
        yield rng, rng.random(trials) < 0.5


def planned(name: str, confidence: float, audits: int) -> list[float]:
    """Return the bounds of audits that ended where it was planned."""
    score, _, delta, trials = CELLS[name]
    bounds = []
    for rng, inside in worlds(name, trials, audits):
        found = choose(score(rng, inside), inside, confidence=confidence, delta=delta)
        right, made = found.right, found.made
        bounds.append(epsilon_by_guesses(right, made, confidence, delta=delta, trials=trials))
    return bounds


def stopped(name: str, confidence: float, audits: int) -> int:
    """Return in how many audits the bound is above the truth after any of the trials.

    Somebody looks after each trial and stops as soon as the bound is too high.
    """
    score, loss = STOPPED[name]
    against = lru_cache(maxsize=None)(evidence)
    enough = -math.log((1 - confidence) * (1 - PLANNED))
    missed = 0
    for rng, inside in worlds(name, FEWER, audits):
        scores = score(rng, inside)
        counts, _ = counting(scores, inside, confidence)
        right = counts & ((scores > 0) == inside)
        pairs = zip(np.cumsum(right).tolist(), np.cumsum(counts & ~right).tolist(), strict=True)
        missed += any(against(*each, loss) > enough for each in pairs)
    return missed


def curves(name: str, confidence: float, audits: int) -> tuple[int, float]:
    """Return in how many audits any point of the band or mu is wrong, and the mean of mu."""
    score, rate, mu = CURVES[name]
    missed, bounds = 0, []
    for rng, _ in worlds(name, 0, audits):
        inside = rng.permutation(np.arange(FEWER) < FEWER // 2)
        curve = trade_off(score(rng, inside), inside, confidence)
        bounds.append(curve.mu_at_least)
        missed += curve.mu_at_least > mu or not _holds(curve, rate)
    return missed, fmean(bounds)


def _holds(curve: Curve, rate: Callable[[float, bool], float]) -> bool:
    return all(
        low <= rate(point.threshold, inside) <= high
        for point in curve.points
        for inside, (low, high) in ((True, point.tpr_interval), (False, point.fpr_interval))
    )


def acceptable(missed: int, audits: int, error: float) -> bool:
    """Tell whether so many misses do not speak against the error, by the binomial test."""
    return chance_of(missed, audits, error) >= REJECTED


def two_rates(right: int, inside: int, wrong: int, outside: int, confidence: float) -> float:
    """Return the bound of one event by its two rates, which trials had before they scored.

    Under epsilon-differential privacy TPR <= e^epsilon FPR; each rate has half of the error.
    """
    side = (1 - confidence) / 2
    low, high = at_least(right, inside, side), 1 - at_least(outside - wrong, outside, side)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def by_two_rates(name: str, confidence: float, audits: int) -> float:
    """Return the mean bound by two rates of the best event: as sure of "in" as one can be."""
    score, loss, _, trials = CELLS[name]
    bounds = []
    for rng, inside in worlds(name, trials, audits):
        said = score(rng, inside) > loss - 1e-9
        right, count = int((said & inside).sum()), int(inside.sum())
        wrong = int(said.sum()) - right
        bounds.append(two_rates(right, count, wrong, trials - count, confidence))
    return fmean(bounds)


def bar_of(name: str) -> float | None:
    """Return the mean bound that a cell should reach; None where nothing was promised."""
    kind, loss = name.rsplit(", ", 1)[0], CELLS[name][1]
    return BARS[kind][LOSSES.index(loss)] if kind in BARS else None


def measure(path: Path, quick: bool) -> list[Audits]:
    """Return misses and mean bounds of all cells."""
    audits = AUDITS // 20 if quick else AUDITS
    rows = []
    for name, (_, loss, _, trials) in CELLS.items():
        found = [planned(name, each, audits) for each in CONFIDENCES]
        missed = [sum(bound > loss + 1e-9 for bound in each) for each in found]
        bar = bar_of(name)
        rates = None if bar is None else by_two_rates(name, CONFIDENCES[-1], audits)
        rows.append(_row(name, PLANNED, (audits, trials), missed, fmean(found[-1]), bar, rates))
    for name in STOPPED:
        missed = [stopped(name, each, audits) for each in CONFIDENCES]
        label = f"stopped when too high: {name}"
        rows.append(_row(label, 1 - PLANNED, (audits, FEWER), missed))
    for name in CURVES:
        both = [curves(name, each, audits) for each in CONFIDENCES]
        label = f"curve and mu: {name}"
        missed = [each[0] for each in both]
        rows.append(_row(label, 1.0, (audits, FEWER), missed, both[-1][1]))
    return rows


def _row(
    name: str,
    share: float,
    size: tuple[int, int],
    missed: list[int],
    bound: float | None = None,
    bar: float | None = None,
    rates: float | None = None,
) -> Audits:
    errors = [share * (1 - each) for each in CONFIDENCES]
    held = all(
        acceptable(count, size[0], error) for count, error in zip(missed, errors, strict=True)
    )
    return Audits(name, *size, tuple(missed), tuple(errors), held, bound, bar, rates)
