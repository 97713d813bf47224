"""What an attack found, as values for people, checked against the truth where it is at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np

from thinveil.attacker.findings import (
    ColumnFound,
    ColumnsFound,
    CountFound,
    Found,
    PeopleFound,
    PersonFound,
    TableFound,
)  # fmt: skip
from thinveil.attacker.known_bits import known_bits, whole_bits
from thinveil.attacker.terms import Values
from thinveil.auditing.options import Options
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Flags
from thinveil.language.schema import Schema
from thinveil.verdicts.judging.scoring import coarse
from thinveil.verdicts.phrases import plain
from thinveil.verdicts.typed import OMIT, Mark

SHOWN: Final = 5
"""How many records are shown to whoever asks for some."""
_SEED: Final = 11  # so that they are drawn apart from trials and samples


@dataclass(frozen=True, slots=True)
class ValueFound:
    """A value, and how many records have it; None where that cannot be known."""

    value: Any
    records: int | None


@dataclass(frozen=True, slots=True)
class ColumnResult:
    """What was found of a column, and whether that is right; None where nobody could check."""

    column: str
    values: tuple[ValueFound, ...]
    judged: Annotated[bool | None, Mark("exact")]
    bits: float | None


@dataclass(frozen=True, slots=True)
class CountResult:
    """How many records match a predicate, or whether any does."""

    predicate: Mapping[str, Any]
    count: int | None
    judged: Annotated[bool | None, Mark("correct")]
    bits: float | None
    exists: Annotated[bool | None, OMIT] = None
    between: Annotated[tuple[int, int] | None, OMIT] = None


@dataclass(frozen=True, slots=True)
class PersonResult:
    """What was found of a person, beside what was known; None is what was not found out."""

    known: Mapping[str, Any]
    judged: Annotated[bool | None, Mark("correct")]
    bits: float | None
    present: Annotated[bool | None, OMIT] = None
    unique: Annotated[bool | None, OMIT] = None
    matches: Annotated[int | None, OMIT] = None
    values: Annotated[Mapping[str, tuple[ValueFound, ...]] | None, OMIT] = None
    prior_failed: Annotated[tuple[str, ...] | None, OMIT] = None

    def left(self, name: str) -> int:
        """Return how many of several records that fit have no value of an attribute yet."""
        several = [each.records for each in (self.values or {}).get(name, ())]
        return 0 if self.matches is None else self.matches - sum(each or 0 for each in several)

    def said(self) -> list[str]:
        """Say yes or no about the person, where that was found out."""
        answers = {"present": self.present, "unique": self.unique}
        known = {name: said for name, said in answers.items() if said is not None}
        return [name if said else f"not {name}" for name, said in known.items()]


Result = tuple[ColumnResult, ...] | tuple[PersonResult, ...] | CountResult | None
"""What an attack other than on the whole data set found."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """How much of a table is known when a run ends, right or wrong.

    Args:
        bits: The bits known, by `known_bits`.
        of_all: The bits of the true table; where it is not at hand, the most that a table can
            have which fits what is known, and None where that has no bound.
        columns: The names of columns of which every value is known with its count (or, where
            counts are not shown, of which every value that occurs is), not whose it is.
        begun: Those of which something is known.
    """

    bits: float
    of_all: float | None
    columns: tuple[str, ...]
    begun: tuple[str, ...]


def knowledge_of(found: Found | None, schema: Schema, truth: Dataset | None) -> Knowledge | None:
    """Return how much of a table is known; None for other attacks."""
    if not isinstance(found, TableFound):
        return None
    known = known_bits(schema, found)
    of_all = known.most
    if truth is not None:
        of_all = whole_bits(schema, found, coarse(truth.codes[:, found.columns], found.widths))
    whole = {column for at, column in enumerate(found.columns) if (found.known > at).all()}
    begun = {column for at, column in enumerate(found.columns) if (found.known > at).any()}
    for each in found.margins:
        counted = sum(count for _, count in each.values) == int(found.counts.sum())
        if each.values and (not each.partial if each.distinct else counted):
            whole.add(each.column)
        if each.values or len(each.ranges) > 1:
            begun.add(each.column)
    columns, some = (
        tuple(schema[each].name for each in sorted(names)) for names in (whole, begun | whole)
    )
    return Knowledge(known.known, of_all, columns, some)


def result_of(
    found: Found | None, options: Options, facts: PublicFacts, truth: Dataset | None
) -> Result:
    """Return what an attack found, checked against the truth if given."""
    schema = facts.schema
    if isinstance(found, ColumnsFound):
        return tuple(
            ColumnResult(name, values, _matches(each, truth, None), each.bits)
            for each in found.columns
            for name, values in _values(schema, [each]).items()
        )
    if isinstance(found, CountFound):
        right = is_right(found, truth, options, facts)
        exists = None if facts.claim.counts else found.exists
        box = dict(options.people[0])
        return CountResult(box, found.count, right, found.bits, exists, found.between)
    if not isinstance(found, PeopleFound):
        return None
    people = []
    fitting = None if truth is None else fitting_rows(facts, truth, options)
    wanted = options.attack == "attribute"
    for number, (known, person) in enumerate(zip(options.people, found.people, strict=True)):
        right = None
        if fitting is not None and person != PersonFound():
            rows = fitting[number]
            right = _fits(person, len(rows)) and all(
                _matches(each, truth, rows) for each in person.values
            )
        failed = tuple(schema[each].name for each in person.prior_failed)
        mine = PersonResult(
            dict(known),
            right,
            person.bits,
            present=None if options.present else person.present,
            unique=person.unique,
            matches=person.matches,
            values=_values(schema, person.values) if wanted else None,
            prior_failed=failed if wanted else None,
        )
        people.append(mine)
    return tuple(people)


def is_right(
    found: CountFound, truth: Dataset | None, options: Options, facts: PublicFacts
) -> bool | None:
    """Tell whether a count, or what is known instead of one, is right."""
    if truth is None:
        return None
    true = int(inside_box(truth, options.box_of(facts)).sum())
    if found.count is not None:
        return found.count == true
    if found.between is not None:
        return found.between[0] <= true <= found.between[1]
    if found.exists is None:
        return None
    return found.exists is (true > 0)


def _values(schema: Schema, found: Iterable[ColumnFound]) -> dict[str, tuple[ValueFound, ...]]:
    """Return the values of some columns, by the names of the columns."""
    return {
        schema[each.column].name: tuple(
            ValueFound(plain(schema[each.column].decode(code)), None if each.distinct else count)
            for code, count in each.values
        )
        for each in found
    }


def inside_box(truth: Dataset, box: Mapping[int, tuple[int, int]]) -> Flags:
    """Tell which rows of the true table lie in a box."""
    rows = np.ones(truth.records, np.bool_)
    for column, (low, high) in box.items():
        rows &= (truth.column(column) >= low) & (truth.column(column) < high)
    return rows


def _fits(person: PersonFound, matches: int) -> bool:
    """Tell whether everything said about how many records match is true."""
    said = (
        (person.present, matches > 0),
        (person.unique, matches == 1),
        (person.matches, matches),
    )
    return all(claim is None or claim == true for claim, true in said)


def fitting_rows(facts: PublicFacts, truth: Dataset, options: Options) -> list[list[int]]:
    """Return, for each person, the rows of the true table that fit what is known."""
    people = options.codes_of_people(facts)
    columns = list(people[0])
    rows: dict[tuple[int, ...], list[int]] = {tuple(who.values()): [] for who in people}
    for row, codes in enumerate(zip(*truth.codes[:, columns].T.tolist(), strict=True)):
        if codes in rows:
            rows[codes].append(row)
    return [rows[tuple(who[column] for column in columns)] for who in people]


def _matches(found: ColumnFound, truth: Dataset | None, rows: list[int] | None) -> bool | None:
    if truth is None:
        return None
    column: Codes = truth.column(found.column)[slice(None) if rows is None else rows]
    values, counts = np.unique(coarse(column[:, None], (found.width,)), return_counts=True)
    if found.distinct:
        return [code for code, _ in found.values] == list(values.tolist())
    actual: Values = list(zip(values.tolist(), counts.tolist(), strict=True))
    if rows is not None and found.partial:  # of people, what is said is judged, not what is left
        return set(found.values) <= set(actual)
    return actual == found.values


@dataclass(frozen=True, slots=True)
class Example:
    """A true record beside the reconstructed one that agrees with it most."""

    true: Mapping[str, Any]
    recovered: Mapping[str, Any]


def examples(found: Found | None, truth: Dataset | None, seed: int) -> tuple[Example, ...] | None:
    """Return some true records with the reconstructed one that agrees in most attributes.

    None where no table was reconstructed or the true one is not at hand. What was not found
    is left out of a reconstructed record.
    """
    if truth is None or not isinstance(found, TableFound) or not len(found.codes):
        return None
    rng = np.random.default_rng((seed, _SEED))
    actual = coarse(truth.codes[:, found.columns], found.widths)
    known = np.arange(len(found.columns)) < found.known[:, None]
    shown = []
    for row in rng.permutation(truth.records)[:SHOWN].tolist():
        best = int(np.argmax(((found.codes == actual[row]) & known).sum(axis=1)))
        told = found.known[best]
        true = _record(truth.schema, dict(enumerate(truth.codes[row].tolist())))
        codes = found.codes[best, :told].tolist()
        mine = dict(sorted(zip(found.columns[:told], codes, strict=True)))
        shown.append(Example(true, _record(truth.schema, mine)))
    return tuple(shown)


def _record(schema: Schema, codes: Mapping[int, int]) -> dict[str, Any]:
    return {schema[at].name: plain(schema[at].decode(code)) for at, code in codes.items()}
