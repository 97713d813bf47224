"""The whole page: a run becomes one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Any, Final

from thinveil.report.html import (
    accuracy,
    mechanisms,
    membership,
    progress,
    prose,
    risk,
    sections,
    staircase,
    summary,
)
from thinveil.report.html.markup import Html, bullets, code, escaped, joined, paragraph, tag
from thinveil.report.html.masking import shown
from thinveil.report.html.pictures import left_out
from thinveil.report.html.sections import section
from thinveil.report.html.summary import UNSHARED
from thinveil.report.html.targets import is_one, is_unsettled, only_trials

_SCRIPTS: Final = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js")
_NO_SCRIPT: Final = "Pictures need JavaScript. The tables beneath each of them say the same."
_COMPARE: Final = "thinveil compare TABLE --risk --json compare.json"
_ADDED: Final = "thinveil report run.json --comparison compare.json"


def page(
    run: Mapping[str, Any],
    *,
    comparison: Mapping[str, Any] | None = None,
    show_records: bool = False,
) -> str:
    """Return a report on a run as one self-contained HTML file.

    Args:
        run: What `thinveil audit --json` wrote.
        comparison: What `thinveil compare --json` wrote, to be shown beside it.
        show_records: Whether values of people may be shown; otherwise all are masked.
    """
    plain = shown(run, show_records)
    compared, curves = _beside(run, comparison)
    parts = _parts(plain, compared, curves)
    title = f"Privacy audit: {prose.called(str(plain['mechanism']), plain['k'])}"
    contents = [tag("a", heading, href=f"#{name}") for name, heading, _ in parts]
    body = joined(
        tag("header", *_head(plain, title)),
        tag(
            "main",
            summary.verdict(plain),
            tag("noscript", paragraph(_NO_SCRIPT, class_="left-out")),
            tag(
                "nav",
                tag("h2", "Contents", id="contents-title"),
                bullets(contents),
                aria_labelledby="contents-title",
            ),
            *(section(name, heading, content) for name, heading, content in parts),
            id="main",
        ),
        tag("footer", _foot(plain)),
    )
    return Template(_asset("page.html")).substitute(
        title=escaped(f"{title}: thinveil report"),
        style=_asset("page.css"),
        body=body,
        licences=escaped(_asset("LICENCES.txt")),
        library="\n".join(f"<script>{_asset(name)}</script>" for name in _SCRIPTS),
        script=_asset("page.js"),
    )


def _asset(name: str) -> str:
    return (files("thinveil.report.html") / "assets" / name).read_text("utf-8")


def _beside(
    run: Mapping[str, Any], comparison: Mapping[str, Any] | None
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the comparison and the risk curves, from wherever they were given."""
    compared = comparison or run.get("comparison")
    if compared and not compared.get("sampled_from") and run.get("records") != compared["records"]:
        compared = {**compared, "sampled_from": run.get("records")}
    curves = (comparison or {}).get("risk") or run.get("risk") or (compared or {}).get("risk")
    return compared, curves


def _head(run: Mapping[str, Any], title: str) -> list[Html]:
    finished = str(run["provenance"]["finished"] or "")
    when = [tag("time", finished[:10], datetime=finished)] if finished else []
    about = f"{prose.ATTACKS.get(run['attack'], run['attack'])} · {run['records'] or 0:,} records"
    return [
        paragraph("thinveil audit report", class_="kicker"),
        tag("h1", title),
        paragraph(about, *([" · "] if when else []), *when, class_="about"),
    ]


def _foot(run: Mapping[str, Any]) -> Html:
    secret = "no value of any record" if run["masked"] else "confidential values"
    version = run["provenance"]["thinveil"]
    return paragraph(
        f"Made by thinveil{f' {version}' if version else ''}. This file stands alone: it loads "
        f"nothing from anywhere, and holds {secret}. Charts are drawn by Vega-Lite, which is "
        "inside this file with its licences."
    )


def _parts(
    run: Mapping[str, Any],
    compared: Mapping[str, Any] | None,
    curves: Mapping[str, Any] | None,
) -> list[tuple[str, str, Html]]:
    """Return the parts of the page: a name, a heading and the content of each."""
    return [
        ("answers", "What single answers show", _answers(run)),
        ("progress", "How far the attack got", _progress(run)),
        ("evidence", "Against guessing", _evidence(run)),
        ("others", "Other mechanisms, and the risk", _others(compared, curves)),
        ("records", "Records", sections.records(run)),
        ("method", "Method", sections.method(run)),
        ("assumptions", "Assumptions", sections.assumptions(run)),
        ("sure", "How sure this is", sections.sureness_of(run)),
        ("change", "What would change the verdict", sections.what_would_change(run)),
        ("limits", "Limits", sections.limits(run)),
        ("glossary", "Glossary", sections.glossary()),
        ("references", "References", sections.references()),
        ("provenance", "Provenance", sections.provenance(run)),
    ]


def _answers(run: Mapping[str, Any]) -> Html:
    if run["staircase"]:
        return staircase.picture(run).html()
    if prose.family(str(run["mechanism"])) == "bdp":
        return left_out(
            "Answers against thresholds",
            "Under Bootstrap DP the threshold does not matter: noise shows whether a kind of "
            "record exists, and no count.",
        )
    return left_out(
        "Answers against thresholds",
        "They need the table at hand, and a count that the attack has found.",
        code("thinveil audit TABLE --report out.html"),
        " asks for them then.",
    )


def _progress(run: Mapping[str, Any]) -> Html:
    parts = []
    if run["trace"]:
        parts.append(progress.rebuilt(run).html())
    else:
        parts.append(
            left_out(
                "Records rebuilt against questions",
                "Only an attack on the whole table rebuilds records step by step.",
                code("thinveil audit TABLE --report out.html"),
                " adds it.",
            )
        )
    if any((run["questions_by_attribute"] or {}).values()):
        parts.append(progress.questions(run).html())
    else:
        parts.append(left_out("Questions per attribute", "No question was asked about any."))
    return joined(*parts)


def _evidence(run: Mapping[str, Any]) -> Html:
    parts = []
    if run["accuracy"] and is_one(run):
        parts.append(accuracy.of_one(run))
    elif run["accuracy"]:
        parts.append(accuracy.picture(run).html())
    elif only_trials(run):
        parts.append(left_out("Accuracy with intervals", "The run consists of trials, below."))
    elif is_unsettled(run):
        parts.append(left_out("Accuracy with intervals", "Nothing was settled."))
    elif run["result"] and run["result"]["checked"]:
        parts.append(left_out("Accuracy with intervals", f"{UNSHARED}.".capitalize()))
    else:
        parts.append(
            left_out(
                "Accuracy with intervals",
                "This run has none: it needs the true table, and something that was found.",
                code("thinveil audit TABLE --truth TABLE --report out.html"),
                " adds it.",
            )
        )
    if run["membership"]:
        parts.append(membership.picture(run).html())
    else:
        parts.append(
            left_out(
                "Membership trial",
                "This run has none.",
                code("thinveil audit TABLE --trials 2000 --report out.html"),
                " adds it, where the table is at hand.",
            )
        )
    return joined(*parts)


def _others(compared: Mapping[str, Any] | None, curves: Mapping[str, Any] | None) -> Html:
    parts = []
    if compared and (note := mechanisms.stopped(compared)):
        parts.append(paragraph(tag("strong", "Note: "), note, class_="warning"))
    if compared and compared.get("mechanisms"):
        parts.append(mechanisms.compared(compared).html())
    else:
        parts.append(
            left_out("Mechanisms compared", "No comparison was given.", code(_COMPARE), " and ",
                     code(_ADDED), " add it.")
        )  # fmt: skip
    if curves:
        parts += _curves(curves)
    else:
        parts.append(
            left_out("Risk curves", "None were given.", code(_COMPARE), " and ", code(_ADDED),
                     " add them.")
        )  # fmt: skip
    return joined(*parts)


def _curves(curves: Mapping[str, Any]) -> list[Html]:
    """Return the curves of risk that have what it takes to mean something."""
    parts = []
    if note := risk.stopped(curves):
        parts.append(paragraph(tag("strong", "Note: "), note, class_="warning"))
    loss, answers = curves["against_loss"]["runs"], curves["against_answers"]["points"]
    if lacks := risk.lacking(loss, control=True):
        parts.append(left_out("Risk against the claimed loss", f"{lacks.capitalize()}."))
    else:
        parts.append(risk.against_loss(curves).html())
    if lacks := risk.lacking(answers, control=False):
        parts.append(left_out("Risk against answers", f"{lacks.capitalize()}."))
    else:
        parts.append(risk.against_answers(curves).html())
    return parts
