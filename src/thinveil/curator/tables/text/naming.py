"""What columns are called that have no name, or that of another, and which of them are left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from thinveil.curator.tables.coding import Column
from thinveil.curator.tables.reading import Reading, leaving_out
from thinveil.curator.tables.text.headers import counting

_PANDAS: Final = re.compile(r"Unnamed: \d+(?:\.\d+|_level_\d+)?", re.ASCII)
"""What pandas calls a column without a name when it reads a file, and then writes as its name."""
_INDEX: Final = re.compile(r"__index_level_\d+__", re.ASCII)
"""What pandas calls the index of a data frame without a name when it writes Parquet."""


def is_unnamed(name: str) -> bool:
    """Tell whether a column is without a name.

    >>> is_unnamed(" "), is_unnamed("Unnamed: 0"), is_unnamed("rownames")
    (True, True, False)
    """
    return not name.strip() or any(each.fullmatch(name) for each in (_PANDAS, _INDEX))


def needless(unnamed: Mapping[int, Column]) -> tuple[set[int], set[int]]:
    """Return which columns without a name count the rows, and which are empty, by their places.

    The texts of a column are in the order of their first row.
    """
    counts, empty = set(), set()
    for place, column in unnamed.items():
        texts = [text or "" for text in column.texts]
        if len(texts) == len(column.index) and counting(texts):
            counts.add(place)
        elif not any(text.strip() for text in texts):
            empty.add(place)
    return counts, empty


def named(
    names: Sequence[str], counts: Collection[int], empty: Collection[int], reading: Reading
) -> tuple[list[str | None], list[str]]:
    """Return the name of each column, None for those left out, and what was assumed.

    Args:
        names: The names in the file.
        counts: The places of columns without a name that only count the rows.
        empty: The places of those that are empty in all rows.
        reading: Whether such columns are kept, and which are asked for by their new names.
    """
    called: list[str | None] = [name if name.strip() else None for name in names]
    taken = {name for name in called if name is not None}
    needless: dict[int, str] = {}
    assumed = []
    for place, name in enumerate(names):
        if called[place] is None:
            called[place] = _free(f"column {place + 1}", taken)
        asked = called[place] in (*reading.only, *reading.drop)
        if is_unnamed(name) and place in (*counts, *empty) and not (reading.keep_unnamed or asked):
            needless[place] = "counts the rows" if place in counts else "is empty"
    if len(needless) == len(names):
        needless.pop(0)
    for why in dict.fromkeys(needless.values()):
        assumed += [_left_out([place for place in needless if needless[place] == why], why)]
    wanted = reading.kept([str(each) for each in called])
    new = [
        place
        for place, name in enumerate(names)
        if not name.strip() and place not in needless and called[place] in wanted
    ]
    if new:
        assumed.append(_named_now(new, [str(called[place]) for place in new]))
    assumed += [
        f"the column {name!r} is the index of a pandas data frame; it can be left out "
        f"({leaving_out(name)})"
        for place, name in enumerate(names)
        if _INDEX.fullmatch(name)
        and place not in needless
        and name not in (*reading.only, *reading.drop)
    ]
    seen: set[str] = set()
    for place, each in enumerate(called):
        if each is None or place in needless:
            called[place] = None
            continue
        if each in seen:
            called[place] = _free(each, taken, start=2)
            assumed += _second(each, str(called[place]), place, reading)
        seen.add(str(called[place]))
    return called, assumed


def _second(name: str, called: str, place: int, reading: Reading) -> list[str]:
    """Say what the second column of a name is called, unless it is left out."""
    said = (
        f"two columns have the name {name!r}, and column {place + 1} is called {called!r}; it can "
        f"be left out ({leaving_out(called)})"
    )
    return [said] if reading.kept([called]) else []


def _free(name: str, taken: set[str], start: int = 1) -> str:
    """Return a name that no other column has, and take it."""
    wanted, number = name if start == 1 else f"{name} ({start})", max(start, 1)
    while wanted in taken:
        number += 1
        wanted = f"{name} ({number})"
    taken.add(wanted)
    return wanted


def _left_out(places: Sequence[int], why: str) -> str:
    if len(places) == 1:
        said = "in every row " if why == "is empty" else ""
        return f"column {places[0] + 1} has no name and {why} {said}".rstrip() + (
            ", so it is left out (--keep-unnamed keeps it)"
        )
    verbs = {"counts the rows": "count the rows", "is empty": "are empty in every row"}
    return (
        f"columns {_places(places)} have no name and {verbs[why]}, so they are left out "
        "(--keep-unnamed keeps them)"
    )


def _named_now(places: Sequence[int], names: Sequence[str]) -> str:
    leave = leaving_out(*names)
    if len(places) == 1:
        return (
            f"column {places[0] + 1} has no name and is called {names[0]!r}; it can be left out "
            f"({leave})"
        )
    to = " and " if len(names) == 2 else " to "
    called = f"{names[0]!r}{to}{names[-1]!r}"
    return (
        f"columns {_places(places)} have no name and are called {called}; they can be left out "
        f"({leave})"
    )


def _places(places: Sequence[int]) -> str:
    if len(places) > 5:
        return f"{places[0] + 1} to {places[-1] + 1}, {len(places)} of them,"
    return " and ".join(str(place + 1) for place in places)
