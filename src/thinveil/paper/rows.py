"""One reproduced figure beside the published one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the paper, as published and as measured here.

    Args:
        experiment: Which experiment it belongs to.
        name: What is counted.
        protected: Whether the mechanism was on; None where that does not matter.
        published: The figure in the paper, or among those of `figures` that it lacks.
        measured: Ours, rounded as the published one is.
        unrounded: Ours before rounding, where the published figure is rounded.
        allowed: How far off it may be, where it is simulated.
    """

    experiment: str
    name: str
    protected: bool | None
    published: Any
    measured: Any
    unrounded: float | None = None
    allowed: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether ours equals the published figure, up to what chance explains of a simulation."""
        if self.allowed is None:
            return bool(self.published == self.measured)
        return bool(abs(self.published - self.measured) <= self.allowed)

    def to_plain(self) -> dict[str, Any]:
        """Return the row as plain JSON values."""
        plain = {
            "experiment": self.experiment,
            "name": self.name,
            "protected": self.protected,
            "published": self.published,
            "measured": self.measured,
            "agrees": self.agrees,
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
        published: Any,
        measured: Any,
        digits: int | None = None,
        allowed: float | None = None,
    ) -> None:
        """Add a figure; where the published one is rounded, to how many digits it is."""
        ours, exact = (measured, None) if digits is None else (round(measured, digits), measured)
        self.append(Row(self.experiment, name, protected, published, ours, exact, allowed))
