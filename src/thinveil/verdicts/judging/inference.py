"""What a reconstruction is good for: naming one attribute of somebody whose others are known."""

from __future__ import annotations

import numpy as np

from thinveil.attacker.findings import TableFound
from thinveil.language.numbers.different import Different
from thinveil.language.queries import Codes
from thinveil.language.scrambling import GOLDEN, Words, scrambled
from thinveil.verdicts.judging.chance import held
from thinveil.verdicts.judging.intervals import Share
from thinveil.verdicts.judging.others import Others
from thinveil.verdicts.judging.scoring import counted, most_common


def inferred(found: TableFound, actual: Codes, even: Codes, *, known: bool) -> list[Share]:
    """Judge, for each column of a reconstruction, how well it names values of people.

    Among the reconstructed records that agree with a person in all other attributes, the
    value that is most common is named. Where no record agrees it is the most common value of
    all that were found, and where none was found, nothing. Whoever asks nothing picks evenly,
    whoever knows the marginals names the most common value, and whoever knows all other records
    what they suggest (`others`); not even who has the true table is always right, since people may
    share all other attributes.

    The true table and the evenly used values have the columns and the precision of the
    reconstruction. If that is `known` to be the true table, half of the work is saved.
    """
    people = counted(actual, found.distinct)[0]
    there = Different.of(people)  # people who are alike are looked at once
    rows, alike = there.rows, there.often
    whole = found.known == len(found.columns)
    mine, counts = found.codes[whole], found.counts[whole]
    true_keys, my_keys = _keys(rows), _keys(mine)
    outcomes = []
    order = np.argsort(found.columns)  # so that no baseline hangs on the order of a search
    others = Others(counted(actual[:, order], found.distinct)[0])
    for place in range(len(found.columns)):
        column = rows[:, place]
        keys = true_keys - _key(column, place)
        values, number = np.unique(column, return_inverse=True)
        often = np.bincount(number.reshape(-1), alike)
        possible = _named(keys, keys, column, alike, np.full(len(rows), values[0]))
        right = most = int(alike[possible == column].sum())
        if not known:
            seen, often_seen = _seen(found, place)
            right = 0
            if len(seen):
                usual = most_common(seen, often_seen)
                among = my_keys - _key(mine[:, place], place)
                otherwise = np.full(len(rows), usual)
                named = _named(keys, among, mine[:, place], counts, otherwise)
                right = int(alike[named == column].sum())
        nothing = float((held(even[:, place], column) * alike).sum()) / len(even)
        suggested = others.named(*_apart(order, place))
        outcomes.append(
            Share(
                right,
                len(people),
                nothing,
                float(often.max()),
                possible_share=most / max(len(people), 1),
                others=float(np.count_nonzero(suggested)),
            )
        )
    return outcomes


def _apart(order: Codes, place: int) -> tuple[int, list[int]]:
    """Return where a column stands in another order, and where all others do."""
    at = order.tolist().index(place)
    return at, [each for each in range(len(order)) if each != at]


def _seen(found: TableFound, place: int) -> tuple[Codes, Codes]:
    """Return the values found of a column, and how often: those of records, or by itself more."""
    some = found.known > place
    values, counts = found.codes[some, place], found.counts[some]
    for each in found.margins:
        alone = np.array(each.values, np.int64).reshape(-1, 2)
        if each.column == found.columns[place] and alone[:, 1].sum() > counts.sum():
            return alone[:, 0], alone[:, 1]
    return values, counts


def _named(wanted: Words, keys: Words, values: Codes, counts: Codes, otherwise: Codes) -> Codes:
    """Return, for each wanted key, the most common value among the rows with that key."""
    if not len(keys):
        return otherwise
    order = np.lexsort((values, keys))
    keys, values, counts = keys[order], values[order], counts[order]
    starts = np.flatnonzero(
        np.concatenate([[True], (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])])
    )
    weights = np.add.reduceat(counts, starts)
    keys, values = keys[starts], values[starts]
    order = np.lexsort((-weights, keys))
    keys, values = keys[order], values[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    keys, values = keys[first], values[first]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    named: Codes = np.where(keys[place] == wanted, values[place], otherwise)
    return named


def _keys(rows: Codes) -> Words:
    """Return a number for each row, the sum of one for each of its values.

    Rows are told apart by 64 bits that look random: two different ones among millions share
    a number with a chance of less than one in a million.
    """
    total = np.zeros(len(rows), np.uint64)
    for place in range(rows.shape[1]):
        total += _key(rows[:, place], place)
    return total


def _key(values: Codes, place: int) -> Words:
    """Mix values and the place of their column into 64 bits."""
    return scrambled(values.astype(np.uint64) + np.uint64((place + 1) * int(GOLDEN) % 2**64))
