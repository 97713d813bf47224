"""Statements in SQL, put together from parts; sqlglot writes them in a database's own words.

Abstract syntax trees: names and values are nodes of a tree and quoted where they are written, so
none of them is ever read as part of a statement.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from thinveil.errors import MissingExtra


class _Lazy:
    """A library that is imported when it is first asked for something, not before."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(importlib.import_module("sqlglot.expressions"), name)
        except ImportError:
            raise MissingExtra("A table in a database", "databases") from None


exp: Final[Any] = _Lazy()
"""sqlglot's expressions."""
_PLACES: Final = "places"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What a statement reads from: a table by its name, or the rows that a statement selects.

    A relation. `kinds` has the types of columns where a database was asked for them.
    """

    source: Any
    columns: tuple[str, ...]
    kinds: tuple[Any, ...] = ()
    name: str = ""

    def at(self, alias: str) -> Any:
        """Return what stands behind FROM, under another name."""
        source, named = self.source.copy(), exp.to_identifier(alias, quoted=True)
        if isinstance(source, exp.Query):
            return source.subquery(named, copy=False)
        source.set("alias", exp.TableAlias(this=named))
        return source

    def select(self, columns: Mapping[str, Any], where: Any = None) -> Rows:
        """Return other columns of the same rows, or of some of them."""
        query = named(columns).from_(self.at("t"), copy=False)
        return Rows(query if where is None else query.where(where, copy=False), tuple(columns))

    def only(self, *names: str) -> Rows:
        """Return some of the columns."""
        found = self.select({name: column(name) for name in names})
        kinds = dict(zip(self.columns, self.kinds, strict=False))
        return Rows(found.source, names, tuple(kinds[name] for name in names if kinds))

    def distinct(self) -> Rows:
        """Return rows that are alike only once."""
        return Rows(self.query.distinct(), self.columns)

    def grouped(self, keys: Mapping[str, Any], totals: Mapping[str, Any]) -> Rows:
        """Return one row for each combination of some values, with totals."""
        return grouped(self.at("t"), keys, totals)

    @property
    def query(self) -> Any:
        """The statement that selects all rows."""
        if isinstance(self.source, exp.Query):
            return self.source
        return self.select({name: column(name) for name in self.columns}).source


def named(columns: Mapping[str, Any]) -> Any:
    """Return the beginning of a statement that selects values under names."""
    return exp.select(*(exp.alias_(each, name, quoted=True) for name, each in columns.items()))


def grouped(source: Any, keys: Mapping[str, Any], totals: Mapping[str, Any]) -> Rows:
    """Return one row for each combination of some values of what stands behind FROM."""
    query = named({**keys, **totals}).from_(source, copy=False)
    return Rows(query.group_by(*keys.values()), (*keys, *totals))


def pruned(rows: Rows, names: Collection[str]) -> Rows:
    """Return some columns of a statement, without the joins that only others need."""
    query = rows.query.copy()
    kept = [each for each in query.expressions if each.alias in names]
    used = {each.table for value in kept for each in value.find_all(exp.Column)}
    query.set("expressions", kept)
    joins = query.args.get("joins") or ()
    query.set("joins", [each for each in joins if each.alias_or_name in used])
    return Rows(query, tuple(each.alias for each in kept))


def raw(text: str) -> Any:
    """Return words of one database that stand behind FROM as they are: ours, never a name."""
    return exp.Table(this=exp.Var(this=text))


def column(name: str, of: str | None = None) -> Any:
    """Return a column by its name."""
    return exp.column(name, table=of, quoted=True)


def number(value: int) -> Any:
    """Return a whole number."""
    return exp.Literal.number(value)


def double(value: float) -> Any:
    """Return a finite number as a float of eight bytes: 0.5 is a decimal to most databases."""
    if float(value).is_integer() and abs(value) < 2**63:
        return exp.cast(exp.Literal.number(int(value)), "double")
    return exp.cast(exp.Literal.string(repr(float(value))), "double")


def text(value: str) -> Any:
    """Return a text."""
    return exp.Literal.string(value)


def cases(*pairs: tuple[Any, Any], otherwise: Any = None) -> Any:
    """Return the value that belongs to the first condition that holds."""
    case = exp.Case()
    for condition, value in pairs:
        case = case.when(condition, value, copy=False)
    return case if otherwise is None else case.else_(otherwise, copy=False)


def cast(value: Any, kind: str) -> Any:
    """Return a value as another type, named as sqlglot does."""
    return exp.cast(value, kind)


def in_full(value: Any, places: int) -> Any:
    """Return a decimal as a text of so many decimals, zeros at its end included.

    Most databases write all decimals of a type by themselves; others look at `places_of`.
    """
    written = cast(value, "text")
    written.meta[_PLACES] = places
    return written


def places_of(node: Any) -> int | None:
    """Return how many decimals a part of a statement writes, if it is what `in_full` returns."""
    return node.meta.get(_PLACES) if isinstance(node, exp.Cast) else None


def infinite(value: Any, *, above: bool) -> Any:
    """Tell whether a float lies above or below all finite ones, for which SQL has no one word."""
    wide = cast(value, "double")
    beyond = wide > double(sys.float_info.max) if above else wide < double(-sys.float_info.max)
    return exp.paren(beyond)


def is_null(value: Any) -> Any:
    """Tell whether there is no value."""
    return exp.paren(value.is_(exp.null()))


def equal(one: Any, other: Any) -> Any:
    """Tell whether two values are the same."""
    return exp.paren(one.eq(other))


def different(one: Any, other: Any) -> Any:
    """Tell whether two values are not the same."""
    return exp.paren(one.neq(other))


def between(value: Any, low: int, high: int) -> Any:
    """Tell whether a value lies in a range, both ends included."""
    return exp.paren((value >= number(low)).and_(value <= number(high)))


def negated(condition: Any) -> Any:
    """Tell whether a condition does not hold."""
    return exp.paren(exp.not_(condition))


def any_of(*conditions: Any) -> Any:
    """Tell whether one of several conditions holds."""
    return exp.paren(exp.or_(*conditions))


def remainder(value: Any, width: int) -> Any:
    """Return what is left of a division of whole numbers; it has the sign of the value."""
    return exp.paren(value % number(width))


def rounded(value: Any, places: int | None = None) -> Any:
    """Return a number rounded to so many decimals."""
    return exp.Round(this=value, decimals=None if places is None else number(places))


def absolute(value: Any) -> Any:
    """Return a number without its sign."""
    return exp.Abs(this=value)


def below(value: Any) -> Any:
    """Return the largest whole number that is not larger."""
    return exp.Floor(this=value)


def call(name: str, *values: Any) -> Any:
    """Call a function of one database by its own name."""
    return exp.Anonymous(this=name, expressions=list(values))


def total(value: Any) -> Any:
    """Return a sum of whole numbers."""
    return cast(exp.Sum(this=value), "bigint")


def passing(condition: Any, each: Any = None) -> Any:
    """Return how many rows a condition holds for, or how many records they are."""
    return exp.Sum(this=cases((condition, each or number(1)), otherwise=number(0)))


def all_rows() -> Any:
    """Return how many rows there are."""
    return exp.Count(this=exp.Star())


def records_of(rows: Rows) -> Any:
    """Return how many records rows are; a column n, if there is one, says how often each occurs."""
    return total(column("n")) if "n" in rows.columns else all_rows()


def smallest(value: Any) -> Any:
    """Return the smallest value."""
    return exp.Min(this=value)


def largest(value: Any) -> Any:
    """Return the largest value."""
    return exp.Max(this=value)


def row_number() -> Any:
    """Return the number of a row, from zero, in the order in which a file is read."""
    return exp.paren(exp.Window(this=exp.RowNumber()) - 1)


def rewritten(query: Any, kinds: tuple[Any, ...], anew: Callable[[Any], Any]) -> Any:
    """Return a statement in which nodes of some kinds are written anew, the innermost first."""
    query = query.copy()
    for node in [*query.find_all(*kinds)][::-1]:
        node.replace(anew(node))
    return query
