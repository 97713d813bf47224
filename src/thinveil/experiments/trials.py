"""People for a comparison to try its attacks on, drawn by somebody who may look at the truth.

The experimenter makes the trials and keeps their answers; an attack is told only what the
people are known by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from thinveil.audit.phrases import many, plain
from thinveil.curator.dataset import Dataset
from thinveil.errors import SchemaError, UsageError
from thinveil.language.queries import Codes
from thinveil.language.schema import Attribute

_TRIES: Final = 20
_MEMBERSHIP, _ATTRIBUTE = 1, 2  # so that the two trials do not draw the same people

Known = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a comparison that could not be run, and why."""

    task: str
    reason: str

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"task": self.task, "skipped": self.reason}


@dataclass(frozen=True, slots=True)
class MembershipTrial:
    """As many people who are in the table as people who are not, known by every attribute.

    Args:
        people: What is known of each.
        present: Whether each is in the table.
    """

    people: tuple[Known, ...]
    present: tuple[bool, ...]

    def describe(self) -> str:
        """Say how the trial was made."""
        half = len(self.people) // 2
        return (
            f"{many(half, 'record')} drawn from the table and {half} not in it: drawn records with "
            "one attribute changed, so that no record fits. All attributes are known."
        )


@dataclass(frozen=True, slots=True)
class AttributeTrial:
    """People of the table who are alone in what is known of them.

    Args:
        people: What is known of each.
        rows: Where each is in the table.
        known: The linking attributes.
        wanted: The attributes to find.
        unique: How many people of the table are alone in the linking attributes.
        names: The names of all attributes.
    """

    people: tuple[Known, ...]
    rows: tuple[int, ...]
    known: tuple[int, ...]
    wanted: tuple[int, ...]
    unique: int
    names: tuple[str, ...]

    def describe(self) -> str:
        """Say how the trial was made."""
        known, wanted = (
            ", ".join(self.names[column] for column in columns)
            for columns in (self.known, self.wanted)
        )
        return (
            f"{len(self.people)} of the {self.unique:,} people who are alone in {known}. "
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
            if size is None:
                right += int(np.count_nonzero(data.column(column)[list(self.rows)] == 0))
            else:
                right += len(self.rows) / size
        return right


def membership_trial(data: Dataset, people: int, seed: int) -> MembershipTrial | Skipped:
    """Draw a balanced trial of membership, of at most so many people."""
    rng = np.random.default_rng((seed, _MEMBERSHIP))
    records = np.unique(data.codes, axis=0)
    taken = set(map(tuple, records.tolist()))
    half = min(people // 2, len(records))
    members = records[rng.permutation(len(records))[:half]].tolist()
    pools = [
        _plausible(attribute, data.column(column)) for column, attribute in enumerate(data.schema)
    ]
    outsiders: list[list[int]] = []
    for row in rng.integers(len(records), size=_TRIES * half).tolist():
        other = _changed(records[row], pools, taken, rng)
        if other is not None:
            taken.add(tuple(other))
            outsiders.append(other)
        if len(outsiders) == half:
            break
    half = len(outsiders)
    if not half:
        return Skipped("membership", "every record that could be made up is in the table")
    everyone = [*members[:half], *outsiders]
    columns = range(len(data.schema))
    return MembershipTrial(
        tuple(_known(data, columns, codes) for codes in everyone),
        (True,) * half + (False,) * half,
    )


def _changed(
    record: Codes,
    pools: Sequence[Codes],
    taken: set[tuple[int, ...]],
    rng: np.random.Generator,
) -> list[int] | None:
    """Return the record with one attribute changed so that nobody fits it, if that is found."""
    for column in rng.permutation(len(record)).tolist():
        pool = pools[column]
        for value in rng.choice(pool, min(_TRIES, len(pool)), replace=False).tolist():
            other: list[int] = record.tolist()
            other[column] = value
            if tuple(other) not in taken:
                return other
    return None


def _plausible(attribute: Attribute, column: Codes) -> Codes:
    """Return values that an attribute could have: those that occur, and some more."""
    lower, upper = attribute.lower, attribute.upper
    more = range(0)
    if lower is None or upper is None:
        more = range(int(column.max(initial=0)) + 1, int(column.max(initial=0)) + 2)
    elif upper - lower < 1000:
        more = range(lower, upper + 1)
    return np.union1d(column, np.array(more, np.int64))


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
    alone = _alone(data, known) if known else np.empty(0, np.int64)
    while not linking and len(alone) < people and len(known) < width - 1:
        known.append(len(known))
        alone = _alone(data, known)
    if not known:
        return Skipped(task, "with one column alone, nothing links people to it")
    if not len(alone):
        names = ", ".join(data.schema[column].name for column in known)
        return Skipped(task, f"nobody is alone in what would be known of them ({names})")
    rng = np.random.default_rng((seed, _ATTRIBUTE))
    rows = alone[rng.permutation(len(alone))[:people]].tolist()
    return AttributeTrial(
        tuple(_known(data, known, data.codes[row, known].tolist()) for row in rows),
        tuple(rows),
        tuple(known),
        tuple(column for column in range(width) if column not in known),
        len(alone),
        data.schema.names,
    )


def _alone(data: Dataset, columns: Sequence[int]) -> Codes:
    """Return the rows that share their values in these columns with no other row."""
    _, first, counts = np.unique(
        data.codes[:, columns], axis=0, return_index=True, return_counts=True
    )
    rows: Codes = np.sort(first[counts == 1])
    return rows


def _known(data: Dataset, columns: Sequence[int], codes: Sequence[int]) -> Known:
    """Return what is known of somebody as texts; a missing value is an empty one."""
    known = {}
    for column, code in zip(columns, codes, strict=True):
        value = plain(data.schema[column].decode(code))
        known[data.schema[column].name] = "" if value is None else str(value)
    return known
