"""Schemas as TOML files that people can read and edit.

::

    [[attribute]]
    name = "salary"
    kind = "decimal"        # integer, decimal, double, date, datetime, time or category
    step = "0.01"           # days for dates, seconds for times; 1 where left out
    rounded = true          # values between two steps are rounded down; false where left out
    lower = "0.00"          # bounds are values, not codes; give both or none
    upper = "100000.00"
    missing = true          # false where left out
    format = "1.234,56"     # how the file writes values; plainly where left out

    [[attribute]]
    name = "insured"
    kind = "category"
    values = ["no", "yes"]
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation, localcontext
from importlib import resources
from typing import Any, Final

import tomli_w

from thinveil.errors import SchemaError
from thinveil.files import read_up_to
from thinveil.language.numbers.double_codes import SMALLEST
from thinveil.language.schema import EXACT, KINDS, NUMBERS, Attribute, Categories, Grid, Schema
from thinveil.language.texts import in_digits, in_toml
from thinveil.passwords import missing

MOST_SCHEMA: Final = 2**23
"""The most bytes of a schema file, 8 MiB: a quarter of a million categories. A parsed TOML file can
take 150 times its size (measured)."""
_MOST_DOTS: Final = 200


def shipped_schemas() -> list[str]:
    """Return the names of the schemas that come with the package, sorted."""
    files = resources.files("thinveil.language").joinpath("schemas").iterdir()
    return sorted(each.name[:-5] for each in files if each.name.endswith(".toml"))


def read_schema(source: str | os.PathLike[str]) -> Schema:
    """Read a schema from a TOML file, or one that comes with the package by its name.

    Raises:
        SchemaError: There is no such file, or something in it is wrong; names the place.

    >>> read_schema("bank").names[:3]
    ('age', 'job', 'marital')
    """
    if isinstance(source, str) and source in shipped_schemas():
        file = resources.files("thinveil.language") / "schemas" / f"{source}.toml"
        return parse_schema(file.read_text(encoding="utf-8"), source)
    where = os.fspath(source)
    try:
        text = read_up_to(where, MOST_SCHEMA, SchemaError).decode("utf-8-sig")
    except FileNotFoundError:
        raise SchemaError(
            f"{missing(where)}: there is no such schema file; the schemas that come with thinveil "
            f"are {', '.join(shipped_schemas())}"
        ) from None
    except UnicodeDecodeError:
        raise SchemaError(f"{where}: a schema file must be UTF-8 text") from None
    except OSError as error:
        raise SchemaError(f"{where}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise SchemaError(f"{where!r} cannot be the path of a file") from None
    return parse_schema(text, where)


def parse_schema(text: str, where: str = "the schema") -> Schema:
    """Read a schema from the text of a TOML file, which messages call `where`.

    A SchemaError names the place and the attribute of what is wrong.
    """
    _check_keys(text, where)
    try:
        document = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ValueError, ArithmeticError, RecursionError) as error:
        found = re.search(r"at (line \d+, column \d+|end of document)", str(error))
        place = f" at {found[1]}" if found else ""
        raise SchemaError(
            f"{where}: not a TOML file: there is a mistake{place} "
            "(thinveil schema TABLE drafts a schema file)"
        ) from None
    if unknown := sorted(set(document) - {"attribute"}):
        raise SchemaError(f"{where}: unknown key {unknown[0]!r}; a schema has only [[attribute]]")
    tables = document.get("attribute", [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise SchemaError(f"{where}: write each attribute under its own [[attribute]] line")
    if not tables:
        raise SchemaError(f"{where}: there is no [[attribute]] in it; a schema needs at least one")
    try:
        with localcontext(EXACT):
            return Schema(
                tuple(_attribute(table, f"attribute {at}") for at, table in enumerate(tables, 1))
            )
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None


def _check_keys(text: str, where: str) -> None:
    """Refuse keys of many parts, such as a.a.a.a: the parser's time grows with their square.

    Such a key ends before the first equals sign of its line, or stands between braces.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        part = line if "{" in line else line.partition("=")[0]
        if part.count(".") > _MOST_DOTS:
            raise SchemaError(
                f"{where}: line {number} has more than {_MOST_DOTS} dots before its value: no key "
                "of a schema has any"
            )


def _attribute(table: Mapping[str, Any], place: str) -> Attribute:
    """Read one [[attribute]] table."""
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{place}: needs a name, a text")
    place = f"attribute {name!r}"
    kind = table.get("kind")
    if kind != "category" and kind not in KINDS:
        what = "needs a kind" if kind is None else f"unknown kind {kind!r}"
        raise SchemaError(f"{place}: {what}; use category, {', '.join(KINDS)}")
    own = ("values",) if kind == "category" else ("step", "lower", "upper", "format", "rounded")
    known = sorted({"name", "kind", "missing", *own})
    if unknown := sorted(set(table).difference(known)):
        raise SchemaError(
            f"{place}: unknown key {unknown[0]!r}; kind {kind} knows {', '.join(known)}"
        )
    missing = table.get("missing", False)
    if not isinstance(missing, bool):
        raise SchemaError(f"{place}: missing must be true or false")
    if kind == "category":
        values = table.get("values")
        if not isinstance(values, list):
            raise SchemaError(f"{place}: needs values, a list of texts")
        return Categories(name, tuple(_text(value, place) for value in values), missing)
    rounded, written = table.get("rounded", False), table.get("format", "")
    if not isinstance(rounded, bool):
        raise SchemaError(f"{place}: rounded must be true or false")
    if not isinstance(written, str):
        raise SchemaError(f"{place}: the format must be a text")
    step = _step(table, place)
    grid = Grid(name, kind, step, missing=missing, format=written, rounded=rounded)
    lower, upper = (_bound(grid, table, key, place) for key in ("lower", "upper"))
    return replace(grid, lower=lower, upper=upper)


def _text(value: object, place: str) -> str:
    """Return a category as text, also where it was written as a number, a date or a truth."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, str | int | Decimal):
        return str(value)
    raise SchemaError(f"{place}: values must be a list of texts")


def _step(table: Mapping[str, Any], place: str) -> Decimal:
    usual = {"decimal": None, "double": SMALLEST}
    step = table.get("step", usual.get(table["kind"], 1))
    if step is None:
        raise SchemaError(f'{place}: kind decimal needs a step, such as step = "0.01"')
    if isinstance(step, str | int | Decimal) and not isinstance(step, bool):
        with suppress(InvalidOperation):
            if (number := Decimal(step)).is_finite():
                return number
    raise SchemaError(f"{place}: the step must be a number")


def _bound(grid: Grid, table: Mapping[str, Any], key: str, place: str) -> int | None:
    """Return the code of a bound, which the file gives as a value."""
    value = table.get(key)
    if value is None:
        return None
    numeric = grid.kind in NUMBERS
    fits = str | int | Decimal if numeric else str | time if grid.kind == "time" else str | date
    if not isinstance(value, fits) or isinstance(value, bool):
        raise SchemaError(f"{place}: {key} must be {'a number' if numeric else 'a date or time'}")
    if grid.kind == "datetime" and type(value) is date:
        value = datetime(value.year, value.month, value.day)
    try:
        return grid.encode(value)
    except (ValueError, ArithmeticError):
        raise SchemaError(
            f"{place}: {key} is not of kind {grid.kind} on a grid with the step {grid.step}, "
            "or too large"
        ) from None


def write_schema(schema: Schema, comments: Iterable[str] = ()) -> str:
    """Return a schema as the text of a TOML file; reading it gives the same schema.

    Args:
        schema: The schema.
        comments: Lines for the head of the file.

    Raises:
        SchemaError: A bound or a text cannot be written in TOML.
    """
    with localcontext(EXACT):
        tables = [_table(attribute) for attribute in schema]
    lines = [line for comment in comments for line in comment.splitlines() or [""]]
    head = "".join(f"# {_printable(line)}".rstrip() + "\n" for line in lines)
    text = tomli_w.dumps({"attribute": tables})
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise SchemaError("the schema holds a text that is not valid Unicode: rename it")
    text = in_toml(text)
    return f"{head}\n{text}" if head else text


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else " " for character in line)


def _table(attribute: Attribute) -> dict[str, Any]:
    """Return one attribute as a TOML table."""
    table: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind}
    gaps = {"missing": True} if attribute.missing else {}
    if isinstance(attribute, Categories):
        return {**table, "values": list(attribute.values), **gaps}
    whole = attribute.step == attribute.step.to_integral_value()
    if attribute.kind != "double" or attribute.step != SMALLEST:
        table["step"] = int(attribute.step) if whole else in_digits(attribute.step)
    for key, code in (("lower", attribute.lower), ("upper", attribute.upper)):
        value = None if code is None else attribute.decode(code)
        if isinstance(value, str):
            raise SchemaError(
                f"attribute {attribute.name!r}: {key} is no date between the years 1 and 9999"
            )
        if value is not None:
            table[key] = in_digits(value) if isinstance(value, Decimal) else value
    written = {"format": attribute.format} if attribute.format else {}
    rounded = {"rounded": True} if attribute.rounded else {}
    return {**table, **gaps, **written, **rounded}
