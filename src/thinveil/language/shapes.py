"""Where a mechanism adds noise, as an attacker sees it: the shape of a sensitivity.

Searches need to know whether noise surrounds the threshold, tells none, some and all apart, or
neither. A sensitivity may say so itself. If it does not, its law is public, so anybody can look.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from thinveil.language.contracts import Sensitivity as Sensitivity
from thinveil.language.queries import Codes, Flags, Floats, Loss


@dataclass(frozen=True, slots=True)
class Shape:
    """Where a sensitivity is above zero, and what its size gives away.

    Args:
        reach: It is above zero, and clearly so, exactly where b - reach < c <= b + reach; None
            where that is not so. 0 means that it is zero everywhere.
        presence: It is above zero exactly where some but not all records satisfy the predicate.
        level: It is one and the same wherever it is above zero.
        leaks: It depends on the data enough to give counts away, beyond the true bit.
        even: It is the same for all counts, so that the true bit alone makes a difference.
    """

    reach: int | None = None
    presence: bool = False
    level: bool = True
    leaks: bool = True
    even: bool = False


EVEN: Final = Shape(level=True, leaks=False, even=True)
"""The shape of a sensitivity that does not depend on the data."""


class Constant:
    """A sensitivity of one `size`, whatever the data."""

    size: ClassVar[float]
    shape: ClassVar = EVEN
    __slots__ = ()

    def at(self, count: Codes, threshold: Codes, records: int, epsilon: Loss) -> Floats:
        """Return its size everywhere."""
        return np.full(count.shape, self.size)

    def distance(self, count: Codes, threshold: Codes) -> Codes:
        """Return 0: it does not fade."""
        return np.zeros(count.shape, np.int64)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The answer's law changes with the true bit only: at b."""
        return threshold[:, None]


_TINY: Final = 1e-10  # the loss at which sensitivities are compared: that of a usual audit
_SIZES: Final = (1, 2, 3, 4, 7, 12, 25, 60)
_LARGE: Final = 10_000
_ALIKE: Final = 1e-3  # a smaller difference takes about a million answers to see
_MOST: Final = 512  # thresholds of a large table that are looked at


def shape_of(sensitivity: Sensitivity) -> Shape:
    """Return the shape that a sensitivity says it has, else the one that it shows."""
    said = getattr(sensitivity, "shape", None)
    return said if isinstance(said, Shape) else seen(sensitivity)


@lru_cache(maxsize=256)
def seen(sensitivity: Sensitivity) -> Shape:
    """Look at the law on tables of several sizes and say which shape it has.

    A shape that holds on all of these might still not hold on another table: `holds` looks at
    the one at hand.
    """
    tables = [(*grid(n), n, sensitivity.at(*grid(n), n, _TINY)) for n in _SIZES]
    count = np.arange(_LARGE + 1)
    middle = sensitivity.at(count, np.full_like(count, _LARGE // 2), _LARGE, _TINY)
    sizes = [middle[None], *(matrix for *_, matrix in tables)]
    above = np.concatenate([each[each > 0] for each in sizes])
    level = not len(above) or bool(np.ptp(above) <= _ALIKE * above.max())
    clear = not len(above) or bool(above.min() >= _ALIKE * above.max())
    presence = clear and all(
        ((size > 0) == _zone(None, c, b, n)).all() for c, b, n, size in tables if n > 1
    )
    reach = _reach_of(middle > 0, _LARGE // 2) if clear else None
    if reach is not None:
        fits = all(((size > 0) == _zone(reach, c, b, n)).all() for c, b, n, size in tables)
        reach = reach if fits else None
    leaks = any(_varies(matrix) for matrix in sizes[1:]) or _varies(middle[None], _LARGE // 2)
    even = all(bool((matrix == matrix[0, 0]).all()) for matrix in sizes)
    return Shape(reach, presence and not even, level, leaks, even)


def holds(sensitivity: Sensitivity, shape: Shape, records: int) -> bool:
    """Tell whether the zones of a shape are those of a table of this size.

    Looked at are all thresholds, or many of a large table, and one count of each segment.
    """
    if shape.reach is None and not shape.presence:
        return True
    b = np.unique(np.linspace(0, records - 1, min(records, _MOST)).astype(np.int64))
    cuts = sensitivity.breakpoints(b, records)
    ends = [np.zeros_like(b), np.full_like(b, records), b, b + 1]
    if shape.reach is not None:
        ends += [b - shape.reach, b - shape.reach + 1, b + shape.reach, b + shape.reach + 1]
    counts = np.concatenate([cuts, cuts + 1, np.stack(ends, axis=1)], axis=1)
    counts = np.minimum(np.maximum(counts, 0), records)
    threshold = np.broadcast_to(b[:, None], counts.shape)
    noisy = sensitivity.at(counts, threshold, records, _TINY) > 0
    reach = None if shape.presence else shape.reach
    return bool((noisy == _zone(reach, counts, threshold, records)).all())


def _zone(reach: int | None, count: Codes, threshold: Codes, records: int) -> Flags:
    """Tell where noise is that reaches so far; without a reach, where some but not all count."""
    if reach is None:
        return (count > 0) & (count < records)
    return (count > threshold - reach) & (count <= threshold + reach)


def grid(records: int) -> tuple[Codes, Codes]:
    """Return all counts (in each row) and thresholds (a row each) of a table of this size."""
    shape = records, records + 1
    threshold = np.broadcast_to(np.arange(records)[:, None], shape)
    return np.broadcast_to(np.arange(records + 1), shape), threshold


def _reach_of(noisy: Flags, threshold: int) -> int | None:
    """Return how far noise reaches around a threshold, the same on both sides."""
    at = np.flatnonzero(noisy)
    if not len(at):
        return 0
    reach = threshold - int(at[0]) + 1
    return reach if int(at[-1]) == threshold + reach and len(at) == 2 * reach else None


def _varies(matrix: Floats, threshold: int | None = None) -> bool:
    """Tell whether counts on the same side of a threshold differ in sensitivity."""
    for row, values in enumerate(matrix):
        b = row if threshold is None else threshold
        for side in (values[: b + 1], values[b + 1 :]):
            if len(side) and np.ptp(side) > _ALIKE * side.max():
                return True
    return False
