"""The words that all attacks share: questions and zones, thresholds, attributes, people.

A search asks about one group of records and one attribute. It yields (low, high, b): "of
the records of my group, are there more than b with a value in [low, high)?", and is sent
BELOW, NOISY or ABOVE. An attack yields whole batches of questions and is sent their answers.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from thinveil.errors import EvidenceError, SchemaError, UsageError
from thinveil.language.contracts import Attack as Attack
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Flags
from thinveil.language.schema import INFINITE, LOWEST, MISSING

_HASTE: Final = 0.02  # of what is asked, such a part may be asked besides
_AT_FIRST: Final = 64  # and so many questions before anything was
BELOW: Final = 0
"""Exactly 0 came back: c <= b - k."""
NOISY: Final = 1
"""Noise came back: b - k < c <= b + k."""
ABOVE: Final = 2
"""Exactly 1 came back: c > b + k."""

_T = TypeVar("_T")

Question = tuple[int, int, int]
Search = Generator[Question, int, _T]
Values = list[tuple[int, int]]
"""Values found, each with the number of records that have it."""
Counts = tuple[tuple[int, int], ...]
"""Counts that are possible: ranges, both ends included."""
Person = dict[int, int]
"""What is known about somebody: the code of each known column."""


@dataclass(slots=True, eq=False)
class Haste:
    """What may be asked besides, to save rounds: a small part of all that is asked.

    One for a whole attack. A table of few different records needs few questions, however many
    records it has.
    """

    asked: int = 0  # questions so far
    expected: float = 0.0  # in all, about, as soon as there is a guess
    besides: float = 0.0  # of those asked, as many as one at a time would not have been

    @property
    def spare(self) -> int:
        """How many may be asked besides now."""
        in_all = max(self.asked, self.expected)
        return max(int(_HASTE * in_all + _AT_FIRST - self.besides), 0)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the claim makes of thresholds: everything a search needs to know about it.

    Where the direction is hidden, a count far above a threshold looks like one far below
    (erratum 12), and BELOW means no more than "not noisy".
    """

    n: int  # records in the whole table
    k: int  # the group size; 0 where answers are unprotected, as if no record could change
    bounded: bool  # whether the curator knows the bounds and answers exactly beyond them
    hidden: bool = False
    free: bool = False  # nothing is claimed: trivial thresholds are asked, as in the paper
    hasty: Haste | None = None  # where rounds are dear: what may be asked at once is

    @staticmethod
    def of(facts: PublicFacts) -> Rules:
        """Return the rules that public facts imply.

        Raises:
            UsageError: The mechanism shows no counts.
        """
        claim = facts.claim
        if not claim.counts:
            raise UsageError(f"the mechanism {claim.name} shows which records exist, not counts")
        return Rules(
            facts.records,
            claim.reach,
            claim.universe == "bounded",
            claim.hides_direction,
            not claim.protected,
        )

    def threshold(self, t: int) -> int:
        """Return the one threshold that decides whether c > t."""
        return t + self.k if t + self.k < self.n else t - self.k

    def exceeds(self, t: int, zone: int) -> bool:
        """Read the answer at `threshold(t)`: is c > t?"""
        return zone != BELOW if t + self.k < self.n else zone == ABOVE

    def held(self, among: Counts, b: int, zone: int) -> Counts:
        """Return which counts explain an answer at threshold b, among those that did so far.

        Raises:
            EvidenceError: None does: the answers contradict each other.
        """
        n, k = self.n, self.k
        if not 0 <= b < n:
            left = among if zone == (ABOVE if b < 0 and not self.hidden else BELOW) else ()
        elif zone == NOISY:
            left = _between(among, b - k + 1, b + k)
        elif self.hidden:
            left = (*_between(among, 0, b - k), *_between(among, b + k + 1, n))
        elif zone == BELOW:
            left = _between(among, 0, b - k)
        else:
            left = _between(among, b + k + 1, n)
        if not left:
            raise contradiction()
        return left

    def some(self, zone: Codes) -> Flags:
        """Read many answers at `threshold(0)`, which is k in every table: is there a record?"""
        some: Flags = zone != BELOW
        return some

    def present(self, zone: Codes) -> Flags:
        """Read many answers at `threshold(0)` about one record each: is it there?

        Raises:
            EvidenceError: No single record explains an answer.
        """
        if self.k and (zone == ABOVE).any():
            raise contradiction()
        return self.some(zone)


def _between(among: Counts, low: int, high: int) -> Counts:
    """Return the part of some counts that lies between two ends, both included."""
    if len(among) == 1:  # as nearly always
        [(first, last)] = among
        first, last = max(first, low), min(last, high)
        return ((first, last),) if first <= last else ()
    cut = ((max(first, low), min(last, high)) for first, last in among)
    return tuple((first, last) for first, last in cut if first <= last)


def explained(rules: Rules, search: Search[_T]) -> Search[_T]:
    """Run a search that asks about one range only, and refuse answers that no count explains.

    Raises:
        EvidenceError: The answers contradict each other.
    """
    among: Counts = ((0, rules.n),)
    try:
        question = next(search)
        while True:
            zone = yield question
            among = rules.held(among, question[2], zone)
            question = search.send(zone)
    except StopIteration as stop:
        found: _T = stop.value
        return found


def contradiction() -> EvidenceError:
    """Return the error for answers that no table explains."""
    return EvidenceError("the answers contradict each other: no table explains them all")


@dataclass(frozen=True, slots=True)
class Axis:
    """One attribute as a search sees it: a grid of coarse steps between limits."""

    column: int  # its position in the table
    lower: int | None  # the lowest coarse step that can occur, or None while unknown
    upper: int | None  # the highest
    width: int = 1  # how many of the attribute's own steps make a coarse one
    missing: bool = False  # whether values may be missing

    @property
    def limits(self) -> tuple[int, int]:
        """The limits, once they are known."""
        assert self.lower is not None
        assert self.upper is not None
        return self.lower, self.upper

    @property
    def size(self) -> int:
        """How many values are possible, missing included."""
        lower, upper = self.limits
        return upper - lower + 1 + self.missing

    def within(self, lower: int, upper: int) -> Axis:
        """Return the same axis with these limits."""
        return replace(self, lower=lower, upper=upper)

    def code(self, step: int) -> int:
        """Return the code at the low end of a coarse step."""
        return step if step == MISSING else step * self.width


def axes_of(facts: PublicFacts, widths: dict[int, int] | None = None) -> list[Axis]:
    """Return the axes of a table, at a coarser precision where `widths` asks for one."""
    axes = []
    for column, attribute in enumerate(facts.schema):
        width = (widths or {}).get(column, 1)
        if width > 1 and attribute.kind == "category":
            raise SchemaError(f"precision of {attribute.name!r}: categories have none")
        lower = None if attribute.lower is None else attribute.lower // width
        upper = None if attribute.upper is None else attribute.upper // width
        axes.append(Axis(column, lower, upper, width, attribute.missing))
    return axes


def scaled(ends: Codes, width: npt.ArrayLike) -> Codes:
    """Turn coarse steps into codes; the ends around missing values stay what they are."""
    fixed = (ends == MISSING) | (ends == LOWEST) | (ends == INFINITE)
    codes: Codes = np.where(fixed, ends, np.maximum(np.where(fixed, 0, ends) * width, LOWEST))
    return codes
