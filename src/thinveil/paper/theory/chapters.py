"""What a chapter of the guided tour is, and the small world in which the tour takes place."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from thinveil.errors import UsageError
from thinveil.paper.theory.functions import (
    Count,
    Function,
    Histogram,
    Median,
    Remembered,
    TableSize,
    Threshold,
    Total,
)
from thinveil.paper.theory.losses import Loss
from thinveil.paper.theory.worlds import Data, World, check_group

MOST: Final = 800
"""The tour visits every data set many times over: more than this would take too long."""


@dataclass(frozen=True, slots=True)
class Held:
    """A loss held against an epsilon."""

    loss: Loss
    holds: bool


@dataclass(frozen=True, slots=True)
class Chapter:
    """One result: what it asks, whence, a table that was computed, and what to remember.

    It cites the definitions and lemmas of the paper, and the errata, by name. Cells are numbers,
    losses, data sets and words.
    """

    name: str
    title: str
    cites: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    sentence: str

    def to_plain(self) -> dict[str, Any]:
        """Return the chapter as JSON knows it."""
        return {
            "name": self.name,
            "title": self.title,
            "cites": self.cites,
            "rows": [dict(zip(self.headings, map(plain, row), strict=True)) for row in self.rows],
            "sentence": self.sentence,
        }


def positive(record: Any) -> bool:
    """Tell whether a record is above zero: the predicate of the tour."""
    return bool(record > 0)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the tour takes place: records are numbers from 0 up.

    The seed is that of the few noisy answers that are drawn, epsilon what noise claims to lose.
    """

    world: World
    k: int = 2
    seed: int = 0
    epsilon: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        check_group(self.k)
        if self.world.size < 2 * self.k:
            raise UsageError(
                f"groups of {self.k} need 2k = {2 * self.k} records, and there are "
                f"{self.world.size}: several data sets would look alike"
            )
        if len(self.world.domain) < 2:
            raise UsageError("the tour needs a domain of at least 2 possible records")
        if len(self.world) > MOST:
            raise UsageError(
                f"{len(self.world):,} data sets are too many for the tour: at most {MOST} go "
                "through it in a second or two; choose fewer records or a smaller domain"
            )

    @staticmethod
    def of(records: int, domain: int, k: int = 2, seed: int = 0) -> Setting:
        """Return the setting with so many people and so many possible records."""
        return Setting(World(tuple(range(domain)), records), k, seed)

    @property
    def actual(self) -> Data:
        """The actual data set: more than half zeros, and where it can, one record never occurs."""
        others = max(1, (self.world.size - 1) // 2)
        values = max(1, len(self.world.domain) - 2)
        zeros = (0,) * (self.world.size - others)
        return (*zeros, *(1 + place % values for place in range(others)))

    @property
    def count(self) -> int:
        """How many records of the actual data set are above zero."""
        return sum(map(positive, self.actual))

    @property
    def groups(self) -> tuple[int, ...]:
        """The group sizes to show: one person, and k."""
        return tuple(dict.fromkeys((1, self.k)))

    @property
    def top(self) -> int:
        """The largest possible record."""
        return len(self.world.domain) - 1

    def functions(self) -> dict[str, Function]:
        """Return the functions of the tour by name."""
        return {
            "table size": Remembered(TableSize()),
            "count of those > 0": Remembered(Count(positive)),
            "sum": Remembered(Total(0, self.top)),
            "median": Remembered(Median(0, self.top)),
            "histogram": Remembered(Histogram(self.world.domain)),
            f"is the count > {self.count}?": Remembered(Threshold(positive, self.count)),
        }


def group_name(k: int) -> str:
    """Return the name of the definition with this group size."""
    return "IDP" if k == 1 else f"Group IDP, k = {k}"


def plain(value: Any) -> Any:
    """Return a cell as JSON knows it; a loss both in exact words and as a number."""
    if isinstance(value, Held):
        return {**plain(value.loss), "satisfied": value.holds}
    if isinstance(value, Loss):
        return {"exact": str(value), "epsilon": None if value.ratio is None else value.epsilon}
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, frozenset):
        return sorted(map(plain, value))
    return value


def shown(value: Any) -> str:
    """Return a cell as people read it."""
    if isinstance(value, Held):
        return f"{shown(value.holds)}, {value.loss}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(shown, value)))}}}"
    return str(value)
