"""Targets over libraries that nobody here wrote: every answer is theirs.

`opendp:FILE` is a threshold count released by OpenDP's Laplace measurement, scaled by local
sensitivity. `diffprivlib:FILE` is diffprivlib's `mean` of a predicate, without bounds.
"""

from __future__ import annotations

import thinveil
from thinveil.errors import UsageError


def table_at(address: str, schema: thinveil.Schema | None = None) -> thinveil.Dataset:
    """Return the table of a file, or so many of thinveil's embedded synthetic people."""
    if not address.isdigit():
        return thinveil.load(address, schema)
    if schema is not None:
        raise UsageError("--schema: the embedded people bring their own schema")
    return thinveil.people(int(address))
