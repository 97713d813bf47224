"""One reproduced figure beside the one it has to match, and where that one comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

Whence = Literal["printed", "program", "ours"]
WHENCE: Final[dict[Whence, str]] = {
    "printed": "printed in the paper",
    "program": "not printed: of our notes, checked there against the authors' program",
    "ours": "not printed: computed by us",
}
"""Where a figure that ours is set beside comes from, and what to say of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure as the paper or our notes have it, and as measured here.

    Args:
        experiment: Which experiment it belongs to.
        name: What is counted.
        protected: Whether the mechanism was on; None where that does not matter.
        expected: The figure in the paper, or among those of `figures` that it lacks.
        measured: Ours, rounded as the expected one is.
        unrounded: Ours before rounding, where the expected figure is rounded.
        allowed: How far off it may be, where it is simulated.
        whence: Where the expected figure comes from: the paper prints not all of them.
    """

    experiment: str
    name: str
    protected: bool | None
    expected: Any
    measured: Any
    unrounded: float | None = None
    allowed: float | None = None
    whence: Whence = "printed"

    @property
    def agrees(self) -> bool:
        """Whether ours equals the expected figure, up to what chance explains of a simulation."""
        if self.allowed is None:
            return bool(self.expected == self.measured)
        return bool(abs(self.expected - self.measured) <= self.allowed)

    def to_plain(self) -> dict[str, Any]:
        """Return the row as plain JSON values."""
        plain = {
            "experiment": self.experiment,
            "name": self.name,
            "protected": self.protected,
            "expected": self.expected,
            "measured": self.measured,
            "agrees": self.agrees,
            "provenance": self.whence,
        }
        more = {"unrounded": self.unrounded, "allowed": self.allowed}
        return plain | {name: value for name, value in more.items() if value is not None}


class Sheet(list[Row]):
    """The rows of one experiment, in order.

    >>> sheet = Sheet("dataset")
    >>> sheet.add("queries a person", True, 119.9, 119.86, 1)
    >>> sheet[0].agrees
    True
    """

    def __init__(self, experiment: str) -> None:
        super().__init__()
        self.experiment = experiment

    def add(
        self,
        name: str,
        protected: bool | None,
        expected: Any,
        measured: Any,
        digits: int | None = None,
        allowed: float | None = None,
        whence: Whence = "printed",
    ) -> None:
        """Add a figure; where the expected one is rounded, to how many digits it is."""
        ours, exact = (measured, None) if digits is None else (round(measured, digits), measured)
        self.append(Row(self.experiment, name, protected, expected, ours, exact, allowed, whence))


def counted(rows: Iterable[Row]) -> str:
    """Count figures by where they come from.

    >>> row = Row("columns", "age", False, 1851, 1851, whence="program")
    >>> counted([row])
    "1 figure (1 not printed: of our notes, checked there against the authors' program)"
    """
    every = [row.whence for row in rows]
    parts = [f"{every.count(each):,} {said}" for each, said in WHENCE.items() if each in every]
    return f"{len(every):,} figure{'s' * (len(every) != 1)} ({'; '.join(parts)})"
