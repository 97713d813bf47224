"""What the public law of a claim says before anything is asked: the exact verdict.

A claim says how every answer scatters, so whoever reads it can compute how well answers to one
question tell two neighbouring tables apart: an event that only one of them has, the privacy loss
epsilon that holds for certain (pure differential privacy), and delta(epsilon) as a curve. What an
attack measures comes after that, as confirmation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from thinveil.attacker.evidence.likelihood import Laws, exactness_error
from thinveil.language.claims import Claim
from thinveil.language.contracts import Law
from thinveil.language.laws import Cauchy, Laplace
from thinveil.language.queries import Floats
from thinveil.verdicts.judging.divergence import cells_of, delta_of, gamma_tails, largest_loss_of
from thinveil.verdicts.judging.pairs import Pair, pairs_of
from thinveil.verdicts.phrases import many, short, size, spelled

MOST_ANSWERS: Final = 2**14
"""Answers that are looked at together, at most; more tell no less."""
USUAL_EPSILON: Final = 3.0
"""Where delta is quoted if no epsilon holds for certain: e^3 is about 20 times as likely."""
_FAR: Final = 10.0  # up to which epsilon the curve goes then
_POINTS: Final = 20
_TINIEST: Final = 1e-300  # a chance that is not 0 is at least this, as it is kept
_BELOW_ONE: Final = 1 - 2.0**-53
_BEYOND: Final = 50.0  # scales beyond which the wider law is likelier


@dataclass(frozen=True, slots=True)
class Event:
    """Something that so many answers may show, and how likely it is on two neighbouring tables."""

    what: str
    answers: int
    one: float
    other: float

    def __post_init__(self) -> None:
        if self.answers < 1 or not (0 <= self.one <= 1 and 0 <= self.other <= 1):
            raise ValueError("an event has answers, and chances between 0 and 1")


@dataclass(frozen=True, slots=True)
class Delta:
    """The chance delta that answers tell more than epsilon: it lies between `low` and `high`."""

    epsilon: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (0 <= self.epsilon < math.inf and 0 <= self.low <= self.high <= 1):
            raise ValueError("a delta lies between two ends from 0 to 1, at a finite epsilon")

    def figure(self) -> str:
        """Write delta: three digits where both ends agree, else the lower end, or the upper."""
        if f"{self.low:.3g}" == f"{self.high:.3g}":
            return chance(self.low)
        if self.low == 0 and self.high < 1:
            return f"at most {up(self.high)}"
        return f"at least {down(self.low)}"


@dataclass(frozen=True, slots=True)
class Possible:
    """What answers to one question can tell of two tables that differ in one record, by law.

    Args:
        answers: How many answers to one question `pure` and `curve` are about.
        epsilon_per_answer: The loss that the mechanism claims for each; None where it claims none.
        event: What tells the two tables apart best, or plainly.
        pure_of_one: The least epsilon that holds for one answer for certain; None where none does.
        pure: The same for all answers together.
        curve: delta at several epsilons, for all answers together.
        certain: Whether `pure` is known; of a law of somebody else's it is not.
        every: Whether all pairs of neighbours were looked at, and not a sample of thresholds.
        as_drawn: How likely noise in doubles hits an exact answer, which by law it never does.
        in_doubles: Whether the law keeps what is claimed, and what is drawn does not.
        protected: Whether the mechanism claims any protection.
        leaks: Whether the scale of its noise gives counts away.
    """

    DERIVED: ClassVar = ("sentence",)

    answers: int
    epsilon_per_answer: float | None
    event: Event
    pure_of_one: float | None
    pure: float | None
    curve: tuple[Delta, ...]
    certain: bool
    every: bool
    as_drawn: float
    in_doubles: bool
    protected: bool
    leaks: bool

    def __post_init__(self) -> None:
        losses = (self.epsilon_per_answer, self.pure_of_one, self.pure, self.as_drawn)
        if self.answers < 1 or not all(each is None or 0 <= each < math.inf for each in losses):
            raise ValueError("what is possible has answers, and losses from 0 on")
        if not self.curve or self.curve[0].epsilon != 0:
            raise ValueError("a curve of delta begins at epsilon 0")

    @property
    def holds(self) -> bool:
        """Whether some epsilon holds for certain."""
        return self.certain and self.pure is not None and self.pure_of_one is not None

    @property
    def nearly(self) -> bool:
        """Whether it promises no more than a small delta, as Gaussian noise does."""
        return self.pure is None and self.protected and not self.leaks

    def at(self, epsilon: float) -> Delta:
        """Return the point of the curve at an epsilon, or the last one before it."""
        return [each for each in self.curve if each.epsilon <= epsilon][-1]

    def sentence(self) -> str:
        """Say it in a few plain sentences."""
        said = self._certain if self.holds else self._nearly if self.nearly else self._told
        parts = [f"By its law alone: {said()}"]
        if self.in_doubles:
            parts.append(
                "But it is drawn in doubles, and which doubles can come out hangs on the true "
                "answer (Mironov 2012): what is drawn does not keep what the law promises."
            )
        if not self.every:
            parts.append("Thresholds were sampled: others may tell more.")
        return " ".join(parts)

    def brief(self) -> str:
        """Say it in a few words, for a table."""
        several = many(self.answers, "answer")
        if self.pure is not None:
            drawn = ", but not as drawn in doubles" if self.in_doubles else ""
            return f"epsilon {up(self.pure)} for {several}{drawn}"
        if self.nearly:
            most = up(self.at(0.0).high)
            return f"no epsilon for certain; {several}: delta at most {most} at epsilon 0"
        point = self.at(USUAL_EPSILON)
        return f"no finite epsilon; {several}: delta {point.figure()} at {self._where()}"

    def _where(self) -> str:
        """Say at which epsilon delta is quoted."""
        # an exact answer against noise: whatever is not exact tells, at any epsilon
        flat = self.curve[0].low == self.curve[-1].low and self.event.one == 1
        flat = flat and math.isclose(self.curve[0].low, 1 - self.event.other)
        return "every epsilon" if flat else f"epsilon {USUAL_EPSILON:g}"

    def _certain(self) -> str:
        """Say which epsilon holds for certain."""
        assert self.pure is not None
        assert self.pure_of_one is not None
        together = "it"
        said = f"an answer loses at most epsilon = {up(self.pure_of_one)}"
        if self.answers > 1:
            said += f", and {many(self.answers, 'answer')} to one question at most {up(self.pure)}"
            together = "these"
        return f"{said}. At epsilon 0 the delta of {together} is at most {up(self.at(0.0).high)}."

    def _nearly(self) -> str:
        """Say how small delta is where no epsilon holds for certain, and none is claimed to."""
        after = many(self.answers, "answer") + (" to one question" if self.answers > 1 else "")
        quoted = (f"{up(self.at(each).high)} at epsilon {each:g}" for each in (0.0, USUAL_EPSILON))
        return f"no epsilon holds for certain; after {after}, delta is at most {', '.join(quoted)}."

    def _told(self) -> str:
        """Say what tells two tables apart, and that no epsilon holds."""
        event = self.event
        drawn = f" (drawn in doubles: at most {short(self.as_drawn)})" if self.as_drawn else ""
        said = (
            f"of two tables that differ in one record, “{event.what}” has probability "
            f"{chance(event.one)} on the one and {chance(event.other)}{drawn} on the other."
        )
        after = many(self.answers, "answer") + (" to one question" if self.answers > 1 else "")
        if not self.certain:
            return f"{said} After {after}, delta is {self.at(0.0).figure()} at epsilon 0."
        figure = self.at(USUAL_EPSILON).figure()
        return (
            f"{said} No finite epsilon holds: after {after}, delta is {figure} at {self._where()}."
        )


def chance(share: float) -> str:
    """Write a probability; 0 and 1 are said only where they are meant.

    >>> [chance(share) for share in (0, 1e-20, 0.25, 0.99999, 1)]
    ['0', '1e-20', '0.25', 'above 0.999', '1']
    """
    if share in (0, 1):
        return f"{share:.0f}"
    if share <= _TINIEST:
        return "below 1e-299"
    return "above 0.999" if share > 0.9995 else short(share)


def up(number: float) -> str:
    """Write a number with up to four digits, rather too large than too small."""
    near = float(f"{number:.4g}")
    if number and near < number * (1 - 1e-9):
        near = float(f"{number + 10.0 ** (math.floor(math.log10(number)) - 3) / 2:.4g}")
    return spelled(near)


def down(number: float) -> str:
    """Write a number with up to four digits, rather too small than too large."""
    near = float(f"{number:.4g}")
    if number and near > number * (1 + 1e-9):
        near = float(f"{number - 10.0 ** (math.floor(math.log10(number)) - 3) / 2:.4g}")
    return spelled(near)


def answers_of(claim: Claim, records: int) -> int:
    """Return how many answers an attack plans for one question, at first."""
    return Laws.of(claim, records).first


@lru_cache(maxsize=128)
def possible(
    claim: Claim, records: int, loss: float | None, answers: int | None = None
) -> Possible | None:
    """Return what answers can tell by the law alone; None where no neighbours differ.

    Args:
        claim: What the mechanism says of itself.
        records: The number of records in the table.
        loss: The claimed loss of an answer; None where nothing is claimed.
        answers: How many answers to one question; else as many as an attack plans for.

    >>> from thinveil.language.claims import idp
    >>> possible(idp(), 60, 1e-10).event.what
    'the answer is exactly 0'
    """
    wanted = min(answers or answers_of(claim, records), MOST_ANSWERS)
    pairs, every = pairs_of(claim, records, loss)
    if not pairs:
        return None
    of_one = [largest_loss_of(pair) for pair in pairs]
    most = max(math.inf if each is None else each for each in of_one)
    pure = None if math.isinf(most) else most
    epsilons = _epsilons(None if pure is None else wanted * pure)
    ends = [delta_of(pair, wanted, epsilons) for pair in pairs]
    low, high = (np.max([each[side] for each in ends], axis=0) for side in (0, 1))
    at = int(np.searchsorted(epsilons, USUAL_EPSILON)) if pure is None else 0
    # the event is of a pair that no epsilon holds for, where there is one
    worst = [(each in (None, most), ends[i][0][at], -i) for i, each in enumerate(of_one)]
    best = pairs[-max(worst)[2]]
    in_doubles = claim.in_doubles and best.told_at_once and not best.other.exact
    points = zip(*(each.tolist() for each in (epsilons, low, np.maximum(low, high))), strict=True)
    return Possible(
        answers=wanted,
        epsilon_per_answer=loss if claim.protected else None,
        event=_event(best, wanted),
        pure_of_one=pure,
        pure=None if pure is None else wanted * pure,
        curve=tuple(Delta(*each) for each in points),
        certain=None not in of_one or math.inf in of_one,
        every=every,
        as_drawn=exactness_error(claim, loss) if in_doubles and loss is not None else 0.0,
        in_doubles=claim.textbook,
        protected=claim.protected,
        leaks=claim.leaks,
    )


def _epsilons(pure: float | None) -> Floats:
    """Return where the curve is computed: up to the epsilon that holds, or as far as matters."""
    return np.linspace(0.0, _FAR if pure is None else min(pure, _FAR), _POINTS + 1)


def _event(pair: Pair, answers: int) -> Event:
    """Return what tells two laws apart, in words; what is not certain has no chance of 0 or 1."""
    event = _telling(pair, answers)
    if pair.told_at_once:
        return event
    one, other = (min(max(each, _TINIEST), _BELOW_ONE) for each in (event.one, event.other))
    return Event(event.what, event.answers, 1.0 if pair.one.exact else one, other)


def _telling(pair: Pair, answers: int) -> Event:
    """Return what tells two laws apart, with its chances as doubles have them."""
    one, other, law = pair.one, pair.other, pair.law
    bit = int(one.bit)
    if pair.told_at_once:
        exactly = "" if other.exact else "exactly "
        return Event(f"the answer is {exactly}{bit}", 1, 1.0, 0.0)
    if one.exact:
        what = f"the answer is {bit}" if answers == 1 else f"all {answers:,} answers are {bit}"
        return Event(what, answers, 1.0, pair.stays**answers)
    assert law is not None
    if isinstance(law, Laplace) and pair.post == "none" and not pair.shifted:
        # where both densities of the whole sum cross
        wider = other.scale / one.scale
        middle = math.log(wider) / -math.expm1(-math.log(wider))
        near = [gamma_tails(answers, answers * middle / each)[0] for each in (1.0, wider)]
        what = f"{answers:,} answers are within {size(middle * one.scale)} of {bit} on average"
        return Event(what, answers, *near)
    if pair.shifted and not law.silent and pair.level:
        below = 1 - float(law.tail(0.5, 1 / one.scale))
        what = {"none": "below 1/2", "integer": "at most 0", "binary": "0"}[pair.post]
        return Event(f"the answer is {what}", 1, below, 1 - below)
    if not pair.shifted and not law.silent and pair.post != "binary":
        return _closer(pair, law)
    cells = cells_of(pair)
    likelier = cells.d > 0
    told = (float(each[likelier].sum()) for each in (cells.p, cells.q))
    return Event("the answer is likelier by the one law than by the other", 1, *told)


def _closer(pair: Pair, law: Law) -> Event:
    """Return that an answer is close to the true bit, up to where both laws are equally likely."""
    scales = pair.one.scale, pair.other.scale
    low, high = 0.0, _BEYOND * scales[1]
    bit, post = np.array([pair.one.bit]), pair.post
    if isinstance(law, Cauchy) and post == "none":
        low = high = math.sqrt(scales[0]) * math.sqrt(scales[1])
    while high - low > 1e-3 * high:
        middle = np.array([(low + high) / 2])
        if post == "integer":
            middle = np.floor(middle)
        rates = (np.array([1 / each]) for each in scales)
        with np.errstate(over="ignore"):
            far = [law.loglik(middle + bit, bit, rate, post, False) for rate in rates]
        one, other = (float(each[0]) for each in far)
        low, high = ((low + high) / 2, high) if one > other else (low, (low + high) / 2)
    edge = math.floor(low) + 0.5 if post == "integer" else low
    near = [1 - 2 * float(law.tail(edge, 1 / each)) for each in scales]
    if isinstance(law, Cauchy):  # so that nothing cancels
        near = [2 / math.pi * math.atan(edge / each) for each in scales]
    within = math.floor(low) if post == "integer" else low
    return Event(f"the answer is within {size(within)} of {int(pair.one.bit)}", 1, *near)
