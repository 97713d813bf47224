"""A picture: a finding, charts, what they say in figures, the table behind them.

Charts are Vega-Lite specifications. The report draws them in the browser, and `files` renders
the very same for `--figure`. Colours are names of the style sheet: var(--red), var(--ink).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Spec = dict[str, Any]
"""A chart as Vega-Lite describes it."""

PERCENT: Final = "round(100 * datum.value) + '\u00a0%'"
POWERS: Final = "replace(replace(format(datum.value, '~e'), 'e+0', ''), '+', '')"
"""How axes write shares, and powers of ten."""
# Marks that turn the direction of the text around them, and control characters.
_UNRULY: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_LABEL: Final = 20  # letters of a name that fit beside a chart


class Named(str):
    """A text that comes from the data, such as a column's name."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its first column names the rows; numeric columns are aligned at the right."""

    caption: str
    headings: Sequence[object]
    rows: Sequence[Sequence[object]]
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart, without its width; `label` says it in figures to who cannot see it."""

    spec: Spec
    label: str
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A line of a legend: what a sign (a class of the style sheet) of a colour means."""

    sign: str
    colour: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a result: its id in the page, and what it shows, as a finding.

    `explained` is for a reader who knows nothing of the subject, the table says the same in
    figures, and the note says how it was measured.
    """

    name: str
    title: str
    explained: str
    panels: tuple[Panel, ...]
    table: Table
    legend: tuple[Key, ...] = ()
    note: str = ""


def layer(mark: Mapping[str, Any], where: str = "", /, **encoding: Any) -> Spec:
    """Return a mark with what it encodes, of the rows that pass a filter if there is one."""
    chosen = {"transform": [{"filter": where}]} if where else {}
    return {**chosen, "mark": mark, "encoding": encoding}


def number(field: str, title: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a quantity for an axis; without a title, that of the layers beside it."""
    named = {} if title is None else {"title": title}
    return {"field": field, "type": "quantitative", **named, **more}


def words(colour: str = "ink", **more: Any) -> dict[str, Any]:
    """Return the mark of a text."""
    return {"type": "text", "color": f"var(--{colour})", **more}


def rect(colour: str, opacity: float, x: Mapping[str, Any], low: float, high: float) -> Spec:
    """Return a layer that shades a part of the x axis."""
    mark = {"type": "rect", "color": f"var(--{colour})", "opacity": opacity}
    ends = {"x": {**x, "field": "from"}, "x2": {"field": "to"}}
    return {"data": {"values": [{"from": low, "to": high}]}, **layer(mark, **ends)}


def clean(text: str) -> str:
    """Return a text without characters that would disturb what stands around it."""
    return _UNRULY.sub("\ufffd", text)


def share_axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis from 0 to 100 %."""
    return {
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [0, 1]},
        "axis": {"labelExpr": PERCENT, "values": [0, 0.25, 0.5, 0.75, 1], **more},
    }


def log_axis(field: str, title: str, labels: dict[str, Any], **scale: Any) -> dict[str, Any]:
    """Return an axis of powers of ten."""
    axis = {"grid": False, "labelOverlap": "greedy", "tickCount": 5, **labels}
    return number(field, title, scale={"type": "log", "nice": False, **scale}, axis=axis)


def dot(colour: str, size: int = 75, **more: Any) -> dict[str, Any]:
    """Return a mark that is a point, filled unless said otherwise."""
    mark = {"type": "point", "filled": True, "size": size, "opacity": 1}
    return {**mark, "color": f"var(--{colour})", **more}


def tick(size: int) -> dict[str, Any]:
    """Return the mark of an attacker who asks nothing."""
    return {"type": "tick", "thickness": 2.5, "opacity": 1, "size": size, "color": "var(--ink)"}


def interval(x: Mapping[str, Any], size: int = 75) -> list[Spec]:
    """Return a share with its interval: a dot on a line from its low to its high end."""
    line = {"type": "rule", "strokeWidth": 3, "color": "var(--red)"}
    return [
        layer(line, x={"field": "low", **x}, x2={"field": "high"}),
        layer(dot("red", size), x={"field": "share", **x}),
    ]


def rows_by(
    field: str, names: Sequence[str] | Mapping[str, Sequence[str]], **axis: Any
) -> dict[str, Any]:
    """Return an axis that has one row for each of some keys, in the order of the data.

    Args:
        field: The field that holds the keys.
        names: The keys, which are written shortened; or how each is written, in lines.
        **axis: More about the axis.
    """
    labels = names if isinstance(names, Mapping) else shortened(names)
    axis["labelExpr"] = f"{json.dumps(labels)}[datum.value]"
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": axis}


def shortened(names: Sequence[str], most: int = _LABEL) -> dict[str, str]:
    """Return names that fit beside a chart and stay different, where the full ones are.

    Long names mostly differ at their end, so that is what is kept.

    >>> list(shortened(["Household income before tax", "Household income after tax"]).values())
    ['House…ome before tax', 'House…come after tax']
    """
    short: dict[str, str] = {}
    for name in dict.fromkeys(map(clean, names)):
        cut = name if len(name) <= most else f"{name[: most // 4]}…{name[1 + most // 4 - most :]}"
        number = 2
        while cut in short.values():
            end = f"…{number}"
            cut, number = f"{name[: most - len(end)]}{end}", number + 1
        short[name] = cut
    return short


def colours(meaning: Mapping[str, str]) -> dict[str, Any]:
    """Return a scale that gives each meaning its colour of the style sheet."""
    return {
        "domain": list(meaning),
        "range": [f"var(--{colour})" for colour in meaning.values()],
    }
