"""Risk curves as values: how much is recovered, against claimed loss and allowed answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from thinveil.attacker.findings import TableFound
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.queries import Codes
from thinveil.verdicts import sentences
from thinveil.verdicts.scoring import coarse, guess, overlap
from thinveil.verdicts.typed import FLAT, to_json


@dataclass(frozen=True, slots=True)
class Known:
    """How much of a table is known.

    Args:
        records: The share of records (of different ones, for Bootstrap DP) known entirely.
        values: The share of values known together with all values before them in the same
            record, in the order of the search.
    """

    records: float
    values: float


@dataclass(frozen=True, slots=True)
class LossPoint:
    """One run with a total loss to spend, split equally over the allowed answers.

    `epsilon` is the total that was granted, `epsilon_claimed` how much of it was used.
    """

    mechanism: str
    epsilon: float
    seed: int
    known: Annotated[Known, FLAT]
    queries: int
    epsilon_claimed: float
    ended: str
    reason: str


@dataclass(frozen=True, slots=True)
class AnswersPoint:
    """What is known to an attacker after so many answers, if the curator allows no more."""

    mechanism: str
    queries: int
    known: Annotated[Known, FLAT]


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Runs with a total loss to spend: on how many records, with how many answers allowed."""

    records: int
    answers_allowed: int
    strategy: str
    baseline_records: float
    baseline_values: float
    runs: tuple[LossPoint, ...]

    @property
    def mechanisms(self) -> list[str]:
        """Whom they attacked."""
        return list(dict.fromkeys(each.mechanism for each in self.runs))


@dataclass(frozen=True, slots=True)
class AnswersCurve:
    """What is known after so many answers, at a claimed loss each, of how many records."""

    records: int
    epsilon_per_query: str
    baseline_records: float
    baseline_values: float
    points: tuple[AnswersPoint, ...]

    @property
    def mechanisms(self) -> list[str]:
        """Whom the attacks were on."""
        return list(dict.fromkeys(each.mechanism for each in self.points))


@dataclass(frozen=True, slots=True)
class Risk:
    """Both risk curves, beside what guessing knows.

    Args:
        against_loss: What is known against the total loss that is claimed.
        against_answers: What is known against the answers allowed.
        kinds: The kind of each mechanism: grey, red or blue, as in `names.KINDS`.
        seed: The first seed.
        interrupted: Whether somebody stopped it.
    """

    DERIVED: ClassVar = ("verdict",)

    against_loss: LossCurve
    against_answers: AnswersCurve
    kinds: Mapping[str, str]
    seed: int
    interrupted: bool

    def loss_curve(self, mechanism: str) -> list[tuple[float, list[Known]]]:
        """Return, for each total loss, what the runs with different seeds found."""
        mine: dict[float, list[Known]] = {}
        for each in self.against_loss.runs:
            if each.mechanism == mechanism:
                mine.setdefault(each.epsilon, []).append(each.known)
        return sorted(mine.items())

    def answers_curve(self, mechanism: str) -> list[AnswersPoint]:
        """Return what is known after so many answers of one mechanism."""
        return [each for each in self.against_answers.points if each.mechanism == mechanism]

    def least_loss(self, mechanism: str) -> float | None:
        """Return the smallest total at which every run found everything."""
        return next(
            (
                epsilon
                for epsilon, known in self.loss_curve(mechanism)
                if all(each.records == 1 for each in known)
            ),
            None,
        )

    def idle_loss(self, mechanism: str) -> float | None:
        """Return the largest total up to which no run found any record."""
        idle = None
        for epsilon, known in self.loss_curve(mechanism):
            if any(each.records for each in known):
                break
            idle = epsilon
        return idle

    def answers_for(self, mechanism: str, share: float, records: bool = False) -> int | None:
        """Return after how many answers such a share was first seen to be known."""
        for each in self.answers_curve(mechanism):
            if (each.known.records if records else each.known.values) >= share - 1e-12:
                return each.queries
        return None

    def verdict(self) -> str:
        """Say what the curves show."""
        return sentences.risk(self)

    sentence = verdict

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        plain: dict[str, Any] = to_json(self)
        return plain


def known_of(found: TableFound, data: Dataset) -> Known:
    """Return how much of a table a reconstruction knows, each value in its record.

    A value counts where the same record is known up to it: so the share of values is the
    mean, over depths of the search, of the share of records known up to there.
    """
    truth = coarse(data.codes[:, found.columns], found.widths)
    shares = []
    for depth in range(1, len(found.columns) + 1):
        deep = found.known >= depth
        mine, counts = found.codes[deep][:, :depth], found.counts[deep]
        actual = truth[:, :depth]
        if found.distinct:
            actual, mine = np.unique(actual, axis=0), np.unique(mine, axis=0)
            counts = np.ones(len(mine), np.int64)
        shared = overlap(actual, np.ones(len(actual), np.int64), mine, counts)
        shares.append(shared / len(actual))
    return Known(shares[-1], float(np.mean(shares)))


def guessed(data: Dataset, columns: Sequence[int], seed: int) -> Known:
    """Return how much of a table guessing from public facts knows, by the same measure."""
    codes: Codes = guess(data.schema, data.records, seed)[:, columns]
    one = np.ones(len(codes), np.int64)
    blind = TableFound(tuple(columns), codes, one * len(columns), one, tuple(1 for _ in columns))
    return known_of(blind, data)
