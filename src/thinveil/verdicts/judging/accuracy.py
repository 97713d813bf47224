"""How much of what an attack says is right, beside two attackers who never ask.

One knows the public facts and guesses. The other was told the histogram of every column, and
nothing about which values go together. An attack must beat both to have shown anything.
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
from thinveil.verdicts.judging.inference import inferred
from thinveil.verdicts.judging.intervals import Share
from thinveil.verdicts.judging.scoring import Score, coarse
from thinveil.verdicts.phrases import sureness
from thinveil.verdicts.results import fitting_rows, inside_box, is_right
from thinveil.verdicts.typed import FLAT, Mark

BASELINES: Final = (
    "asks nothing: guesses from the public facts, evenly over the public values, zero where "
    "bounds are not public; of several people the better of always yes and always no, of one "
    "a coin",
    "knows the marginals: was told how often each value occurs in each column, and not which "
    "values belong to the same person",
)
"""What the two attackers do who never ask."""


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


class _Judge(NamedTuple):
    """What a finding is held against, and how sure intervals are."""

    options: Options
    facts: PublicFacts
    truth: Dataset
    confidence: float

    def share(self, right: int, of: int, nothing: float, marginals: float) -> Share:
        return Share(int(right), of, float(nothing), float(marginals), self.confidence)

    def says(self, unit: str, whole: Share, *attributes: AttributeShare) -> Accuracy:
        return Accuracy(unit, whole, attributes, self.confidence)

    def blind(self) -> Codes:
        return scoring.guess(self.truth.schema, self.truth.records, self.options.seed)


def accuracy_of(
    found: Found | None,
    options: Options,
    facts: PublicFacts,
    truth: Dataset,
    score: Score | None,
    confidence: float,
) -> Accuracy | None:
    """Compare what was found with the truth and with both baselines; None if nothing was."""
    judge = _Judge(options, facts, truth, confidence)
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
    blind = coarse(judge.blind()[:, found.columns], found.widths)
    told = by_marginals(actual, found.distinct, judge.options.seed)
    mine = inferred(found, actual, blind, known=score.exact, confidence=judge.confidence)
    names = (truth.schema[column].name for column in found.columns)
    named = dict(zip(names, mine, strict=True))
    attributes = (
        AttributeShare(
            each.name,
            judge.share(each.recovered, each.of, each.guessed, each.of),
            named[each.name],
        )
        for each in score.attributes
    )
    unit = "different records" if score.distinct else "records"
    whole = judge.share(score.recovered, score.records, score.guessed, told)
    return judge.says(unit, whole, *attributes)


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
    return scoring.overlap(*scoring.counted(actual, distinct), *scoring.counted(mixed, distinct))


def _of_columns(found: ColumnsFound, judge: _Judge) -> Accuracy:
    truth, blind = judge.truth, judge.blind()
    shares = []
    for each in found.columns:
        mine = np.array(each.values, np.int64).reshape(-1, 2)
        actual, guessed = (
            scoring.counted(coarse(table[:, [each.column]], (each.width,)), each.distinct)
            for table in (truth.codes, blind)
        )
        of, right = int(actual[1].sum()), scoring.named_right(actual, guessed, each.distinct)
        share = judge.share(scoring.overlap(*actual, mine[:, :1], mine[:, 1]), of, right, of)
        shares.append(AttributeShare(truth.schema[each.column].name, share, None))
    unit = "different values" if found.columns[0].distinct else "values"
    return judge.says(unit, _together(shares), *shares)


def _of_count(found: CountFound, judge: _Judge) -> Accuracy:
    """Judge one count; the baselines multiply shares as if columns had nothing in common."""
    options, facts, truth, _ = judge
    box, records, blind = options.box_of(facts), truth.records, judge.blind()
    even, told = (
        records
        * math.prod(
            np.count_nonzero((table[:, column] >= low) & (table[:, column] < high)) / records
            for column, (low, high) in box.items()
        )
        for table in (blind, truth.codes)
    )
    true = int(inside_box(truth, box).sum())

    def right(count: float) -> int:
        said = round(count)
        return int(said == true if found.count is not None else (said > 0) is (true > 0))

    mine = bool(is_right(found, truth, options, facts))
    return judge.says("counts", judge.share(mine, 1, right(even), right(told)))


def _of_people(found: PeopleFound, judge: _Judge) -> Accuracy:
    """Judge yes or no about people; whoever knows the marginals multiplies shares."""
    options, facts, truth, _ = judge
    rows = fitting_rows(facts, truth, options)
    unique = options.attack == "uniqueness"
    right = told = 0
    columns = [truth.schema.column(name) for name in options.people[0]]
    people = options.codes_of_people(facts)
    for person, mine, who in zip(found.people, rows, people, strict=True):
        true = _true(mine, unique)
        right += (person.unique if unique else person.present) is true
        shares = ((truth.column(column) == who[column]).mean() for column in columns)
        expected = float(math.prod(shares, start=truth.records))
        told += (round(expected) == 1 if unique else expected >= 0.5) is true
    of, yes = len(found.people), sum(_true(mine, unique) for mine in rows)
    nothing = of / 2 if of == 1 else max(yes, of - yes)
    return judge.says("people", judge.share(right, of, nothing, max(told, nothing)))


def _true(rows: list[int], unique: bool) -> bool:
    return len(rows) == 1 if unique else len(rows) > 0


def _of_values(found: PeopleFound, judge: _Judge) -> Accuracy | None:
    """Judge the values of people who are in the table and alone in what is known of them."""
    options, facts, truth, _ = judge
    rows = fitting_rows(facts, truth, options)
    alone = [
        (person, mine[0]) for person, mine in zip(found.people, rows, strict=True) if len(mine) == 1
    ]
    known, blind, widths = options.people[0], judge.blind(), options.widths(truth.schema)
    wanted = options.columns or [each for each in truth.schema.names if each not in known]
    if not alone or not wanted:
        return None
    shares = []
    for name in wanted:
        column = truth.schema.column(name)
        actual, guessed = (
            coarse(table[:, [column]], (widths.get(column, 1),))[:, 0]
            for table in (truth.codes, blind)
        )
        usual = scoring.most_common(actual)
        right = nothing = told = 0
        for person, row in alone:
            said = [each.values for each in person.values if each.column == column]
            right += bool(said) and [code for code, _ in said[0]] == [actual[row]]
            nothing += guessed[row] == actual[row]
            told += usual == actual[row]
        share = judge.share(right, len(alone), nothing, told)
        shares.append(AttributeShare(name, None, share))
    unit = "values of people who are alone in what is known of them"
    return judge.says(unit, _together(shares), *shares)
