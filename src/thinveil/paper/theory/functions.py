"""Functions of a table whose k-local sensitivity has a closed form.

Each is vector-valued and takes a table of any size: a sequence of records. The closed form
is over a universe of records that the function names: bounds that can be reached, bins that
can be hit, a predicate that varies. `tests/test_theory_functions.py` holds every closed form
against enumeration (Definition k-Local Sensitivity, in the L1 norm).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Protocol, TypeAlias

from thinveil.errors import UsageError
from thinveil.paper.theory.worlds import check_group

Number: TypeAlias = int | float | Fraction
Vector: TypeAlias = tuple[Number, ...]
Records: TypeAlias = Sequence[Any]


class Function(Protocol):
    """A vector-valued function of a table with a closed form for its k-local sensitivity.

    Conforms: `TableSize`, `Count`, `Threshold`, `Total`, `Median`, `Histogram`, and any of
    them `Remembered`.
    """

    def __call__(self, data: Records) -> Vector:
        """Return the true answer."""
        ...

    def k_local(self, data: Records, k: int) -> Number:
        """Return how far, in the L1 norm, up to k modified records can move the answer."""
        ...


def itself(record: Any) -> Any:
    """Return the record: the attribute of records that are plain numbers."""
    return record


def vector(answer: Number | Vector) -> Vector:
    """Return an answer as a vector, also if it is a single number."""
    return answer if isinstance(answer, tuple) else (answer,)


@dataclass(frozen=True, slots=True)
class TableSize:
    """The number of records: modifying one never changes it, so its sensitivity is 0.

    >>> TableSize()("abc"), TableSize().k_local("abc", 2)
    ((3,), 0)
    """

    def __call__(self, data: Records) -> Vector:
        """Return n."""
        return (len(data),)

    def k_local(self, data: Records, k: int) -> Number:
        """Return 0, always."""
        check_group(k)
        return 0


@dataclass(frozen=True, slots=True)
class Count:
    """How many records satisfy a predicate.

    It `varies` where some possible record satisfies it and some other does not.
    """

    predicate: Callable[[Any], bool]
    varies: bool = True

    def __call__(self, data: Records) -> Vector:
        """Return c."""
        return (_satisfying(self.predicate, data),)

    def k_local(self, data: Records, k: int) -> Number:
        """Return k, or less where neither k records count nor k do not."""
        check_group(k)
        count = _satisfying(self.predicate, data)
        return min(k, max(count, len(data) - count)) if self.varies else 0


def _satisfying(predicate: Callable[[Any], bool], data: Records) -> int:
    return sum(map(bool, map(predicate, data)))


@dataclass(frozen=True, slots=True)
class Threshold:
    """The attack query, "is c > b?" (Lemma countKSensitivity).

    >>> more = Threshold(lambda income: 1 <= income < 10, 2)
    >>> more([5, 8, 15, 16, 17, 18]), more.k_local([5, 8, 15, 16, 17, 18], 1)
    ((0,), 1)
    """

    predicate: Callable[[Any], bool]
    threshold: int
    varies: bool = True

    def __call__(self, data: Records) -> Vector:
        """Return 1 if more than b records satisfy the predicate, else 0."""
        return (int(self._above(data) > 0),)

    def k_local(self, data: Records, k: int) -> Number:
        """Return 1 in the noisy zone, b - k < c <= b + k, of a query that is not trivial."""
        check_group(k)
        return int(self._answers_vary(data) and -k < self._above(data) <= k)

    def bootstrap(self, data: Records) -> Number:
        """Return 1 if some but not all records satisfy the predicate (Lemma bdpattack).

        The lemma has b = 0; for a fixed size it holds for 0 <= b < n (erratum 9).
        """
        count = self._above(data) + self.threshold
        return int(self._answers_vary(data) and 0 < count < len(data))

    def smooth(self, data: Records, beta: float) -> float:
        """Return the smooth sensitivity: e^-beta for each record away from the flip."""
        if not self._answers_vary(data):
            return 0.0
        above = self._above(data)
        return math.exp(-beta * max(-above, above - 1, 0))

    def _answers_vary(self, data: Records) -> bool:
        return self.varies and 0 <= self.threshold < len(data)

    def _above(self, data: Records) -> int:
        return _satisfying(self.predicate, data) - self.threshold


@dataclass(frozen=True, slots=True)
class _Bounded:
    """An attribute with public bounds, both of which are possible values."""

    lower: Number
    upper: Number
    attribute: Callable[[Any], Any] = itself

    def __post_init__(self) -> None:
        if not -math.inf < self.lower <= self.upper < math.inf:
            raise UsageError("a bounded attribute needs two finite bounds, the lower one first")

    def _values(self, data: Records) -> list[Any]:
        """Sort the values of the attribute, all of which must lie within its bounds."""
        ordered = sorted(map(self.attribute, data))
        if not ordered:
            raise UsageError("a table without records has no such answer")
        if not self.lower <= ordered[0] <= ordered[-1] <= self.upper:
            raise UsageError("a value lies outside the bounds that the function was given")
        return ordered


@dataclass(frozen=True, slots=True)
class Total(_Bounded):
    """The sum of an attribute with public bounds, both of which are possible values.

    >>> Total(0, 10)([1, 2, 9]), Total(0, 10).k_local([1, 2, 9], 2)
    ((12,), 17)
    """

    def __call__(self, data: Records) -> Vector:
        """Return the sum."""
        return (sum(self._values(data)),)

    def k_local(self, data: Records, k: int) -> Number:
        """Return the larger move: the k smallest to the top, or the k largest to the bottom."""
        check_group(k)
        values = self._values(data)
        up: Number = sum(self.upper - value for value in values[:k])
        down: Number = sum(value - self.lower for value in values[-k:])
        return max(up, down)


@dataclass(frozen=True, slots=True)
class Median(_Bounded):
    """The median of an attribute with public bounds, both of which are possible values.

    Of an even number of values, the mean of the two in the middle.

    >>> Median(0, 10).k_local([0, 0, 0, 0, 7], 1), Median(0, 10).k_local([0, 0, 0, 6, 7], 1)
    (Fraction(0, 1), Fraction(6, 1))
    """

    def __call__(self, data: Records) -> Vector:
        """Return the median."""
        return (_middle(self._values(data)),)

    def k_local(self, data: Records, k: int) -> Number:
        """Return the larger move: the k smallest to the top, or the k largest to the bottom."""
        check_group(k)
        values = self._values(data)
        many = min(k, len(values))
        up = _middle(values[many:] + [self.upper] * many)
        down = _middle([self.lower] * many + values[: len(values) - many])
        middle = _middle(values)
        return max(up - middle, middle - down)


def _middle(ordered: list[Any]) -> Fraction:
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return (Fraction(low) + Fraction(high)) / 2


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many records fall into each bin; every bin can be hit by some possible record.

    >>> Histogram(("a", "b"))("aab"), Histogram(("a", "b")).k_local("aab", 3)
    ((2, 1), 4)
    """

    bins: tuple[Hashable, ...]
    bin_of: Callable[[Any], Hashable] = itself

    def __post_init__(self) -> None:
        if not self.bins or len(set(self.bins)) < len(self.bins):
            raise UsageError("a histogram needs bins, each of them once")

    def __call__(self, data: Records) -> Vector:
        """Return the count of each bin."""
        counts = Counter(map(self.bin_of, data))
        if not set(counts) <= set(self.bins):
            raise UsageError("a record falls into none of the histogram's bins")
        return tuple(counts[each] for each in self.bins)

    def k_local(self, data: Records, k: int) -> Number:
        """Return 2 for each record that can move into the emptiest bin, up to k of them."""
        check_group(k)
        return 2 * min(k, len(data) - min(self(data)))


class Remembered:
    """A function that works out each answer about a small data set once."""

    def __init__(self, function: Function) -> None:
        self._answer, self._move = cache(function.__call__), cache(function.k_local)

    def __call__(self, data: Records) -> Vector:
        """Return the true answer."""
        return self._answer(data)

    def k_local(self, data: Records, k: int) -> Number:
        """Return the closed form of the k-local sensitivity."""
        return self._move(data, k)
