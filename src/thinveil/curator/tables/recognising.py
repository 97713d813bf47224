"""Which format fits all texts of a column: numbers, dates and times as people write them.

A format is taken only where every distinct text fits it, and a note says which. The examples in
notes are made up; no value of the table is among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from thinveil.language.formats.calendar import CENTURY, Pattern, month_of
from thinveil.language.formats.numerals import APOSTROPHES, MINUSES, SPACES, Numeral
from thinveil.language.schema import Kind
from thinveil.language.texts import CLOCK, clock

CURRENCIES: Final = (
    *"$\u00a2\u00a3\u00a5\u20ac\u20b9\u20bd\u20a9\u20aa\u20ba\u20ab\u20b4\u20a6\u20b1\u0e3f",
    *("US$", "A$", "AU$", "C$", "CA$", "NZ$", "HK$", "S$", "R$", "MX$"),
    *("kr", "kr.", "Fr.", "Fr", "z\u0142", "K\u010d", "Ft", "Rs", "Rs."),
    *("EUR", "USD", "GBP", "CHF", "JPY", "CNY", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "CAD"),
    *("AUD", "NZD", "INR", "BRL", "ZAR", "MXN", "RUB", "TRY", "KRW", "SGD", "HKD", "ILS", "THB"),
)
"""Signs and codes of money, the most traded of ISO 4217, that may stand beside each number."""

_MARKS: Final = (
    ("", "."), ("", ","), (",", "."), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("'", ","),
)  # fmt: skip
"""Marks of thousands and of decimals, in the order in which they are tried."""
_AFFIX: Final = "|".join(
    re.escape(each) for each in sorted((*CURRENCIES, "%"), key=len, reverse=True)
)
_LOOSE: Final = re.compile(
    rf"\(?\s*(?:[<>]=?|[\u2264\u2265])?\s*[+{MINUSES}]?\s*(?P<before>{_AFFIX})?\s*[+{MINUSES}]?\s*"
    rf"[.,]?\d[\d.,{SPACES}{APOSTROPHES}]*(?:[eE][+-]?\d+)?[+{MINUSES}]?\s*(?P<after>{_AFFIX})?"
    rf"[+*{MINUSES}]?\s*\)?",
    re.ASCII,
)
"""Anything like a number, with what stands beside it."""
_UNUSUAL: Final = re.compile(rf"[(<>\u2264\u2265+{MINUSES}]")
_UNIT: Final = re.compile(rf"(?P<number>.*\d)[{SPACES}][^\W\d]{{1,5}}")
_NAME: Final = r"[A-Za-z]{3,9}\.?"
_DATE: Final = re.compile(
    rf"(?P<a>\d{{1,2}}|\d{{4}}|{_NAME})(?P<s>[./\- ]|)(?P<b>\d{{1,2}}|{_NAME})"
    r"(?P<t>, |[./\- ,]|)(?P<c>\d{4}|\d{1,2})"
    r"(?:(?P<gap>T|, | +)(?P<time>\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?[AaPp]\.?[Mm]\.?)?))?",
    re.ASCII,
)
_MONTH: Final = re.compile(rf"(?P<a>\d{{4}}|\d{{1,2}}|{_NAME})(?P<s>[/\- ]|, )(?P<b>\d{{4}}|\d\d?)")
_HALF: Final = re.compile(
    r"(?P<clock>\d{1,2}:\d\d(?P<s>:\d\d(?:\.\d+)?)?)\s?[AaPp]\.?[Mm]\.?", re.ASCII
)
_ELSE: Final = "a schema file can say otherwise"


class Customs(NamedTuple):
    """What is known of how a file is written, from the user or from its other columns."""

    dates: str | None = None  # day-first or month-first
    decimal: str | None = None  # the decimal mark

    @staticmethod
    def common(shown: Iterable[Customs], dates: str | None) -> Customs:
        """Return what columns agree on; what the user says of dates comes first."""
        orders, marks = (set(each) - {None} for each in zip(Customs(), *shown, strict=True))
        order = dates or (orders.pop() if len(orders) == 1 else None)
        return Customs(order, marks.pop() if len(marks) == 1 else None)


UNKNOWN: Final = Customs()


class Recognised(NamedTuple):
    """A format that fits, and what to tell of it."""

    kind: Kind  # integer for all numbers: how fine they are is seen later
    format: str
    plain: Callable[[str], str]
    note: str
    shown: Customs = UNKNOWN  # what the column shows beyond doubt
    open: bool = False  # whether another format fits as well, and another column may decide


def recognised(texts: Sequence[str], customs: Customs = UNKNOWN) -> Recognised | None:
    """Return the format that all texts have, or None where they share none.

    Args:
        texts: Distinct texts, without blanks around them, none of them missing.
        customs: What decides where several formats fit.
    """
    return _time(texts) or _date(texts, customs.dates) or _number(texts, customs.decimal)


def decimals_of(texts: Iterable[str]) -> Customs:
    """Return what plain numbers show: that a point parts decimals, unless it may part thousands."""
    ends = [text.partition(".")[2] for text in texts if "." in text]
    return Customs(decimal=".") if any(len(end) != 3 for end in ends) else UNKNOWN


def grouped_by_points(texts: Sequence[str]) -> bool:
    """Tell whether plain numbers may as well be whole ones, with points between thousands."""
    form = Numeral(",", ".", strict=True)
    return any("." in text for text in texts) and _fits(form.parted, texts)


def looks_like_a_value(text: str) -> bool:
    """Tell whether a text is much like a number, a date or a time, in any format or in none.

    >>> [looks_like_a_value(text) for text in ("12", "3,5 kg", "<5", "31.12.90", "1-4", "B12")]
    [True, True, True, True, False, False]
    """
    text = text.strip()
    unit = _UNIT.fullmatch(text)
    if _LOOSE.fullmatch(unit["number"] if unit else text):
        return True
    if CLOCK.fullmatch(text) or _HALF.fullmatch(text):
        return True
    day, month = _DATE.fullmatch(text), _MONTH.fullmatch(text)
    months = _months(month) if month else ()
    fits = (_fits(Pattern.of(each).plain, [text]) for each in months)
    return (day is not None and any(_patterns(day))) or any(fits)


# ---- numbers


def _number(texts: Sequence[str], mark: str | None) -> Recognised | None:
    if not all(map(_LOOSE.fullmatch, texts)):
        return None
    first = _LOOSE.fullmatch(texts[0])
    assert first is not None
    special = frozenset(_special(texts))
    try:
        base = Numeral(before=first["before"] or "", after=first["after"] or "", special=special)
    except ValueError:  # limits in several ways, such as <5 and <=5
        return None
    fitting: dict[tuple[str, str], Numeral] = {}
    used = frozenset("".join(texts))
    for thousands, decimal in _MARKS:
        if not _may_have(used, thousands, decimal):
            continue
        form = replace(base, decimal=decimal, thousands=thousands, strict=True)
        if _fits(form.parted, texts):
            fitting[thousands, decimal] = replace(form, strict=False)
    if not fitting or not _some_plain(base, texts):
        return None
    decimals = {decimal for _, decimal in fitting}
    both = len(decimals) > 1 and any("," in each or "." in each for each in texts)
    marks = next(iter(fitting))
    money = base.before + base.after not in ("", "%")
    grouped = (",", ".") if marks == ("", ",") else (".", ",") if money else marks
    if both:
        order = [grouped, *fitting]
        marks = next(each for each in order if each in fitting and mark in (None, each[1]))
    form = fitting[marks]
    said = f"read as numbers written like {form}"
    if both:
        other = next(each for each in fitting.values() if each.decimal != form.decimal)
        why = ", as in other columns" if mark else ", since three digits follow each mark"
        said += f"{why}. If that is wrong, say {_told(other, form.decimal)} in a schema file"
    elif form.limited:
        said += (
            ". A limit such as <5 or 90+ counts as half a step below or above its number; " + _ELSE
        )
    else:
        said += "; " + _ELSE
    shown = Customs(decimal=form.decimal) if len(decimals) == 1 else UNKNOWN
    return Recognised("integer", str(form), lambda text: form.parted(text)[1], said, shown, both)


def _told(form: Numeral, mark: str) -> str:
    """Return what a schema file says for a format in which a mark parts thousands, or decimals.

    Three digits follow each mark, so it is all that there are decimals of.
    """
    whole = form.thousands == mark
    step = ("0.5" if form.limited else "1") if whole else ("0.0005" if form.limited else "0.001")
    kind = "integer" if step == "1" else "decimal"
    said = f'kind = "{kind}", step = {step} and format = "{form}"'
    return said + (", and wider bounds or none," if whole else "")


def _may_have(used: frozenset[str], thousands: str, decimal: str) -> bool:
    """Tell whether marks can be those of texts of these characters; a point may be unused."""
    known = {" ": SPACES, "'": APOSTROPHES}.get(thousands, thousands)
    if thousands and used.isdisjoint(known):
        return False
    return decimal == "." or decimal in used or thousands == "."


def _special(texts: Iterable[str]) -> Iterator[str]:
    """Return the unusual ways in which some of the numbers are written."""
    for text in texts:
        if not _UNUSUAL.search(text):
            continue
        start = re.match(r"\(|[<>]=?|[\u2264\u2265]", text)
        if start:
            yield "(1)" if start[0] == "(" else f"{start[0]}1"
        bare = re.sub(rf"\s*(?:{_AFFIX})$", "", text)
        for end in (text[-1:], bare[-1:]):
            if end in (*MINUSES, "+") and end:
                yield "1+" if end == "+" else "1-"


def _some_plain(base: Numeral, texts: Iterable[str]) -> bool:
    """Tell whether one text at least is a number without brackets, limits or an end of its own."""
    usual = replace(base, special=frozenset())
    return not base.special or any(
        _fits(replace(usual, decimal=decimal, thousands=thousands).parted, [text])
        for text in texts
        for thousands, decimal in _MARKS
    )


# ---- dates and times


def _time(texts: Sequence[str]) -> Recognised | None:
    said = "read as times of the day written {}; " + _ELSE
    if all(map(CLOCK.fullmatch, texts)):
        colons = {text.count(":") for text in texts}
        if len(colons) > 1 or not _fits(clock, texts):
            return None
        shape = "HH:MM" if colons == {1} else "HH:MM:SS"
        return Recognised("time", "", str, said.format(shape))
    if match := _HALF.fullmatch(texts[0]):
        form = Pattern.of("HH:MM:SS AM" if match["s"] else "HH:MM AM")
        if _fits(form.plain, texts):
            return Recognised("time", form.text, form.plain, said.format(form))
    return None


def _date(texts: Sequence[str], dates: str | None) -> Recognised | None:
    first = _DATE.fullmatch(texts[0])
    month = _MONTH.fullmatch(texts[0])
    found = chain(_patterns(first) if first else (), _months(month) if month else ())
    fitting = [form for form in map(Pattern.of, found) if _fits(form.plain, texts)]
    if not fitting:
        return None
    form, said = fitting[0], ""
    orders = {each.text[0]: each for each in fitting if "MMM" not in each.text}
    both = "D" in orders and "M" in orders
    if both:
        pointed = "." in form.text.partition(" ")[0]  # points are a custom of day-first countries
        form = orders["D" if (dates or ("day-first" if pointed else "")) == "day-first" else "M"]
        other = "day-first" if form.text[0] == "M" else "month-first"
        said = f", though day and month could be swapped (--dates {other} swaps them)"
    if "YYYY" not in form.text:
        said += f", years from {CENTURY} on being of the 1900s and those below of the 2000s"
    what = "dates" if form.kind == "date" else "times"
    if "D" not in form.text:
        what = "months, dated to their first day,"
    said = f"read as {what} written {form}{said}; {_ELSE}"
    order = {"DD": "day-first", "MM": "month-first"}.get(form.text[:2])
    sure = not both and "MMM" not in form.text and "D" in form.text
    shown = Customs(dates=order) if sure else UNKNOWN
    return Recognised(form.kind, form.text, form.plain, said, shown, both)


def _patterns(match: re.Match[str]) -> Iterator[str]:
    """Return the patterns that a date may have, by its parts and the marks between them."""
    a, s, b, t, c = (match[each] for each in "asbtc")
    year = "YYYY" if len(c) == 4 else "YY"
    tail = _tail(match)
    if not (a.isdigit() and b.isdigit()):
        try:
            month_of(a if not a.isdigit() else b)
        except ValueError:
            return
        if a.isdigit() and len(c) != 1 and len(a) < 4:
            yield f"DD{s}MMM{t}{year}{tail}"
        elif a.isdigit() and len(a) == 4 and len(c) < 3:
            yield f"YYYY{s}MMM{t}DD{tail}"
        elif b.isdigit() and t and len(c) != 1:
            yield f"MMM{s}DD{t}{year}{tail}"
    elif s and s == t:
        if len(a) == 4 and len(c) < 3:
            yield f"YYYY{s}MM{t}DD{tail}"
        elif len(a) < 3 and len(c) != 1:
            yield f"DD{s}MM{t}{year}{tail}"
            yield f"MM{s}DD{t}{year}{tail}"
        if len(a) == 2 and len(c) < 3:
            yield f"YY{s}MM{t}DD{tail}"


def _tail(match: re.Match[str]) -> str:
    """Return the pattern of the time behind a date."""
    time = match["time"]
    if not time:
        return ""
    half = " AM" if time[-1] in "mM." else ""
    gap = "T" if match["gap"] == "T" else ", " if match["gap"] == ", " else " "
    return f"{gap}HH:MM{':SS' if time.count(':') == 2 else ''}{half}"


def _months(match: re.Match[str]) -> Iterator[str]:
    """Return the patterns that a month of a year may have."""
    a, s, b = (match[each] for each in "asb")
    year = "YYYY" if len(b) == 4 else "YY"
    if not a.isdigit() and len(b) > 1:
        yield f"MMM{s}{year}"
    elif len(a) == 4 and s != " " and len(b) < 3:
        yield f"YYYY{s}MM"
    elif len(a) < 3 and s == "/" and len(b) == 4:
        yield f"MM{s}YYYY"


def _fits(read: Callable[[str], object], texts: Iterable[str]) -> bool:
    try:
        for text in texts:
            read(text)
    except ValueError:
        return False
    return True
