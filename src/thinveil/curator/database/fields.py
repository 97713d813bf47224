"""The columns of a table in a database: of which kind, where missing, and as which expression."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal

from thinveil.curator.database.session import Session
from thinveil.curator.tables.coding import PLAIN
from thinveil.errors import DataError
from thinveil.language.schema import LIMIT
from thinveil.language.texts import DAY, ticks

PLACES: Final = 15
"""Decimals up to which a database's floating-point arithmetic is exact enough."""

Class = Literal["integer", "decimal", "float", "text", "date", "time"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the database.

    Args:
        name: Its name.
        kind: How its values are coded.
        value: Its values, as an expression; times are microseconds since 1970.
        gap: Whether a value is missing, as an expression.
        sound: Whether a value is one that can be coded at all, where that is in doubt.
        text: Its values as texts, where they can be written the same everywhere.
        single: Whether it holds floats of four bytes.
        places: The most decimals that its type has.
    """

    name: str
    kind: Class
    value: Any
    gap: Any
    sound: Any = None
    text: Any = None
    single: bool = False
    places: int = PLACES


def fields_of(
    session: Session, table: Any, names: Sequence[str], missing: Collection[str]
) -> list[Field]:
    """Describe the columns x0, x1, ... of a table.

    Raises:
        DataError: A column is of a type that is no plain value.
    """
    kinds = _stored(session, table, names) if session.kind == "sqlite" else [None] * len(names)
    return [
        _field(session, name, table[f"x{place}"], kind, missing)
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]


def _stored(session: Session, table: Any, names: Sequence[str]) -> list[Class | None]:
    """Tell the columns of SQLite by what they hold: a declared type binds nobody there."""
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
    import ibis

    kind = column.type()
    null = column.isnull()
    if stored == "text" and not kind.is_boolean():
        # Joined to an empty text, it loses the column's collation, which may merge texts.
        return Field(name, "text", (text := column.cast("string") + ""), null, text=text)
    if stored in ("integer", "float"):
        column = column.cast("int64" if stored == "integer" else "float64")
        kind = column.type()
    if kind.is_boolean():
        text = ibis.cases((column, "true"), (~column, "false"))
        return Field(name, "text", text, null, text=text)
    if kind.is_string():
        return Field(name, "text", (text := column + ""), null, text=text)
    if kind.is_uuid() or kind.is_null():
        return Field(name, "text", (text := column.cast("string")), null, text=text)
    if kind.is_integer() and kind != ibis.dtype("uint64"):
        gap = _either(null, column, [int(each) for each in missing if _is_text_of(each, int)])
        return Field(name, "integer", column, gap, text=column.cast("string"))
    if kind.is_integer() or kind.is_decimal():
        texts = [each for each in missing if PLAIN.fullmatch(each)]
        texts += ["NaN"] if session.kind == "postgres" else []
        text = column.cast("string")
        if kind.is_integer():
            column, kind = column.cast("decimal(20, 0)"), ibis.dtype("decimal(20, 0)")
        gap, sound = _either(null, text, texts), None
        if kind.scale is None:  # of any size: one of fixed size is needed to round in
            inside = column.between(-LIMIT, LIMIT)
            fixed = ibis.cases((inside, column)).cast("decimal(100, 50)")
            column, kind, sound = fixed, fixed.type(), inside & (fixed == column)
        places = min(kind.scale, PLACES)
        return Field(name, "decimal", column, gap, sound, text, places=places)
    if kind.is_floating():
        if session.kind != "sqlite":  # which cannot store one that is not a number
            null = null | column.isnan()
        values = [float(each) for each in missing if _is_text_of(each, _float_text)]
        single = not kind.is_float64()
        return Field(name, "float", column, _either(null, column, values), single=single)
    if kind.is_date():
        text = column.cast("string")
        gap = _either(null, text, [each for each in missing if DAY.fullmatch(each)])
        sound = (column >= ibis.literal(date.min)) & (column <= ibis.literal(date.max))
        micros = _micros(session, ibis.cases((sound, column)).cast("timestamp"))
        return Field(name, "date", micros, gap, sound, text)
    if kind.is_timestamp():
        plain = column.cast("timestamp(6)" if kind.scale == 9 else "timestamp")
        sound = (plain >= ibis.literal(datetime.min)) & (plain <= ibis.literal(datetime.max))
        micros = _micros(session, ibis.cases((sound, plain)))
        if kind.scale == 9:
            sound = sound & (column == plain.cast("timestamp(9)"))
        moments = [ticks(each) for each in missing if _is_text_of(each, _moment_text)]
        return Field(name, "time", micros, _either(null, micros, moments), sound)
    raise _unsupported(name, str(kind))


def _unsupported(name: str, kind: str) -> DataError:
    return DataError(
        f"column {name!r} has the type {kind}, which is neither a number, a text, a date nor a "
        "time: convert it, or leave it out (a view does both)"
    )


def _micros(session: Session, moment: Any) -> Any:
    """Return microseconds since 1970."""
    import ibis

    if session.kind == "postgres":
        # The database's own type is exact here; Ibis takes it for whole seconds.
        return (moment.epoch_seconds() * 10**6).cast("decimal(38, 0)").cast("int64")
    name = "epoch_us"
    if session.kind == "pyspark":
        name, moment = "unix_micros", moment.cast("timestamp('UTC')")

    def micros(at): ...  # type: ignore[no-untyped-def]

    made = ibis.udf.scalar.builtin(
        micros, name=name, signature=((ibis.dtype("timestamp"),), "int64")
    )
    return made(moment)


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
    import ibis

    counted = {"records": table.count()}
    counted |= {key: ibis.cases((each, 1), else_=0).sum() for key, each in tests.items()}
    row = session.rows(table.aggregate(**counted))[0]
    return {key: int(value or 0) for key, value in zip(counted, row, strict=True)}
