"""Pieces of HTML: whatever is not known to be safe is escaped."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# Marks that turn the direction of the text around them, and control characters.
_UNRULY: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_VOID: Final = frozenset({"br", "meta", "col"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def clean(text: str) -> str:
    """Return a text without characters that would disturb what stands around it."""
    return _UNRULY.sub("\ufffd", text)


def escaped(content: object) -> Html:
    """Return content as HTML; only `Html` is taken as it is.

    >>> escaped("a<b"), escaped(Html("<b>"))
    ('a&lt;b', '<b>')
    """
    if isinstance(content, Html):
        return content
    return Html(html.escape(clean(str(content))))


def joined(*parts: object) -> Html:
    """Return several parts one after the other."""
    return Html("".join(escaped(part) for part in parts))


def tag(name: str, *content: object, **attributes: object) -> Html:
    """Return an element; a trailing underscore is dropped, an inner one becomes a hyphen.

    >>> tag("td", "1 < 2", class_="number")
    '<td class="number">1 &lt; 2</td>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(*content)}</{name}>")


def data(content: object) -> Html:
    """Return something that comes from the data, such as a column's name, kept to itself."""
    return tag("bdi", content)


def paragraph(*content: object, **attributes: object) -> Html:
    """Return a paragraph."""
    return tag("p", *content, **attributes)


def bullets(lines: Sequence[object], **attributes: object) -> Html:
    """Return a list; nothing where there are no lines."""
    return tag("ul", *(tag("li", line) for line in lines), **attributes) if lines else Html()


def code(text: object) -> Html:
    """Return a command or a name as it is typed."""
    return tag("code", text)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its first column names the rows.

    Args:
        caption: What it shows.
        headings: One for each column.
        rows: Cells; numbers are written by the caller.
        numeric: Which columns hold numbers, to be aligned at the right.
    """

    caption: str
    headings: Sequence[object]
    rows: Sequence[Sequence[object]]
    numeric: frozenset[int] = frozenset()

    def html(self) -> Html:
        """Return the table, in a box that scrolls by itself where it is too wide."""
        kind = ["number" if place in self.numeric else None for place in range(len(self.headings))]
        head = [
            tag("th", each, scope="col", class_=kind[place])
            for place, each in enumerate(self.headings)
        ]
        body = [
            tag(
                "tr",
                tag("th", row[0], scope="row", class_=kind[0]),
                *(tag("td", cell, class_=kind[place]) for place, cell in enumerate(row[1:], 1)),
            )
            for row in self.rows
        ]
        inside = tag(
            "table",
            tag("caption", self.caption),
            tag("thead", tag("tr", *head)),
            tag("tbody", *body),
        )
        return joined(
            paragraph("The table goes on to the right: scroll it.", class_="more", hidden=True),
            tag("div", inside, class_="wide", tabindex="0", role="region", aria_label=self.caption),
        )


def safe_json(value: Any) -> Html:
    r"""Return a value as JSON that can stand in a script element; what is not finite is null.

    >>> print(safe_json({"a": "</script>"}))
    {"a":"\u003c/script\u003e"}
    """
    text = json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return clean(value) if isinstance(value, str) else value
