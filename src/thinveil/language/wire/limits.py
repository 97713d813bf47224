"""How much of a batch is taken at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from thinveil.errors import TooLarge
from thinveil.language.schema import Schema

MOST_EPSILON: Final = 1e100
"""No loss is larger: sums of any number of them stay within doubles."""

_JSON: Final = 2**24
_CELLS: Final = 2**24  # boxes times attributes: what a batch may hold once it is spread out


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a service takes at once.

    Args:
        answers: The most answers to one batch, repeats counted.
        boxes: The most boxes in one batch.
        body: The most bytes of one request.
        json: The most bytes of one in JSON, which takes far more room once it is read.
        pairs: The most pairs of boxes within questions: all of them may have to be compared.
    """

    answers: int
    boxes: int
    body: int
    json: int = _JSON
    pairs: int = 2**26

    @staticmethod
    def of(schema: Schema, answers: int, body: int) -> Limits:
        """Return limits that fit a table: the more attributes, the fewer boxes."""
        boxes = min(4 * answers, max(_CELLS // len(schema), 1024))
        return Limits(answers, boxes, body, min(body, _JSON))


def check_size(answers: int, boxes: int, pairs: int, limits: Limits) -> None:
    """Refuse a batch that is larger than a service takes at once: TooLarge names the limit."""
    if answers <= limits.answers and boxes <= limits.boxes and pairs <= limits.pairs:
        return
    for size, most, what in (
        (answers, limits.answers, "answers"),
        (boxes, limits.boxes, "boxes"),
        (pairs, limits.pairs, "pairs of boxes within questions"),
    ):
        if size > most:
            raise TooLarge(f"a batch may have at most {most} {what}: split it")
