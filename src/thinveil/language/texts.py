"""Numbers, dates and times as texts, and texts that are fit to be shown: one place for each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from json import dumps
from shlex import quote
from typing import Final

NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?(?P<zone>Z|[+-]\d\d:?\d\d)?", re.ASCII
)
CLOCK: Final = re.compile(r"\d\d?:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?", re.ASCII)

_FORMATS: Final = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\u034f\u115f\u1160\u17b4\u17b5\u2065\u3164\uffa0\ufff0-\ufff8\U000e01f0-\U000e0fff"
)
"""What has no shape and moves, joins or hides what has: Unicode's classes Cf, Zl and Zp, but for
signs of Arabic, Syriac and Kaithi that are drawn; and what else no font draws (default ignorable),
such as the fillers of Hangul."""
_HIDDEN: Final = rf"\x7f-\x9f\ud800-\udfff{_FORMATS}"
_LETTERS: Final = r"\u0590-\u1fff\u2100-\ud7ff\uf900-\U0010ffff"
_VARIANTS: Final = r"\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS: Final = (
    rf"(?:(?<![{_LETTERS}])|(?<=[{_HIDDEN}]))[\u200c\u200d]"
    rf"|(?:(?<![{_LETTERS}\xa9\xae\u203c\u2049])(?!(?<=[\d#*])\ufe0f\u20e3)"
    rf"|(?<=[{_HIDDEN}{_VARIANTS}]))[{_VARIANTS}]"
)
"""Joiners belong behind a letter of Persian or of India and behind emoji, and nowhere else; so do
the selectors of a letter's or an emoji's variant, one at a time."""
_UNSEEN: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{_HIDDEN}]|{_JOINERS}")
_UNSEEN_OR_BREAK: Final = re.compile(rf"[\x00-\x1f{_HIDDEN}]|{_JOINERS}")

EPOCH: Final = datetime(1970, 1, 1)
MICROSECOND: Final = timedelta(microseconds=1)


def day(value: object) -> date:
    """Read a date: an ISO date or the midnight that an ISO datetime names, or an object.

    A ValueError says that it is neither, and does not repeat it.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    at = moment(value)
    if at != datetime(at.year, at.month, at.day):
        raise ValueError("not a whole day")
    return at.date()


def moment(value: object) -> datetime:
    """Read an ISO date or datetime, or an object; one with an offset is turned into UTC.

    A ValueError says that it is neither, and does not repeat it; an OverflowError, that it lies
    beyond the years that Python knows.
    """
    if isinstance(value, datetime):
        at = value
    else:
        text = str(value).strip()
        if not (MOMENT.fullmatch(text) or DAY.fullmatch(text)):
            raise ValueError("not a date such as 2024-12-31")
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("not a day or a time of the calendar") from None
    offset = at.utcoffset()
    return at if offset is None else at.replace(tzinfo=None) - offset


def ticks(value: object) -> int:
    """Read a moment as microseconds since 1970, or raise as `moment` does."""
    return (moment(value) - EPOCH) // MICROSECOND


def clock(value: object) -> int:
    """Read a time of the day, a text or an object, as microseconds since midnight.

    A ValueError says that it is none, and does not repeat it.
    """
    if not isinstance(value, time):
        text = str(value).strip()
        if not CLOCK.fullmatch(text):
            raise ValueError("not a time of the day such as 23:59:59")
        try:
            value = time.fromisoformat(text if text[2] == ":" else f"0{text}")
        except ValueError:
            raise ValueError("not a time of the day such as 23:59:59") from None
    if value.tzinfo is not None:
        raise ValueError("a time of the day in a zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 10**6 + value.microsecond


def in_digits(number: Decimal) -> str:
    """Write a decimal without an exponent, unless that would be long.

    >>> in_digits(Decimal("1E-7")), in_digits(Decimal("1E+2")), in_digits(Decimal("1E+30"))
    ('0.0000001', '100', '1E+30')
    """
    return format(number, "f") if -20 < number.adjusted() < 20 else str(number)


def many(count: int, one: str, more: str = "") -> str:
    """Write a count with its noun.

    >>> many(1, "record"), many(2000, "record"), many(2, "person", "people")
    ('1 record', '2,000 records', '2 people')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name that a wrong one may stand for; empty where none is like it.

    >>> nearest("Age ", ["age", "wage"]), nearest("salry", ["age", "salary"]), nearest("x", ["y"])
    ('age', 'salary', '')
    """
    plain: dict[str, str] = {}
    for each in names:
        plain.setdefault(each.strip().casefold(), each)
    found = get_close_matches(name.strip().casefold(), plain, 1)
    return plain[found[0]] if found else ""


def visible(text: str) -> str:
    r"""Write control characters as Python does; line breaks and tabs stay.

    Escape sequences: C0 and C1 controls, DEL, marks of direction, zero width and tags, the
    separators of lines and paragraphs, lone surrogates. What was made visible stays as it is, so
    that a text which has a backslash and x1b from the start looks like one that had an escape.

    >>> visible("a\x1b]52;c;eA==\x07\n\u202eb")
    'a\\x1b]52;c;eA==\\x07\n\\u202eb'
    """
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_as_python, text)


def one_line(text: str) -> str:
    r"""Write control characters as Python does, line breaks and tabs, too: for names and sentences.

    >>> one_line("a\nError: b")
    'a\\nError: b'
    """
    return text if text.isascii() and text.isprintable() else _UNSEEN_OR_BREAK.sub(_as_python, text)


def in_json(text: str) -> str:
    r"""Escape control characters in JSON that is written already: it means the same.

    >>> in_json('["\x9b\u202e\U000e0041"]')
    '["\\u009b\\u202e\\udb40\\udc41"]'
    """
    return _UNSEEN.sub(lambda found: dumps(found[0])[1:-1], text)


def in_toml(text: str) -> str:
    r"""Escape control characters in TOML that is written already: it means the same.

    >>> in_toml('a = "\x9b\U000e0041"')
    'a = "\\u009b\\U000e0041"'
    """
    text = text.replace("\t", "\\t")  # none is between the texts
    return _UNSEEN.sub(lambda found: f"\\U{ord(found[0]):08x}".replace("\\U0000", "\\u"), text)


def quoted(word: str) -> str:
    r"""Quote a word for a shell, so that it can be read and copied: $'..' for control characters.

    ANSI-C quoting, which bash, zsh and ksh know; the bytes of the characters are written.

    >>> print(quoted("a b"), quoted("it's\n\x1b"))
    'a b' $'it\'s\x0a\x1b'
    """
    if not _UNSEEN_OR_BREAK.search(word):
        return quote(word)
    plain = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{_UNSEEN_OR_BREAK.sub(_as_bytes, plain)}'"


def _as_python(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def _as_bytes(found: re.Match[str]) -> str:
    try:
        raw = found[0].encode("utf-8", "surrogateescape")  # a file's name that is no UTF-8
    except UnicodeEncodeError:
        raw = found[0].encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in raw)
