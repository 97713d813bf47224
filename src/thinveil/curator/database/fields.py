"""The columns of a table in a database: of which kind, where missing, and as which expression."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal

from thinveil.curator.database.engines.protocol import Engine, ibis
from thinveil.curator.database.session import Session
from thinveil.curator.tables.coding import PLAIN
from thinveil.curator.tables.reading import leaving_out
from thinveil.errors import DataError
from thinveil.language.schema import LIMIT
from thinveil.language.texts import CLOCK, DAY, clock, ticks

PLACES: Final = 15
"""Decimals up to which a database's floating-point arithmetic is exact enough."""

Class = Literal["integer", "decimal", "float", "text", "date", "time", "clock"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the database, as expressions."""

    name: str
    kind: Class  # how its values are coded
    value: Any  # times are microseconds since 1970, or of the day since midnight
    gap: Any  # whether a value is missing
    sound: Any = None  # whether a value is one that can be coded at all, where that is in doubt
    text: Any = None  # its values as texts, where they can be written the same everywhere
    single: bool = False  # whether it holds floats of four bytes
    places: int = PLACES  # the most decimals that its type has


def fields_of(
    session: Session, table: Any, names: Sequence[str], missing: Collection[str]
) -> list[Field]:
    """Describe the columns x0, x1, ... of a table."""
    kinds = [None] * len(names) if session.engine.typed else _stored(session, table, names)
    return [
        _field(session, name, table[f"x{place}"], kind, missing)
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]


def _stored(session: Session, table: Any, names: Sequence[str]) -> list[Class | None]:
    """Tell columns by what they hold, where a declared type binds nobody."""
    kinds = ("integer", "real", "text", "blob")
    found = counts_of(
        session,
        table,
        {
            f"s{place}_{kind}": table[f"x{place}"].typeof() == kind
            for place in range(len(names))
            for kind in kinds
        },
    )
    stored: list[Class | None] = []
    for place, name in enumerate(names):
        whole, real, text, blob = (found[f"s{place}_{kind}"] for kind in kinds)
        if blob:
            raise _unsupported(name, "blob")
        boolean = table[f"x{place}"].type().is_boolean() and whole and not real and not text
        if text or boolean or not (whole or real):
            stored.append("text")
        else:
            stored.append("float" if real else "integer")
    return stored


def _field(
    session: Session, name: str, column: Any, stored: Class | None, missing: Collection[str]
) -> Field:
    if stored == "text" and not column.type().is_boolean():
        column = column.cast("string")
    elif stored in ("integer", "float"):
        column = column.cast("int64" if stored == "integer" else "float64")
    kind = column.type()
    for is_one, field in _KINDS.items():
        if getattr(kind, is_one)():
            return field(session.engine, name, column, missing)
    raise _unsupported(name, str(kind))


def _text(engine: Engine, name: str, column: Any, missing: Collection[str]) -> Field:
    if column.type().is_boolean():
        text = ibis.cases((column, "true"), (~column, "false"))
    elif column.type().is_string():  # joined to an empty text, it loses its collation, if any,
        text = column + ""  # which may merge texts
    else:
        text = column.cast("string")
    return Field(name, "text", text, column.isnull(), text=text)


def _integer(engine: Engine, name: str, column: Any, missing: Collection[str]) -> Field:
    values = [int(each) for each in missing if _is_text_of(each, int)]
    gap = _either(column.isnull(), column, values)
    return Field(name, "integer", column, gap, text=column.cast("string"))


def _decimal(engine: Engine, name: str, column: Any, missing: Collection[str]) -> Field:
    texts = [each for each in missing if PLAIN.fullmatch(each)]
    texts += ["NaN"] if "decimal" in engine.not_numbers else []
    text = column.cast("string")
    gap, sound = _either(column.isnull(), text, texts), None
    if column.type().is_integer():
        column = column.cast("decimal(20, 0)")
    if column.type().scale is None:  # of any size: one of fixed size is needed to round in
        inside = column.between(-LIMIT, LIMIT)
        fixed = ibis.cases((inside, column)).cast("decimal(100, 50)")
        column, sound = fixed, inside & (fixed == column)
    places = min(column.type().scale, PLACES)
    return Field(name, "decimal", column, gap, sound, text, places=places)


def _float(engine: Engine, name: str, column: Any, missing: Collection[str]) -> Field:
    null = column.isnull()
    if "float" in engine.not_numbers:
        null = null | column.isnan()
    values = [float(each) for each in missing if _is_text_of(each, _float_text)]
    single = not column.type().is_float64()
    return Field(name, "float", column, _either(null, column, values), single=single)


def _date(engine: Engine, name: str, column: Any, missing: Collection[str]) -> Field:
    text = column.cast("string")
    gap = _either(column.isnull(), text, [each for each in missing if DAY.fullmatch(each)])
    sound = (column >= ibis.literal(date.min)) & (column <= ibis.literal(date.max))
    micros = engine.micros(ibis.cases((sound, column)).cast("timestamp"))
    return Field(name, "date", micros, gap, sound, text)


def _moment(engine: Engine, name: str, column: Any, missing: Collection[str]) -> Field:
    nanos = column.type().scale == 9
    plain = column.cast("timestamp(6)" if nanos else "timestamp")
    sound = (plain >= ibis.literal(datetime.min)) & (plain <= ibis.literal(datetime.max))
    micros = engine.micros(ibis.cases((sound, plain)))
    if nanos:
        sound = sound & (column == plain.cast("timestamp(9)"))
    moments = [ticks(each) for each in missing if _is_text_of(each, _moment_text)]
    return Field(name, "time", micros, _either(column.isnull(), micros, moments), sound)


def _clock(engine: Engine, name: str, column: Any, missing: Collection[str]) -> Field:
    seconds = (column.hour().cast("int64") * 60 + column.minute()) * 60 + column.second()
    micros = seconds * 10**6 + column.microsecond()
    times = [clock(each) for each in missing if CLOCK.fullmatch(each)]
    return Field(name, "clock", micros, _either(column.isnull(), micros, times))


_KINDS: Final = {
    "is_boolean": _text,
    "is_string": _text,
    "is_uuid": _text,
    "is_null": _text,
    "is_uint64": _decimal,  # of which half is too large for a whole number of eight bytes
    "is_integer": _integer,
    "is_decimal": _decimal,
    "is_floating": _float,
    "is_date": _date,
    "is_timestamp": _moment,
    "is_time": _clock,
}
"""What makes a field of a column of each type, by the question that Ibis answers about it."""


def _unsupported(name: str, kind: str) -> DataError:
    return DataError(
        f"column {name!r} has the type {kind}, which is neither a number, a text, a date nor a "
        f"time: convert it (in a view), or leave it out ({leaving_out(name)})"
    )


def _either(gap: Any, column: Any, values: Sequence[Any]) -> Any:
    return gap | column.isin(sorted(values)) if values else gap


def _is_text_of(text: str, write: Any) -> bool:
    """Tell whether a text is just what a value is written as."""
    try:
        return str(write(text)) == text
    except (ValueError, OverflowError):
        return False


def _float_text(text: str) -> str:
    value = float(text)
    return "" if value != value else str(value).removesuffix(".0")


def _moment_text(text: str) -> str:
    return datetime.fromisoformat(text).isoformat()


def counts_of(session: Session, table: Any, tests: dict[str, Any]) -> dict[str, int]:
    """Count, in one statement, all records and those that pass each test."""
    counted = {"records": table.count()}
    counted |= {key: ibis.cases((each, 1), else_=0).sum() for key, each in tests.items()}
    row = session.rows(table.aggregate(**counted))[0]
    return {key: int(value or 0) for key, value in zip(counted, row, strict=True)}
