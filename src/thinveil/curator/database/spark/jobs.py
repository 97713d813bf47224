"""Counting by plain jobs: one small job a round over parts that the executors keep.

Robust: when an executor is lost, Spark makes the handles of its parts anew, by lineage, and the
part with them. Rounds have no state, so a round that failed is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import numpy as np

from thinveil.curator.database.engines.protocol import not_interrupted
from thinveil.curator.database.spark.executors import COUNTED, NO_RECORDS, Handle
from thinveil.curator.database.spark.messages import Request, added, parts_of
from thinveil.curator.database.spark.parts import Gone, Parts
from thinveil.errors import TargetError
from thinveil.language.queries import Codes, QueryBatch
from thinveil.language.texts import many

_TRIES: Final = 3
"""How often a round is asked in vain before the run ends (a round figure)."""
CHANGED: Final = (
    "the records in Spark changed while they were counted: copy the table to where nobody writes "
    "(a folder of Parquet files, say), and start again"
)


def quiet(_: str) -> None:
    """Say nothing."""


def whole(handles: Iterable[Handle]) -> tuple[int, int]:
    """Return how many records all parts have together, and the seal of all of them."""
    listed = list(handles)
    return sum(each[1] for each in listed), sum(int(each[2], 16) for each in listed) % 2**64


class JobsCounter:
    """Counts by one plain job a round; `whole` is what all parts have together."""

    round_seconds = 0.05

    def __init__(self, parts: Parts, say: Callable[[str], None] = quiet) -> None:
        say(f"Spark: its executors are keeping the codes ({many(parts.number, 'part')})")
        self.note = f"one plain job a round over {many(parts.number, 'part')}"
        self._parts, self._say = parts, say
        self._sent = b""
        self.whole = whole(parts.keep())

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        counts = [self._counted(each) for each in parts_of(batch)]
        return batch.total(np.concatenate(counts))

    def _counted(self, batch: QueryBatch) -> Codes:
        request = Request.of(batch, with_cells=batch.cells.digest != self._sent)
        known: dict[Handle, bytes] = {}
        left = _TRIES
        while True:
            before = len(known)
            try:
                answers = self._parts.ask(request.to_bytes())
            except Exception as error:
                not_interrupted(error)
                if left == 1 or isinstance(error, Gone):
                    raise TargetError(
                        f"Spark failed while it counted ({type(error).__name__}): see that it is "
                        "up, then resume the run from its transcript"
                    ) from None
                answers = []
            handles = [handle for handle, _ in answers]
            if answers and whole(handles) != self.whole:
                raise TargetError(CHANGED)
            known |= {handle: each for handle, each in answers if each.startswith(COUNTED)}
            if answers and known.keys() >= {*handles}:
                self._sent = batch.cells.digest
                return added([known[each][1:] for each in handles], len(batch.cell))
            request = Request.of(batch, with_cells=True)
            if len(known) > before:
                continue  # a task may run where its part is not kept, and the next one where it is
            left -= 1
            if not left:
                raise TargetError(
                    "Spark's executors do not keep what they are given: let Spark count by SQL "
                    "(--spark sql)"
                )
            if not answers or any(each == NO_RECORDS for _, each in answers):
                self._say("Spark: something was lost, the codes are kept anew")
                with suppress(Exception):  # the next try says what is wrong
                    self._parts.renew()

    def close(self) -> None:
        """Take away what the executors keep."""
        with suppress(Exception):
            self._parts.forget()
