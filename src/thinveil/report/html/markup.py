"""Pieces of HTML: whatever is not known to be safe is escaped."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from thinveil.report.charts.pictures import Named, Panel, Picture, Table, clean

_VOID: Final = frozenset({"br", "meta", "col"})
SHORT: Final = 20
"""A table of at most so many rows is printed; longer ones stay folded on paper."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(content: object) -> Html:
    """Return content as HTML; only `Html` is taken as it is, and data is kept to itself.

    >>> escaped("a<b"), escaped(Html("<b>"))
    ('a&lt;b', '<b>')
    """
    if isinstance(content, Html):
        return content
    plain = html.escape(clean(str(content)))
    return Html(f"<bdi>{plain}</bdi>" if isinstance(content, Named) else plain)


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


def paragraph(*content: object, **attributes: object) -> Html:
    """Return a paragraph."""
    return tag("p", *content, **attributes)


def bullets(lines: Sequence[object], **attributes: object) -> Html:
    """Return a list; nothing where there are no lines."""
    return tag("ul", *(tag("li", line) for line in lines), **attributes) if lines else Html()


def code(text: object) -> Html:
    """Return a command or a name as it is typed."""
    return tag("code", text)


def table_of(table: Table) -> Html:
    """Return a table, in a box that scrolls by itself where it is too wide."""
    kind = ["number" if place in table.numeric else None for place in range(len(table.headings))]
    head = [
        tag("th", each, scope="col", class_=kind[place])
        for place, each in enumerate(table.headings)
    ]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", class_=kind[0]),
            *(tag("td", cell, class_=kind[place]) for place, cell in enumerate(row[1:], 1)),
        )
        for row in table.rows
    ]
    inside = tag(
        "table",
        tag("caption", table.caption),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
    )
    return joined(
        paragraph("The table goes on to the right: scroll it.", class_="more", hidden=True),
        tag("div", inside, class_="wide", tabindex="0", role="region", aria_label=table.caption),
    )


def figure_of(picture: Picture) -> Html:
    """Return a picture as a figure with its caption, legend and table."""
    charts = [_chart(picture.name, *each) for each in enumerate(picture.panels, 1)]
    keys = [
        tag("li", tag("span", class_=f"sign {key.sign} {key.colour}", aria_hidden="true"), key.text)
        for key in picture.legend
    ]
    few = len(picture.table.rows) <= SHORT
    return tag(
        "figure",
        tag(
            "figcaption",
            tag("h3", picture.title, id=f"{picture.name}-title"),
            paragraph(picture.explained, class_="explained"),
        ),
        tag(
            "div",
            tag("ul", *keys, class_="legend") if keys else "",
            tag("div", *charts, class_="panels" if len(charts) > 1 else "panel"),
            class_="drawn",
        ),
        paragraph(picture.note, class_="note") if picture.note else "",
        tag(
            "details",
            tag("summary", "The figures as a table"),
            table_of(picture.table),
            class_="short" if few else "long",
        ),
        id=picture.name,
        aria_labelledby=f"{picture.name}-title",
    )


def _chart(name: str, number: int, panel: Panel) -> Html:
    place = f"{name}-chart-{number}"
    spec = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    script = safe_json({**spec, **panel.spec})
    return tag(
        "div",
        paragraph(panel.heading, class_="panel-heading") if panel.heading else "",
        tag("div", class_="chart", id=place, data_label=panel.label),
        tag("script", script, type="application/json", data_for=place),
    )


def left_out(what: str, why: str, *how: object) -> Html:
    """Return the line that stands where a part is missing: why, and what adds it."""
    return paragraph(tag("strong", f"{what}: left out."), f" {why} ", *how, class_="left-out")


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
