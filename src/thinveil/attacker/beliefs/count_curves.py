"""What is likely of the count of a large group beforehand, as a curve that needs no table.

A mixture of a few laws whose distribution functions are written down: none, all, small counts
rather than large ones, any count alike, and bells (logistic) of several widths around what is
expected. How wide they should be is learned from the counts that were found.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded
from thinveil.language.queries import Codes, Flags, Floats

CONCENTRATIONS: Final = (4.0, 64.0, 1024.0, 2.0**14, 2.0**18, 2.0**22)
"""How alike the records of a large group may be, as in `beta_binomial`: the last is a binomial."""
_WIDTH: Final = float(np.sqrt(3.0) / np.pi)  # of a logistic law whose deviation is one
_EDGE: Final = 1e-4
_FADING: Final = 0.99  # large groups are few: the last hundred or so say how alike records are
_LEAST: Final = 0.01  # of the weight of all widths, for each: what was never seen may come
_NONE: Final = 0.003  # how likely it is at first that no record has a value that was guessed
_ALL: Final = 0.05  # and that all have it
_ANY: Final = 0.02  # how likely a count is to be any other than what bells suggest
_ENDS: Final = 0.02  # how likely a part of a range holds none, and how likely all


class Curves:
    """The curves of several counts, a row each: how much lies on counts of at most so many."""

    def __init__(self, size: Codes, parts: Floats, middle: Floats, scale: Floats) -> None:
        self.size = size  # of the group: the highest count
        self.middle = middle  # what is expected
        self._parts = parts  # weights: none, all, small ones, any, then each bell
        self._scale = scale  # the scale of each bell
        low, high = ((x - middle)[:, None] / scale for x in (-0.5, size + 0.5))
        least, most = (0.5 + 0.5 * np.tanh(x / 2) for x in (low, high))
        weight = parts[:, 4:] / np.maximum(most - least, 1e-300)  # bells end at none and all
        self._bell, self._rate = weight / 2, 0.5 / scale
        self._belled = bool(weight.any())
        self._base = parts[:, 0] + (weight * (0.5 - least)).sum(axis=1)
        self._small, self._any = parts[:, 2] / np.log1p(size), parts[:, 3] / (size + 1)

    @staticmethod
    def nothing() -> Curves:
        """Return no curves."""
        bells = len(CONCENTRATIONS)
        empty = np.empty(0)
        parts, scale = np.empty((0, 4 + bells)), np.empty((0, bells))
        return Curves(np.empty(0, np.int64), parts, empty, scale)

    @staticmethod
    def of_values(size: Codes, doubted: Flags) -> Curves:
        """Return curves of how many records have a value: few rather than many.

        Where that is doubted already, perhaps no record has it.
        """
        none = np.where(doubted, 0.3, _NONE)
        parts = np.stack([none, np.full(len(size), _ALL), 1 - _ALL - none], axis=1)
        return Curves._plain(size, parts, np.zeros(len(size)))

    @staticmethod
    def of_halves(size: Codes) -> Curves:
        """Return curves of how many records lie in one half of a range: any count alike."""
        ends = np.full(len(size), _ENDS)
        parts = np.stack([ends, ends, 0 * ends, 1 - 2 * ends], axis=1)
        return Curves._plain(size, parts, size / 2)

    @staticmethod
    def _plain(size: Codes, parts: Floats, middle: Floats) -> Curves:
        bells = len(CONCENTRATIONS)
        full = np.zeros((len(size), 4 + bells))
        full[:, : parts.shape[1]] = parts
        return Curves(size, full, middle, np.ones((len(size), bells)))

    def joined(self, other: Curves) -> Curves:
        """Return these curves and further ones."""
        pairs = zip(self._columns(), other._columns(), strict=True)
        return Curves(*(np.concatenate(pair) for pair in pairs))

    def some(self, rows: Flags) -> Curves:
        """Return some of the curves."""
        size, parts, middle, scale = self._columns()
        return Curves(size[rows], parts[rows], middle[rows], scale[rows])

    def _columns(self) -> tuple[Codes, Floats, Floats, Floats]:
        return self.size, self._parts, self.middle, self._scale

    def upto(self, row: Codes | slice, count: Codes) -> Floats:
        """Return how likely a count of at most so many is; of less than none, it is not."""
        below: Floats = self._base[row] + self._any[row] * (count + 1)
        below += self._small[row] * np.log1p(np.maximum(count, 0))
        if self._belled:
            away = (count + 0.5 - self.middle[row])[:, None] * self._rate[row]
            below += (self._bell[row] * np.tanh(away)).sum(axis=1)
        below[count >= self.size[row]] = 1.0
        below[count < 0] = 0.0
        return below

    def between(self, row: Codes, low: Codes, high: Codes) -> Floats:
        """Return how likely counts from low to high are."""
        mass: Floats = np.maximum(self.upto(row, high) - self.upto(row, low - 1), 1e-18)
        return mass


class Widths:
    """Learns how far counts of large groups lie from what was expected of them."""

    def __init__(self) -> None:
        self._weight = np.ones(len(CONCENTRATIONS))

    def curves(self, size: Codes, chance: Floats) -> Curves:
        """Return curves of the counts of groups, each record counted with a chance."""
        middle, scale = _bells(size, chance)
        weight = rounded(self._weight / self._weight.sum())
        parts = np.zeros((len(size), 4 + len(weight)))
        parts[:, :2], parts[:, 3] = _ENDS / 4, _ANY
        parts[:, 4:] = (1 - _ANY - _ENDS / 2) * weight
        return Curves(size, parts, middle, scale)

    def learn(self, size: Codes, chance: Floats, count: Codes) -> None:
        """Take in counts that were found."""
        middle, scale = _bells(size, chance)
        away = np.abs(count[:, None] - middle[:, None]) / scale
        log = -away - 2 * np.log1p(np.exp(-away)) - np.log(scale)
        part = np.exp(log - log.max(axis=1, keepdims=True)) * self._weight / self._weight.sum()
        part /= part.sum(axis=1, keepdims=True)
        weight = self._weight * _FADING ** len(size) + part.sum(axis=0)
        self._weight = np.maximum(weight, _LEAST * weight.sum())


def _bells(size: Codes, chance: Floats) -> tuple[Floats, Floats]:
    """Return what is expected of counts, and the scales of the bells around it."""
    p = np.clip(chance, _EDGE, 1 - _EDGE)
    spread = (size * p * (1 - p))[:, None] * (1 + size[:, None] / np.array(CONCENTRATIONS))
    return rounded(size * p), rounded(_WIDTH * np.sqrt(spread))
