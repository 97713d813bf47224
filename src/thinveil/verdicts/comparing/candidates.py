"""People for a comparison to try its attacks on, drawn by somebody who may look at the truth.

The experimenter makes the trials and keeps their answers; an attack is told only what the
people are known by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np

from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import SchemaError, UsageError
from thinveil.language.texts import many
from thinveil.verdicts.judging.others import named_by_others
from thinveil.verdicts.judging.scoring import most_common
from thinveil.verdicts.trials import alone_in, known_by
from thinveil.verdicts.typed import Mark

_ATTRIBUTE: Final = 2  # so that these people are drawn apart from those of other trials

Known = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a comparison that could not be run, and why."""

    task: str
    reason: Annotated[str, Mark("skipped")]


@dataclass(frozen=True, slots=True)
class AttributeTrial:
    """People of the table who are alone in what is known of them.

    Their rows, the linking attributes and the wanted ones; `unique` counts all who are alone, and
    `others` the values that an attacker gets right who has all other records.
    """

    people: tuple[Known, ...]
    rows: tuple[int, ...]
    known: tuple[int, ...]
    wanted: tuple[int, ...]
    unique: int
    names: tuple[str, ...]
    others: int = 0

    def describe(self) -> str:
        """Say how the trial was made."""
        known, wanted = (
            ", ".join(self.names[column] for column in columns)
            for columns in (self.known, self.wanted)
        )
        return (
            f"{len(self.people)} of the {many(self.unique, 'person who is', 'people who are')} "
            f"alone in {known}. "
            f"To be found: {wanted}."
        )

    def baseline(self, data: Dataset) -> float:
        """Return how many values an attacker who asks nothing gets right on average.

        He picks evenly from the public values of an attribute (a missing one counts as a
        value); where bounds are not public, he says zero.
        """
        right = 0.0
        for column in self.wanted:
            size = data.schema[column].size
            right += self._have(data, column, 0) if size is None else len(self.rows) / size
        return right

    def marginals(self, data: Dataset) -> int:
        """Return how many values an attacker gets right who names the most common one."""
        usual = {column: most_common(data.column(column)) for column in self.wanted}
        return sum(self._have(data, column, code) for column, code in usual.items())

    def _have(self, data: Dataset, column: int, code: int) -> int:
        return int(np.count_nonzero(data.column(column)[list(self.rows)] == code))


def attribute_trial(
    data: Dataset, people: int, seed: int, linking: Sequence[str] = ()
) -> AttributeTrial | Skipped:
    """Draw people who are alone in some linking attributes, of at most so many.

    Unless named, linking attributes are taken from the left until enough people are alone
    in them; at least one attribute is left to be found.

    Raises:
        UsageError: No attribute would be left to be found.
    """
    task, width = "attribute", len(data.schema)
    try:
        known = [data.schema.column(name) for name in dict.fromkeys(linking)]
    except SchemaError as error:
        raise UsageError(f"--link: {error}") from None
    if len(known) == width:
        raise UsageError("--link: every column is known already, there is nothing to find")
    alone = alone_in(data, known) if known else np.empty(0, np.int64)
    while not linking and len(alone) < people and len(known) < width - 1:
        known.append(len(known))
        alone = alone_in(data, known)
    if not known:
        return Skipped(task, "with one column alone, nothing links people to it")
    if not len(alone):
        names = ", ".join(data.schema[column].name for column in known)
        return Skipped(task, f"nobody is alone in what would be known of them ({names})")
    rng = np.random.default_rng((seed, _ATTRIBUTE))
    rows = alone[rng.permutation(len(alone))[:people]].tolist()
    wanted = tuple(column for column in range(width) if column not in known)
    return AttributeTrial(
        tuple(known_by(data, known, data.codes[row, known].tolist()) for row in rows),
        tuple(rows),
        tuple(known),
        wanted,
        len(alone),
        data.schema.names,
        sum(
            int(np.count_nonzero(named_by_others(data.codes, column, known)[rows]))
            for column in wanted
        ),
    )
