"""Yes and no, true and false, in the spellings that programs write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

_PAIRS: Final = ((("false", "f"), ("true", "t")), (("no", "n"), ("yes", "y")))


def _spelled(words: Sequence[str]) -> tuple[str, ...]:
    """Return words in small letters, with a capital, and in capitals."""
    return tuple(
        dict.fromkeys(each for word in words for each in (word, word.title(), word.upper()))
    )


_GROUPS: Final = tuple((_spelled(no), _spelled(yes)) for no, yes in _PAIRS)


class Truths(NamedTuple):
    """Two public values, and what was done to the texts to get them."""

    values: tuple[str, ...]
    merged: bool


def truths_in(texts: Collection[str]) -> Truths | None:
    """Return the two values that all texts are spellings of, or None where there is no need to.

    A pair in one spelling stays as it is. Of a single word the other is added; a single letter
    may mean much else.

    >>> truths_in({"Yes", "YES", "n"}).values, truths_in({"TRUE"}).values
    (('no', 'yes'), ('FALSE', 'TRUE'))
    >>> truths_in({"Y", "N"}), truths_in({"F"}), truths_in({"yes", "perhaps"})
    (None, None, None)
    """
    for (no, yes), (spelled_no, spelled_yes) in zip(_PAIRS, _GROUPS, strict=True):
        if not texts or not set(texts) <= {*spelled_no, *spelled_yes}:
            continue
        sides = [set(texts).intersection(each) for each in (spelled_no, spelled_yes)]
        if len(texts) > 2 or (len(texts) > 1 and not all(sides)):
            return Truths((no[0], yes[0]), merged=True)
        (text, *others) = texts
        if not others and len(text) > 1:
            at = [*spelled_no, *spelled_yes].index(text) % len(spelled_no)
            return Truths((spelled_no[at], spelled_yes[at]), merged=False)
    return None


def spellings(values: Sequence[str]) -> Mapping[str, int]:
    """Return the places of all spellings of two values, or nothing where they are no such pair."""
    for spelled_no, spelled_yes in _GROUPS:
        if len(values) == 2 and values[0] in spelled_no and values[1] in spelled_yes:
            return dict.fromkeys(spelled_no, 0) | dict.fromkeys(spelled_yes, 1)
        if len(values) == 2 and values[1] in spelled_no and values[0] in spelled_yes:
            return dict.fromkeys(spelled_no, 1) | dict.fromkeys(spelled_yes, 0)
    return {}
