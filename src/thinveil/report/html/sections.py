"""The text of the report: records, method, assumptions, how sure it is, provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinveil.report.html import prose
from thinveil.report.html.markup import Html, Table, bullets, code, data, joined, paragraph, tag
from thinveil.report.html.masking import MASK
from thinveil.report.html.spelling import amount, many, spelled, sureness
from thinveil.report.html.targets import (
    GUESSES_MASKED,
    TARGETED,
    is_one,
    is_unsettled,
    only_trials,
)


def section(name: str, title: str, *content: object) -> Html:
    """Return a part of the page with its heading."""
    heading = f"{name}-title"
    return tag("section", tag("h2", title, id=heading), *content, id=name, aria_labelledby=heading)


def records(run: Mapping[str, Any]) -> Html:
    """Return a few recovered records beside the true ones, or what that would look like."""
    if run["masked"]:
        names = (run["attributes"] or [])[:8]
        table = Table(
            "What a recovered record looks like; values are masked",
            ("Attribute", "True record", "Recovered record"),
            [(data(name), MASK, MASK) for name in names],
        )
        return joined(
            paragraph(
                "This report shows no value of anybody. ",
                code("thinveil audit … --show-records"),
                " keeps a handful of recovered records beside the true ones, and ",
                code("--show-records"),
                " of the report shows them. Such a report is as confidential as the table.",
            ),
            table.html() if names and run["attack"] == "dataset" else "",
        )
    warning = paragraph(
        tag("strong", "Confidential: "), "this part holds values of people.", class_="warning"
    )
    shown, result = run["records_shown"], run["result"]
    if shown:
        return joined(warning, _records_table(shown))
    if result and result["entries"]:
        return joined(warning, _found_table(run))
    return paragraph("This run keeps no records to show.")


def _records_table(shown: list[Mapping[str, Any]]) -> Html:
    names = list(shown[0]["true"] or shown[0]["recovered"])
    rows: list[tuple[object, ...]] = []
    for number, each in enumerate(shown, 1):
        for which in ("true", "recovered"):
            values = each[which] or {}
            cells = (data(_value(values.get(name), name in values)) for name in names)
            rows.append((f"{number}, {which}", *cells))
    return Table(
        "Recovered records beside the true ones",
        ("Record", *(data(name) for name in names)),
        rows,
    ).html()


def _value(value: Any, known: bool = True) -> str:
    if not known:
        return "not found"
    return "missing" if value is None else str(value)


def _found_table(run: Mapping[str, Any]) -> Html:
    """Return what was found about people or columns."""
    rows: list[tuple[object, ...]] = []
    for number, each in enumerate(run["result"]["entries"][:20], 1):
        known = each.get("known") or each.get("predicate") or {}
        right = {True: "yes", False: "no"}.get(
            each.get("correct", each.get("exact")), "not checked"
        )
        what = ", ".join(f"{name} = {_value(value)}" for name, value in known.items())
        rows.append((number, data(what or each.get("column", "")), data(_found(each)), right))
    return Table(
        "What was known, and what was found",
        ("No.", "Known", "Found", "Right"),
        rows,
    ).html()


def _found(each: Mapping[str, Any]) -> str:
    parts = [
        f"{'' if each[name] else 'not '}{name}" for name in ("present", "unique") if name in each
    ]
    if each.get("matches") is not None:
        parts.append(f"{many(each['matches'], 'record')} that fit")
    if each.get("count") is not None:
        parts.append(many(each["count"], "record"))
    values = each.get("values") or {}
    named = values.items() if isinstance(values, Mapping) else [(each.get("column"), values)]
    for name, several in named:
        said = ", ".join(_value(one["value"]) for one in several[:20])
        parts.append(f"{name}: {said}")
    return "; ".join(parts) or "nothing yet"


def method(run: Mapping[str, Any]) -> Html:
    """Say how the attack works, for somebody who has not read the paper."""
    k = run["k"] or 1
    told = prose.HOW_NOISE_TELLS[prose.family(run["mechanism"] or "")]
    told = told.format(k="one record" if k == 1 else f"up to {k:,} records")
    called = prose.called(str(run["mechanism"]), run["k"])
    rows = [
        ("Mechanism", joined(code(run["mechanism"]), f": {called}")),
        ("Universe", run["universe"]),
        ("Attack", run["attack"]),
        ("Search strategy", run["strategy"]),
        ("Records in the table", amount(run["records"])),
        ("Answers a question", f"{run['answers_a_question'] or 0:.1f} on average"),
    ]
    return joined(*map(paragraph, (*prose.SCENE, told)), _facts(rows))


def _facts(rows: list[tuple[str, Any]]) -> Html:
    kept = [(name, value) for name, value in rows if value not in (None, "")]
    return tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", value)) for name, value in kept),
        class_="facts",
    )


def assumptions(run: Mapping[str, Any]) -> Html:
    """List what the attacker was assumed to know."""
    known = [data(line) for line in run["assumed_public"] or []]
    result = run["result"]
    more = ""
    if result and result["known"]:
        names = ", ".join(result["known"])
        people = many(result["people"], "person", "people")
        more = f"Beyond this, of {people} the attacker knew: {names}."
    doubts = [data(line) for line in run["doubts"] or []]
    return joined(
        paragraph("What the attacker was assumed to know before the first question:"),
        bullets(known, class_="known"),
        paragraph(more) if more else "",
        paragraph("Check whether these lists are public in truth:") if doubts else "",
        bullets(doubts, class_="doubts"),
    )


def sureness_of(run: Mapping[str, Any]) -> Html:
    """Say how sure the result is, and in which sense."""
    lines: list[object] = []
    error = run["error_probability"]
    if error is not None and not (only_trials(run) and run["membership"].get("simulated")):
        wanted = run["error_wanted"]
        planned = "" if wanted is None else f" (planned: {spelled(wanted)} for the whole attack)"
        lines.append(
            f"The chance that anything was decided wrongly because of noise is at most "
            f"{error:.2g}{planned}."
        )
    if is_unsettled(run):
        lines.append("Nothing was settled, so there is nothing to check.")
    elif run["accuracy"] and is_one(run):
        lines.append("Of a single case there is no share and no interval: it is right or wrong.")
    elif run["accuracy"]:
        sure = sureness(run["accuracy"]["confidence"])
        lines.append(f"Shares come with {sure} intervals. {run['accuracy']['meaning']}")
        lines += [f"One baseline {each}." for each in run["accuracy"].get("baselines") or []]
        if run["accuracy"].get("guesses_masked"):
            lines.append(GUESSES_MASKED)
    if run["membership"]:
        sure = sureness(run["membership"]["confidence"])
        lines.append(
            "The rates of the membership trial have exact (Clopper-Pearson) intervals, and the "
            f"bound on epsilon that follows from them holds with at least {sure} confidence."
        )
    if run["records_recovered"] is not None or (run["result"] and run["result"]["checked"]):
        lines.append("What was found was compared with the true table after the last question.")
    elif only_trials(run):
        lines.append("Each trial was judged by its coin.")
    elif not is_unsettled(run):
        lines.append("The true table was not at hand, so what was found could not be checked.")
    if run["bits"] and not (run["masked"] and run["attack"] in TARGETED):
        lines.append(f"What was found is {amount(run['bits'])} bits long, {run['bits_basis']}.")
    return bullets(lines)


def what_would_change(run: Mapping[str, Any]) -> Html:
    """Say what would have to be different for another verdict."""
    ended, family = run["ended"], prose.family(run["mechanism"] or "")
    if ended == "undecided":
        lines = [
            "A larger loss for each answer, or more answers to one question: differential privacy "
            "protects less as the loss grows, and says so.",
            "A better attack. No usable difference was found; that there is none was not shown.",
            "Noise that is not drawn as the mechanism says.",
        ]
    elif family in ("dp", "unprotected"):
        lines = [
            "A smaller privacy loss for each answer, and so larger noise.",
            "A limit on how many answers are given.",
        ]
        if family == "unprotected":
            lines = ["Noise that does not depend on the data: differential privacy.", lines[1]]
    else:
        lines = [
            "Noise whose size does not depend on the table (differential privacy at the same "
            "loss). A smaller claimed loss under this mechanism would not help: it makes all noise "
            "larger, and where the noise is, or how large beside other noise, still shows.",
            "A limit on the number of answers far below what was asked here; refusing questions "
            "that people may choose freely.",
            f"An error in this audit: {_repeated(run)}.",
        ]
    if ended not in ("complete", "undecided"):
        lines.insert(0, f"More answers: this run ended early ({run['reason'] or ended}).")
    return bullets(lines)


def limits(run: Mapping[str, Any]) -> Html:
    """Say what this report does not show."""
    return bullets([*prose.LIMITS, *([prose.AGGREGATES] if run["masked"] else [])])


def _repeated(run: Mapping[str, Any]) -> str:
    """Say what there is to check the run by; the answers themselves only where they were kept."""
    by = "the command below repeats it"
    if run["seed"] is not None:
        by = "the command and the seed below repeat it"
    if run["transcript"]:
        return f"{by}, and the transcript holds every answer"
    trials = (run["membership"] or {}).get("transcripts_sha256")
    if run["provenance"]["transcript_sha256"] or trials:
        return f"{by}, and the hash of all answers shows whether they are the same"
    return by


def glossary() -> Html:
    """Explain the words of the report."""
    terms = [tag("div", tag("dt", term), tag("dd", said)) for term, said in prose.GLOSSARY]
    return tag("dl", *terms, class_="glossary")


def references() -> Html:
    """Name the literature."""
    return tag("ol", *(tag("li", each) for each in prose.REFERENCES), class_="references")


def provenance(run: Mapping[str, Any]) -> Html:
    """Say what made this result, so that somebody else can make it again."""
    made = run["provenance"]
    versions = [f"{name} {made[name]}" for name in ("thinveil", "python", "numpy") if made[name]]
    options = ", ".join(f"{name} {value}" for name, value in made["options"].items())
    network, finished = run["network"], made["finished"]
    trips = "" if network is None else f"{network['trips']:,}, median {network['median_ms']:.1f} ms"
    digest = made["transcript_sha256"]
    trials = (run["membership"] or {}).get("transcripts_sha256")
    rows: list[tuple[str, Any]] = [
        ("Command", code(made["command"]) if made["command"] else "called from Python"),
        ("Options that were set", data(options) if options else ""),
        ("Seed of the noise", "drawn by the target" if run["seed"] is None else run["seed"]),
        ("Versions", ", ".join(versions) or "not recorded"),
        ("System", made["system"]),
        ("Finished", tag("time", finished, datetime=finished) if finished else ""),
        ("The attack took", f"{run['seconds']:,.2f} seconds" if run["seconds"] is not None else ""),
        ("Ended", run["ended"]),
        (
            f"{'Transcript' if run['transcript'] else 'Hash of all answers'} (SHA-256)",
            code(digest) if digest else "none",
        ),
        ("Hash of all answers of the trials (SHA-256)", code(trials) if trials else ""),
        ("Transcript file", run["transcript"]),
        ("Round trips", trips),
    ]
    return _facts(rows)
