"""Reads JSON value by value, so that junk is refused where it begins and nothing piles up.

An incremental ("pull") parser over the one of the standard library, which reads a text at one
go: 16 MB of `[],[],...` become 400 MB before anybody sees that they are no questions, and no
other thread runs meanwhile. Here lists and objects that may be large are walked through, and only
what fits into a window is read at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from thinveil.errors import FieldError

Pairs = tuple[tuple[str, object], ...]
"""An object, with names that stand twice; lists are lists, so nothing else is a tuple."""

WINDOW: Final = 2**16
"""Characters that are read at one go: a millisecond of junk."""

_SPACES: Final = " \t\n\r"
_SPACE: Final = re.compile(f"[{_SPACES}]*+")
_DECODER: Final = json.JSONDecoder(
    parse_constant=int,  # which knows no NaN and no infinity
    object_pairs_hook=tuple,
)


class TooLong(Exception):
    """A value ends, if at all, beyond the window."""


class Reader:
    """A text of JSON and how far it was read.

    Args:
        body: The text in UTF-8.
        window: How many characters a value may have that is read at once.

    Every method raises FieldError where the text is not JSON.
    """

    def __init__(self, body: bytes | bytearray, window: int = WINDOW) -> None:
        try:
            self._text = str(body, "utf-8")
        except UnicodeDecodeError:
            raise _no_json() from None
        self._size, self._window = window, ""
        self._start = self._at = 0

    def next(self) -> str:
        """Return the character with which the next value begins; nothing at the end."""
        found = self._text[self._at : self._at + 1]
        if found in _SPACES:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            found = self._text[self._at : self._at + 1]
        return found

    def value(self) -> object:
        """Read the next value; TooLong leaves the place as it was."""
        self.next()
        try:
            value, end = _DECODER.raw_decode(self._window, self._at - self._start)
        except (ValueError, RecursionError):
            return self._further()
        if end == len(self._window):  # a number may go on
            return self._further()
        self._at = self._start + end
        return value

    def _further(self) -> object:
        """Read the next value from a new window that begins with it."""
        self._start = self._at
        self._window = self._text[self._at : self._at + self._size]
        whole = self._start + len(self._window) == len(self._text)
        try:
            value, end = _DECODER.raw_decode(self._window)
        except (ValueError, RecursionError):
            raise _no_json() if whole else TooLong() from None
        if end == len(self._window) and not whole:
            raise TooLong
        self._at = self._start + end
        return value

    def elements(self) -> Iterator[int]:
        """Walk through a list: the caller reads a value for each number."""
        self._take("[")
        if self.next() == "]":
            self._at += 1
            return
        number = 0
        while True:
            yield number
            number += 1
            if self.next() != ",":
                self._take("]")
                return
            self._at += 1

    def members(self) -> Iterator[str]:
        """Walk through an object: the caller reads a value for each name; none stands twice."""
        self._take("{")
        seen: set[str] = set()
        more = self.next() != "}"
        while more:
            name = self._name()
            if name in seen:
                raise FieldError("", "a name stands twice in one object")
            seen.add(name)
            self._take(":")
            yield name
            more = self.next() == ","
            self._at += more
        self._take("}")

    def end(self) -> None:
        """See that nothing follows."""
        if self.next():
            raise _no_json()

    def _name(self) -> str:
        if self.next() == '"':
            try:
                return str(self.value())
            except TooLong:
                pass
        raise _no_json()

    def _take(self, wanted: str) -> None:
        if self.next() != wanted:
            raise _no_json()
        self._at += 1


def _no_json() -> FieldError:
    return FieldError("", "the body is not JSON (UTF-8, finite numbers)")
