"""Which true answers can give the very double that came (Mironov 2012).

Noise as textbooks draw it is a function of 53 random bits, times a scale, added to the true bit,
and every step rounds to a double. So some doubles can come out for a true bit of 0, and others for
1: of answers at a loss from 1e-15 to 1, about 0.6 can come from one of the two only (Cauchy: 0.8).
All that is needed is public: the law, the scale, and the way of drawing ("On significance of the
least significant bits for differential privacy", CCS 2012).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final, TypeGuard

import numpy as np

from thinveil.language.laws import Cauchy, Gaussian, Laplace
from thinveil.language.queries import Flags, Floats

SLACKS: Final = (0, 1, 2, 4)
"""How many doubles the noise at scale 1 may lie off ours: another library's log, tan or erf."""
_NEAR: Final = {Cauchy: 2, Gaussian: 5, Laplace: 2}
"""How far the random bits lie from where the inverse looks: at most 1, 3 and 1 in a million draws
at each of six losses from 1e-15 to 10 (measured: tests/test_doubles.py has a part of it)."""
_WORDS: Final = 2.0**53
_HUGE: Final = float(np.finfo(np.float64).max)
_TRIED: Final = 2048  # values that shares are measured with: to about a hundredth
_GRIDS: Final = (None, 10, 20, 30, 40)  # of values that lie on a grid: 2^-g of the scale
_SURE: Final = 4.0  # standard errors that a measured share is taken larger by

Drawn = Cauchy | Gaussian | Laplace


def tells(law: object) -> TypeGuard[Drawn]:
    """Tell whether we know how textbooks draw this law."""
    return type(law) in _NEAR


def settled(
    law: object, values: Floats, scale: float | Floats, ulps: int = 0
) -> tuple[Flags, Flags]:
    """Tell which answers can be 0 and noise, and which 1 and noise, drawn as textbooks do.

    Where one of both alone is true, the answer settles the bit. Where neither is, the noise was
    not drawn so. A law that we know no way of drawing of settles nothing: all is possible.

    >>> from thinveil.language.laws import Laplace
    >>> zero, one = settled(Laplace(), np.array([0.6931471805599453]), 1.0)  # log 2, and 0
    >>> bool(zero[0]), bool(one[0])
    (True, False)
    """
    if not tells(law):
        any_value = np.ones(np.shape(values), np.bool_)
        return any_value, any_value.copy()
    zero, one = (reachable(law, values, each, scale, ulps) for each in (0.0, 1.0))
    return zero, one


def reachable(
    law: Drawn, values: Floats, bit: float | Floats | Flags, scale: float | Floats, ulps: int = 0
) -> Flags:
    """Tell which answers some random bits give, for these true bits and scales.

    At scale 0 there is no noise: the answer is the bit. Else the random bits are looked for next
    to where the inverse of the law puts them, and tried.
    """
    shape = np.broadcast_shapes(np.shape(values), np.shape(bit), np.shape(scale))
    value, centre, wide = (
        np.broadcast_to(np.asarray(each, np.float64), shape).ravel()
        for each in (values, bit, scale)
    )
    found: Flags = (value == centre) & (wide == 0)
    left = np.flatnonzero(np.isfinite(value) & (wide > 0))
    value, centre, wide = value[left], centre[left], wide[left]
    with np.errstate(over="ignore", invalid="ignore"):
        noise = (value - centre) / wide
        sign = np.ones_like(noise) if type(law) is Cauchy else np.where(noise < 0, -1.0, 1.0)
        word = np.rint(law.undrawn(noise) * _WORDS)
        for step in sorted(range(-_NEAR[type(law)], _NEAR[type(law)] + 1), key=abs):
            drawn = law.drawn(np.clip(word + step, 1, _WORDS) / _WORDS) * sign
            hit = np.zeros(len(left), np.bool_)
            for off in range(-ulps, ulps + 1):
                tried = centre + _moved(drawn, off) * wide
                hit |= np.clip(tried, -_HUGE, _HUGE) == value
            found[left[hit]] = True
            if hit.any():
                rest = ~hit
                left, value, centre, wide = left[rest], value[rest], centre[rest], wide[rest]
                sign, word = sign[rest], word[rest]
    return found.reshape(shape)


def _moved(x: Floats, doubles: int) -> Floats:
    """Return numbers so many doubles away from 0, or towards it."""
    if doubles == 0:
        return x
    bits = x.copy().view(np.int64) + doubles
    moved: Floats = np.where(x == 0, x, bits.view(np.float64))
    return moved


@lru_cache(maxsize=256)
def chance(law: Drawn, scale: float, bit: int, ulps: int) -> float:
    """Bound how likely a double is reachable from its true bit that is not drawn so.

    Measured at this scale, with values of the law that have nothing to do with our way of drawing
    it, as they are and put on grids of several widths, as safe samplers do; the largest share
    counts, with four standard errors added. It is 1 where noise is so narrow that every double
    next to the bit can come out.
    """
    place = np.arange(1.0, _TRIED + 1)
    u: Floats = (place * math.sqrt(5.0)) % 1.0
    shift: Floats = (place * math.sqrt(2.0)) % 1.0
    with np.errstate(over="ignore"):
        values = np.clip(bit + law.quantile(u, scale) * (1 + shift * 2.0**-40), -_HUGE, _HUGE)
    largest = 0.0
    for grid in _GRIDS:
        width = 0.0 if grid is None else math.ldexp(1.0, math.frexp(scale)[1] - grid)
        on_grid = np.rint(values / width) * width if width else values
        largest = max(largest, _bound(reachable(law, on_grid, float(bit), scale, ulps)))
    return largest


def _bound(hits: Flags) -> float:
    share = float(hits.mean())
    return min(1.0, share + _SURE * math.sqrt(max(share * (1 - share), 1 / _TRIED) / _TRIED))


@lru_cache(maxsize=64)
def settled_share(law: Drawn, scale: float, ulps: int = 0) -> float:
    """Return which share of answers settles the bit, measured by draws of our own."""
    place = np.arange(1, _TRIED + 1, dtype=np.uint64)
    words = place * np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: evenly spread
    told: Any = 0.0
    for bit in (0.0, 1.0):
        values = law.draw(words, np.full(_TRIED, bit), scale)
        zero, one = settled(law, values, scale, ulps)
        told += float((zero != one).mean()) / 2
    return float(told)
