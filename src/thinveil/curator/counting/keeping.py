"""A few results kept by key; of too many, the one not used for longest goes (an LRU cache)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Keeps so many results.

    `drop` is what has to be done with one that goes. Where it is given, nothing goes before `trim`
    says so, since a statement under way may need several.
    """

    def __init__(self, most: int, drop: Callable[[T], object] | None = None) -> None:
        self._most = most
        self._drop = drop
        self._kept: OrderedDict[Hashable, T] = OrderedDict()

    def get_or(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under a key; make it where there is nothing."""
        if key not in self._kept:
            self._kept[key] = make()
            if self._drop is None:
                self.trim()
        self._kept.move_to_end(key)
        return self._kept[key]

    def trim(self) -> None:
        """Let go of what is too much."""
        while len(self._kept) > self._most:
            _, gone = self._kept.popitem(last=False)
            if self._drop is not None:
                self._drop(gone)
