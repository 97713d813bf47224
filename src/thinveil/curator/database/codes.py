"""From the values of a database to codes, inside the database.

What comes out is what `load` makes of the same content. Numbers, dates and times are coded by
arithmetic where they are. Texts are coded by a table of the distinct texts, which is the one
thing that leaves the database, and only where no schema lists them. Numbers and dates that are
stored as texts, and floats that no arithmetic of a database codes exactly, are read by this
process where it reads the file itself (text files, DuckDB, SQLite).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import localcontext
from typing import Any, Final

import numpy as np

from thinveil.curator.database.engines.protocol import ibis
from thinveil.curator.database.fields import PLACES, Field, counts_of
from thinveil.curator.database.session import Session
from thinveil.curator.tables.coding import Column, coder, gap_in
from thinveil.curator.tables.inferring import (
    TIMES,
    Found,
    Inferred,
    clock_grid,
    infer_attribute,
    settled,
    time_grid,
)
from thinveil.curator.tables.number_grids import decimal_grid
from thinveil.curator.tables.reading import Reading
from thinveil.curator.tables.recognising import UNKNOWN, Customs
from thinveil.errors import DataError
from thinveil.language.formats.truths import spellings
from thinveil.language.schema import EXACT, LIMIT, NUMBERS, Attribute, Categories, Grid, Schema
from thinveil.language.texts import NUMBER, many

GAP: Final = -LIMIT
"""The code of a missing value inside a database, below all others."""

_WHOLE_FLOAT: Final = 2**53

# ---- what a column is, where no schema says it


def infer_fields(
    session: Session, table: Any, fields: Sequence[Field], reading: Reading
) -> tuple[Inferred, dict[str, list[str]]]:
    """Return the schema that fits the columns, without bounds, and the distinct texts read."""
    tests = {
        f"t{place}_{key}": each
        for place, field in enumerate(fields)
        for key, each in _tests(field).items()
    }
    found = counts_of(session, table, tests)
    if not found["records"]:
        raise DataError("the table has no records: give one with at least one row of data")
    inferred: list[Found] = []
    gaps: dict[int, bool] = {}
    texts: dict[str, list[str]] = {}
    for place, field in enumerate(fields):
        start = f"t{place}_"
        mine = {key[len(start) :]: n for key, n in found.items() if key.startswith(start)}
        if field.kind == "text":
            texts[field.name] = distinct(session, table, field)
            gaps[place] = mine["gap"] > 0
            inferred.append(_of_texts(field.name, texts[field.name], gaps[place], reading))
        elif not mine["present"]:
            inferred.append(Found(Categories(field.name, (), missing=True)))
        elif session.engine.here and _unfit(field, mine):
            texts[field.name] = _as_read(session, table, field)
            gaps[place] = mine["gap"] > 0
            inferred.append(_of_texts(field.name, texts[field.name], gaps[place], reading))
        else:
            inferred.append(Found(_of_numbers(field, mine)))

    def again(at: int, customs: Customs) -> Found:
        name = fields[at].name
        return _of_texts(name, texts[name], gaps[at], reading, customs)

    return settled(inferred, reading, again), texts


def _tests(field: Field) -> dict[str, Any]:
    """Return what is counted of a column: each key stands for the rows that do not fit."""
    tests = {"gap": field.gap}
    if field.kind == "text":
        return tests
    there = ~field.gap
    tests["present"] = there
    if field.sound is not None:
        tests["unsound"] = there & ~field.sound
        there = there & field.sound
    if field.kind == "decimal":
        for places in range(field.places + 1):
            tests[f"p{places}"] = there & (field.value.round(places) != field.value)
    if field.kind == "float":
        finite = field.value.abs() <= (3.4028235e38 if field.single else 1.7976931348623157e308)
        small = field.value.cast("float64").abs() <= _WHOLE_FLOAT
        tests |= {"infinite": there & ~finite, "large": there & finite & ~small}
        for places in range(PLACES + 1):
            # What is too large to have decimals is left to the codes to refuse.
            tests[f"p{places}"] = there & small & ~_float_at(field, places)[0]
    if field.kind in ("date", "time", "clock"):
        for width in TIMES:
            tests[f"w{width}"] = there & (field.value % width != 0)
    return tests


def _unfit(field: Field, found: dict[str, int]) -> bool:
    """Tell whether numbers are more than arithmetic in a database codes exactly."""
    if found.get("unsound") or found.get("infinite") or field.kind not in ("float", "decimal"):
        return False
    if field.single and found["p0"]:
        return True  # its shortest decimals, which files hold, are not the nearest ones
    unfit = all(found[f"p{places}"] for places in range(field.places + 1))
    return unfit or found.get("large", 0) > 0


def _rows(count: int) -> str:
    return many(count, "row is", "rows are")


def _of_numbers(field: Field, found: dict[str, int]) -> Grid:
    gaps = found["gap"] > 0
    if found.get("unsound"):
        what = "too large" if field.kind == "decimal" else "beyond the years 1 to 9999"
        raise DataError(
            f"column {field.name!r}: {_rows(found['unsound'])} {what} or too fine: round or "
            "correct them"
        )
    if found.get("infinite"):
        raise DataError(
            f"column {field.name!r}: {_rows(found['infinite'])} infinite: correct them, or "
            "make them NULL (in a view, say)"
        )
    if field.kind == "clock":
        return clock_grid(field.name, lambda width: not found[f"w{width}"], gaps)
    if field.kind in ("date", "time"):
        return time_grid(field.name, lambda width: not found[f"w{width}"], gaps)
    for places in range(field.places + 1):
        if field.kind == "integer" or not found[f"p{places}"]:
            return decimal_grid(field.name, -places, gaps)
    raise DataError(
        f"column {field.name!r}: {many(found[f'p{field.places}'], 'value')} of more than {PLACES} "
        "decimals, which databases cannot count exactly: round the column (in a view, say)"
    )


def distinct(session: Session, table: Any, field: Field) -> list[str]:
    """Fetch the distinct texts of a column."""
    rows = session.rows(table.select(text=field.text).distinct())
    return [row[0] for row in rows if row[0] is not None]


def _as_read(session: Session, table: Any, field: Field) -> list[str]:
    """Fetch the distinct values of a column as texts, as a file would hold them."""
    if field.kind != "float":
        return distinct(session, table, field)
    rows = session.rows(table.select(value=field.value.cast("float64")).distinct())
    values = (row[0] for row in rows if row[0] is not None and row[0] == row[0])
    return [str(_own(field, each)).removesuffix(".0") for each in values]


def _own(field: Field, value: float | str) -> Any:
    """Return a number as the kind of float that a column holds."""
    return np.float32(value) if field.single else float(value)


def _of_texts(
    name: str, texts: list[str], gaps: bool, reading: Reading, customs: Customs = UNKNOWN
) -> Found:
    known: list[str | None] = [*texts, None] if gaps else [*texts]
    try:
        return infer_attribute(
            Column(name, known, np.arange(len(known)), whole=False), reading, customs
        )
    except DataError:
        raise DataError(
            f"column {name!r} holds texts of numbers that are infinite or have too many decimals: "
            'correct them, or give a schema file with kind = "category" for the column'
        ) from None


# ---- codes


def code_table(
    session: Session,
    table: Any,
    fields: Sequence[Field],
    schema: Schema,
    reading: Reading,
    texts: dict[str, list[str]],
) -> Any:
    """Return the table of codes c0, c1, ... as an expression; a value that fits nothing is null."""
    by_name = {field.name: field for field in fields}
    joined = table
    tests: dict[int, tuple[Any, Any]] = {}
    for place, attribute in enumerate(schema):
        field = by_name[attribute.name]
        if isinstance(attribute, Categories) and not attribute.values and field.kind != "text":
            tests[place] = ibis.literal(False), GAP
        elif field.kind == "text" or isinstance(attribute, Categories):
            if field.text is None:
                raise _mismatch(field, attribute)
            if field.kind == "text" and isinstance(attribute, Grid) and field.name not in texts:
                if not session.engine.here:
                    raise DataError(
                        f"column {field.name!r} is stored as text, and the schema says "
                        f"{attribute.kind}: its values would have to leave the database to be "
                        "read. Convert it there (in a view, say)"
                    )
                texts[field.name] = distinct(session, table, field)
            known = _mapping(attribute, texts.get(field.name), reading)
            joined = _with_codes(session, joined, place, field, known)
        elif field.name in texts or _beyond(session, table, field, attribute):
            if field.name not in texts:
                texts[field.name] = _as_read(session, table, field)
            known = _mapping(attribute, texts[field.name], reading)
            joined = _with_codes(session, joined, place, field, known)
        else:
            valid, code = _code(field, attribute)
            tests[place] = (valid if field.sound is None else field.sound & valid), code
    chosen = {}
    for place, attribute in enumerate(schema):
        valid, code = tests.get(place) or (ibis.literal(True), joined[f"m{place}"])
        gap = by_name[attribute.name].gap
        chosen[f"c{place}"] = ibis.cases((gap, GAP), (valid, code)).cast("int64")
    return joined.select(**chosen)


def _beyond(session: Session, table: Any, field: Field, grid: Grid) -> bool:
    """Tell whether values must be read to be coded: arithmetic in a database does not suffice."""
    exponent = grid.step.normalize(EXACT).as_tuple().exponent
    assert isinstance(exponent, int)
    beyond = grid.kind == "double" or grid.rounded or (grid.kind in NUMBERS and -exponent > PLACES)
    if beyond and not (session.engine.here and (field.kind == "float" or field.text is not None)):
        what = "doubles" if grid.kind == "double" else f"steps of {grid.step}"
        what += ", rounded down," if grid.rounded else ""
        raise DataError(
            f"column {field.name!r}: {what} cannot be counted exactly in a database; round the "
            f"column there (in a view, say) and give a step of at most {PLACES} decimals"
        )
    if beyond or field.kind != "float" or not session.engine.here:
        return beyond
    off = ~field.gap & ~_code(field, grid)[0]
    return (field.single and grid.step < 1) or counts_of(session, table, {"off": off})["off"] > 0


def _with_codes(
    session: Session, table: Any, place: int, field: Field, known: dict[str, int]
) -> Any:
    """Join the codes of known values to a table."""
    key, value = f"t{place}", f"m{place}"
    if field.kind != "float":
        codes = np.array(list(known.values()), np.int64)
        sent = session.put({key: list(known), value: codes})
        return table.left_join(sent, field.text == sent[key])
    floats = {
        float(_own(field, text)): code for text, code in known.items() if NUMBER.fullmatch(text)
    }
    codes = np.array(list(floats.values()), np.int64)
    sent = session.put({key: np.array(list(floats), np.float64), value: codes})
    return table.left_join(sent, field.value.cast("float64") == sent[key])


def _mapping(attribute: Attribute, texts: Sequence[str] | None, reading: Reading) -> dict[str, int]:
    """Return the code of each text; one that fits nothing has none."""
    missing = reading.gaps_of(attribute)
    known = dict.fromkeys(missing, GAP)
    if isinstance(attribute, Categories) and attribute.values:
        listed = {each: code for code, each in enumerate(attribute.values)}
        return {**spellings(attribute.values), **listed, **known}
    code, absent = coder(attribute), gap_in(attribute, reading)
    with localcontext(EXACT):
        for each in texts or ():
            if absent(each):
                known[each] = GAP
            else:
                with suppress(ValueError, LookupError, ArithmeticError):
                    known[each] = code(each)
    return known


def _code(field: Field, grid: Attribute) -> tuple[Any, Any]:
    """Return whether a value lies on a grid, and its code."""
    assert isinstance(grid, Grid)
    timed = grid.kind in ("date", "datetime", "time")
    if timed != (field.kind in ("date", "time", "clock")):
        raise _mismatch(field, grid)
    if timed:
        if (grid.kind == "time") != (field.kind == "clock"):
            raise _mismatch(field, grid)
        unit = (86_400 if grid.kind == "date" else 1) * 10**6
        return _divided(ibis.literal(True), field.value, int(grid.step * unit))
    step = grid.step.normalize(EXACT).as_tuple()
    digits, exponent = int("".join(map(str, step.digits))), step.exponent
    assert isinstance(exponent, int)
    places, width = max(0, -exponent), digits * 10 ** max(0, exponent)
    if places > PLACES or width >= LIMIT:
        raise DataError(
            f"column {grid.name!r}: a step of {grid.step} cannot be counted exactly in a database; "
            f"use one of at most {PLACES} decimals"
        )
    most = LIMIT // 10**places
    value = field.value
    if field.kind == "integer":
        return _divided(value.between(-most, most), value.cast("int64") * 10**places, width)
    if field.kind == "decimal":
        whole = value.floor()
        valid = whole.between(-most, most) & (value.round(min(places, field.places)) == value)
        scaled = whole.cast("int64")
        if places:
            rest = ((value - whole).cast("float64") * 10**places).round().cast("int64")
            scaled = scaled * 10**places + rest
        return _divided(valid, scaled, width)
    return _divided(*_float_at(field, places), width)


def _float_at(field: Field, places: int) -> tuple[Any, Any]:
    """Return whether a float is a number of so many decimals, and that many times ten of it.

    It is, where the nearest such number is read as the same float again.
    """
    value = field.value.cast("float64")
    near = value.abs() <= _WHOLE_FLOAT / 10**places
    nearest = ibis.cases((near, value), else_=0.0) * float(10**places)
    scaled = nearest.round().cast("int64")
    again = scaled.cast("float64") / float(10**places)
    fits = near & ((again.cast("float32") == field.value) if field.single else (again == value))
    return fits, scaled


def _divided(valid: Any, scaled: Any, width: int) -> tuple[Any, Any]:
    """Return codes in steps of a width; what is no multiple of it is not valid."""
    if width == 1:
        return valid, scaled
    code = (scaled / float(width)).round().cast("int64")
    return valid & (code * width == scaled), code


def _mismatch(field: Field, attribute: Attribute) -> DataError:
    return DataError(
        f"column {field.name!r} holds values of type {field.kind} and the schema says "
        f"{attribute.kind}: change the schema, or convert the column (in a view, say)"
    )
