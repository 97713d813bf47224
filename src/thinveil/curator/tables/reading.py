"""How a table is to be read, and what was assumed where nobody said it.

One class holds all that `thinveil.load` and the options of the command line can say of a file:
its dialect, the texts that mean a missing value, and the columns that are wanted.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from thinveil.errors import DataError, UsageError
from thinveil.language.schema import Schema
from thinveil.language.texts import many, nearest, quoted

if TYPE_CHECKING:
    from thinveil.curator.tables.coding import Column
    from thinveil.language.schema import Attribute

MISSING_TEXTS: Final = frozenset({"", "NULL", "null", "NaN", "nan"})
"""The texts that always mean a missing value."""

WORDS: Final = frozenset(
    spelled
    for word in (
        *("NA", "N/A", "N.A.", "#N/A", "#NA", "<NA>", "None", "Null", "NaN"),  # R, pandas
        *("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"),  # Excel; SPSS the first
        *(".", "._", *(f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")),  # Stata, SAS
        *("\\N", "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN", "-NaN"),  # MySQL, PostgreSQL; C
        *("-", "--", "---", "\u2013", "\u2014", "..", "...", "\u2026", ":", "?", "*"),  # offices
        *("missing", "not available", "not applicable", "unknown"),
    )
    for spelled in (word, word.lower(), word.upper(), word.capitalize())
)
"""Words that mean a missing value in a column where all else is numbers, dates or times.

What R, pandas, Excel, Stata, SPSS, SAS, databases and statistical offices write for it.
"""

DATES: Final = ("day-first", "month-first")
"""How dates such as 01/02/1990 are read."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a table is to be read; whatever is None is found out, and said.

    Args:
        separator: What stands between two fields of a text file.
        quote: The quotation mark of a text file; empty where there is none.
        encoding: The encoding of a text file.
        header: The line of a text file, from 1, that names the columns; 0 where none does.
        comment: What lines that are no data begin with; empty where there are none.
        keep_unnamed: Whether columns without a name are kept though they only count the rows, or
            are empty.
        missing: Texts that mean a missing value, besides the empty one, NULL and NaN.
        not_missing: Texts that are values, though they look like missing ones.
        dates: "day-first" or "month-first": how 01/02/1990 is read.
        only: The columns to read, by their names; all unless given.
        drop: The columns to leave out.
        sheet: The sheet of a spreadsheet.
        steps: Steps for columns of floats that no plain grid holds: they are read on a grid of that
            step instead, rounded down. Columns of plain numbers stay as they are.
    """

    separator: str | None = None
    quote: str | None = None
    encoding: str | None = None
    header: int | None = None
    comment: str | None = None
    keep_unnamed: bool = False
    missing: tuple[str, ...] = ()
    not_missing: tuple[str, ...] = ()
    dates: str | None = None
    only: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    sheet: str | None = None
    steps: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_kinds()
        if self.separator in ("tab", "\\t"):
            object.__setattr__(self, "separator", "\t")
        if self.separator is not None and not _single(self.separator):
            raise UsageError(
                "the separator must be one character, such as , or ; or | (or the word tab)"
            )
        if self.quote and not _single(self.quote):
            raise UsageError("the quotation mark must be one character, or empty for none")
        if self.separator == ('"' if self.quote is None else self.quote):
            raise UsageError("the separator and the quotation mark must differ")
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.header is not None and (type(self.header) is not int or self.header < 0):
            raise UsageError(
                "the header is the number of a line, from 1; 0 (or none) for no header"
            )
        if self.dates not in (None, *DATES):
            raise UsageError(f"dates are read {' or '.join(DATES)}")
        if both := sorted(set(self.missing) & set(self.not_missing)):
            raise UsageError(f"the text {both[0]!r} is given as missing and as not missing")
        if self.only and self.drop:
            raise UsageError("--only and --drop exclude each other: give one of them")

    def _check_kinds(self) -> None:
        """Refuse what is of no use as a text, also where a transcript says it."""
        for name in ("missing", "not_missing", "only", "drop"):
            object.__setattr__(self, name, _texts(getattr(self, name), name))
        for name in ("separator", "quote", "encoding", "comment", "dates", "sheet"):
            if not isinstance(getattr(self, name), str | None):
                raise UsageError(f"{name}: give a text")
        if not isinstance(self.steps, Mapping):
            raise UsageError("steps: give a step for each of some columns")
        object.__setattr__(self, "steps", {name: str(step) for name, step in self.steps.items()})

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Reading:
        """Return what some words say; those that mean something else are passed over."""
        return cls(**{name: told[name] for name in READING if told.get(name) is not None})

    def plain(self) -> dict[str, Any]:
        """Return what is not usual, in words that JSON can hold."""
        usual = asdict(Reading())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    @property
    def gaps(self) -> frozenset[str]:
        """All texts that mean a missing value in every column."""
        return (MISSING_TEXTS | set(self.missing)) - set(self.not_missing)

    def gaps_of(self, attribute: Attribute) -> frozenset[str]:
        """All texts that mean a missing value in the column of an attribute.

        Among texts, NA may mean North America; among numbers it means none. A column without any
        value has nothing but such words.
        """
        empty = attribute.kind == "category" and attribute.size == attribute.missing
        if attribute.missing and (empty or attribute.kind != "category"):
            return self.gaps | self.words
        return self.gaps

    @property
    def words(self) -> frozenset[str]:
        """The words that mean a missing value among numbers."""
        return WORDS.difference(self.not_missing)

    def chosen(self, names: Sequence[str], where: str) -> list[str]:
        """Return the names of the wanted columns, in the order of the table."""
        for flag, wanted in (("--only", self.only), ("--drop", self.drop)):
            for name in wanted:
                if name not in names:
                    raise DataError(f"{where}: {flag}: {_no_column(flag, name, names)}")
        kept = self.kept(names)
        if not kept:
            raise DataError(
                f"{where}: --drop leaves out all {many(len(names), 'column')}: keep some"
            )
        return kept

    def kept(self, names: Sequence[str]) -> list[str]:
        """Return the names that are not left out."""
        return [
            name for name in names if name not in self.drop and (not self.only or name in self.only)
        ]

    def described(self, schema: Schema) -> Schema:
        """Return what a schema says of the wanted columns; it may describe more than those."""
        kept = set(self.kept(schema.names))
        found = tuple(each for each in schema if each.name in kept)
        return Schema(found) if 0 < len(found) < len(schema) else schema

    def said_of(self, left_out: Sequence[str]) -> tuple[str, ...]:
        """Return what to say of columns that are left out: nothing where it was asked for."""
        return ()


@dataclass(frozen=True, slots=True)
class Beside(Reading):
    """How a file is read that goes with a table: its columns are those that the table has.

    What `only` and `drop` say need not be there; what they leave out is told.
    """

    def chosen(self, names: Sequence[str], where: str) -> list[str]:
        """Return the names of the columns that the table has, too."""
        if kept := self.kept(names):
            return kept
        listed = ", ".join(map(repr, (self.only or self.drop)[:50]))
        which = f"none of the columns {listed}" if self.only else f"no column besides {listed}"
        raise DataError(f"{where}: it has {which}: give a file that has some")

    def said_of(self, left_out: Sequence[str]) -> tuple[str, ...]:
        """Say which columns are left out."""
        if not left_out:
            return ()
        listed = ", ".join(map(repr, left_out[:20])) + (", .." if len(left_out) > 20 else "")
        have, what = ("columns that", "are") if len(left_out) > 1 else ("a column that", "is")
        return (f"it has {have} the audited table does not have: {listed} {what} left out",)


def leaving_out(*names: str) -> str:
    """Return the option that leaves columns out, to be copied into a command line or a call.

    >>> print(leaving_out("age", "City, State"))
    --drop 'age,"City, State"'; in Python drop=['age', 'City, State']
    """
    few = list(names) if len(names) < 4 else "[...]"
    return f"--drop {quoted(listed(names))}; in Python drop={few}"


def listed(names: Iterable[str]) -> str:
    """Write names as a line of CSV, so that a name may hold a comma: what --drop takes."""
    marks = ',"\r\n'
    return ",".join(
        '"' + name.replace('"', '""') + '"'
        if name.startswith(" ") or any(mark in name for mark in marks)
        else name
        for name in names
    )


def _no_column(flag: str, name: str, names: Sequence[str]) -> str:
    """Say that there is no such column, and which one may be meant."""
    meant = nearest(name, names) or next((each for each in names if name in each.split(",")), "")
    hint = f" (did you mean {flag} {quoted(listed([meant]))}?)" if meant else ""
    known = ", ".join(map(repr, names[:50]))
    return f"there is no column {name!r}{hint}; the columns are {known}"


READING: Final = tuple(each.name for each in fields(Reading))
"""The names of all that can be said of how a table is read."""


@dataclass(frozen=True, slots=True)
class Remarks:
    """What was assumed when a table was read, and what became public that may not be.

    `assumed` has a sentence for each assumption, with the option that overrides it; `doubts` one
    for each column whose public description may tell more than its owner meant. `numbers` are the
    columns among those that hold numbers or dates, to all appearance; `rounded_away` those most of
    whose different values became one when they were rounded.
    """

    assumed: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    rounded_away: tuple[str, ...] = ()

    def and_also(self, more: Remarks) -> Remarks:
        """Return these remarks and some more."""
        pairs = zip(astuple(self), astuple(more), strict=True)
        return Remarks(*((*mine, *others) for mine, others in pairs))

    def all(self) -> tuple[str, ...]:
        """Return all sentences, doubts last."""
        return (*self.assumed, *self.doubts)


NO_REMARKS: Final = Remarks()


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """A table as it was read: columns of texts, and what was assumed about the file."""

    columns: Sequence[Column]
    assumed: tuple[str, ...] = ()

    def only(self, reading: Reading, where: str) -> Raw:
        """Return the wanted columns alone."""
        names = [each.name for each in self.columns]
        kept = set(reading.chosen(names, where))
        said = reading.said_of([name for name in names if name not in kept])
        return Raw([each for each in self.columns if each.name in kept], (*self.assumed, *said))


def _texts(value: object, name: str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Iterable):
        raise UsageError(f"{name}: give texts")
    texts = tuple(texts)
    if not all(isinstance(each, str) for each in texts):
        raise UsageError(f"{name}: give texts, and nothing else")
    return texts


def _single(mark: str) -> bool:
    return len(mark) == 1 and mark not in "\r\n\0"


def _check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
        "".encode(encoding)  # Refuses codecs that do not encode text.
    except (LookupError, ValueError):
        raise UsageError(
            f"there is no text encoding {encoding!r}: try utf-8, latin-1, cp1252 or utf-16"
        ) from None


READ_AS_USUAL: Final = Reading()
"""What is assumed where nothing is said."""
