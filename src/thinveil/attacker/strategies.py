"""Strategies by name: how counts and values are searched for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from thinveil.attacker.engines import linear, published
from thinveil.attacker.engines.coroutines import exceeds, settled
from thinveil.attacker.terms import Axis, Rules, Search, Values
from thinveil.errors import TooManyQueries, UsageError
from thinveil.language.claims import Claim
from thinveil.language.schema import LOWEST, MISSING

MOST_QUERIES: Final = 10_000_000
"""What a strategy may ask without an explicit go-ahead."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """The searches that every attack is made of.

    Args:
        name: As on the command line.
        count: Finds the number of records in a range, given the most there can be.
        values: Finds all values of a group of records.
        only: Finds the value of one known record.
        estimate: Bounds the queries beforehand; None where there is no need to.
        asks_twice: Whether membership asks the printed pair of questions.
        beliefs: Whether groups of records are searched by carrying beliefs about them.
        learns: Whether the attack learns what is likely while it asks.
    """

    name: str
    count: Callable[[Rules, int, int, int], Search[int]]
    values: Callable[[Rules, Axis, int, Values], Search[Values]]
    only: Callable[[Rules, Axis], Search[int]]
    estimate: Callable[[Rules, Sequence[Axis], int], int] | None = None
    asks_twice: bool = False
    beliefs: bool = False
    learns: bool = False

    def column(
        self, rules: Rules, axis: Axis, s: int, found: Values | None = None
    ) -> Search[Values]:
        """Find the values of s records on an axis; missing ones are counted first.

        Where one value alone is possible in a bounded universe, nothing is asked: a curator
        would answer such a constant predicate exactly.
        """
        found = [] if found is None else found
        if rules.bounded and axis.size == 1:
            found.append((MISSING if axis.missing else axis.limits[0], s))
            return settled(found)
        if not axis.missing:
            return self.values(rules, axis, s, found)
        return self._with_missing(rules, axis, s, found)

    def _with_missing(self, rules: Rules, axis: Axis, s: int, found: Values) -> Search[Values]:
        gone = yield from self.missing(rules, s)
        if gone:
            found.append((MISSING, gone))
        if s > gone:
            yield from self.values(rules, axis, s - gone, found)
        return found

    def missing(self, rules: Rules, s: int) -> Search[int]:
        """Count the missing values of s records; one question tells whether there are any."""
        if not (yield from exceeds(rules, MISSING, LOWEST, 0, s)):
            return 0
        if s == 1:
            return 1
        return (yield from self.count(rules, MISSING, LOWEST, s))

    def check(self, rules: Rules, axes: Sequence[Axis], groups: int, force: bool) -> None:
        """Refuse to start what would ask too much, unless told to go ahead.

        Axes whose bounds are not known yet are left out; call again when they are.

        Raises:
            TooManyQueries: The bound is above ten million and `force` is not set.
        """
        if self.estimate is None or force:
            return
        known = [axis for axis in axes if axis.lower is not None]
        queries = self.estimate(rules, known, groups)
        if queries > MOST_QUERIES:
            raise TooManyQueries(
                f"the {self.name} strategy may ask up to {queries:,} queries here, above "
                f"{MOST_QUERIES:,}: add --force to go ahead, or use --strategy published"
            )


STRATEGIES: Final = {
    "adaptive": Strategy(
        "adaptive", published.count_evenly, published.values, published.only, learns=True
    ),
    "linear": Strategy(
        "linear", linear.count, linear.values, linear.only, estimate=linear.most_queries
    ),
    "posterior": Strategy(
        "posterior", published.count, published.values, published.only, beliefs=True
    ),
    "published": Strategy(
        "published", published.count, published.values, published.only, asks_twice=True
    ),
    "thrifty": Strategy(
        "thrifty", published.count_evenly, published.values, published.only, learns=True
    ),
}
"""All strategies by name, sorted."""


USUAL: Final = "adaptive"
"""The strategy where the user names none."""


def strategy_for(name: str, claim: Claim) -> str:
    """Return the name of the strategy used against a mechanism.

    Against a law of its own only `posterior` fits; those that learn give way to it.

    Raises:
        UsageError: The strategy counts, and the mechanism shows no counts; or it reads zones,
            and the mechanism has none.
    """
    strategy = strategy_named(name)
    if not claim.zoned:
        if not (strategy.learns or strategy.beliefs):
            raise UsageError(
                f"--strategy {name}: the mechanism {claim.name} has a law of its own, which this "
                "strategy cannot read; use posterior"
            )
        return "posterior"
    if not claim.counts and not strategy.learns:
        raise UsageError(
            f"--strategy {name}: the mechanism {claim.name} shows which records exist, not "
            "counts; use adaptive or thrifty"
        )
    return strategy.name


def strategy_named(name: str) -> Strategy:
    """Return a strategy by its name.

    Raises:
        UsageError: There is no such strategy.
    """
    try:
        return STRATEGIES[name]
    except KeyError:
        raise UsageError(
            f"there is no strategy {name!r}; choose from {', '.join(STRATEGIES)}"
        ) from None
