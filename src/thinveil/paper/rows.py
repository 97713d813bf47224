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
        published: The figure in the paper, or in its notes of record.
        measured: Ours, rounded as the published one is.
        unrounded: Ours before rounding, where the published figure is rounded.
    """

    experiment: str
    name: str
    protected: bool | None
    published: Any
    measured: Any
    unrounded: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether ours equals the published figure exactly."""
        return bool(self.published == self.measured)

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
        return plain if self.unrounded is None else {**plain, "unrounded": self.unrounded}


def rounded(
    experiment: str,
    name: str,
    protected: bool | None,
    published: float,
    value: float,
    digits: int,
) -> Row:
    """Return a row for a figure that the paper gives rounded to some digits."""
    return Row(experiment, name, protected, published, round(value, digits), value)
