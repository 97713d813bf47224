"""Who may hold how much, and whose turn it is: nobody who asks much keeps others waiting.

Admission control and fair queueing (round robin) over analysts. What does not fit is refused at
once, with the advice to come back; what fits waits, one of each analyst after the other.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from thinveil.curator.service.refusals import Refusal


class Room:
    """How much of one thing may be held at a time, by number of the analyst.

    Args:
        what: What is refused, for people.
        most: What all may hold together.
        each: What one of them may hold.
        always: What anybody may hold, however much the others do.
    """

    def __init__(self, what: str, most: int, each: int, always: int) -> None:
        self.what, self.most, self.each, self.always = what, most, each, always
        self.held: Counter[int] = Counter()
        self.total = 0

    def check(self, who: int, size: int) -> None:
        """Refuse what would be too much."""
        mine = self.held[who] + size
        if mine > self.always and (mine > self.each or self.total + size > self.most):
            raise Refusal(503, f"too {self.what}", retry=1)

    def take(self, who: int, size: int) -> None:
        """Hold as much, or refuse it."""
        self.check(who, size)
        self.held[who] += size
        self.total += size

    def give(self, who: int, size: int) -> None:
        """Let go of as much."""
        self.held[who] -= size
        self.total -= size


class Turns:
    """Lets so many go on at once, and those who wait one of each analyst in turn."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, who: int) -> AsyncIterator[None]:
        """Wait for a place, and pass it on in the end."""
        if self._free:
            self._free -= 1
        else:
            mine = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(who, deque()).append(mine)
            try:
                await mine
            except asyncio.CancelledError:
                if not mine.cancelled():
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give a place to the next one, whose analyst then stands last."""
        while self._waiting:
            who, line = next(iter(self._waiting.items()))
            del self._waiting[who]
            first = line.popleft()
            if line:
                self._waiting[who] = line
            if not first.done():
                first.set_result(None)
                return
        self._free += 1
