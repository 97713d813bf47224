"""How much of what an attack says is right, beside two attackers who never ask.

One knows the public facts and guesses. The other was told the histogram of every column, and
nothing about which values go together. An attack must beat both to have shown anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

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
from thinveil.verdicts.intervals import clopper_pearson, percent
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
        nothing: How many somebody gets right who asks nothing; may be an average.
        marginals: How many somebody gets right who knows the marginals.
        possible: How many somebody could get right who has the table; None where that is all.
    """

    right: int
    of: int
    nothing: float
    marginals: float
    possible: int | None = None

    def to_plain(self, confidence: float, right: str = "recovered") -> dict[str, Any]:
        """Return it as plain JSON values, with the interval of the share."""
        of = max(self.of, 1)
        return {
            "of": self.of,
            right: self.right,
            "share": self.right / of,
            "interval": list(clopper_pearson(self.right, self.of, confidence)),
            "nothing": self.nothing,
            "marginals": self.marginals,
            "nothing_share": self.nothing / of,
            "marginals_share": self.marginals / of,
            **({} if self.possible is None else {"possible_share": self.possible / of}),
        }


@dataclass(frozen=True, slots=True)
class AttributeShare:
    """One attribute: its values as a column, and its value of each person.

    Args:
        name: The attribute's name.
        column: How many values of the column are right, counted as a multiset.
        inferred: How many people's value is right, given their other attributes.
    """

    name: str
    column: Share | None
    inferred: Share | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How much is right, whole and by attribute.

    Args:
        unit: What is counted as a whole: records, people, values, ...
        whole: How many of these are right.
        attributes: The same by attribute, in schema order.
        confidence: How sure the intervals are.
    """

    unit: str
    whole: Share
    attributes: tuple[AttributeShare, ...]
    confidence: float

    def meaning(self) -> str:
        """Say what the intervals mean."""
        return (
            f"The shares are exact for this table and this run. The intervals (Clopper-Pearson, "
            f"{percent(self.confidence)}) are what as many independent draws would leave open; "
            "what one run says is not independent, so they are a scale, not a forecast."
        )

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        sure = self.confidence
        none = dict.fromkeys(Share(0, 1, 0, 0).to_plain(sure))
        return {
            "confidence": sure,
            "meaning": self.meaning(),
            "baselines": list(BASELINES),
            "unit": self.unit,
            "records": self.whole.to_plain(sure),
            "attributes": [
                {
                    "name": each.name,
                    **(none if each.column is None else each.column.to_plain(sure)),
                    "inferred": None
                    if each.inferred is None
                    else each.inferred.to_plain(sure, "right"),
                }
                for each in self.attributes
            ],
        }


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
    return Accuracy(
        unit="different records" if score.distinct else "records",
        whole=Share(score.recovered, score.records, score.guessed, told),
        attributes=tuple(
            AttributeShare(
                each.name,
                Share(each.recovered, each.of, each.guessed, each.of),
                _share(by_name[each.name]),
            )
            for each in score.attributes
        ),
        confidence=confidence,
    )


def _together(shares: Sequence[Share]) -> Share:
    """Return what is right of all of them."""
    return Share(
        sum(each.right for each in shares),
        sum(each.of for each in shares),
        sum(each.nothing for each in shares),
        sum(each.marginals for each in shares),
    )


def by_marginals(actual: Codes, distinct: bool, seed: int) -> int:
    """Return how many records somebody gets right who joins the columns by chance."""
    rng = np.random.default_rng((seed, actual.shape[1]))
    mixed = np.column_stack([rng.permutation(column) for column in actual.T])
    return overlap(*counted(actual, distinct), *counted(mixed, distinct))


def _share(each: Inferred) -> Share:
    return Share(each.right, each.of, each.nothing, each.marginals, each.possible)


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
        share = Share(overlap(*actual, mine, counts), of, right, of)
        shares.append(AttributeShare(truth.schema[each.column].name, share, None))
    whole = [each.column for each in shares if each.column is not None]
    return Accuracy(
        unit="different values" if found.columns[0].distinct else "values",
        whole=_together(whole),
        attributes=tuple(shares),
        confidence=confidence,
    )


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
    return Accuracy("counts", Share(right, 1, judge(even), judge(told)), (), confidence)


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
    return Accuracy("people", Share(right, of, nothing, max(told, nothing)), (), confidence)


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
        share = Share(right, len(alone), int(nothing), int(told))
        shares.append(AttributeShare(truth.schema[column].name, None, share))
    whole = [each.inferred for each in shares if each.inferred is not None]
    return Accuracy(
        unit="values of people who are alone in what is known of them",
        whole=_together(whole),
        attributes=tuple(shares),
        confidence=confidence,
    )


def _wanted(options: Options, truth: Dataset) -> list[int]:
    """Return the columns that were to be found."""
    names = options.columns or [
        each for each in truth.schema.names if each not in options.people[0]
    ]
    return [truth.schema.column(name) for name in names]
