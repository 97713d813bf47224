"""What an attack found, as values for people, checked against the truth where it is at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from thinveil.attacker.findings import (
    ColumnFound,
    ColumnsFound,
    CountFound,
    Found,
    PeopleFound,
    PersonFound,
)
from thinveil.attacker.terms import Values
from thinveil.auditing.options import Options
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Flags
from thinveil.language.schema import Schema
from thinveil.verdicts.phrases import plain
from thinveil.verdicts.scoring import coarse
from thinveil.verdicts.typed import OMIT, Mark


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


Result = tuple[ColumnResult, ...] | tuple[PersonResult, ...] | CountResult | None
"""What an attack other than on the whole data set found."""


def result_of(
    found: Found | None, options: Options, facts: PublicFacts, truth: Dataset | None
) -> Result:
    """Return what an attack found, checked against the truth if given."""
    schema = facts.schema
    if isinstance(found, ColumnsFound):
        return tuple(
            ColumnResult(
                schema[each.column].name,
                _values(schema, each),
                _matches(each, truth, None),
                each.bits,
            )
            for each in found.columns
        )
    if isinstance(found, CountFound):
        right = is_right(found, truth, options, facts)
        exists = None if facts.claim.counts else found.exists
        return CountResult(dict(options.people[0]), found.count, right, found.bits, exists)
    if not isinstance(found, PeopleFound):
        return None
    people = []
    fitting = None if truth is None else fitting_rows(facts, truth, options)
    for number, (known, person) in enumerate(zip(options.people, found.people, strict=True)):
        right = None
        if fitting is not None and person != PersonFound():
            rows = fitting[number]
            right = _fits(person, len(rows)) and all(
                _matches(each, truth, rows) for each in person.values
            )
        wanted = options.attack == "attribute"
        people.append(
            PersonResult(
                dict(known),
                right,
                person.bits,
                present=None if options.present else person.present,
                unique=person.unique,
                matches=person.matches,
                values={schema[each.column].name: _values(schema, each) for each in person.values}
                if wanted
                else None,
                prior_failed=tuple(schema[each].name for each in person.prior_failed)
                if wanted
                else None,
            )
        )
    return tuple(people)


def is_right(
    found: CountFound, truth: Dataset | None, options: Options, facts: PublicFacts
) -> bool | None:
    """Tell whether a count, or what is known instead of one, is right."""
    if truth is None or (found.count is None and found.exists is None):
        return None
    true = int(inside_box(truth, options.box_of(facts)).sum())
    if found.count is not None:
        return found.count == true
    return found.exists is (true > 0)


def _values(schema: Schema, found: ColumnFound) -> tuple[ValueFound, ...]:
    attribute = schema[found.column]
    return tuple(
        ValueFound(plain(attribute.decode(code)), None if found.distinct else count)
        for code, count in found.values
    )


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
    column: Codes = truth.column(found.column)
    if rows is not None:
        column = column[rows]
    values, counts = np.unique(coarse(column[:, None], (found.width,)), return_counts=True)
    if found.distinct:
        return [code for code, _ in found.values] == list(values.tolist())
    actual: Values = list(zip(values.tolist(), counts.tolist(), strict=True))
    return actual == found.values
