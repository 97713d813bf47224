"""A picture of the report: a finding, charts, what they say in figures, the table behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from thinveil.report.html.markup import Html, Table, paragraph, safe_json, tag

Spec = dict[str, Any]
"""A chart as Vega-Lite describes it."""

PERCENT: Final = "round(100 * datum.value) + '\u00a0%'"
POWERS: Final = "replace(replace(format(datum.value, '~e'), 'e+0', ''), '+', '')"
"""How axes write shares, and powers of ten."""
SHORT: Final = 20
"""A table of at most so many rows is printed; longer ones stay folded on paper."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart.

    Args:
        spec: The chart, without its width.
        label: What it shows, in figures, for somebody who cannot see it.
        heading: What it is about, where a picture has several.
    """

    spec: Spec
    label: str
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A line of a legend: what a sign of a colour means.

    Args:
        sign: Its class in the style sheet, such as "line" or "dot".
        colour: The colour's name in the style sheet.
        text: What it means.
    """

    sign: str
    colour: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the report.

    Args:
        name: Its id in the page.
        title: What it shows, as a finding.
        explained: A sentence for a reader who knows nothing of the subject.
        panels: Its charts.
        table: The same in figures.
        legend: What signs and colours mean.
        note: How it was measured.
    """

    name: str
    title: str
    explained: str
    panels: tuple[Panel, ...]
    table: Table
    legend: tuple[Key, ...] = ()
    note: str = ""

    def html(self) -> Html:
        """Return the picture as a figure with its caption, legend and table."""
        charts = [self._chart(number, panel) for number, panel in enumerate(self.panels)]
        keys = [
            tag(
                "li",
                tag("span", class_=f"sign {key.sign} {key.colour}", aria_hidden="true"),
                key.text,
            )
            for key in self.legend
        ]
        few = len(self.table.rows) <= SHORT
        return tag(
            "figure",
            tag(
                "figcaption",
                tag("h3", self.title, id=f"{self.name}-title"),
                paragraph(self.explained, class_="explained"),
            ),
            tag(
                "div",
                tag("ul", *keys, class_="legend") if keys else "",
                tag("div", *charts, class_="panels" if len(charts) > 1 else "panel"),
                class_="drawn",
            ),
            paragraph(self.note, class_="note") if self.note else "",
            tag(
                "details",
                tag("summary", "The figures as a table"),
                self.table.html(),
                class_="short" if few else "long",
            ),
            id=self.name,
            aria_labelledby=f"{self.name}-title",
        )

    def _chart(self, number: int, panel: Panel) -> Html:
        place = f"{self.name}-chart-{number + 1}"
        spec = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
        return tag(
            "div",
            paragraph(panel.heading, class_="panel-heading") if panel.heading else "",
            tag("div", class_="chart", id=place, data_label=panel.label),
            tag(
                "script", safe_json({**spec, **panel.spec}), type="application/json", data_for=place
            ),
        )


def share_axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis from 0 to 100 %."""
    return {
        "title": title,
        "scale": {"domain": [0, 1]},
        "axis": {"labelExpr": PERCENT, "values": [0, 0.25, 0.5, 0.75, 1], **more},
    }


def dot(colour: str, size: int = 75, **more: Any) -> dict[str, Any]:
    """Return a mark that is a point, filled unless said otherwise."""
    mark = {"type": "point", "filled": True, "size": size, "opacity": 1}
    return {**mark, "color": f"var(--{colour})", **more}


def tick(size: int) -> dict[str, Any]:
    """Return the mark of an attacker who asks nothing."""
    return {"type": "tick", "thickness": 2.5, "opacity": 1, "size": size, "color": "var(--ink)"}


def rows_by(field: str, **axis: Any) -> dict[str, Any]:
    """Return an axis that has one row for each name, in the order of the data."""
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": axis}


def colours(meaning: Mapping[str, str]) -> dict[str, Any]:
    """Return a scale that gives each meaning its colour of the style sheet."""
    return {
        "domain": list(meaning),
        "range": [f"var(--{colour})" for colour in meaning.values()],
    }


def left_out(what: str, why: str, *how: object) -> Html:
    """Return the line that stands where a part is missing: why, and what adds it."""
    return paragraph(tag("strong", f"{what}: left out."), f" {why} ", *how, class_="left-out")
