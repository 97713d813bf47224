"""What is likely about a count before it is asked about: mixtures of beta-binomials.

Of s records, each lies in a part of a range with about probability p, but records of one group
resemble each other, so a plain binomial is far too sure of itself. A beta-binomial has a second
figure, its concentration, that says how alike they are. It differs from table to table, so
several are mixed, and their weights are learned from the counts that were found.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import evened, peaks, rounded, spans, summed
from thinveil.language.queries import Codes, Floats

CONCENTRATIONS: Final = (1.0, 4.0, 16.0, 64.0, 256.0, 2048.0)
"""How alike the records of a group may be: 1 is nearly all or none, 2048 nearly a binomial."""
_MANY: Final = 512  # records beyond which a rough prior is good enough: there are few such groups
_LOG_FACTORIALS: Final = summed(np.log(np.arange(1, _MANY + 1)))
_LEAST: Final = 1e-9  # no count is impossible
_FADING: Final = 0.999
_LEARNED: Final = 200  # counts that are learned from at a time
_EDGE: Final = 1e-4
_CHUNK: Final = 16_384  # counts weighed at a time: what they need stays in a processor's cache


def log_gamma(x: Floats) -> Floats:
    """Return log Gamma(x) for x > 0, good to about 1e-9.

    >>> float(np.round(log_gamma(np.array([5.0])), 6)[0]), float(np.round(np.log(24.0), 6))
    (3.178054, 3.178054)
    """
    up = x + 5.0
    low = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0)
    series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * up * up)) / (up * up)) / up
    value: Floats = (up - 0.5) * np.log(up) - up + 0.9189385332046727 + series - np.log(low)
    return value


def rough(count: Codes | Floats, s: Codes | Floats, p: Floats) -> Floats:
    """Return how likely counts of large groups are, up to a constant a group."""
    q = np.clip(p, _EDGE, 1 - _EDGE)
    x = (count + 1.0) / (s + 2.0)
    mass: Floats = np.exp((3.0 * q - 1.0) * np.log(x) + (2.0 - 3.0 * q) * np.log1p(-x))
    return mass


class Spread:
    """Learns how alike the records of groups are, and returns priors for counts."""

    def __init__(self) -> None:
        self._weight = np.ones(len(CONCENTRATIONS))

    def prior(self, s: Codes, p: Floats, low: Codes, high: Codes) -> Floats:
        """Return how likely each count from low to high is, flat, a row after the other.

        Each group has s records, counted with chance p each.
        """
        ends = np.cumsum(high - low + 1)
        if not len(ends) or ends[-1] <= _CHUNK:
            return self._prior(s, p, low, high)
        at = np.unique(np.searchsorted(ends, np.arange(_CHUNK, ends[-1], _CHUNK)))
        parts = zip(*(np.split(each, at) for each in (s, p, low, high)), strict=True)
        return np.concatenate([self._prior(*part) for part in parts if len(part[0])])

    def _prior(self, s: Codes, p: Floats, low: Codes, high: Codes) -> Floats:
        size = high - low + 1
        few = s <= _MANY
        if few.all():
            mass = self._mixed(s, p, low, size)
        else:
            mass, inside = np.empty(int(size.sum())), np.repeat(few, size)
            rest = ~few
            if few.any():
                mass[inside] = self._mixed(s[few], p[few], low[few], size[few])
            many = size[rest]
            records, chance = np.repeat(s[rest], many), np.repeat(p[rest], many)
            mass[~inside] = rough(spans(low[rest], many), records, chance)
        return rounded(evened(np.maximum(mass, _LEAST * peaks(mass, size)), size))

    def _mixed(self, s: Codes, p: Floats, low: Codes, size: Codes) -> Floats:
        """Return the mixture of beta-binomials of small groups, a row after the other."""
        count = spans(low, size)
        each = np.repeat(s, size).astype(np.float64)
        parts = _components(count, each, np.repeat(np.clip(p, _EDGE, 1 - _EDGE), size))
        mass = np.zeros(len(count))
        for weight, log in zip(self._weight / self._weight.sum(), parts, strict=True):
            mass += weight * evened(np.exp(log - peaks(log, size)), size)
        return mass

    def learn(self, s: Codes, p: Floats, count: Codes) -> None:
        """Take in counts that were found, of groups of at least two records."""
        some = np.flatnonzero((s > 1) & (s <= _MANY))[:_LEARNED]
        if not len(some):
            return
        s, p, count = s[some], np.clip(p[some], _EDGE, 1 - _EDGE), count[some]
        kappa = np.array(CONCENTRATIONS)
        a, b = p[:, None] * kappa, (1 - p)[:, None] * kappa
        log = log_gamma(count[:, None] + a) + log_gamma((s - count)[:, None] + b)
        log += log_gamma(kappa) - log_gamma(s[:, None] + kappa) - log_gamma(a) - log_gamma(b)
        part = np.exp(log - log.max(axis=1, keepdims=True)) * (self._weight / self._weight.sum())
        part /= part.sum(axis=1, keepdims=True)
        self._weight = self._weight * _FADING ** len(s) + part.sum(axis=0)
        self._weight = np.maximum(self._weight, 0.005 * self._weight.sum())


def _components(count: Codes, s: Floats, p: Floats) -> list[Floats]:
    """Return the logarithm of each beta-binomial, up to a constant a row."""
    rest: Floats = s - count
    ways = _LOG_FACTORIALS[count] + _LOG_FACTORIALS[rest.astype(np.int64)]
    return [
        log_gamma(count + kappa * p) + log_gamma(rest + kappa * (1 - p)) - ways
        for kappa in CONCENTRATIONS
    ]
