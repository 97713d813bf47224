"""How careful an attack is: which error it may make in all, and how it shares that out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

from thinveil.attacker.evidence.power import power
from thinveil.errors import Undecided, UsageError
from thinveil.language.queries import About

USUAL_ERROR: Final = 1e-6
"""The chance of any wrong decision in a whole attack, unless the user says otherwise."""
MOST_REPEATS: Final = 4096
"""How many answers to one question are tried before it counts as undecidable."""
_UNFORESEEN: Final = 1 / 16
"""The part of the error that planned decisions leave to others: it costs them 0.06 nats."""

SEQUENTIAL: Final = "sequential"
TESTS: Final = ("identical", "mean", "psi", SEQUENTIAL)
"""How repeated answers are read, by name, sorted."""


@dataclass(frozen=True, slots=True)
class Empty:
    """A range of codes of one column that is known to hold no record."""

    column: int
    low: int
    high: int


@dataclass(slots=True)
class Care:
    """Shares one error probability out over all decisions of an attack, however many.

    Decision number j may err with probability error * w / ((w + j - 1) (w + j)), where w is
    the number of decisions expected. These shares sum to at most the error for any number
    of decisions, and are nearly equal up to w. Where the first few are `planned`, as the one of
    a membership question is, they share all but a part of the error equally, and those after
    them share that part as above.

    In a bounded universe `empty` is a range found to be empty, for varying words.
    """

    error: float = USUAL_ERROR  # the chance that any decision of the whole attack is wrong
    most_repeats: int = MOST_REPEATS  # answers to one question that are tried at most
    expected: int = 1000  # about how many decisions; it costs little to be wrong
    test: str = SEQUENTIAL  # or one of the paper's tests on a fixed number of answers
    repeats: int | None = None  # that number; None plans it from the error
    planned: int = 0  # decisions that are all there is, unless something unforeseen happens
    seed: int = 0  # of the run, public: what an attack draws hangs on it
    decisions: int = field(default=0, init=False)  # those that have had their share
    misread: float = field(default=0.0, init=False)  # the error that a given number leaves
    empty: Empty | None = field(default=None, init=False)
    words: int = field(default=0, init=False)  # wordings used up, where answers are cached

    def __post_init__(self) -> None:
        if not 0 < self.error < 1:
            raise UsageError("--error must be a probability above 0 and below 1")
        if type(self.most_repeats) is not int or self.most_repeats < 1:
            raise UsageError("--most-repeats must be a whole number of at least 1")
        if self.expected < 1:
            raise UsageError("an attack has at least one decision to expect")
        if self.planned < 0:
            raise UsageError("an attack cannot plan fewer than no decisions")
        if self.test not in TESTS:
            raise UsageError(f"--test is one of {', '.join(TESTS)}")
        if self.repeats is not None:
            if self.test == SEQUENTIAL:
                raise UsageError("--repeats: the sequential test needs no fixed number")
            fewest = 2 if self.test == "psi" else 1
            if type(self.repeats) is not int or self.repeats < fewest:
                raise UsageError(f"--repeats must be a whole number of at least {fewest}")

    def nats(self, decisions: int) -> float:
        """Take the shares of the next decisions; return how many nats each must be sure by."""
        self.decisions += decisions
        if max(self.decisions, 1) <= self.planned:
            return math.log(self.planned / (1 - _UNFORESEEN)) - math.log(self.error)
        w, j = self.expected, max(self.decisions - self.planned, 1)
        left = self.error * (_UNFORESEEN if self.planned else 1)
        return math.log((w + j - 1) * (w + j) / w) - math.log(left)

    def new_words(self, many: int) -> int:
        """Use up so many wordings, never used before; return the number of the first."""
        self.words += many
        return self.words - many

    @property
    def risk(self) -> float:
        """The chance, planned so far, that any decision was wrong."""
        if self.misread:
            return min(1.0, self.misread)
        first, plan = min(self.decisions, self.planned), 0.0
        if self.planned:
            plan = self.error * (1 - _UNFORESEEN) * first / self.planned
        j = self.decisions - first
        part = _UNFORESEEN if self.planned else 1.0
        return plan + self.error * part * j / (self.expected + j)


def undecided(care: Care, noise: object, nats: float | None = None) -> Undecided:
    """Return the error for questions whose answers show no usable difference, with its power.

    The noise is of this law. A decision needed so many nats; else those of the last one that had
    its share.
    """
    wanted, most = care.nats(0) if nats is None else nats, care.most_repeats
    answers = (
        "1 answer to one question does" if most == 1 else f"{most:,} answers to one question do"
    )
    return Undecided(
        f"no usable difference was found: {answers} not tell what it asks at the wanted error of "
        f"{care.error:g} (--most-repeats allows more); {power(most, wanted, noise)}"
    )


def risky(about: About, care: Care) -> About:
    """Return what a batch is about, with the chance of error planned so far."""
    return replace(about, risk=care.risk)
