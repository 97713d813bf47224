"""How a run went: what had been rebuilt after so many questions, at what claimed loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from thinveil.attacker.findings import Found, TableFound
from thinveil.attacker.known_bits import Alone, known_bits
from thinveil.auditing.driver import Meter, Observer
from thinveil.language.queries import About
from thinveil.language.schema import Schema

_LOOKS: Final = 1.15  # the next look is due after so many times the answers,
_STEPS: Final = 1 / 40  # or so much further on in the attack's work
_FIRST: Final = 8
_MANY: Final = 250_000  # different records; of more, looks are rarer in proportion: they cost time


@dataclass(frozen=True, slots=True)
class Look:
    """What was asked and known at some moment of a run.

    So many records were rebuilt whole; of values, each together with those before it in its record.
    Bits are those of `known_bits`: what is known never gets less.
    """

    queries: int
    questions: int
    rounds: int
    spent: float
    whole: int
    values: int
    bits: float = 0.0


class Tracer:
    """Watches a run on behalf of somebody else, and looks now and then at what it has.

    When the driver calls, the attack has not seen the last answers yet. So a look belongs to
    what had been asked before them.
    """

    def __init__(self, watch: Observer, schema: Schema) -> None:
        self._watch, self._schema, self._alone = watch, schema, Alone()
        self._before = (0, 0, 0, 0.0)
        self._due = float(_FIRST)
        self._next = _STEPS
        self._looks: list[Look] = []

    def __call__(self, meter: Meter, about: About) -> None:
        """Pass a round on, and look if it is time."""
        self._watch(meter, about)
        if self._before[0] >= self._due or (self._before[0] and about.done >= self._next):
            found, rarer = about.so_far(), 1.0
            if isinstance(found, TableFound):
                self._looks.append(self._look(found))
                rarer = max(1.0, len(found.counts) / _MANY)
            self._due = max(self._before[0], _FIRST) * (1 + (_LOOKS - 1) * rarer)
            self._next = about.done + _STEPS * rarer
        self._before = (meter.queries, meter.questions, meter.rounds, float(meter.spent))

    def looks(self, found: Found | None) -> tuple[Look, ...]:
        """Return all looks, from before the first question to the end of the run."""
        if not isinstance(found, TableFound):
            return ()
        return (Look(0, 0, 0, 0.0, 0, 0), *self._looks, self._look(found))

    def _look(self, found: TableFound) -> Look:
        bits = known_bits(self._schema, found, self._alone).known
        before = self._looks[-1].bits if self._looks else 0.0
        return Look(*self._before, *sizes(found), max(bits, before))


def sizes(found: TableFound) -> tuple[int, int]:
    """Return how many records are rebuilt whole, and how many values are."""
    whole = int(found.counts[found.known == len(found.columns)].sum())
    return whole, int(np.dot(found.counts, found.known))


def shares(
    looks: tuple[Look, ...], records: int, columns: int, bits: float | None
) -> list[dict[str, Any]] | None:
    """Return looks as plain values, as shares of so many records, columns and bits."""
    if not looks:
        return None
    of = max(records, 1)
    return [
        {
            "queries": each.queries,
            "questions": each.questions,
            "rounds": each.rounds,
            "epsilon_claimed": each.spent,
            "records": min(1.0, each.whole / of),
            "values": min(1.0, each.values / (of * max(columns, 1))),
            "bits": min(1.0, each.bits / bits) if bits else None,
        }
        for each in looks
    ]
