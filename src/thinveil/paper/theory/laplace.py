"""Noise with a density: the k-Laplace mechanism and its relatives, losses in closed form.

The density is that of the ordinary Laplace distribution, exp(-|x| / scale) / (2 scale): the
text has a factor 1/2 too much in the exponent (erratum 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from thinveil.errors import UsageError
from thinveil.language.queries import Floats
from thinveil.paper.theory.functions import Function, Number, Vector, vector
from thinveil.paper.theory.losses import INFINITE, NOTHING, Loss, bound
from thinveil.paper.theory.sensitivities import AnyFunction, l1
from thinveil.paper.theory.worlds import Data, check_group

Shape: TypeAlias = Callable[[Vector, Fraction, Vector, Fraction], Loss]
"""A shape of noise, as the max-divergence of two laws that have it: `laplace_loss` or
`cauchy_loss`, between noise around a centre at a scale and around another."""


def laplace_loss(
    first: Vector, first_scale: Fraction, second: Vector, second_scale: Fraction
) -> Loss:
    """Return the exact max-divergence of two laws of independent Laplace noise.

    At equal scales it is the L1 distance over the scale. Narrower noise loses at its own
    centre. Wider noise has tails that the narrower one lacks: no bound holds. No noise beside
    some noise: what one of them says almost surely, the other almost never says.

    >>> str(laplace_loss((0,), Fraction(2), (1,), Fraction(2)))
    '1/2'
    >>> str(laplace_loss((0,), Fraction(1), (1,), Fraction(2)))
    'ln 2 + 1/2'
    >>> str(laplace_loss((0,), Fraction(2), (1,), Fraction(1)))
    'infinite'
    """
    if first_scale == second_scale:
        if first == second:
            return NOTHING
        if second_scale == 0:
            return INFINITE
    elif first_scale == 0 or first_scale > second_scale:
        return INFINITE
    ratio = (second_scale / first_scale) ** len(first)
    return Loss(ratio, Fraction(l1(first, second)) / second_scale)


def cauchy_loss(
    first: Vector, first_scale: Fraction, second: Vector, second_scale: Fraction
) -> Loss:
    """Return the max-divergence of two laws of Cauchy noise around single numbers.

    The largest ratio of the densities solves a quadratic equation; its logarithm is
    arcosh((s^2 + t^2 + d^2) / (2 s t)), the same in both directions. Rounded, not exact.
    """
    apart = float(l1(first, second))
    if len(first) != 1:
        raise UsageError("Cauchy noise is for functions with a single number as their answer")
    if first_scale == 0 or second_scale == 0:
        return NOTHING if first_scale == second_scale and not apart else INFINITE
    s, t = float(first_scale), float(second_scale)
    return Loss.of(math.acosh(max(1.0, (s * s + t * t + apart * apart) / (2 * s * t))))


@dataclass(frozen=True, slots=True)
class Noisy:
    """A function's answer plus independent noise on each number, at each data set's scale."""

    function: AnyFunction
    scale: Callable[[Any], Fraction]
    shape: Shape = laplace_loss

    def loss(self, first: Data, second: Data) -> Loss:
        """Return the max-divergence between two data sets."""
        one, other = vector(self.function(first)), vector(self.function(second))
        return self.shape(one, self.scale(first), other, self.scale(second))


def laplace(function: AnyFunction, sensitivity: Number, epsilon: Number) -> Noisy:
    """Return a function with Laplace noise of scale sensitivity / epsilon on any data set.

    The global sensitivity makes it differentially private, the bootstrap sensitivity at the
    actual data set makes it the bootstrap Laplace mechanism.
    """
    scale = Fraction(sensitivity) / bound(epsilon).power
    return Noisy(function, lambda _: scale)


@dataclass(frozen=True, slots=True)
class KLaplace:
    """The k-Laplace mechanism, for any function whose k-local sensitivity has a closed form.

    >>> from thinveil.paper.theory.functions import Total
    >>> mechanism = KLaplace(Total(0, 100), k=1, epsilon=Fraction(1, 2))
    >>> mechanism.scale([40, 60, 70])
    Fraction(140, 1)
    """

    function: Function
    k: int
    epsilon: Number

    def __post_init__(self) -> None:
        check_group(self.k)
        bound(self.epsilon)

    def scale(self, data: Any) -> Fraction:
        """Return the scale of the noise on the actual table: its k-local sensitivity / epsilon."""
        return Fraction(self.function.k_local(data, self.k)) / bound(self.epsilon).power

    def draw(self, data: Any, generator: np.random.Generator, repeats: int = 1) -> Floats:
        """Draw answers about the actual table, a row each; exact where the sensitivity is 0."""
        centre = np.array([float(each) for each in self.function(data)])
        noise = generator.laplace(0.0, 1.0, (repeats, len(centre)))
        return centre + noise * float(self.scale(data))

    def chosen_for(self, data: Data) -> Noisy:
        """Return the mechanism chosen for an actual data set: its scale is then fixed.

        This is the reading under which it satisfies Group IDP: the definition asks how this
        very mechanism would behave on data sets near the actual one.
        """
        return laplace(self.function, self.function.k_local(data, self.k), self.epsilon)

    def recalibrated(self) -> Noisy:
        """Return the mechanism as one algorithm, which scales its noise anew on every input.

        This is what runs in practice. Where neighbours have different sensitivities its loss is
        infinite, under every definition that protects that pair.
        """
        return Noisy(self.function, self.scale)
