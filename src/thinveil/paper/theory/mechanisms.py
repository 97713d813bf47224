"""Finite mechanisms: for each data set, a table of outputs and their exact probabilities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Protocol, TypeAlias

from thinveil.errors import UsageError
from thinveil.paper.theory.functions import Number, Vector, vector
from thinveil.paper.theory.losses import INFINITE, NOTHING, Loss
from thinveil.paper.theory.worlds import Data, World

Output: TypeAlias = Hashable
Law: TypeAlias = Mapping[Any, Fraction]


class Mechanism(Protocol):
    """A randomised algorithm of which the loss between any two data sets is known.

    Conforms: `Finite` here, `Noisy` of `thinveil.paper.theory.laplace`.
    """

    def loss(self, first: Data, second: Data) -> Loss:
        """Return the max-divergence: how much likelier an output can be on the first."""
        ...


def divergence(first: Law, second: Law) -> Loss:
    """Return the exact max-divergence of two finite laws.

    The definitions speak of every set of outputs. A set is never worse than its worst member,
    so single outputs are enough.

    >>> often, seldom = Fraction(2, 3), Fraction(1, 3)
    >>> str(divergence({0: often, 1: seldom}, {0: seldom, 1: often}))
    'ln 2'
    """
    if first is second:
        return NOTHING
    worst = Fraction(1)
    for output, chance in first.items():
        if chance:
            other = second.get(output, 0)
            if not other:
                return INFINITE
            worst = max(worst, chance / other)
    return Loss(worst)


@dataclass(frozen=True, slots=True, eq=False)
class Finite:
    """A mechanism with finitely many outputs, as a table: one law a data set."""

    laws: Mapping[Data, Law]

    def __post_init__(self) -> None:
        if not self.laws:
            raise UsageError("a mechanism needs the law of at least one data set")
        for law in {id(each): each for each in self.laws.values()}.values():
            if min(law.values(), default=-1) < 0 or sum(law.values()) != 1:
                raise UsageError("the probabilities of each data set must add up to exactly 1")

    def loss(self, first: Data, second: Data) -> Loss:
        """Return the exact max-divergence between two data sets.

        Raises:
            UsageError: The mechanism does not know one of them.
        """
        try:
            return divergence(self.laws[first], self.laws[second])
        except KeyError:
            raise UsageError("the mechanism has no law for a data set of this world") from None


def tabulate(world: World, law: Callable[[Data], Law]) -> Finite:
    """Return the mechanism that has a given law at each data set of a world."""
    return Finite({data: law(data) for data in world})


def constant(world: World, output: Output) -> Finite:
    """Return the mechanism that ignores its input and says one thing (Lemma hint)."""
    law = {output: Fraction(1)}
    return tabulate(world, lambda _: law)


def truthful(world: World, function: Callable[[Any], Output]) -> Finite:
    """Return the mechanism that answers without noise."""
    return tabulate(world, lambda data: {function(data): Fraction(1)})


def randomised_response(
    world: World, bit: Callable[[Any], Number | Vector], ratio: Fraction | int
) -> Finite:
    """Return the mechanism that tells a bit the right way round with odds of ratio to 1.

    Its loss is ln(ratio) between data sets whose bits differ, and 0 between others.

    Raises:
        UsageError: The ratio is below 1.
    """
    right = _check_ratio(ratio) / (ratio + 1)
    laws = {each: {each: right, not each: 1 - right} for each in (False, True)}
    return tabulate(world, lambda data: laws[_scalar(bit(data)) > 0])


def geometric(
    world: World,
    function: Callable[[Any], Number | Vector],
    ratio: Fraction | int,
    low: int,
    high: int,
) -> Finite:
    """Return a whole-number answer plus two-sided geometric noise, cut off at public ends.

    This is Laplace noise made discrete: each step away is ratio times less likely, so answers
    that lie s apart lose s ln(ratio). What falls beyond an end is reported as that end.

    Raises:
        UsageError: The ratio is below 1, or an answer lies beyond the ends.
    """
    shrink = 1 / _check_ratio(ratio)
    places = range(low, high + 1)

    @cache
    def around(answer: Number) -> Law:
        if answer not in places:
            raise UsageError("geometric noise needs whole answers between its two ends")
        if low == high or shrink == 1:
            return dict.fromkeys(places, Fraction(1, len(places)))
        chances = {place: shrink ** abs(place - int(answer)) / (1 + shrink) for place in places}
        return {
            place: chance * (1 if place in (low, high) else 1 - shrink)
            for place, chance in chances.items()
        }

    return tabulate(world, lambda data: around(_scalar(function(data))))


def postprocess(mechanism: Finite, channel: Callable[[Any], Output | Law]) -> Finite:
    """Return the mechanism whose output is handed on to an algorithm that sees nothing else.

    Of each output, the channel makes one output or a law (a mapping).
    """

    @cache
    def after(output: Output) -> Law:
        made = channel(output)
        return made if isinstance(made, Mapping) else {made: Fraction(1)}

    def handed_on(law: Law) -> Law:
        result: dict[Output, Fraction] = {}
        for output, chance in law.items():
            for made, share in after(output).items():
                result[made] = result.get(made, Fraction(0)) + chance * share
        return result

    return Finite({data: handed_on(law) for data, law in mechanism.laws.items()})


def compose(first: Finite, second: Finite) -> Finite:
    """Return the mechanism that releases the outputs of two, drawn independently.

    Raises:
        UsageError: They are not mechanisms of the same world.
    """
    if first.laws.keys() != second.laws.keys():
        raise UsageError("only mechanisms of the same world can be composed")
    return Finite(
        {
            data: {
                (mine, other): chance * share
                for mine, chance in law.items()
                for other, share in second.laws[data].items()
            }
            for data, law in first.laws.items()
        }
    )


def _scalar(answer: Number | Vector) -> Number:
    (number,) = vector(answer)
    return number


def _check_ratio(ratio: Fraction | int) -> Fraction:
    if ratio < 1:
        raise UsageError(f"the ratio is e to the epsilon, so at least 1, not {ratio}")
    return Fraction(ratio)
