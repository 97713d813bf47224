"""Whether the codes of a table in a database fit its schema."""

from __future__ import annotations

from typing import Any, Final

from thinveil.curator.database.codes import GAP
from thinveil.curator.database.fields import counts_of
from thinveil.curator.database.session import Session
from thinveil.curator.database.words import (
    Rows,
    all_rows,
    any_of,
    between,
    column,
    different,
    equal,
    is_null,
    negated,
    number,
)
from thinveil.curator.tables.coding import NO_VALUE, UNLISTED, on_grid
from thinveil.curator.tables.dataset import bounds_of
from thinveil.errors import DataError
from thinveil.language.schema import Attribute, Grid, Schema
from thinveil.language.texts import many

_OUTSIDE: Final = (
    "lie outside the bounds of the schema: widen the bounds of this attribute, or use a coarser "
    "step"
)
_ONE: Final = {"are": "is", "have": "has", "hold": "holds", "lie": "lies"}
"""What one row does, where several do so."""


def checked(session: Session, codes: Rows, schema: Schema, where: str) -> int:
    """Return how many records there are, or say which column does not fit its attribute.

    What exactly is wrong is asked only where something is: one test a column is read faster.
    """
    tests = [_tests(place, attribute) for place, attribute in enumerate(schema)]
    wrong = {f"wrong{place}": any_of(*each.values()) for place, each in enumerate(tests)}
    found = counts_of(session, codes, wrong)
    if not found["records"]:
        raise DataError(f"{where}: the table has no records: give at least one row of data")
    for place, attribute in enumerate(schema):
        if not found[f"wrong{place}"]:
            continue
        said = {f"said{at}": what for at, what in enumerate(tests[place])}
        again = counts_of(session, codes, dict(zip(said, tests[place].values(), strict=True)))
        for key, what in said.items():
            if rows := again[key]:
                verb, rest = what.split(" ", 1)
                which = f"{many(rows, 'row')} of column {attribute.name!r}"
                raise DataError(f"{which} {_ONE[verb] if rows == 1 else verb} {rest}")
        raise DataError(f"{where} was changed while it was read: open it when nobody writes to it")
    return found["records"]


def check_joined(session: Session, rows: Rows, codes: Rows, records: int, where: str) -> None:
    """See that each row has one code a column, though texts have theirs from lists.

    A database that takes different texts for the same would join a row to several of a list. As
    others may write, two statements may differ: only then both are asked at once.
    """
    if not codes.query.args.get("joins"):
        return
    ((plain,),) = session.rows(rows.select({"rows": all_rows()}))
    if plain == records:
        return
    counts = ({"place": number(n), "rows": all_rows()} for n in range(2))
    found = dict(session.rows(*map(Rows.select, (rows, codes), counts)))
    if found[0] != found[1]:
        raise DataError(
            f"{where}: {many(found[0], 'row')} became {found[1]} when texts were looked up in "
            "lists: the database takes different texts for the same, or shows other rows each time "
            "it is asked. Use a view whose texts are compared letter by letter"
        )


def _tests(place: int, attribute: Attribute) -> dict[str, Any]:
    """Return what rows of a column must not be, each by what is said of such rows."""
    code, (lower, upper) = column(f"c{place}"), bounds_of(attribute)
    inside = between(code, lower, upper)
    tests = {_misfit(attribute): is_null(code)}
    if not attribute.missing:
        tests[f"have {NO_VALUE}"] = equal(code, number(GAP))
    tests[_OUTSIDE] = different(code, number(GAP)).and_(negated(inside))
    return tests


def _misfit(attribute: Attribute) -> str:
    if not isinstance(attribute, Grid):
        return f"hold {UNLISTED}"
    return (
        f"are not {on_grid(attribute)}, or too large for it: correct the rows, change kind, step "
        "or format in the schema, or set missing = true where words such as NA stand for none"
    )
