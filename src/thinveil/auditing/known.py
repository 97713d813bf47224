"""What is known beforehand, from words to codes: people, predicates and believed bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thinveil.attacker.terms import Person
from thinveil.errors import UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.schema import LOWEST, MISSING, Attribute

Texts = Mapping[str, str]


def people_of(known: Mapping[str, object] | Sequence[Mapping[str, object]]) -> tuple[Texts, ...]:
    """Return one person or many as plain options: text for every value, "" for missing."""
    many = [known] if isinstance(known, Mapping) else known
    return tuple(
        {name: "" if value is None else str(value) for name, value in who.items()} for who in many
    )


def codes_of(facts: PublicFacts, people: Sequence[Texts]) -> list[Person]:
    """Return what is known about people in codes, the same columns for all."""
    coded: list[Person] = []
    for number, who in enumerate(people, start=1):
        person = {}
        for name, text in who.items():
            column = facts.schema.column(name)
            person[column] = _code(facts, column, text, number)
        if coded and person.keys() != coded[0].keys():
            raise UsageError(f"person {number}: the same columns must be known of all people")
        coded.append(person)
    return coded


def _code(facts: PublicFacts, column: int, text: str, number: int = 1) -> int:
    """Return the code of something known; what the attacker knows may be shown to him."""
    attribute = facts.schema[column]
    if attribute.missing and text == "":
        return MISSING
    who = f"person {number}, column {attribute.name!r}"
    if text == "":
        raise UsageError(
            f"{who}: nothing is given; the same columns must be known of all people, and values "
            "of this one cannot be missing"
        )
    try:
        code = attribute.encode(text)
    except ValueError as error:
        raise UsageError(f"{who}: the known value is {error}") from None
    if facts.claim.universe == "bounded" and not _inside(attribute, code):
        raise UsageError(f"{who}: the known value lies outside the bounds")
    return code


def _inside(attribute: Attribute, code: int) -> bool:
    assert attribute.lower is not None
    assert attribute.upper is not None
    return attribute.lower <= code <= attribute.upper


def span(attribute: Attribute, text: str) -> tuple[int, int]:
    """Read "low..high", both ends included; ends between two steps are moved outwards."""
    low, dots, high = text.partition("..")
    try:
        if not dots:
            raise ValueError("two values with .. between them are needed")
        span = attribute.around(low.strip())[0], attribute.around(high.strip())[1]
    except ValueError as error:
        raise UsageError(f"column {attribute.name!r}: cannot read LOW..HIGH: {error}") from None
    if span[0] > span[1]:
        raise UsageError(f"column {attribute.name!r}: LOW is above HIGH")
    return span


def box_of(facts: PublicFacts, predicate: Texts) -> dict[int, tuple[int, int]]:
    """Read a predicate of single values and of ranges written as low..high."""
    box = {}
    for name, text in predicate.items():
        column = facts.schema.column(name)
        attribute = facts.schema[column]
        if ".." in text and attribute.kind != "category":
            low, high = span(attribute, text)
            box[column] = (max(low, LOWEST), high + 1)
        else:
            code = _code(facts, column, text)
            box[column] = (code, code + 1)
    return box
