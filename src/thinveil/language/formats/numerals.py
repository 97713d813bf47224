"""Numbers as people write them: decimal commas, thousands, currencies, percent, limits."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

SPACES: Final = " \u00a0\u2009\u202f"
"""Spaces that part thousands: plain, fixed, thin, and thin and fixed."""
APOSTROPHES: Final = "'\u2019"
MINUSES: Final = "\u2212-"  # in this order it may end a class of characters
BELOW: Final = ("<1", "<=1", "\u22641")
ABOVE: Final = (">1", ">=1", "\u22651", "1+")
NEGATIVE: Final = ("(1)", "1-")
SPECIAL: Final = (*NEGATIVE, *BELOW, *ABOVE)
"""Other ways to write some values of a column, as a format names them after the word or."""
HOW: Final = (
    'give an example of a number, such as "1.234,56" or "$1,234.56" or "12 %"; other ways to write '
    f'some of the values follow the word or, such as "1,234 or <1": {", ".join(SPECIAL)}'
)

_EXAMPLE: Final = re.compile(
    rf"(?P<before>\D*?)(?P<body>\d(?:[\d.,{SPACES}{APOSTROPHES}]*\d)?)(?P<after>\D*)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Numeral:
    """How a column writes its numbers.

    Args:
        decimal: What stands before the decimals: a point or a comma.
        thousands: What stands between groups of three digits; nothing where they are not grouped.
        before: What stands before each number, such as a currency sign.
        after: What stands after each number, such as a percent sign.
        special: Other ways to write some of the values, of those in `SPECIAL`.
        strict: Whether long numbers must be grouped, where any are.
    """

    decimal: str = "."
    thousands: str = ""
    before: str = ""
    after: str = ""
    special: frozenset[str] = frozenset()
    strict: bool = False
    _shape: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _usual: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if any(len(self.special & set(each)) > 1 for each in (BELOW, ABOVE)):
            raise ValueError("one mark of a limit below, and one above, is all a format can have")
        body, sign = self._body(), f"[+{MINUSES}]"
        before, after = re.escape(self.before), re.escape(self.after)
        usual = rf"{before}(?P<minus>-?){body}\s?{after}"
        shape = (
            rf"(?P<open>\()?\s*(?P<limit>[<>]=?|[\u2264\u2265])?\s*(?P<sign>{sign})?\s*"
            rf"{before}\s*(?P<inner>{sign})?\s*{body}"
            rf"(?P<trail>{sign})?\s*{after}(?P<last>{sign})?\s*(?P<close>\))?"
        )
        object.__setattr__(self, "_usual", re.compile(usual, re.ASCII))
        object.__setattr__(self, "_shape", re.compile(shape, re.ASCII))

    @staticmethod
    def of(text: str) -> Numeral:
        """Read a format by its example; a ValueError says how to give one."""
        example, *special = text.split(" or ")
        match = _EXAMPLE.fullmatch(example.strip())
        if match is None or not set(special) <= set(SPECIAL):
            raise ValueError(HOW)
        before, after = match["before"].strip(), match["after"].strip()
        if set(before + after) & set("()<>+-"):
            raise ValueError(HOW)
        decimal, thousands = _marks(match["body"])
        return Numeral(decimal, thousands, before, after, frozenset(special))

    def __str__(self) -> str:
        body = f"1{self.thousands}234{self.decimal}56"
        gap = " " if self.after else ""
        wide = " " if self.before[-1:].isalpha() or self.before[-1:] == "." else ""
        example = f"{self.before}{wide}{body}{gap}{self.after}"
        return " or ".join((example, *(each for each in SPECIAL if each in self.special)))

    def _body(self) -> str:
        """Return the shape of digits and the marks between them."""
        point = re.escape(self.decimal)
        mark = {" ": f"[{SPACES}]", "'": f"[{APOSTROPHES}]"}.get(
            self.thousands, re.escape(self.thousands)
        )
        whole, power = r"\d+", r"(?:[eE][+-]?\d+)?"
        if self.thousands:
            loose = r"\d{1,3}" if self.strict else r"\d+"
            whole, power = rf"(?:[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|{loose})", ""
        return rf"(?P<whole>{whole})?(?P<rest>(?:{point}\d*)?{power})"

    def plain(self, text: str) -> str:
        """Return a number plainly, as 1234.56; a ValueError says that it has another form."""
        side, number = self.parted(text)
        if side:
            raise ValueError("a limit, not a number")
        return number

    def parted(self, text: str) -> tuple[int, str]:
        """Return a number plainly, and on which side of it the value lies: -1, 0 or 1.

        >>> Numeral.of("1,234 or <1").parted("<1,000"), Numeral.of("1,5 or 1+").parted("90+")
        ((-1, '1000'), (1, '90'))
        """
        usual = self._usual.fullmatch(text)
        if usual is not None and usual["whole"]:
            return 0, usual["minus"] + self._plainly(usual["whole"], usual["rest"])
        match = self._shape.fullmatch(text.strip())
        if match is None:
            raise ValueError("not in the format")
        whole, rest = match["whole"] or "", match["rest"]
        if not whole and not (rest.startswith(self.decimal) and rest[1:2].isdigit()):
            raise ValueError("not in the format")
        signs = [match[each] for each in ("sign", "inner", "trail", "last") if match[each]]
        bracket, limit = bool(match["open"]), match["limit"] or ""
        trail = match["trail"] or match["last"] or ""
        if len(signs) + bracket > 1 or bracket != bool(match["close"]):
            raise ValueError("not in the format")
        minus = bracket or any(each in MINUSES for each in signs)
        used = [f"{limit}1"] if limit else []
        used += ["(1)"] if bracket else []
        if trail:
            used.append("1-" if trail in MINUSES else "1+")
        if not set(used) <= self.special or ("1+" in used and limit):
            raise ValueError("not in the format")
        number = self._plainly(whole, rest)
        side = -1 if set(used) & set(BELOW) else 1 if set(used) & set(ABOVE) else 0
        return side, f"-{number}" if minus else number

    def _plainly(self, whole: str, rest: str) -> str:
        if not whole.isdigit():
            whole = "".join(filter(str.isdigit, whole))
        return whole + rest.replace(self.decimal, ".")

    @property
    def limited(self) -> bool:
        """Whether some values are only known to be below or above a limit."""
        return bool(self.special & {*BELOW, *ABOVE})


def _marks(body: str) -> tuple[str, str]:
    """Return the decimal mark and the mark of thousands of an example."""
    marks = [_common(each) for each in body if not each.isdigit()]
    groups = re.split(r"\D", body)
    if not marks:
        return ".", ""
    last, sizes = marks[-1], [len(each) for each in groups]
    single = len(set(marks)) == 1
    grouped = sizes[0] <= 3 and all(each == 3 for each in sizes[1:])
    if single and grouped:
        return ("," if last == "." else "."), last
    if last not in ".," or marks.count(last) > 1 or len(set(marks)) > 2:
        raise ValueError(HOW)
    if len(marks) > 1 and (sizes[0] > 3 or any(each != 3 for each in sizes[1:-1])):
        raise ValueError(HOW)
    if any(one != other for one, other in pairwise(marks[:-1])):
        raise ValueError(HOW)
    return last, marks[0] if len(marks) > 1 else ""


def _common(mark: str) -> str:
    return " " if mark in SPACES else "'" if mark in APOSTROPHES else mark
