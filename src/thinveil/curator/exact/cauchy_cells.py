"""Cauchy noise as an exact real number, of which only its cell of a public grid is ever worked out.

The answer is y = bit + s X, rounded to the nearest multiple of a step g. X is a standard Cauchy
number and s = 6 (S + offset) / epsilon, with S = exp(-(epsilon / 6) d) the smooth sensitivity; d
is a whole number that hangs on the data, g is a power of two that hangs on the claim and the loss.

Why so. The scale itself tells of the data, so it must not be rounded either: a step of doubles is
2^-52 and more of S, which for a small loss is far above the factor exp(epsilon / 6) by which
neighbours may differ. Here s is never a rounded number. On neighbouring tables d differs by at most
1, so y has the law of Nissim, Raskhodnikova and Smith (2007, with gamma = 2): it is
epsilon-differentially private with delta 0, at the very epsilon that is charged. Rounding y to a
grid that does not hang on the data is post-processing. So rounding adds nothing to epsilon and
nothing to delta, and nothing is charged for it. The same holds for the limits of a double, to
which answers are cut.

How. X = V1 / V2 for a point (V1, V2) that is uniform in the half disc: a ratio of uniforms, with no
tangent taken. Points come as random bits, the first 63 of each coordinate at once. Doubles with a
bound on their error decide the cell of nearly every answer. Where the bound reaches over the edge
of a cell (about 1 of 10,000 answers), or it is open whether the point lies in the disc, integers
decide: fractions that enclose S as tightly as needed, and further random bits, until only one
cell is left. Nothing is cut off, and it ends with probability 1: 64 more bits leave a cell open
in about one of 2^60 cases.

The bound. Of y / g without the bit, n = (s / g) V1 / V2, doubles are off by at most
  |n| (x + 4) 2^-50: x = (epsilon / 6) d has two roundings and that of epsilon to a double (together
    below x 2^-51 in the exponent), `exp` is taken to be right to 2^-50 of its value, and some eight
    more roundings are each 2^-53; or 2^-900 where S is below the smallest doubles;
  1.01 (s / g) (1 + V1 / V2) / b: b = 2^63 V2 without its further bits, and so for V1;
  2^-50: for adding 1/2 and a bit that is no whole number of steps.

Assumed: random words are uniform and independent, and `exp` is that good (tests compare it with
the fractions). The second way of deciding takes longer, by chance that hardly hangs on the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from thinveil.curator.exact.taps import Powers, Tap
from thinveil.language.contracts import Words
from thinveil.language.laws.cauchy import CAUCHY
from thinveil.language.queries import Codes, Flags, Floats

_FINE: Final = 31  # steps of 2^(e - 31) for a scale from 2^(e - 1) up to 2^e
_FINEST: Final = -52  # no step is below 2^-52
_FIRST: Final = 63  # bits of a coordinate in its first word; one is the sign
_HUGE: Final = float(np.finfo(np.float64).max)
_FAR: Final = 2**1000  # steps; what lies beyond is cut to it


@dataclass(frozen=True, slots=True)
class Fade:
    """What the noise of some answers is scaled by: 6 (size exp(-(epsilon / 6) far) + offset).

    Args:
        size: The sensitivity at distance 0.
        offset: What is added to it.
        far: For each answer the distance d, or -1 where nothing can change it (sensitivity 0).
        epsilon: For each answer its loss, as a double.
        charged: The same losses as the ledger has them, by their doubles.
    """

    size: float
    offset: float
    far: Codes
    epsilon: Floats
    charged: dict[float, Fraction]

    def some(self, chosen: Codes) -> Fade:
        """Return that of some of the answers."""
        return Fade(self.size, self.offset, self.far[chosen], self.epsilon[chosen], self.charged)

    def grid(self) -> Powers:
        """Return how coarse the grid is, as a power of two: it hangs on nothing but public things.

        That an answer cannot change (`far` below 0) is public, too.
        """
        most = np.where(self.far < 0, self.offset, self.size + self.offset)
        exponent = np.frexp(CAUCHY * most / self.epsilon)[1]
        grid: Powers = np.maximum(exponent - _FINE, _FINEST)
        return grid

    def scale(self) -> tuple[Floats, Floats]:
        """Return s as doubles, and by which share of it they may be off."""
        with np.errstate(over="ignore"):
            x = self.epsilon / CAUCHY * np.maximum(self.far, 0)
        fade = np.where(self.far < 0, 0.0, self.size * np.exp(-x))
        share: Floats = (np.minimum(x, 2.0**40) + 4) * 2.0**-50
        return CAUCHY * (fade + self.offset) / self.epsilon, share

    def bounds(self, each: int, digits: int) -> tuple[Fraction, Fraction]:
        """Return fractions between which s of one answer lies, of so many binary digits."""
        epsilon = self.charged.get(float(self.epsilon[each]), Fraction(float(self.epsilon[each])))
        far, size, offset = int(self.far[each]), Fraction(self.size), Fraction(self.offset)
        six = Fraction(CAUCHY)
        ends = (Fraction(0), Fraction(0)) if far < 0 else exp_bounds(epsilon * far / six, digits)
        low, high = ((size * end + offset) * six / epsilon for end in ends)
        return low, high


def cauchy(tap: Tap, bits: Floats, fade: Fade, *, quick: bool = True) -> Floats:
    """Return true bits with Cauchy noise, rounded to the grid; `quick` tries doubles first."""
    grid = fade.grid()
    cells = np.zeros(len(bits))
    left = np.arange(len(bits))
    while len(left):
        words = tap.words(left), tap.words(left)
        a, b = (each >> np.uint64(1) for each in words)
        minus = (words[0] & np.uint64(1)).astype(np.bool_)
        inside, cell, sure = _quickly(a, b, minus, bits[left], fade.some(left), grid[left])
        cells[left] = cell
        again = ~inside
        for i in np.flatnonzero(~sure if quick else np.ones_like(sure)).tolist():
            point = Point(int(a[i]), int(b[i]), bool(minus[i]))
            each = int(left[i])
            found = point.cell(tap, each, int(bits[each]), fade, int(grid[each]))
            again[i] = found is None
            cells[each] = 0.0 if found is None else float(found)
        left = left[again]
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(cells, grid), -_HUGE, _HUGE)


def _quickly(
    a: Words, b: Words, minus: Flags, bits: Floats, fade: Fade, grid: Powers
) -> tuple[Flags, Floats, Flags]:
    """Return which points are in the disc, their cells, and which of both is sure."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    radius = (x * x + y * y) * 2.0 ** (-2 * _FIRST)
    scale, share = fade.scale()
    scale = np.ldexp(scale, -grid)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = x / y
        n = scale * ratio
        error = n * share + 1.01 * scale * (1 + ratio) / y + 2.0**-50
        # whole steps of the bit are added to the cell, so that they cost no digits
        steps = np.ldexp(bits, -grid)
        at = np.where(minus, -n, n) + np.where(grid > 0, steps, 0.0) + 0.5
        cell = np.floor(at)
        within = (at - cell > error) & (cell + 1 - at > error)
    inside = radius < 1 - 2.0**-49
    outside = radius > 1 + 2.0**-49
    whole = np.where(grid > 0, 0.0, steps)
    return inside, cell + whole, outside | (inside & within)


@dataclass(slots=True)
class Point:
    """A point of the half disc, as many of its binary digits as were needed: a, b of 2^digits."""

    a: int
    b: int
    minus: bool
    digits: int = _FIRST

    def inside(self) -> bool | None:
        """Tell whether the point lies in the disc; None while that is open."""
        whole = 1 << 2 * self.digits
        if (self.a + 1) ** 2 + (self.b + 1) ** 2 <= whole:
            return True
        return False if self.a**2 + self.b**2 >= whole else None

    def ratio(self) -> tuple[Fraction, Fraction | None]:
        """Return between which fractions |V1| / V2 lies; None is no upper limit yet."""
        high = Fraction(self.a + 1, self.b) if self.b else None
        return Fraction(self.a, self.b + 1), high

    def refine(self, tap: Tap, who: int) -> None:
        """Take 64 more random bits of each coordinate."""
        alone = np.array([who])
        self.a = self.a << 64 | int(tap.words(alone)[0])
        self.b = self.b << 64 | int(tap.words(alone)[0])
        self.digits += 64

    def cell(self, tap: Tap, who: int, bit: int, fade: Fade, grid: int) -> int | None:
        """Return the cell of the answer, by whole numbers alone; None outside the disc."""
        while self.inside() is None:
            self.refine(tap, who)
        if not self.inside():
            return None
        step = Fraction(2) ** grid
        while True:
            (least, most), (low, high) = self.ratio(), fade.bounds(who, 2 * self.digits)
            if most is not None:
                ends = [low * least, high * most]
                if self.minus:
                    ends = [-ends[1], -ends[0]]
                first, last = (math.floor((bit + end) / step + Fraction(1, 2)) for end in ends)
                if first == last:
                    return max(-_FAR, min(first, _FAR))
            self.refine(tap, who)


def exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return fractions between which exp(-x) lies, about 2^-digits apart.

    Halve x until it is small, add up the series, and square the sum as often; whole numbers are
    rounded down in the lower bound and up in the upper one.
    """
    if x == 0:
        return Fraction(1), Fraction(1)
    if x >= digits:  # exp(-x) < 2^-x
        return Fraction(0), Fraction(1, 1 << digits)
    halvings = max(math.ceil(x).bit_length() + 1, 0)
    one = 1 << (digits + halvings + 16)
    y = x / (1 << halvings)
    low = _series(math.ceil(y * one), one, -1)
    high = _series(math.floor(y * one), one, 1)
    for _ in range(halvings):
        low, high = low * low // one, -(-high * high // one)
    return Fraction(low, one), Fraction(min(high, one), one)


def _series(y: int, one: int, off: int) -> int:
    """Return exp(-y / one) as a part of `one`, too small or too large by a few units (off)."""
    term, total, terms = one, one, 0
    while term:
        terms += 1
        term = term * y // (terms * one)
        total += -term if terms % 2 else term
    # each term is off by less than 2 units; what is left out is less than the last, below 1
    return max(total + off * (2 * terms + 2), 0)
