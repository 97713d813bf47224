"""What an attack found, as plain values, checked against the truth where it is at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def result_of(
    found: Found | None, options: Options, facts: PublicFacts, truth: Dataset | None
) -> Any:
    """Return what an attack found, as plain values, checked against the truth if given."""
    schema = facts.schema
    if isinstance(found, ColumnsFound):
        return [
            {
                "column": schema[each.column].name,
                "values": _values(schema, each),
                "exact": _matches(each, truth, None),
                "bits": each.bits,
            }
            for each in found.columns
        ]
    if isinstance(found, CountFound):
        return {
            "predicate": dict(options.people[0]),
            "count": found.count,
            **({} if facts.claim.counts else {"exists": found.exists}),
            "correct": is_right(found, truth, options, facts),
            "bits": found.bits,
        }
    if isinstance(found, PeopleFound):
        people = []
        fitting = None if truth is None else fitting_rows(facts, truth, options)
        for number, (known, person) in enumerate(zip(options.people, found.people, strict=True)):
            entry: dict[str, Any] = {"known": dict(known), "correct": None, "bits": person.bits}
            if fitting is not None and person != PersonFound():
                rows = fitting[number]
                entry["correct"] = _fits(person, len(rows)) and all(
                    _matches(each, truth, rows) for each in person.values
                )
            for name in ("present", "unique", "matches"):
                assumed = name == "present" and options.present
                if getattr(person, name) is not None and not assumed:
                    entry[name] = getattr(person, name)
            if options.attack == "attribute":
                entry["values"] = {
                    schema[each.column].name: _values(schema, each) for each in person.values
                }
                entry["prior_failed"] = [schema[each].name for each in person.prior_failed]
            people.append(entry)
        return people
    return None


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


def _values(schema: Schema, found: ColumnFound) -> list[dict[str, Any]]:
    attribute = schema[found.column]
    return [
        {
            "value": plain(attribute.decode(code)),
            "records": None if found.distinct else count,
        }
        for code, count in found.values
    ]


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
