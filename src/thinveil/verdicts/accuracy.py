"""How much of what an attack says is right, beside two attackers who never ask.

One knows the public facts and guesses. The other was told the histogram of every column, and
nothing about which values go together. An attack must beat both to have shown anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import numpy as np

from thinveil.attacker.findings import (
    ColumnsFound,
    CountFound,
    Found,
    PeopleFound,
    TableFound,
)
from thinveil.auditing.options import Options
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes
from thinveil.verdicts.inference import Inferred, inferred
from thinveil.verdicts.intervals import checked, clopper_pearson
from thinveil.verdicts.phrases import sureness
from thinveil.verdicts.results import fitting_rows, inside_box, is_right
from thinveil.verdicts.scoring import (
    Score,
    coarse,
    counted,
    guess,
    most_common,
    named_right,
    overlap,
)
from thinveil.verdicts.typed import FLAT, OMIT, Mark

BASELINES: Final = (
    "asks nothing: guesses from the public facts, evenly over the public values, zero where "
    "bounds are not public; of several people the better of always yes and always no, of one "
    "a coin",
    "knows the marginals: was told how often each value occurs in each column, and not which "
    "values belong to the same person",
)
"""What the two attackers do who never ask."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some things are right, beside what the baselines get right.

    Args:
        right: How many the attack got right.
        of: How many there are.
        nothing: How many somebody gets right who asks nothing; may be an average. None where
            that is masked.
        marginals: How many somebody gets right who knows the marginals.
        confidence: How sure the interval of the share is.
        possible_share: The share that somebody could get right who has the table; None where
            that is all.
    """

    DERIVED: ClassVar = ("right", "share", "interval", "nothing_share", "marginals_share")

    right: Annotated[int, Mark("recovered")]
    of: int
    nothing: float | None
    marginals: float | None
    confidence: float
    possible_share: Annotated[float | None, OMIT] = None

    def __post_init__(self) -> None:
        checked(self.right, self.of, self.confidence)

    @property
    def share(self) -> float:
        """The share that is right."""
        return self.right / max(self.of, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """The Clopper-Pearson interval of the share."""
        return clopper_pearson(self.right, self.of, self.confidence)

    @property
    def nothing_share(self) -> float | None:
        """The share of somebody who asks nothing."""
        return None if self.nothing is None else self.nothing / max(self.of, 1)

    @property
    def marginals_share(self) -> float | None:
        """The share of somebody who knows the marginals."""
        return None if self.marginals is None else self.marginals / max(self.of, 1)

    @property
    def guess(self) -> float:
        """The better share of both guessers; 0 where they are masked."""
        return max(self.nothing_share or 0.0, self.marginals_share or 0.0)


@dataclass(frozen=True, slots=True)
class AttributeShare:
    """One attribute: its values as a column, and its value of each person, all else being known."""

    name: str
    column: Annotated[Share | None, FLAT]
    inferred: Share | None = None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How much is right: of the whole, counted in some unit, and of each attribute."""

    DERIVED: ClassVar = ("meaning", "baselines")

    unit: str
    whole: Annotated[Share, Mark("records")]
    attributes: tuple[AttributeShare, ...]
    confidence: float

    @property
    def baselines(self) -> tuple[str, ...]:
        """What the two attackers do who never ask."""
        return BASELINES

    def meaning(self) -> str:
        """Say what the intervals mean."""
        return (
            f"The shares are exact for this table and this run. The intervals (Clopper-Pearson, "
            f"{sureness(self.confidence)}) are what as many independent draws would leave open; "
            "what one run says is not independent, so they are a scale, not a forecast."
        )


def accuracy_of(
    found: Found | None,
    options: Options,
    facts: PublicFacts,
    truth: Dataset,
    score: Score | None,
    confidence: float,
) -> Accuracy | None:
    """Compare what was found with the truth and with both baselines; None if nothing was."""
    if isinstance(found, TableFound) and score is not None:
        return _of_table(found, truth, score, options.seed, confidence)
    if isinstance(found, ColumnsFound) and found.columns:
        return _of_columns(found, truth, options.seed, confidence)
    if isinstance(found, CountFound):
        return _of_count(found, options, facts, truth, confidence)
    if isinstance(found, PeopleFound) and found.people:
        if options.attack == "attribute":
            return _of_values(found, options, facts, truth, confidence)
        return _of_people(found, options, facts, truth, confidence)
    return None


def _of_table(
    found: TableFound, truth: Dataset, score: Score, seed: int, confidence: float
) -> Accuracy:
    actual = coarse(truth.codes[:, found.columns], found.widths)
    blind = coarse(guess(truth.schema, truth.records, seed)[:, found.columns], found.widths)
    told = by_marginals(actual, found.distinct, seed)
    mine = inferred(found, actual, blind, known=score.exact)
    by_name = {
        truth.schema[column].name: each for column, each in zip(found.columns, mine, strict=True)
    }
    attributes = tuple(
        AttributeShare(
            each.name,
            Share(each.recovered, each.of, each.guessed, each.of, confidence),
            _share(by_name[each.name], confidence),
        )
        for each in score.attributes
    )
    unit = "different records" if score.distinct else "records"
    whole = Share(score.recovered, score.records, score.guessed, told, confidence)
    return Accuracy(unit, whole, attributes, confidence)


def _together(attributes: Sequence[AttributeShare]) -> Share:
    """Return what is right of all of them."""
    shares = [share for each in attributes if (share := each.column or each.inferred)]
    return Share(
        sum(each.right for each in shares),
        sum(each.of for each in shares),
        sum(each.nothing or 0.0 for each in shares),
        sum(each.marginals or 0.0 for each in shares),
        shares[0].confidence,
    )


def by_marginals(actual: Codes, distinct: bool, seed: int) -> int:
    """Return how many records somebody gets right who joins the columns by chance."""
    rng = np.random.default_rng((seed, actual.shape[1]))
    mixed = np.column_stack([rng.permutation(column) for column in actual.T])
    return overlap(*counted(actual, distinct), *counted(mixed, distinct))


def _share(each: Inferred, confidence: float) -> Share:
    possible = each.possible / max(each.of, 1)
    return Share(each.right, each.of, each.nothing, each.marginals, confidence, possible)


def _of_columns(found: ColumnsFound, truth: Dataset, seed: int, confidence: float) -> Accuracy:
    blind = guess(truth.schema, truth.records, seed)
    shares = []
    for each in found.columns:
        codes = [[code] for code, _ in each.values]
        mine = np.array(codes, np.int64).reshape(-1, 1)
        counts = np.array([count for _, count in each.values], np.int64)
        actual, guessed = (
            counted(coarse(table[:, [each.column]], (each.width,)), each.distinct)
            for table in (truth.codes, blind)
        )
        of, right = int(actual[1].sum()), named_right(actual, guessed, each.distinct)
        share = Share(overlap(*actual, mine, counts), of, right, of, confidence)
        shares.append(AttributeShare(truth.schema[each.column].name, share, None))
    unit = "different values" if found.columns[0].distinct else "values"
    return Accuracy(unit, _together(shares), tuple(shares), confidence)


def _of_count(
    found: CountFound, options: Options, facts: PublicFacts, truth: Dataset, confidence: float
) -> Accuracy:
    """Judge one count; the baselines multiply shares as if columns had nothing in common."""
    box, records = options.box_of(facts), truth.records
    blind = guess(truth.schema, records, options.seed)
    even, told = (
        records
        * math.prod(
            np.count_nonzero((table[:, column] >= low) & (table[:, column] < high)) / records
            for column, (low, high) in box.items()
        )
        for table in (blind, truth.codes)
    )
    true = int(inside_box(truth, box).sum())

    def judge(count: float) -> int:
        said = round(count)
        return int(said == true if found.count is not None else (said > 0) is (true > 0))

    right = int(bool(is_right(found, truth, options, facts)))
    share = Share(right, 1, judge(even), judge(told), confidence)
    return Accuracy("counts", share, (), confidence)


def _of_people(
    found: PeopleFound, options: Options, facts: PublicFacts, truth: Dataset, confidence: float
) -> Accuracy:
    """Judge yes or no about people; whoever knows the marginals multiplies shares."""
    rows = fitting_rows(facts, truth, options)
    unique = options.attack == "uniqueness"
    field = "unique" if unique else "present"
    right = told = 0
    columns = [truth.schema.column(name) for name in options.people[0]]
    people = options.codes_of_people(facts)
    for person, mine, who in zip(found.people, rows, people, strict=True):
        true = _true(mine, unique)
        right += getattr(person, field) is true
        expected = float(truth.records)
        for column in columns:
            expected *= np.count_nonzero(truth.column(column) == who[column]) / truth.records
        told += (round(expected) == 1 if unique else expected >= 0.5) is true
    of, yes = len(found.people), sum(_true(mine, unique) for mine in rows)
    nothing = of / 2 if of == 1 else max(yes, of - yes)
    share = Share(right, of, nothing, max(told, nothing), confidence)
    return Accuracy("people", share, (), confidence)


def _true(rows: list[int], unique: bool) -> bool:
    return len(rows) == 1 if unique else len(rows) > 0


def _of_values(
    found: PeopleFound, options: Options, facts: PublicFacts, truth: Dataset, confidence: float
) -> Accuracy | None:
    """Judge the values of people who are in the table and alone in what is known of them."""
    rows = fitting_rows(facts, truth, options)
    alone = [
        (person, mine[0]) for person, mine in zip(found.people, rows, strict=True) if len(mine) == 1
    ]
    wanted = _wanted(options, truth)
    if not alone or not wanted:
        return None
    blind = guess(truth.schema, truth.records, options.seed)
    widths = options.widths(truth.schema)
    shares = []
    for column in wanted:
        width = (widths.get(column, 1),)
        actual = coarse(truth.codes[:, [column]], width)[:, 0]
        guessed = coarse(blind[:, [column]], width)[:, 0]
        usual = most_common(actual)
        right = nothing = told = 0
        for person, row in alone:
            said = [each.values for each in person.values if each.column == column]
            right += bool(said) and [code for code, _ in said[0]] == [actual[row]]
            nothing += guessed[row] == actual[row]
            told += usual == actual[row]
        share = Share(int(right), len(alone), int(nothing), int(told), confidence)
        shares.append(AttributeShare(truth.schema[column].name, None, share))
    unit = "values of people who are alone in what is known of them"
    return Accuracy(unit, _together(shares), tuple(shares), confidence)


def _wanted(options: Options, truth: Dataset) -> list[int]:
    """Return the columns that were to be found."""
    names = options.columns or [
        each for each in truth.schema.names if each not in options.people[0]
    ]
    return [truth.schema.column(name) for name in names]
