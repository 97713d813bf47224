"""From the values of a database to codes, inside the database.

What comes out is what `load` makes of the same content. Numbers, dates and times are coded by
arithmetic where they are. Texts are coded by a table of the distinct texts, which is the one
thing that leaves the database, and only where no schema lists them. Numbers and dates that are
stored as texts, and floats that no arithmetic of a database codes exactly, are read by this
process where it reads the file itself (text files, and engines that are `here`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import localcontext
from math import isfinite
from typing import Any, Final

import numpy as np

from thinveil.curator.database.arithmetic import WHOLE_FLOAT, code_of, float_at, mismatch
from thinveil.curator.database.fields import PLACES, Field, counts_of
from thinveil.curator.database.session import Session
from thinveil.curator.database.words import (
    Rows,
    absolute,
    any_of,
    below,
    between,
    call,
    cases,
    cast,
    column,
    different,
    double,
    equal,
    exp,
    named,
    negated,
    number,
    remainder,
    rounded,
    text,
)
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

_TOGETHER: Final = 32  # columns whose texts one statement fetches: a round figure
_TOO_LARGE: Final = "too large (codes end at 2^62)"
_UNSOUND: Final = {"decimal": "too large or too fine", "clock": "finer than microseconds"}
"""What is said of values that cannot be coded at all, by the kind of their column."""

# ---- what a column is, where no schema says it


def infer_fields(
    session: Session, rows: Rows, fields: Sequence[Field], reading: Reading
) -> tuple[Inferred, dict[str, list[str]]]:
    """Return the schema that fits the columns, without bounds, and the distinct texts read."""
    tests = {
        f"t{place}_{key}": each
        for place, field in enumerate(fields)
        for key, each in _tests(field).items()
    }
    found = counts_of(session, rows, tests)
    if not found["records"]:
        raise DataError("the table has no records: give one with at least one row of data")
    inferred: list[Found] = []
    gaps: dict[int, bool] = {}
    texts = distinct(session, rows, [each for each in fields if each.kind == "text"])
    for place, field in enumerate(fields):
        start = f"t{place}_"
        mine = {key[len(start) :]: n for key, n in found.items() if key.startswith(start)}
        if field.kind == "text":
            gaps[place] = mine["gap"] > 0
            inferred.append(_of_texts(field.name, texts[field.name], gaps[place], reading))
        elif not mine["present"]:
            inferred.append(Found(Categories(field.name, (), missing=True)))
        elif session.engine.here and _unfit(field, mine):
            texts[field.name] = _as_read(session, rows, field)
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
    there = negated(field.gap)
    tests["present"] = there
    if field.sound is not None:
        tests["unsound"] = there.and_(negated(field.sound))
        there = exp.paren(there.and_(field.sound))
    if field.kind in ("integer", "decimal"):
        for places in range(field.places + 1):
            off = _off(field, places)
            tests |= {} if off is None else {f"p{places}": there.and_(off)}
    if field.kind == "float":
        most = 3.4028235e38 if field.single else 1.7976931348623157e308
        finite = exp.paren(absolute(cast(field.value, "double")) <= double(most))
        small = exp.paren(absolute(cast(field.value, "double")) <= double(WHOLE_FLOAT))
        tests |= {
            "infinite": there.and_(negated(finite)),
            "large": there.and_(finite).and_(negated(small)),
        }
        for places in range(PLACES + 1):
            # What is too large to have decimals is left to the codes to refuse.
            tests[f"p{places}"] = there.and_(small).and_(negated(float_at(field, places)[0]))
    if field.kind in ("date", "time", "clock"):
        for width in TIMES:
            tests[f"w{width}"] = there.and_(different(remainder(field.value, width), number(0)))
    return tests


def _off(field: Field, places: int) -> Any:
    """Tell whether a number has more decimals, or is too large for a code of so many.

    None where no number of the column's type is.
    """
    most, exceeds = (LIMIT - 1) // 10**places, field.exceeds(places)
    if field.kind == "integer":
        return negated(between(field.value, -most, most)) if exceeds else None
    off = different(rounded(field.value, places), field.value)
    large = negated(between(below(field.value), -most, most - 1))
    return any_of(off, large) if exceeds else off


def _unfit(field: Field, found: dict[str, int]) -> bool:
    """Tell whether numbers are more than arithmetic in a database codes exactly."""
    if found.get("infinite") or field.kind not in ("float", "decimal", "integer"):
        return False
    if found.get("unsound") or (field.single and found["p0"]):
        return True  # of floats of four bytes, the decimals that files hold are not the nearest
    unfit = all(found.get(f"p{places}") for places in range(field.places + 1))
    return unfit or found.get("large", 0) > 0


def _rows(count: int) -> str:
    return many(count, "row is", "rows are")


def _of_numbers(field: Field, found: dict[str, int]) -> Grid:
    gaps = found["gap"] > 0
    if found.get("unsound"):
        what = _UNSOUND.get(field.kind, "beyond the years 1 to 9999 or too fine")
        raise DataError(
            f"column {field.name!r}: {_rows(found['unsound'])} {what}: round or correct them"
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
        if not found.get(f"p{places}"):
            return decimal_grid(field.name, -places, gaps)
    what = f"of more than {PLACES} decimals"
    if field.kind != "float" and field.exceeds(field.places):
        what = f"too large (codes end at 2^62 steps) or {what}" if field.places else _TOO_LARGE
    raise DataError(
        f"column {field.name!r}: {many(found[f'p{field.places}'], 'value')} {what}, which "
        "databases cannot count exactly: round the column (in a view, say)"
    )


def distinct(session: Session, rows: Rows, fields: Sequence[Field]) -> dict[str, list[str]]:
    """Fetch the distinct texts of columns, of some of them by one statement."""
    texts: dict[str, list[str]] = {field.name: [] for field in fields}
    found: list[tuple[Any, ...]]
    gathered = session.engine.gathered
    for start in range(0, len(fields), _TOGETHER):
        some = fields[start : start + _TOGETHER]
        if gathered:
            listed = {f"d{place}": call(gathered, each.text) for place, each in enumerate(some)}
            row = session.rows(rows.select(listed))[0]
            found = [(place, each) for place, values in enumerate(row) for each in values]
        else:
            parts = (
                rows.select({"place": number(place), "value": field.text}).distinct()
                for place, field in enumerate(some)
            )
            found = session.rows(*parts)
        for place, value in found:
            if value is not None:
                texts[some[int(place)].name].append(value)
    return texts


def _as_read(session: Session, rows: Rows, field: Field) -> list[str]:
    """Fetch the distinct values of a column as texts, as a file would hold them."""
    if field.kind != "float":
        return distinct(session, rows, [field])[field.name]
    found = session.rows(rows.select({"value": cast(field.value, "double")}).distinct())
    values = (row[0] for row in found if row[0] is not None and row[0] == row[0])
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
    rows: Rows,
    fields: Sequence[Field],
    schema: Schema,
    reading: Reading,
    texts: dict[str, list[str]],
) -> Rows:
    """Return the table of codes c0, c1, ...; a value that fits nothing is null."""
    by_name = {field.name: field for field in fields}
    found = _Coded(session)
    for place, attribute in enumerate(schema):
        field = by_name[attribute.name]
        if isinstance(attribute, Categories) and not attribute.values and field.kind != "text":
            found.codes[place] = exp.null()
        elif field.kind == "text" or isinstance(attribute, Categories):
            if field.text is None:
                raise mismatch(field, attribute)
            if field.kind == "text" and isinstance(attribute, Grid) and field.name not in texts:
                if not session.engine.here:
                    raise DataError(
                        f"column {field.name!r} is stored as text, and the schema says "
                        f"{attribute.kind}: its values would have to leave the database to be "
                        "read. Convert it there (in a view, say)"
                    )
                texts |= distinct(session, rows, [field])
            found.listed(place, field, _mapping(attribute, texts.get(field.name), reading))
        elif field.name in texts or _beyond(session, rows, field, attribute):
            if field.name not in texts:
                texts[field.name] = _as_read(session, rows, field)
            found.listed(place, field, _mapping(attribute, texts[field.name], reading))
        else:
            valid, code = code_of(field, attribute)
            sound = valid if field.sound is None else exp.paren(field.sound.and_(valid))
            found.codes[place] = cases((sound, code))
    chosen = {}
    for place, attribute in enumerate(schema):
        gap = by_name[attribute.name].gap
        code = cases((gap, number(GAP)), otherwise=found.codes[place])
        chosen[f"c{place}"] = cast(code, "bigint")
    query = named(chosen).from_(rows.at("t"))
    for sent, alias, key in found.joins:
        query = query.join(sent.at(alias), on=key, join_type="left", copy=False)
    return Rows(query, tuple(chosen))


class _Coded:
    """What the codes of columns are, and the tables that have to be joined for some."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.codes: dict[int, Any] = {}
        self.joins: list[tuple[Rows, str, Any]] = []

    def listed(self, place: int, field: Field, known: dict[str, int]) -> None:
        """Code the values of a column by a list of known ones."""
        value, keys = field.text, {text(each): code for each, code in known.items()}
        if field.kind == "float":
            value = cast(field.value, "double") + double(0)  # -0.0 is 0.0: some joins compare bits
            words = filter(NUMBER.fullmatch, known)
            read = {each: float(_own(field, each)) + 0.0 for each in words}
            floats = {each: known[word] for word, each in read.items() if isfinite(each)}
            keys = {double(each): code for each, code in floats.items()}
        if len(known) <= self._session.few:
            pairs = [(equal(value, each), number(code)) for each, code in keys.items()]
            self.codes[place] = cases(*pairs) if pairs else exp.null()
            return
        plain = np.array(list(floats)) if field.kind == "float" else list(known)
        codes = np.array(list(keys.values()), np.int64)
        sent = self._session.put({"key": plain, "code": codes})
        alias = f"m{place}"
        self.joins.append((sent, alias, equal(value, column("key", alias))))
        self.codes[place] = column("code", alias)


def _beyond(session: Session, rows: Rows, field: Field, grid: Grid) -> bool:
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
    off = negated(field.gap).and_(negated(code_of(field, grid)[0]))
    return (field.single and grid.step < 1) or counts_of(session, rows, {"off": off})["off"] > 0


def _mapping(attribute: Attribute, texts: Sequence[str] | None, reading: Reading) -> dict[str, int]:
    """Return the code of each text; one that fits nothing has none."""
    missing = reading.gaps_of(attribute)
    known = dict.fromkeys(sorted(missing), GAP)
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
