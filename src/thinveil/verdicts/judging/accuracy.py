"""How much of what an attack says is right, beside three attackers who never ask.

One knows the public facts and guesses. One was told the histogram of every column, and nothing
about which values go together. One has the records of everybody else. An attack must beat all of
them to have shown anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, NamedTuple

import numpy as np

from thinveil.attacker.findings import ColumnsFound, CountFound, Found, PeopleFound, TableFound
from thinveil.auditing.options import Options
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes
from thinveil.verdicts.judging import scoring
from thinveil.verdicts.judging.chance import expected_overlap, held
from thinveil.verdicts.judging.inference import inferred
from thinveil.verdicts.judging.intervals import Share
from thinveil.verdicts.judging.others import SinglingOut, lone, named_by_others, singled_out
from thinveil.verdicts.judging.scoring import Score, coarse
from thinveil.verdicts.results import fitting_rows, inside_box, is_right
from thinveil.verdicts.typed import FLAT, Mark

BASELINES: Final = (
    "asks nothing: guesses from the public facts, evenly over the public values, zero where "
    "bounds are not public, on average over all ways to join the columns; of several people the "
    "better of always yes and always no, of one a coin",
    "knows the marginals: was told how often each value occurs in each column, and not which "
    "values belong to the same person; joins them by chance, on average, or names the most common",
    "knows the others: has the records of all other people, and not that of the person whose value "
    "is to be named; names what they suggest, by naive Bayes or by those who agree in up to three "
    "attributes, whichever does better on people of the other half of the table",
)
"""What the attackers do who never ask."""
GIVEN: Final = 0.99
"""From which share on an attribute counts as given away by other people's records."""


@dataclass(frozen=True, slots=True)
class AttributeShare:
    """One attribute: its values as a column, and its value of each person, all else being known."""

    name: str
    column: Annotated[Share | None, FLAT]
    inferred: Share | None = None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How much is right: of the whole, counted in some unit, and of each attribute."""

    DERIVED: ClassVar = ("meaning", "baselines", "given_away")

    unit: str
    whole: Annotated[Share, Mark("records")]
    attributes: tuple[AttributeShare, ...]
    singling_out: SinglingOut | None = None

    @property
    def baselines(self) -> tuple[str, ...]:
        """What the attackers do who never ask; the third only where values of people are named."""
        named = any(each.inferred is not None for each in self.attributes)
        return BASELINES if named else BASELINES[:2]

    @property
    def given_away(self) -> tuple[str, ...]:
        """The attributes that other people's records name of nearly everybody: no merit of ours."""
        named = ((each.name, each.inferred) for each in self.attributes)
        return tuple(name for name, one in named if one and (one.others_share or 0.0) >= GIVEN)

    def meaning(self) -> str:
        """Say why shares have no interval."""
        return (
            "The shares are exact for this table and this run. They have no interval: the records "
            "of one run are no sample."
        )


class _Judge(NamedTuple):
    """What a finding is held against."""

    options: Options
    facts: PublicFacts
    truth: Dataset

    def even(self) -> Codes:
        return scoring.evenly(self.truth.schema, self.truth.records)


def accuracy_of(
    found: Found | None,
    options: Options,
    facts: PublicFacts,
    truth: Dataset,
    score: Score | None,
) -> Accuracy | None:
    """Compare what was found with the truth and with the baselines; None if nothing was."""
    judge = _Judge(options, facts, truth)
    if isinstance(found, TableFound) and score is not None:
        return _of_table(found, judge, score)
    if isinstance(found, ColumnsFound) and found.columns:
        return _of_columns(found, judge)
    if isinstance(found, CountFound):
        return _of_count(found, judge)
    if isinstance(found, PeopleFound) and found.people:
        return (_of_values if options.attack == "attribute" else _of_people)(found, judge)
    return None


def _of_table(found: TableFound, judge: _Judge, score: Score) -> Accuracy:
    truth = judge.truth
    actual = coarse(truth.codes[:, found.columns], found.widths)
    even = coarse(judge.even()[:, found.columns], found.widths)
    told = by_marginals(actual, found.distinct)
    mine = inferred(found, actual, even, known=score.exact)
    names = (truth.schema[column].name for column in found.columns)
    named = dict(zip(names, mine, strict=True))
    attributes = tuple(
        AttributeShare(
            each.name, Share(each.recovered, each.of, each.guessed, each.of), named[each.name]
        )
        for each in score.attributes
    )
    unit = "different records" if score.distinct else "records"
    whole = Share(score.recovered, score.records, score.guessed, told)
    stated = found.codes[found.known == len(found.columns)]
    return Accuracy(unit, whole, attributes, singled_out(stated, actual) if len(stated) else None)


def _together(attributes: Sequence[AttributeShare]) -> Share:
    """Return what is right of all of them."""
    shares = [share for each in attributes if (share := each.column or each.inferred)]
    return Share(
        sum(each.right for each in shares),
        sum(each.of for each in shares),
        sum(each.nothing or 0.0 for each in shares),
        sum(each.marginals or 0.0 for each in shares),
        others=(
            None
            if any(each.others is None for each in shares)
            else sum(each.others or 0.0 for each in shares)
        ),
    )


def by_marginals(actual: Codes, distinct: bool) -> float:
    """Return how many records somebody gets right on average who joins the columns by chance."""
    return expected_overlap(actual, actual, distinct)


def _of_columns(found: ColumnsFound, judge: _Judge) -> Accuracy:
    truth, even = judge.truth, judge.even()
    shares = []
    for each in found.columns:
        mine = np.array(each.values, np.int64).reshape(-1, 2)
        actual, guessed = (
            scoring.counted(coarse(table[:, [each.column]], (each.width,)), each.distinct)
            for table in (truth.codes, even)
        )
        of, right = int(actual[1].sum()), scoring.named_right(actual, guessed, each.distinct)
        share = Share(scoring.overlap(*actual, mine[:, :1], mine[:, 1]), of, right, of)
        shares.append(AttributeShare(truth.schema[each.column].name, share, None))
    unit = "different values" if found.columns[0].distinct else "values"
    return Accuracy(unit, _together(shares), tuple(shares))


def _of_count(found: CountFound, judge: _Judge) -> Accuracy:
    """Judge one count; the baselines multiply shares as if columns had nothing in common."""
    options, facts, truth = judge
    box, records = options.box_of(facts), truth.records
    even, told = (
        records
        * math.prod(
            np.count_nonzero((table[:, column] >= low) & (table[:, column] < high)) / records
            for column, (low, high) in box.items()
        )
        for table in (judge.even(), truth.codes)
    )
    true = int(inside_box(truth, box).sum())

    def right(count: float) -> int:
        said = round(count)
        return int(said == true if found.count is not None else (said > 0) is (true > 0))

    mine = bool(is_right(found, truth, options, facts))
    return Accuracy("counts", Share(int(mine), 1, right(even), right(told)), ())


def _of_people(found: PeopleFound, judge: _Judge) -> Accuracy:
    """Judge yes or no about people; whoever knows the marginals multiplies shares."""
    options, facts, truth = judge
    rows = fitting_rows(facts, truth, options)
    unique = options.attack == "uniqueness"
    right = told = said = 0
    alone: list[int] = []
    columns = [truth.schema.column(name) for name in options.people[0]]
    people = options.codes_of_people(facts)
    for person, mine, who in zip(found.people, rows, people, strict=True):
        true = _true(mine, unique)
        said += person.unique is True
        alone += mine if person.unique and true else ()
        right += (person.unique if unique else person.present) is true
        shares = ((truth.column(column) == who[column]).mean() for column in columns)
        expected = float(math.prod(shares, start=truth.records))
        told += (round(expected) == 1 if unique else expected >= 0.5) is true
    of, yes = len(found.people), sum(_true(mine, unique) for mine in rows)
    nothing = of / 2 if of == 1 else max(yes, of - yes)
    singled = None
    if said:
        singled = lone(truth.codes[:, columns], np.array(alone, np.int64), said, people=True)
    return Accuracy("people", Share(right, of, nothing, max(told, nothing)), (), singled)


def _true(rows: list[int], unique: bool) -> bool:
    return len(rows) == 1 if unique else len(rows) > 0


def _of_values(found: PeopleFound, judge: _Judge) -> Accuracy | None:
    """Judge the values of people who are in the table and alone in what is known of them."""
    options, facts, truth = judge
    rows = fitting_rows(facts, truth, options)
    alone = [
        (person, mine[0]) for person, mine in zip(found.people, rows, strict=True) if len(mine) == 1
    ]
    known, even, widths = options.people[0], judge.even(), options.widths(truth.schema)
    wanted = options.columns or [each for each in truth.schema.names if each not in known]
    if not alone or not wanted:
        return None
    given = [truth.schema.column(name) for name in known]
    lines = np.array([row for _, row in alone])
    shares = []
    for name in wanted:
        column = truth.schema.column(name)
        actual, guessed = (
            coarse(table[:, [column]], (widths.get(column, 1),))[:, 0]
            for table in (truth.codes, even)
        )
        right = 0
        for person, row in alone:
            said = [each.values for each in person.values if each.column == column]
            right += bool(said) and [code for code, _ in said[0]] == [actual[row]]
        told = np.count_nonzero(actual[lines] == scoring.most_common(actual))
        table = np.column_stack([truth.codes[:, given], actual])
        suggested = named_by_others(table, len(given), range(len(given)))[lines]
        share = Share(
            right,
            len(alone),
            float(held(guessed, actual[lines]).sum()) / truth.records,
            int(told),
            others=int(np.count_nonzero(suggested)),
        )
        shares.append(AttributeShare(name, None, share))
    unit = "values of people who are alone in what is known of them"
    return Accuracy(unit, _together(shares), tuple(shares))
