"""Risk curves as values: how much is recovered, against claimed loss and allowed answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thinveil.attacker.findings import TableFound
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import claim_named
from thinveil.language.queries import Codes
from thinveil.verdicts.scoring import coarse, guess, overlap


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
    """One run with a total loss to spend.

    Args:
        mechanism: Whom it attacked.
        epsilon: The total that was granted, to be split equally over the allowed answers.
        seed: The seed of its noise.
        known: What it found.
        queries: How many answers it drew.
        epsilon_claimed: How much of the total it used.
        ended: How it ended.
        reason: Why, where it did not run to its end.
    """

    mechanism: str
    epsilon: float
    seed: int
    known: Known
    queries: int
    epsilon_claimed: float
    ended: str
    reason: str

    def to_plain(self) -> dict[str, Any]:
        """Return the point as plain JSON values."""
        return {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "seed": self.seed,
            "records": self.known.records,
            "values": self.known.values,
            "queries": self.queries,
            "epsilon_claimed": self.epsilon_claimed,
            "ended": self.ended,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class AnswersPoint:
    """What is known to an attacker after so many answers, if the curator allows no more."""

    mechanism: str
    queries: int
    known: Known

    def to_plain(self) -> dict[str, Any]:
        """Return the point as plain JSON values."""
        return {
            "mechanism": self.mechanism,
            "queries": self.queries,
            "records": self.known.records,
            "values": self.known.values,
        }


@dataclass(frozen=True, slots=True)
class Risk:
    """Both risk curves.

    Args:
        losses: The runs with a total loss to spend.
        sample: How many records of the table these runs attacked.
        answers: How many answers each of them was allowed.
        loss_baseline: What guessing knows of that sample.
        allowances: What is known after so many answers.
        records: How many records these attacks were on.
        answers_baseline: What guessing knows of that table.
        epsilon_per_query: The claimed loss of each of these answers.
        seed: The first seed.
        interrupted: Whether somebody stopped it.
    """

    losses: tuple[LossPoint, ...]
    sample: int
    answers: int
    loss_baseline: Known
    allowances: tuple[AnswersPoint, ...]
    records: int
    answers_baseline: Known
    epsilon_per_query: str
    seed: int
    interrupted: bool

    def loss_curve(self, mechanism: str) -> list[tuple[float, list[Known]]]:
        """Return, for each total loss, what the runs with different seeds found."""
        mine: dict[float, list[Known]] = {}
        for each in self.losses:
            if each.mechanism == mechanism:
                mine.setdefault(each.epsilon, []).append(each.known)
        return sorted(mine.items())

    def answers_curve(self, mechanism: str) -> list[AnswersPoint]:
        """Return what is known after so many answers of one mechanism."""
        return [each for each in self.allowances if each.mechanism == mechanism]

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

    def sentence(self) -> str:
        """Say what the curves show."""
        parts = []
        for name in dict.fromkeys(each.mechanism for each in self.losses):
            least, idle = self.least_loss(name), self.idle_loss(name)
            who = name if claim_named(name).leaks_by_noise else f"{name} (honest DP)"
            said = [] if idle is None else [f"no record up to a total loss of {idle:g}"]
            if least is not None:
                said.append(f"every record at a total loss of {least:g}")
            parts.append(f"{who}: {', '.join(said) or 'some records'}")
        return "; ".join(parts) + "." if parts else "No curve was drawn."

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "against_loss": {
                "records": self.sample,
                "answers_allowed": self.answers,
                "strategy": "posterior",
                "baseline_records": self.loss_baseline.records,
                "baseline_values": self.loss_baseline.values,
                "runs": [each.to_plain() for each in self.losses],
            },
            "against_answers": {
                "records": self.records,
                "epsilon_per_query": self.epsilon_per_query,
                "baseline_records": self.answers_baseline.records,
                "baseline_values": self.answers_baseline.values,
                "points": [each.to_plain() for each in self.allowances],
            },
            "seed": self.seed,
            "interrupted": self.interrupted,
            "verdict": self.sentence(),
        }


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
