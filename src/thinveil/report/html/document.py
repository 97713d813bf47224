"""The whole page: a run becomes one HTML file that needs no network."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import Final

from thinveil.report.charts import (
    accuracy,
    law_curve,
    mechanisms,
    membership,
    progress,
    risk,
    staircase,
)
from thinveil.report.html import markup, prose, sections, summary
from thinveil.report.html.markup import (
    Html,
    bullets,
    code,
    figure_of,
    joined,
    left_out,
    paragraph,
    table_of,
    tag,
)
from thinveil.report.html.masking import View, shown
from thinveil.report.html.sections import section
from thinveil.verdicts import sentences
from thinveil.verdicts.comparing import said_of_risk
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.comparing.risk import Risk
from thinveil.verdicts.phrases import many, upper
from thinveil.verdicts.record import Record

_SCRIPTS: Final = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js")
_NO_SCRIPT: Final = "Pictures need JavaScript. The tables beneath each of them say the same."
_COMPARE: Final = "thinveil compare TABLE --risk --json compare.json"
_ADDED: Final = "thinveil report run.json --comparison compare.json"


def page(run: Record, *, comparison: Comparison | None = None, show_records: bool = False) -> str:
    """Return a report on a run as one self-contained HTML file.

    A comparison may have been made apart from the run. Values of people are masked unless
    `show_records` says otherwise.
    """
    view = shown(run, show_records, comparison)
    parts = _parts(view)
    title = f"Privacy audit: {run.claim.title}"
    contents = [tag("a", heading, href=f"#{name}") for name, heading, _ in parts]
    heading = tag("h2", "Contents", id="contents-title")
    nav = tag("nav", heading, markup.bullets(contents), aria_labelledby="contents-title")
    body = joined(
        tag("header", *_head(view, title)),
        tag(
            "main",
            summary.verdict(view),
            tag("noscript", paragraph(_NO_SCRIPT, class_="left-out")),
            nav,
            *(section(name, heading, content) for name, heading, content in parts),
            id="main",
        ),
        tag("footer", _foot(view)),
    )
    return Template(_asset("page.html")).substitute(
        title=markup.escaped(f"{title}: thinveil report"),
        style=_asset("page.css"),
        body=body,
        licences=markup.escaped(_asset("LICENCES.txt")),
        library="\n".join(f"<script>{_asset(name)}</script>" for name in _SCRIPTS),
        script=_asset("page.js").replace('"CONFIG"', _asset("charts.json").strip()),
    )


def _asset(name: str) -> str:
    return (files("thinveil.report.html") / "assets" / name).read_text("utf-8")


def _head(view: View, title: str) -> list[Html]:
    run = view.run
    finished = run.provenance.finished if run.provenance else ""
    when = [tag("time", finished[:10], datetime=finished)] if finished else []
    alone = run.claim_check is not None and run.claim_check.alone
    attack = "Check of the claim" if alone else prose.ATTACKS.get(run.attack, run.attack)
    about = f"{attack} · {many(run.records, 'record')}"
    return [
        paragraph("thinveil audit report", class_="kicker"),
        tag("h1", title),
        paragraph(about, *([" · "] if when else []), *when, class_="about"),
    ]


def _foot(view: View) -> Html:
    secret = "no value of any record" if view.masked else "confidential values"
    version = view.run.provenance.thinveil if view.run.provenance else ""
    return paragraph(
        f"Made by thinveil{f' {version}' if version else ''}. This file stands alone: it loads "
        f"nothing from anywhere, and holds {secret}. Charts are drawn by Vega-Lite, which is "
        "inside this file with its licences."
    )


def _parts(view: View) -> list[tuple[str, str, Html]]:
    """Return the parts of the page: a name, a heading and the content of each."""
    if view.run.only_claim:  # no picture, and nothing of what the answers seem to show
        return [
            ("claim", "What was seen of the claim", sections.claim(view.run)),
            ("assumptions", "Assumptions", sections.assumptions(view)),
            ("limits", "Limits", bullets(prose.CLAIM_LIMITS)),
            ("provenance", "Provenance", sections.provenance(view)),
        ]
    return [
        ("law-alone", "What the law alone says", _law(view.run)),
        ("answers", "What single answers show", _answers(view)),
        ("progress", "How far the attack got", _progress(view.run)),
        (
            "evidence",
            "Against guessing",
            joined(_shares(view), _trials(view.run), sections.planted(view.run)),
        ),
        (
            "others",
            "Other mechanisms, and the risk",
            joined(*_mechanisms(view.comparison), *_curves(view.risk)),
        ),
        ("records", "Records", sections.records(view)),
        ("method", "Method", sections.method(view)),
        ("assumptions", "Assumptions", sections.assumptions(view)),
        ("sure", "How sure this is", sections.sureness_of(view)),
        ("change", "What would change the verdict", sections.what_would_change(view)),
        ("limits", "Limits", sections.limits(view)),
        ("glossary", "Glossary", Html(_asset("glossary.html"))),
        ("references", "References", Html(_asset("references.html"))),
        ("provenance", "Provenance", sections.provenance(view)),
    ]


def _law(run: Record) -> Html:
    if run.possible is None:
        return left_out("The law's own verdict", "The file was written without it.")
    return figure_of(law_curve.picture(run.possible))


def _answers(view: View) -> Html:
    what = "Answers against thresholds"
    if view.stairs:
        return figure_of(staircase.picture(view.stairs))
    if view.run.distinct_only:
        return left_out(
            what,
            "Under Bootstrap DP the threshold does not matter: noise shows whether a kind of "
            "record exists, and no count.",
        )
    return left_out(
        what,
        "They need the table at hand, and a count that the attack has found.",
        code("thinveil audit TABLE --report out.html"),
        " asks for them then.",
    )


def _progress(run: Record) -> Html:
    if run.trace:
        rebuilt = figure_of(progress.rebuilt(run, run.trace))
    else:
        rebuilt = left_out(
            "Records rebuilt against questions",
            "Only an attack on the whole table rebuilds records step by step.",
            code("thinveil audit TABLE --report out.html"),
            " adds it.",
        )
    if any(run.questions_by_attribute.values()):
        return joined(rebuilt, figure_of(progress.questions(run)))
    return joined(rebuilt, left_out("Questions per attribute", "No question was asked about any."))


def _shares(view: View) -> Html:
    found, what = view.run.accuracy, "Accuracy beside guessing"
    if found and view.is_one:
        return summary.of_one(view, found)
    if found:
        return figure_of(accuracy.picture(view.run, found))
    if view.only_trials:
        return left_out(what, "The run consists of trials, below.")
    if view.unsettled:
        return left_out(what, "Nothing was settled.")
    if view.result and view.result.checked:
        return left_out(what, f"{upper(summary.UNSHARED)}.")
    return left_out(
        what,
        "This run has none: it needs the true table, and something that was found.",
        code("thinveil audit TABLE --truth TABLE --report out.html"),
        " adds it.",
    )


def _trials(run: Record) -> Html:
    if run.membership:
        curve = run.membership.curve
        drawn = [membership.trade_off(curve)] if curve and curve.points else []
        return joined(*map(figure_of, [membership.picture(run.membership), *drawn]))
    if run.trials_wanted and run.ended not in ("complete", "undecided"):
        why = "Trials were asked for, and come after the attack, which ended early."
        return left_out("Membership trial", why)
    return left_out(
        "Membership trial",
        "This run has none.",
        code("thinveil audit TABLE --trials 2000 --report out.html"),
        " adds it, where the table is at hand.",
    )


def _mechanisms(compared: Comparison | None) -> list[Html]:
    parts = [_stopped(sentences.comparison_stopped(compared) if compared else "")]
    if compared and any(each.tried for each in compared.lines):
        laws = law_curve.table(compared)
        drawn = figure_of(mechanisms.compared(compared))
        return [*parts, table_of(laws) if laws.rows else Html(), drawn]
    adds = (code(_COMPARE), " and ", code(_ADDED), " add it.")
    return [*parts, left_out("Mechanisms compared", "No comparison was given.", *adds)]


def _stopped(note: str) -> Html:
    return paragraph(tag("strong", "Note: "), note, class_="warning") if note else Html()


def _curves(curves: Risk | None) -> list[Html]:
    """Return the curves of risk that have what it takes to mean something."""
    if curves is None:
        adds = (code(_COMPARE), " and ", code(_ADDED), " add them.")
        return [left_out("Risk curves", "None were given.", *adds)]
    parts = [_stopped(said_of_risk.stopped(curves))]
    for what, names, control, draw in (
        ("the claimed loss", curves.against_loss.mechanisms, True, risk.against_loss),
        ("answers", curves.against_answers.mechanisms, False, risk.against_answers),
    ):
        lacks = said_of_risk.lacks(curves, names, control)
        if lacks:
            parts.append(left_out(f"Risk against {what}", f"{upper(lacks)}."))
        else:
            parts.append(figure_of(draw(curves)))
    return parts
