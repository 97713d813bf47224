"""The columns of a table in a database: of which kind, where missing, and as which expression."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import inf, isfinite
from typing import Any, Final, Literal

from thinveil.curator.database.engines.protocol import Engine
from thinveil.curator.database.session import Session
from thinveil.curator.database.words import (
    Rows,
    between,
    cases,
    cast,
    column,
    double,
    equal,
    exp,
    in_full,
    infinite,
    is_null,
    negated,
    number,
    passing,
    records_of,
    text,
)
from thinveil.curator.tables.coding import PLAIN
from thinveil.curator.tables.reading import leaving_out
from thinveil.errors import DataError
from thinveil.language.schema import LIMIT
from thinveil.language.texts import CLOCK, DAY, clock, ticks

PLACES: Final = 15
"""Decimals up to which a database's floating-point arithmetic is exact enough."""
_DIGITS: Final = 18
"""So many digits every code has room for: 10^18 < 2^62."""

Gaps = Collection[str]
"""The texts that mean a missing value."""
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
    whole: float = inf  # the most digits before the point that its type has

    def exceeds(self, places: int) -> bool:
        """Tell whether its type has numbers that are too large for a code of so many decimals."""
        return self.whole + places > _DIGITS


def fields_of(session: Session, rows: Rows, names: Sequence[str], missing: Gaps) -> list[Field]:
    """Describe the columns x0, x1, ... of a table, which `names` are the names of."""
    kinds = rows.kinds if session.engine.typed else _stored(session, rows, names)
    return [
        _field(session.engine, Asked(name, column(f"x{place}"), kind, missing))
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]


def _stored(session: Session, rows: Rows, names: Sequence[str]) -> list[Any]:
    """Tell columns by what they hold, where a declared type binds nobody."""
    kinds = ("integer", "real", "text", "blob")
    flags = [place for place, declared in enumerate(rows.kinds) if declared.this.name == "BOOLEAN"]
    tests = {
        f"s{place}_{kind}": equal(exp.Typeof(this=column(f"x{place}")), text(kind))
        for place in range(len(names))
        for kind in kinds
    }
    tests |= {
        f"s{place}_other": negated(column(f"x{place}").isin(number(0), number(1)))
        for place in flags
    }
    found = counts_of(session, rows, tests)
    stored = []
    for place, declared in enumerate(rows.kinds):
        whole, real, texts, blob = (found[f"s{place}_{kind}"] for kind in kinds)
        if blob:
            raise _unsupported(names[place], "blob")
        if place in flags and whole and not (real or texts or found[f"s{place}_other"]):
            stored.append(declared)
        elif texts or not (whole or real):
            stored.append("mixed")
        else:
            stored.append(exp.DataType.build("double" if real else "bigint"))
    return stored


@dataclass(frozen=True, slots=True)
class Asked:
    """A column as a database describes it."""

    name: str
    value: Any
    kind: Any
    missing: Gaps

    @property
    def scale(self) -> int | None:
        """How many decimals a type has; none where it has any number."""
        parts = self.kind.expressions
        return int(parts[1].name) if len(parts) > 1 else None if not parts else 0

    @property
    def digits(self) -> float:
        """How many digits a type has at most, decimals included; any number unless it says so."""
        parts = self.kind.expressions
        return int(parts[0].name) if parts else inf


def _field(engine: Engine, asked: Asked) -> Field:
    if asked.kind == "mixed":
        return _text(engine, asked)
    for kinds, field in _KINDS:
        if not isinstance(asked.kind, str) and asked.kind.this.name in kinds:
            return field(engine, asked)
    kind = asked.kind if isinstance(asked.kind, str) else asked.kind.sql(engine.dialect)
    raise _unsupported(asked.name, kind.lower())


def _text(engine: Engine, asked: Asked) -> Field:
    value = asked.value
    if asked.kind != "mixed" and asked.kind.this.name == "BOOLEAN":
        words = cases(
            (engine.holds(value), text("true")), (negated(engine.holds(value)), text("false"))
        )
    elif asked.kind == "mixed" or asked.kind.this.name in _TEXTS:
        words = engine.plain(cast(value, "text") if asked.kind == "mixed" else value)
    else:
        words = cast(value, "text")
    return Field(asked.name, "text", words, is_null(value), text=words)


def _integer(engine: Engine, asked: Asked) -> Field:
    values = [number(int(each)) for each in asked.missing if _is_text_of(each, int)]
    gap = _either(is_null(asked.value), asked.value, values)
    value, words = cast(asked.value, "bigint"), cast(asked.value, "text")
    digits = 19 if asked.kind.this.name == "BIGINT" else 10
    return Field(asked.name, "integer", value, gap, text=words, places=0, whole=digits)


def _decimal(engine: Engine, asked: Asked) -> Field:
    texts = [each for each in asked.missing if PLAIN.fullmatch(each)]
    texts += ["NaN"] if "decimal" in engine.not_numbers else []
    whole = asked.kind.this.name in _HUGE
    scale = 0 if whole else asked.scale
    value, sound = asked.value, None
    words = in_full(value, scale) if scale else cast(value, "text")
    gap = _either(is_null(value), words, [text(each) for each in sorted(texts)])
    if whole:  # the largest are no decimals
        sound = between(value, 1 - LIMIT if asked.kind.this.name == "INT128" else 0, LIMIT - 1)
        value = cast(cases((sound, value)), "decimal(38, 0)")
    if scale is None:  # of any size: one of fixed size is needed to round in
        inside = between(value, -LIMIT, LIMIT)
        fixed = cast(cases((inside, value)), "decimal(100, 50)")
        value, sound, scale = fixed, exp.paren(inside.and_(equal(fixed, value))), PLACES
    places, digits = min(scale, PLACES), asked.digits - scale
    return Field(asked.name, "decimal", value, gap, sound, words, places=places, whole=digits)


def _float(engine: Engine, asked: Asked) -> Field:
    null = is_null(asked.value)
    if "float" in engine.not_numbers:
        null = exp.paren(null.or_(engine.is_nan(asked.value)))
    values = sorted(float(each) for each in asked.missing if _is_text_of(each, _float_text))
    gap = _either(null, asked.value, [double(each) for each in values if isfinite(each)])
    for each in values:
        if not isfinite(each):
            gap = exp.paren(gap.or_(infinite(asked.value, above=each > 0)))
    return Field(asked.name, "float", asked.value, gap, single=asked.kind.this.name == "FLOAT")


def _date(engine: Engine, asked: Asked) -> Field:
    value, words = asked.value, cast(asked.value, "text")
    texts = [text(each) for each in asked.missing if DAY.fullmatch(each)]
    gap = _either(is_null(value), words, texts)
    sound = _years(engine, value, "date")
    known = value if sound is None else cases((sound, value))
    return Field(asked.name, "date", engine.micros(cast(known, "timestamp")), gap, sound, words)


def _moment(engine: Engine, asked: Asked) -> Field:
    nanos = asked.kind.this.name == "TIMESTAMP_NS"
    plain = cast(asked.value, "timestamp")
    sound = _years(engine, plain, "timestamp")
    micros = engine.micros(plain if sound is None else cases((sound, plain)))
    if nanos:
        again = equal(asked.value, exp.cast(plain, asked.kind.copy()))
        sound = again if sound is None else exp.paren(sound.and_(again))
    moments = [number(ticks(each)) for each in asked.missing if _is_text_of(each, _moment_text)]
    return Field(asked.name, "time", micros, _either(is_null(asked.value), micros, moments), sound)


def _years(engine: Engine, value: Any, kind: str) -> Any:
    """Tell whether a day or a time lies in the years that have four digits."""
    if not engine.any_year:
        return None
    ends = (date.min, date.max) if kind == "date" else (datetime.min, datetime.max)
    low, high = (cast(text(each.isoformat().replace("T", " ")), kind) for each in ends)
    return exp.paren((value >= low).and_(value <= high))


def _clock(engine: Engine, asked: Asked) -> Field:
    plain, sound = asked.value, None
    if asked.kind.this.name == "TIME_NS":
        plain = cast(asked.value, "time")
        sound = equal(asked.value, exp.cast(plain, asked.kind.copy()))
    micros = engine.clock(plain)
    times = [number(clock(each)) for each in asked.missing if CLOCK.fullmatch(each)]
    return Field(asked.name, "clock", micros, _either(is_null(asked.value), micros, times), sound)


_TEXTS: Final = frozenset({
    "CHAR", "NCHAR", "VARCHAR", "NVARCHAR", "BPCHAR", "TEXT", "NAME", "TINYTEXT", "MEDIUMTEXT",
    "LONGTEXT",
})  # fmt: skip
_HUGE: Final = frozenset({"UBIGINT", "INT128", "UINT128"})
"""Whole numbers that may be too large for eight bytes."""
_KINDS: Final = (
    (_TEXTS | {"BOOLEAN", "ENUM", "ENUM8", "ENUM16", "UUID", "NULL"}, _text),
    (_HUGE | {"DECIMAL", "BIGDECIMAL", "DECIMAL32", "DECIMAL64", "DECIMAL128"}, _decimal),
    (
        {"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "UTINYINT", "USMALLINT",
         "UMEDIUMINT", "UINT", "YEAR"},
        _integer,
    ),
    ({"FLOAT", "DOUBLE"}, _float),
    ({"DATE", "DATE32"}, _date),
    (
        {"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "TIMESTAMP_S", "TIMESTAMP_MS",
         "TIMESTAMP_NS", "DATETIME", "DATETIME2", "DATETIME64"},
        _moment,
    ),
    ({"TIME", "TIME_NS"}, _clock),
)  # fmt: skip
"""What makes a field of a column of each type, by sqlglot's names of types."""


def _unsupported(name: str, kind: str) -> DataError:
    return DataError(
        f"column {name!r} has the type {kind}, which is neither a number, a text, a date nor a "
        f"time: convert it (in a view), or leave it out ({leaving_out(name)})"
    )


def _either(gap: Any, value: Any, values: Sequence[Any]) -> Any:
    return exp.paren(gap.or_(value.isin(*values))) if values else gap


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


def counts_of(session: Session, rows: Rows, tests: dict[str, Any]) -> dict[str, int]:
    """Count, in one statement, all records and those that pass each test.

    Where a row stands for several records, its column n says for how many.
    """
    each = column("n") if "n" in rows.columns else number(1)
    counted = {"records": records_of(rows)}
    counted |= {key: passing(test, each) for key, test in tests.items()}
    row = session.rows(rows.select(counted))[0]
    return {key: int(value or 0) for key, value in zip(counted, row, strict=True)}
