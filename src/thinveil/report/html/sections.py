"""The text of the report: records, method, assumptions, how sure it is, provenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from thinveil.report.charts.pictures import Named, Table
from thinveil.report.html import prose
from thinveil.report.html.markup import Html, bullets, code, joined, paragraph, table_of, tag
from thinveil.report.html.masking import View
from thinveil.verdicts import sentences
from thinveil.verdicts.judging.claim_check import LOOKED_AT
from thinveil.verdicts.judging.possible import up
from thinveil.verdicts.phrases import amount, between, loss, many, percent, short, spelled, sureness
from thinveil.verdicts.record import Record
from thinveil.verdicts.results import ColumnResult, CountResult, Example, PersonResult
from thinveil.verdicts.said_of_trials import canaries_explained, canaries_headline
from thinveil.verdicts.sentences import GUESSES_MASKED, MASK, TARGETED

_LEAKS: Final = 0.01
"""The share of all bits from which on something has leaked that is worth a sentence."""


def section(name: str, title: str, *content: object) -> Html:
    """Return a part of the page with its heading."""
    heading = f"{name}-title"
    return tag("section", tag("h2", title, id=heading), *content, id=name, aria_labelledby=heading)


def records(view: View) -> Html:
    """Return a few recovered records beside the true ones, or what that would look like."""
    run = view.run
    if view.masked:
        names = run.attributes[:8]
        table = Table(
            "What a recovered record looks like; values are masked",
            ("Attribute", "True record", "Recovered record"),
            [(Named(name), MASK, MASK) for name in names],
        )
        return joined(
            paragraph(
                "This report shows no value of anybody. ",
                code("thinveil audit … --show-records"),
                " keeps a handful of recovered records beside the true ones, and ",
                code("--show-records"),
                " of the report shows them. Such a report is as confidential as the table.",
            ),
            table_of(table) if names and run.attack == "dataset" else "",
        )
    warning = paragraph(
        tag("strong", "Confidential: "), "this part holds values of people.", class_="warning"
    )
    if run.records_shown:
        return joined(warning, _records_table(run.records_shown))
    if run.entries:
        return joined(warning, _found_table(run))
    return paragraph("This run keeps no records to show.")


def _records_table(shown: Sequence[Example]) -> Html:
    names = list(shown[0].true or shown[0].recovered)
    rows: list[tuple[object, ...]] = []
    for number, each in enumerate(shown, 1):
        for which, values in (("true", each.true), ("recovered", each.recovered)):
            cells = (Named(_value(values.get(name), name in values)) for name in names)
            rows.append((f"{number}, {which}", *cells))
    return table_of(
        Table("Recovered records beside the true ones", ("Record", *map(Named, names)), rows)
    )


def _value(value: Any, known: bool = True) -> str:
    if not known:
        return "not found"
    return "missing" if value is None else str(value)


def _found_table(run: Record) -> Html:
    """Return what was found about people or columns."""
    rows: list[tuple[object, ...]] = []
    for number, each in enumerate(run.entries[:20], 1):
        right = {True: "yes", False: "no", None: "not checked"}[each.judged]
        rows.append((number, Named(_known(each)), Named(_found(each)), right))
    headings = ("No.", "Known", "Found", "Right")
    return table_of(Table("What was known, and what was found", headings, rows))


def _known(each: ColumnResult | CountResult | PersonResult) -> str:
    if isinstance(each, ColumnResult):
        return each.column
    known = each.predicate if isinstance(each, CountResult) else each.known
    return ", ".join(f"{name} = {_value(value)}" for name, value in known.items())


def _found(each: ColumnResult | CountResult | PersonResult) -> str:
    values: dict[str, Any] = {}
    parts = []
    if isinstance(each, ColumnResult):
        values[each.column] = each.values
    elif isinstance(each, CountResult):
        parts += [] if each.count is None else [many(each.count, "record")]
        if each.between is not None and each.count is None:
            parts.append(f"between {each.between[0]:,} and {each.between[1]:,} records")
    else:
        values |= each.values or {}
        parts += each.said()
        if each.matches is not None:
            parts.append(f"{many(each.matches, 'record')} that fit")
    for name, several in values.items():
        parts.append(f"{name}: {', '.join(_value(one.value) for one in several[:20])}")
        if isinstance(each, PersonResult) and (left := each.left(name)) > 0:
            parts[-1] += f", {left:,} not known yet"
    return "; ".join(parts) or "nothing yet"


def method(view: View) -> Html:
    """Say how the attack works, for somebody who has not read the paper."""
    run = view.run
    rows = [
        ("Mechanism", joined(code(run.claim.name), f": {run.claim.title}")),
        ("Universe", run.claim.universe),
        ("Attack", run.attack),
        ("Search strategy", run.strategy),
        ("Records in the table", amount(run.records)),
        ("Answers a question", f"{run.answers_a_question:.1f} on average"),
        ("Doubles", "" if run.channel is None else sentences.channel(run.channel)),
    ]
    told = prose.how_noise_tells(run.claim)
    return joined(*map(paragraph, (*prose.SCENE, told)), _facts(rows))


def _facts(rows: list[tuple[str, Any]]) -> Html:
    kept = [(name, value) for name, value in rows if value not in (None, "")]
    terms = (tag("div", tag("dt", name), tag("dd", value)) for name, value in kept)
    return tag("dl", *terms, class_="facts")


def assumptions(view: View) -> Html:
    """List what the attacker was assumed to know."""
    known = [Named(line) for line in view.run.assumed_public]
    more = ""
    if view.result and view.result.known:
        names = ", ".join(view.result.known)
        people = many(view.result.people, "person", "people")
        more = f"Beyond this, of {people} the attacker knew: {names}."
    doubts = [Named(line) for line in view.run.doubts]
    read_as = [Named(line) for line in view.run.read_as]
    return joined(
        paragraph("What was assumed when the table was read:") if read_as else "",
        bullets(read_as, class_="read"),
        paragraph("What the attacker was assumed to know before the first question:"),
        bullets(known, class_="known"),
        paragraph(more) if more else "",
        paragraph("Check whether these lists are public in truth:") if doubts else "",
        bullets(doubts, class_="doubts"),
    )


def claim(run: Record) -> Html:
    """Return what was seen of whether the target does what it claims."""
    check = run.claim_check
    assert check is not None
    passed = [Named(each) for each in check.passed]
    power = [Named(each) for each in check.power]
    table = Table(
        "What came otherwise than claimed",
        ("Looked at", "What came", "Probability if the claim is kept", "Still believed"),
        [
            (LOOKED_AT[each.kind], Named(each.said), f"at most {up(each.chance)}", each.still)
            for each in check.broken
        ],
    )
    return joined(
        table_of(table) if check.broken else "",
        paragraph("Found as claimed:") if passed else "",
        bullets(passed),
        paragraph("What would have been seen:") if power and not check.broken else "",
        bullets(power) if not check.broken else "",
    )


def planted(run: Record) -> Html:
    """Return what became of planted values; nothing where none were wanted."""
    found = run.canaries
    if found is None:
        return Html()
    table = Table(
        f"Planted values, with a {sureness(found.confidence)} interval",
        ("Figure", "Measured", "Interval", "Asking nothing"),
        [
            (
                "came back exactly",
                f"{found.right:,} of {found.planted:,}",
                between(found.interval),
                f"1 of {found.values:,}",
            ),
            ("privacy loss at least", short(found.epsilon_at_least), "", "0"),
            ("claimed for one run", loss(found.epsilon_claimed), "", ""),
            ("the most that so many can show", short(found.ceiling), "", ""),
        ],
        frozenset({1, 2, 3}),
    )
    return tag(
        "div",
        tag("h3", canaries_headline(found)),
        paragraph(canaries_explained(found)),
        table_of(table),
        paragraph(found.sentence(), class_="note"),
        id="canaries",
    )


def sureness_of(view: View) -> Html:
    """Say how sure the result is, and in which sense."""
    run, trial = view.run, view.run.membership
    lines: list[str] = []
    if not view.only_trials:
        wanted = run.error_wanted
        planned = "" if wanted is None else f" (planned: {spelled(wanted)} for the whole attack)"
        chance = f"at most {run.error_probability:.2g}{planned}"
        if run.error_probability == 1 and run.ended != "complete":
            chance = sentences.UNPROVED
        lines.append(f"The chance that anything was decided wrongly because of noise is {chance}.")
    lines += _on_shares(view)
    if run.claim_check is not None:
        lines.append(run.claim_check.sentence())
    if trial:
        lines.append(
            "The rates of the membership trial have exact (Clopper-Pearson) intervals; the bound "
            "on epsilon is by right guesses of fair coins, and the trade-off curve has a band of "
            f"its own. Each holds with at least {sureness(trial.confidence)} confidence."
        )
    if run.score is not None or (view.result and view.result.checked):
        lines.append("What was found was compared with the true table after the last question.")
    elif view.only_trials:
        lines.append("Each trial was judged by its coin.")
    elif not view.unsettled:
        lines.append("The true table was not at hand, so what was found could not be checked.")
    if run.bits and not (view.masked and run.attack in TARGETED):
        lines.append(f"What was found is {amount(run.bits)} bits long, {run.bits_basis}.")
    return bullets(lines)


def _on_shares(view: View) -> list[str]:
    """Say what shares and their baselines are, where there are some."""
    found = view.run.accuracy
    if view.unsettled:
        return ["Nothing was settled, so there is nothing to check."]
    if found is None:
        return []
    if view.is_one:
        return ["Of a single case there is no share: it is right or wrong."]
    shares = found.meaning()
    if found.whole.nothing is None:
        return [shares, GUESSES_MASKED]
    alone = [] if found.singling_out is None else [found.singling_out.sentence()]
    return [shares, *(f"One baseline {each}." for each in found.baselines), *alone]


def what_would_change(view: View) -> Html:
    """Say what would have to be different for another verdict."""
    ended, claim = view.run.ended, view.run.claim
    limit = f"A limit on how many answers are given. {_under_a_limit(view.run)}"
    if ended == "undecided":
        lines = [
            "A larger loss for each answer, or more answers to one question: differential privacy "
            "protects less as the loss grows, and says so.",
            "A better attack: what was not seen here may still be there.",
            "Noise that is not drawn as the mechanism says.",
        ]
    elif claim.textbook:
        lines = [
            "Noise drawn on a grid that does not depend on the data, by integers alone, or by a "
            "library that does so. A smaller claimed loss would not help.",
            limit,
        ]
    elif not claim.leaks:
        lines = [
            "A smaller privacy loss for each answer, and so larger noise.",
            limit,
        ]
        if not claim.protected:
            lines = ["Noise that does not depend on the data: differential privacy.", lines[1]]
    else:
        lines = [
            "Noise whose size does not depend on the table (differential privacy at the same "
            "loss). A smaller claimed loss under this mechanism would not help: it makes all noise "
            "larger, and where the noise is, or how large beside other noise, still shows.",
            f"{limit} Refusing questions that people may choose freely goes further.",
            f"An error in this audit: {_repeated(view.run)}.",
        ]
    if ended not in ("complete", "undecided"):
        lines.insert(0, f"More answers: this run ended early ({view.run.reason or ended}).")
    return bullets(lines)


def _under_a_limit(run: Record) -> str:
    """Say what still leaks under a limit on answers, by this run where it shows it."""
    shown = [each for each in run.trace or () if (each.bits or 0.0) >= _LEAKS]
    if not shown or shown[0].queries >= run.queries:
        return "By itself it is no protection: a column with few values takes few answers."
    first = shown[0]
    return (
        f"By itself it is no protection: of this table, {percent(first.bits)} of all bits were "
        f"known after {many(first.queries, 'answer')} of {run.queries:,}, and an attack that knows "
        "of a limit asks first what pays most."
    )


def limits(view: View) -> Html:
    """Say what this report does not show."""
    return bullets([*prose.LIMITS, *([prose.AGGREGATES] if view.masked else [])])


def _repeated(run: Record) -> str:
    """Say what there is to check the run by; the answers themselves only where they were kept."""
    by = "the command below repeats it"
    if run.seed is not None:
        by = "the command and the seed below repeat it"
    if run.transcript:
        return f"{by}, and the transcript holds every answer"
    if run.membership or (run.provenance and run.provenance.transcript_sha256):
        return f"{by}, and the hash of all answers shows whether they are the same"
    return by


def provenance(view: View) -> Html:
    """Say what made this result, so that somebody else can make it again."""
    run, made, network = view.run, view.run.provenance, view.run.network
    rows: list[tuple[str, Any]] = [
        ("Command", "called from Python"),
        ("Seed of the noise", "drawn by the target" if run.seed is None else run.seed),
        ("Versions", "not recorded"),
        ("The attack took", f"{run.seconds:,.2f} seconds"),
        ("Ended", run.ended),
        ("Transcript file", run.transcript),
    ]
    if made is not None:
        options = ", ".join(f"{name} {value}" for name, value in made.options.items())
        versions = (f"{name} {getattr(made, name)}" for name in ("thinveil", "python", "numpy"))
        what = "Transcript" if run.transcript else "Hash of all answers"
        digest = code(made.transcript_sha256) if made.transcript_sha256 else "none"
        rows[0] = ("Command", code(made.command) if made.command else "called from Python")
        rows[2] = ("Versions", ", ".join(versions))
        rows.insert(1, ("Options that were set", Named(options)))
        rows.insert(4, ("System", made.system))
        rows.insert(5, ("Finished", tag("time", made.finished, datetime=made.finished)))
        rows.insert(8, (f"{what} (SHA-256)", digest))
    if run.membership is not None:
        trials = code(run.membership.transcripts)
        rows.append(("Hash of all answers of the trials (SHA-256)", trials))
    if network is not None:
        trips = f"{network.trips:,}, median {network.median_ms:.1f} ms"
        rows.append(("Round trips", trips))
    return _facts(rows)
