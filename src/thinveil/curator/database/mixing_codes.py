"""A fingerprint of all codes of a table: sums of numbers that are mixed from each record.

A hash of a multiset: it does not depend on the order of records.
"""

from __future__ import annotations

from typing import Any, Final

from thinveil.curator.database.words import Rows, column, remainder
from thinveil.language.schema import LIMIT

_PRIME: Final = 2**31 - 1
_OTHER: Final = 65_521
_MIXERS: Final = ((48_271, 11), (1_583_458_089, 7_919))
WAYS: Final = len(_MIXERS)
"""How many different sums there are."""


def mixed(codes: Rows, which: int) -> Any:
    """Mix the codes of a record into one number below 2^31, as often as it occurs.

    Every product stays below 2^63, so all databases agree, and none overflows.
    """
    factor, shift = _MIXERS[which]
    found = None
    for place, name in enumerate(names_of(codes)):
        code = remainder(column(name) + LIMIT, _PRIME)
        spread = remainder(code * factor + (place + 1) * shift, _PRIME)
        bent = remainder(spread * (remainder(spread, _OTHER) + 1) + 1, _PRIME)
        found = bent if found is None else remainder(found * bent, _PRIME)
    return found * column("n") if "n" in codes.columns else found


def names_of(codes: Rows) -> list[str]:
    """Return the names of columns of codes, without the one that says how often rows occur."""
    return [name for name in codes.columns if name != "n"]
