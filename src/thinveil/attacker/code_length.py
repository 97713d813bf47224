"""How much was learned, in bits: how long a message must be that says what was found.

An attack that learns while it asks has beliefs of its own, and hands over what its result
was worth under them. Of all other attacks it is believed that every value of the public
domain is equally likely and records are independent (the plain code), and so it is where an
attack learned what is not so: no message is longer than that. A table is a multiset: in which
order its records stand is not part of the message, which saves log2(n!) bits where all differ.
Where limits are not public, the lowest and the highest value are told first if that is shorter
(`ways.domains`).

What a message would have to say besides is left out: how far a range was doubled, and how many
different values there are where counts stay unknown. So a figure may be a little too small,
never too large.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from thinveil.attacker.findings import (
    ColumnFound,
    ColumnsFound,
    CountFound,
    Found,
    PeopleFound,
    PersonFound,
    TableFound,
)
from thinveil.attacker.known_bits import Alone, known_bits
from thinveil.attacker.ways import Span, domains, log2_choose, log2_factorial, multiset_bits
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Flags
from thinveil.language.schema import Schema


def table_bits(schema: Schema, found: TableFound) -> tuple[float, ...]:
    """Return the bits of each column of a table, given the columns before it.

    Records that agree on the columns before form a group, and the values of a group are a
    multiset, or a set where counts stay unknown. The bits of all columns add up to those of
    the multiset of records, in whichever order columns are taken. What is not known yet does
    not count.
    """
    order = np.lexsort(found.codes.T[::-1])
    codes, known, counts = found.codes[order], found.known[order], found.counts[order]
    bits = []
    new_value = _changes(codes[:, :0])
    for place, column in enumerate(found.columns):
        rows, new_group = known > place, new_value
        if not rows.all():
            codes, known, counts = codes[rows], known[rows], counts[rows]
            new_group = _changes(codes[:, :place])
        if not len(codes):
            bits.append(0.0)
            continue
        new_value = new_group | _changes(codes[:, [place]])
        starts = np.flatnonzero(new_value)
        of_value = np.add.reduceat(counts, starts)
        groups = np.flatnonzero(new_group[starts])
        among = domains(schema[column], found.widths[place], codes[:, place])
        if found.distinct:
            values = np.diff(groups, append=len(starts))
            bits.append(min(ends + float(log2_choose(size, values).sum()) for size, ends in among))
            continue
        of_group = np.add.reduceat(of_value, groups)
        ways = log2_factorial(of_group).sum() - log2_factorial(of_value).sum()
        told = min(ends + float(of_group.sum()) * math.log2(size) for size, ends in among)
        bits.append(max(told - float(ways), 0.0))
    return tuple(bits)


def _changes(codes: Codes) -> Flags:
    """Tell which rows differ from the row before; the first one does."""
    changed = np.ones(len(codes), np.bool_)
    changed[1:] = (codes[1:] != codes[:-1]).any(axis=1)
    return changed


def _with_bits(found: ColumnFound, facts: PublicFacts, priors: Mapping[int, Span]) -> ColumnFound:
    """Return a column with its bits: its own if it has some, but not more than the plain ones."""
    plain = column_bits(facts.schema, found, priors.get(found.column))
    if found.bits is None:
        return replace(found, bits=plain)
    if not found.distinct and found.domain is not None:  # what ranges tell is known as well
        plain = max(plain, Alone().bits(facts.schema[found.column], found, facts.records))
    return replace(found, bits=min(found.bits, plain)) if found.bits > plain else found


def column_bits(schema: Schema, found: ColumnFound, within: Span | None = None) -> float:
    """Return the bits of one column by itself."""
    codes, counts = np.array(found.values, np.int64).reshape(-1, 2).T
    if not len(codes):
        return 0.0
    among, many = domains(schema[found.column], found.width, codes, within), np.array([len(codes)])
    if found.distinct:
        return min(ends + float(log2_choose(size, many)[0]) for size, ends in among)
    return min(ends + multiset_bits(counts, size) for size, ends in among)


def count_bits(facts: PublicFacts, found: CountFound) -> float | None:
    """Return the bits of a count: one of 0 to n, or where it is not shown none, some or all."""
    if found.between is not None and found.count is None:
        low, high = found.between
        return math.log2((facts.records + 1) / (high - low + 1))
    if found.count is None and found.exists is None:
        return None
    if facts.claim.counts:
        return math.log2(facts.records + 1)
    return math.log2(min(facts.records + 1, 3))


def person_bits(facts: PublicFacts, person: PersonFound, present: bool = False) -> float | None:
    """Return the bits of what was learned of a person whose values have their bits already.

    Being there or not is one bit; none, one or several that fit are log2(3); how many of
    them there are, one of 2 to n, adds to that. `present` says that being there was known.
    """
    if person == PersonFound():
        return None
    fitting = 1.0
    if person.unique is not None:
        fitting = math.log2(2 if present else 3)
    if person.matches is not None and person.matches > 1:
        fitting += math.log2(facts.records - 1)
    return fitting + sum(each.bits or 0.0 for each in person.values)


@dataclass(frozen=True, slots=True)
class CodeLength:
    """What was found with its bits, and what they rest on."""

    found: Found | None  # the same with the bits of every part
    total: float | None  # None where nothing was found
    columns: Mapping[int, float]  # of each attribute that was searched, by its position
    learned: bool = False  # whether these are bits under beliefs of the attack's own
    unlimited: tuple[int, ...] = ()  # attributes whose limits were taken from the values found


def code_length(
    found: Found | None,
    facts: PublicFacts,
    priors: Mapping[int, Span] | None = None,
    present: bool = False,
    asked: bool = True,
) -> CodeLength:
    """Measure what an attack found: by its own beliefs where it has some, else by even ones.

    Priors are bounds that it was told to believe in; `present` says that people were known to be
    in the table, and not `asked` that a count needed no question and so tells nothing.
    """
    if isinstance(found, TableFound):
        return _of_table(found, facts)
    if isinstance(found, ColumnsFound):
        columns = tuple(_with_bits(each, facts, {}) for each in found.columns)
        return _summed(ColumnsFound(columns), facts, columns, _own(found.columns, columns))
    if isinstance(found, CountFound):
        plain = count_bits(facts, found)
        own = found.bits is not None and (plain is None or found.bits <= plain)
        bits = found.bits if own else plain
        bits = bits if asked or bits is None else 0.0
        return CodeLength(replace(found, bits=bits), bits, {}, own)
    if isinstance(found, PeopleFound):
        people = tuple(_of_person(each, facts, priors or {}, present) for each in found.people)
        pairs = zip(found.people, people, strict=True)
        learned = any(
            each.bits is not None and (not each.values or _own(each.values, now.values))
            for each, now in pairs
        )
        values = tuple(value for each in people for value in each.values)
        measured = _summed(PeopleFound(people), facts, values, learned)
        told = [each.bits for each in people if each.bits is not None]
        unlimited = tuple(each for each in measured.unlimited if each not in (priors or {}))
        total = math.fsum(told) if told else None
        return replace(measured, total=total, unlimited=unlimited)
    return CodeLength(None, None, {})


def _of_table(found: TableFound, facts: PublicFacts) -> CodeLength:
    margins = tuple(_with_bits(each, facts, {}) for each in found.margins)
    alone = {each.column: each.bits or 0.0 for each in margins}
    learned = found.bits is not None or any(each.bits is not None for each in found.margins)
    if not found.known.any() and not any(map(_tells, margins)):
        return CodeLength(found, None, {}, learned)
    bits = table_bits(facts.schema, found) if found.bits is None else found.bits
    plain = known_bits(facts.schema, found)
    shown = found.bits is not None and _worth(bits, found, alone) > plain.known
    if shown:
        bits, learned = plain.columns, False
    # a column that was not looked for in records yet has the bits that it has by itself
    bits += tuple(alone.get(column, 0.0) for column in found.columns[len(bits) :])
    if found.bits is None:
        pairs = zip(found.columns, bits, strict=True)
        bits = tuple(max(told, alone.get(column, 0.0)) for column, told in pairs)
    columns = dict(zip(found.columns, bits, strict=True))
    seen = found.columns[: int(found.known.max())]
    unlimited = () if learned else _unlimited(facts, seen)
    found = replace(found, bits=bits, margins=margins)
    return CodeLength(found, math.fsum(bits), columns, learned, unlimited)


def _worth(bits: tuple[float, ...], found: TableFound, alone: Mapping[int, float]) -> float:
    """Return the bits of a table under an attack's own beliefs, columns by themselves included."""
    return math.fsum(bits) + math.fsum(alone.get(each, 0.0) for each in found.columns[len(bits) :])


def _own(before: tuple[ColumnFound, ...], after: tuple[ColumnFound, ...]) -> bool:
    """Tell whether the bits of any column are those of the attack's own beliefs."""
    pairs = zip(before, after, strict=True)
    return any(each.bits is not None and each.bits == now.bits for each, now in pairs)


def _tells(column: ColumnFound) -> bool:
    """Tell whether anything is known of a column: a value, or more than that all lie somewhere."""
    return bool(column.values) or len(column.ranges) > 1


def _of_person(
    person: PersonFound, facts: PublicFacts, priors: Mapping[int, Span], present: bool
) -> PersonFound:
    held = {column: span for column, span in priors.items() if column not in person.prior_failed}
    values = tuple(_of_values(each, facts, held, person.matches or 0) for each in person.values)
    less = math.fsum(
        (each.bits or 0.0) - (now.bits or 0.0)
        for each, now in zip(person.values, values, strict=True)
        if each.bits is not None
    )
    person = replace(person, values=values)
    if person.bits is None:
        return replace(person, bits=person_bits(facts, person, present))
    return replace(person, bits=max(person.bits - less, 0.0))


def _of_values(
    found: ColumnFound, facts: PublicFacts, priors: Mapping[int, Span], matches: int
) -> ColumnFound:
    """Return values of records that fit a person, with their bits.

    Where only some are known, which of the records have them is not, and tells nothing.
    """
    known = sum(count for _, count in found.values)
    measured = _with_bits(found, facts, priors)
    if found.bits is not None or not found.partial or known > matches:
        return measured
    whose = float(log2_choose(matches, np.array([known]))[0])
    return replace(measured, bits=max((measured.bits or 0.0) - whose, 0.0))


def _summed(
    found: Found, facts: PublicFacts, values: tuple[ColumnFound, ...], learned: bool
) -> CodeLength:
    columns: dict[int, float] = {}
    for each in values:
        columns[each.column] = columns.get(each.column, 0.0) + (each.bits or 0.0)
    total = math.fsum(columns.values()) if values else None
    unlimited = () if learned else _unlimited(facts, tuple(columns))
    return CodeLength(found, total, columns, learned, unlimited)


def _unlimited(facts: PublicFacts, columns: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(each for each in columns if facts.schema[each].lower is None))
