"""Results for people at a terminal: one plain sentence, then tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table

from thinveil.report.text import claim_seen
from thinveil.report.text.remarks import how_it_was_read, listed
from thinveil.report.text.reproduced import plain_table
from thinveil.report.text.screen import Text, lines
from thinveil.verdicts import sentences
from thinveil.verdicts.canaries import Canaries
from thinveil.verdicts.limits.bounds import Bounds
from thinveil.verdicts.limits.shortest_code import CODES
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.phrases import many, mean, percent, short, spelled, sureness
from thinveil.verdicts.results import ColumnResult, CountResult, PersonResult, ValueFound
from thinveil.verdicts.said_of_trials import canaries_explained
from thinveil.verdicts.sentences import given_away
from thinveil.verdicts.verdict import Verdict

_MOST_ROWS = 20
_WIDE = 76  # below this many columns, what attributes cost is left out


def show_verdict(console: Console, verdict: Verdict) -> None:
    """Print what an audit found: figures, tables, and last the sentence to remember."""
    how_it_was_read(console, verdict.remarks.assumed, verdict.remarks.doubts)
    console.print(Text("What the attacker was assumed to know", style="bold"))
    listed(console, verdict.assumed_public())
    if verdict.possible is not None:
        console.print(Text(verdict.possible.sentence()))
    check = verdict.claim_check
    if check is not None and verdict.record().only_claim:
        claim_seen.show(console, verdict, check, _figures(verdict, bare=True))
        return
    console.print(_figures(verdict))
    if verdict.score is not None:
        console.print(_attributes(verdict, wide=console.width >= _WIDE))
    for part in _result(verdict):
        console.print(part)
    for part in (*_further(verdict), *([] if check is None else [Text(check.sentence())])):
        console.print(part)
    if verdict.notice:
        console.print(Text(f"Note: {verdict.notice}", style="yellow"))
    undecided = verdict.run.ending == "undecided"
    style = "red" if verdict.run.ending == "complete" and verdict.run.found else "yellow"
    style = "green" if undecided else style
    said = verdict.sentence()
    if verdict.membership is not None and not verdict.options.trials_only:
        said = f"{said} {verdict.membership.sentence()}"
    if verdict.canaries is not None:
        said = f"{said} {verdict.canaries.sentence()}"
    console.print(Panel(Text(said), title="Verdict", border_style=style))


def _further(verdict: Verdict) -> list[RenderableType]:
    """Return what runs beside the attack showed."""
    trials = [] if verdict.membership is None else membership(verdict.membership)
    return trials + ([] if verdict.canaries is None else [_canaries(verdict.canaries)])


def _figures(verdict: Verdict, bare: bool = False) -> Table:
    """Return the figures of a run; bare, without those that rest on what answers say."""
    meter, facts = verdict.run.meter, verdict.facts
    group = "" if facts.claim.k is None else f", k = {facts.claim.k}"
    claimed = verdict.epsilon_claimed
    delta = f", delta {spelled(verdict.delta_claimed)}" if verdict.delta_claimed else ""
    rows = [
        ("mechanism", f"{facts.claim.name}{group}, {facts.claim.universe} universe"),
        ("which is", facts.claim.describe()),
        ("attack, strategy", _attack(verdict)),
        ("claimed loss", "nothing is claimed" if claimed is None else spelled(claimed) + delta),
        ("budget", verdict.options.schedule(facts.claim).describe()),
        *([] if verdict.options.check_claim else _asked(verdict)),
        *claim_seen.checks(verdict),
        *([] if bare else [*_accuracy(verdict), *_doubles(verdict)]),
        *([] if bare else [*_errors(verdict), *_bits(verdict)]),
        ("seconds", f"{verdict.seconds:.2f}"),
        *_network(verdict),
    ]
    if meter.trivial:
        rows.insert(6, ("trivial questions among them", f"{meter.trivial:,}"))
    if meter.replayed:
        rows.insert(6, ("rounds replayed, not asked again", f"{meter.replayed:,}"))
    if precision := verdict.precision():
        steps = ", ".join(f"{name} {step}" for name, step in precision.items())
        rows.append(("precision", f"{steps}; exact means at this precision"))
    if verdict.provenance is not None and verdict.provenance.transcript is not None:
        rows.append(("hash of all answers", verdict.provenance.transcript[:16]))
    table = Table(show_header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def _asked(verdict: Verdict) -> list[tuple[str, str]]:
    meter = verdict.run.meter
    rounds = f"{meter.questions:,} in {many(meter.rounds, 'round')}"
    return [("answers asked for", f"{meter.queries:,}"), ("questions, rounds", rounds)]


def _attack(verdict: Verdict) -> str:
    if verdict.options.check_claim:
        return "none: the claim is checked"
    strategy = "by likelihood" if verdict.options.trials_only else verdict.strategy
    return f"{verdict.options.attack}, {strategy}"


def _accuracy(verdict: Verdict) -> list[tuple[str, str]]:
    """Say how much is right, beside attackers who never ask."""
    judged = verdict.accuracy
    if judged is None:
        whole = verdict.options.trials_only or verdict.run.found is None
        return [] if whole else [("right", _unshared(verdict))]
    share, alone = judged.whole, judged.singling_out
    guesses = {
        "asking nothing": share.nothing,
        "knowing the marginals": share.marginals,
        "knowing all other records": share.others,
    }
    rows = [(f"{judged.unit} right", f"{share.right:,} of {share.of:,}")]
    rows += [(who, f"{mean(n)} right") for who, n in guesses.items() if n is not None]
    return rows if alone is None else [*rows, ("singled out", alone.brief())]


def _unshared(verdict: Verdict) -> str:
    """Say what is right where there is no share, or why nobody knows."""
    judged = [each.judged for each in verdict.record().entries if each.judged is not None]
    if not judged:
        return "not scored: the true table is not at hand"
    of = many(len(judged), "person", "people")
    alone = "nobody asked about is alone in what is known of them, so values have no share"
    return f"what was said of {sum(judged):,} of {of}; {alone}"


def membership(trial: Trial) -> list[RenderableType]:
    """Return what trials of membership showed, as a table with its intervals."""
    table = plain_table("said to be in the table", "trials", "share", sureness(trial.confidence))
    table.title = Text("Trials of membership")
    for world, right, of, share, (low, high) in (
        ("who is in it", trial.right, trial.inside, trial.tpr, trial.tpr_interval),
        ("who was replaced", trial.wrong, trial.outside, trial.fpr, trial.fpr_interval),
    ):
        table.add_row(world, f"{right:,} of {of:,}", f"{share:.1%}", f"{low:.2%} to {high:.2%}")
    mu = trial.curve.mu_at_least if trial.curve else 0.0
    gaussian = f" As Gaussian differential privacy, mu is at least {mu:.2f}." if mu else ""
    table.caption = (
        f"{trial.targets()} Whoever asks nothing shows a bound of "
        f"{trial.baseline.epsilon_at_least:.2f}. So many trials can show at most "
        f"{trial.ceiling:.2f}; more raise that.{gaussian}"
    )
    return [table]


def _canaries(found: Canaries) -> RenderableType:
    """Return what became of planted values."""
    table = plain_table("planted values", "came back", sureness(found.confidence), "a guess")
    table.title = Text("Canaries")
    low, high = found.interval
    back = f"{found.right:,} of {found.planted:,}"
    guess = f"1 in {found.values:,}"
    table.add_row(f"{found.planted:,}", back, f"{low:.2%} to {high:.2%}", guess)
    table.caption = canaries_explained(found)
    return table


def _network(verdict: Verdict) -> list[tuple[str, str]]:
    """Say how the way to a service was, and what its own ledger says."""
    found = verdict.network
    if found is None:
        return []
    said = (
        f"{found['trips']:,}; median {found['median_ms']:.1f} ms, 95 % within "
        f"{found['p95_ms']:.1f} ms, slowest {found['slowest_ms']:.0f} ms; "
        f"{found['retries']:,} sent again"
    )
    rows = [("round trips", said)]
    if "ledger" in found:
        spent, left = (spelled(found["ledger"][name]) for name in ("spent", "left"))
        rows.append(("the service's ledger", f"{spent} spent by this analyst, {left} left"))
    return rows


def _errors(verdict: Verdict) -> list[tuple[str, str]]:
    """Say how sure the result is, and how often questions were repeated for it."""
    trial = verdict.membership
    if verdict.options.trials_only and trial is not None:  # guesses, and counted as such
        right = f"{trial.guessed_right:,} of {trial.trials:,} (asking nothing: half of them)"
        return [("guesses right", right), ("answers a trial", f"{trial.queries_a_trial:,.1f}")]
    chance = f"at most {verdict.error_probability:.2g}"
    if verdict.facts.claim.reads_exactly and verdict.strategy != "posterior":
        return [("chance of a misread answer", chance)]
    wanted = f"{chance} (wanted: {verdict.options.error})"
    if verdict.error_probability == 1 and not verdict.run.meter.proved:
        wanted = sentences.UNPROVED
    if verdict.channel is not None and verdict.channel.used:
        return [("chance of any wrong decision", wanted)]
    meter = verdict.run.meter
    mean = meter.queries / max(meter.questions, 1)
    return [
        ("answers a question", f"{mean:.1f} on average"),
        ("chance of any wrong decision", wanted),
    ]


def _doubles(verdict: Verdict) -> list[tuple[str, str]]:
    """Say what came of looking at which doubles came."""
    looked = verdict.channel
    if looked is None:
        return []
    if looked.used:
        settled = many(looked.settled, "question")
        return [("doubles read", f"{looked.answers:,}, which settled {settled}")]
    return [("doubles looked at", f"{looked.answers:,}, none believed: {looked.why or 'too few'}")]


def _bits(verdict: Verdict) -> list[tuple[str, str]]:
    """Say how much was found, what it cost, and how that compares."""
    bits, bounds, meter = verdict.bits, verdict.bounds, verdict.run.meter
    if bits is None:
        return _none_yet(verdict)
    rows = [("bits found", f"{short(bits)}, {verdict.bits_basis}"), *_known(verdict)]
    cost = verdict.questions_per_bit
    if cost is not None:
        what = "questions" if meter.queries == meter.questions else "answers"
        rows.append((f"{what} a bit", f"{short(cost)}{_at_best(bounds, cost)}"))
    rows += _fewest(bounds)
    if bounds is not None and bounds.packed_bits is not None:
        size = many(bounds.packed_bytes or 0, "byte")
        rows.append(("true table packed by xz", f"{bounds.packed_bits:,} bits ({size})"))
    elif bounds is not None and bounds.packed_left_out:
        rows.append(("true table packed by xz", f"left out: {bounds.packed_left_out}"))
    return rows


def _none_yet(verdict: Verdict) -> list[tuple[str, str]]:
    """Say why no bits are counted of a table when a run has ended early."""
    if verdict.knowledge is None or verdict.run.ending in ("complete", "undecided"):
        return []
    searched = "; what is known of limits so far is not counted"
    return [("bits found", f"none yet{searched if verdict.record().limits_found else ''}")]


def _known(verdict: Verdict) -> list[tuple[str, str]]:
    """Say what share of all bits is known when a run has ended early."""
    known = verdict.knowledge
    if known is None or not known.of_all or verdict.run.ending == "complete":
        return []
    if not known.bits:
        apart = verdict.run.found is not None and verdict.record().distinct_only
        why = ": different values count once all of a column are found" if apart else ""
        return [("known of all bits", f"none counted yet{why}")]
    share = percent(min(1.0, known.bits / known.of_all))
    least = "" if verdict.score is not None else "at least "
    of = f"{short(known.bits)} of {short(known.of_all)}, by even chances"
    of += " within the limits found" if verdict.record().limits_found else ""
    told = verdict.bounds.bits_an_answer if verdict.bounds is not None else None
    if told is not None and known.bits > verdict.run.meter.queries * told:
        of += "; more than answers carry on average, as the table is unlike most"
    return [("known of all bits", f"{least}{share} ({of})")]


def _fewest(bounds: Bounds | None) -> list[tuple[str, str]]:
    """Say how many answers any attack wants, for all but a few tables."""
    if bounds is None or bounds.questions is None or bounds.bits is None:
        return []
    of = sureness(1 - (bounds.chance or 0.0))
    code = f"{short(bounds.bits)} bits, by {CODES[bounds.code or 'own']}"
    return [
        (
            "fewest answers",
            f"{bounds.questions:,}, by any attack, for {of} of the tables that the shortest code "
            f"known expects ({code})",
        )
    ]


def _at_best(bounds: Bounds | None, cost: float) -> str:
    """Say how few questions a bit there could be, unless the table has fewer bits than that."""
    if bounds is None or bounds.questions_per_bit is None:
        return ""
    best, told = short(bounds.questions_per_bit), short(bounds.bits_an_answer)
    if cost < bounds.questions_per_bit:
        return f" (the best to expect is {best}: the table is more regular than believed)"
    return f" (at best {best}: an answer tells at most {told} bit{'' if told == '1' else 's'})"


def _attributes(verdict: Verdict, *, wide: bool) -> Table:
    assert verdict.score is not None
    cost = ("asked", "bits") if wide else ()
    table = plain_table("attribute", *cost, "column", "guess", "person", "guess", "mode", "others")
    table.box, table.pad_edge = box.SIMPLE_HEAD, False
    table.collapse_padding = True  # nine columns fit a terminal of eighty
    column = (
        "column: share of its different values that are named, less values named wrongly"
        if verdict.score.distinct
        else "column: share of its values that are right"
    )
    table.caption = (
        f"{column}; person: share of people whose value is named, all else of them being known; "
        "guess: the same by picking evenly from the public values; mode: by always naming the most "
        "common value; others: by all other people's records, and no answer"
    )
    if verdict.accuracy is not None and verdict.accuracy.given_away:
        table.caption = f"{table.caption}. {given_away(verdict.accuracy.given_away)}"
    asked, bits = verdict.run.meter.by_column.tolist(), verdict.bits_by_attribute
    judged = () if verdict.accuracy is None else verdict.accuracy.attributes
    inferred = {
        each.name: tuple(
            f"{n or 0:.1%}"
            for n in (one.share, one.nothing_share, one.marginals_share, one.others_share)
        )
        for each in judged
        if (one := each.inferred) is not None
    }
    for each, questions in zip(verdict.score.attributes, asked, strict=False):
        found = f"{bits[each.name]:,.0f}" if each.name in bits else "0"
        table.add_row(
            Text(each.name),
            *((f"{questions:,}", found) if wide else ()),
            f"{each.recovered / each.of:.1%}",
            f"{each.guessed / each.of:.1%}",
            *inferred.get(each.name, ("",) * 4),
        )
    return table


def _result(verdict: Verdict) -> list[RenderableType]:
    run = verdict.record()
    if run.count is not None:
        return [Text(f"records that match: {_matching(run.count)}")]
    return [_column(each) for each in run.columns] + ([_people(run.people)] if run.people else [])


def _matching(found: CountResult) -> str:
    if found.count is not None:
        return f"{found.count:,}"
    if found.between is not None:
        return f"between {found.between[0]:,} and {found.between[1]:,}"
    return {True: "at least one", False: "none", None: "not known"}[found.exists]


def _column(found: ColumnResult) -> RenderableType:
    table = plain_table("value", "records", title=f"column {found.column}")
    for each in found.values[:_MOST_ROWS]:
        number = "some" if each.records is None else f"{each.records:,}"
        table.add_row(_value(each.value), number)
    return Group(table, *_more(len(found.values) - _MOST_ROWS, "values"))


def _people(people: Sequence[PersonResult]) -> RenderableType:
    counted = any(person.matches is not None for person in people)
    checked = any(person.judged is not None for person in people)
    table = plain_table("known", *["matches"] * counted, "found", *["correct"] * checked)
    for person in people[:_MOST_ROWS]:
        known = ", ".join(f"{name}={value}" for name, value in person.known.items())
        if person.values is not None:
            values = {
                name: [*map(_several, each), *_not_yet(person.left(name))]
                for name, each in person.values.items()
            }
            wrong = dict.fromkeys(person.prior_failed or (), " (outside --prior)")
            found = lines(
                f"{name}: {', '.join(each)}{wrong.get(name, '')}" for name, each in values.items()
            )
        else:
            found = Text(", ".join(person.said()))
        right = {True: "yes", False: "NO", None: ""}[person.judged]
        matches = "" if person.matches is None else str(person.matches)
        table.add_row(Text(known), *[matches] * counted, found, *[right] * checked)
    return Group(table, *_more(len(people) - _MOST_ROWS, "people"))


def _not_yet(left: int) -> list[str]:
    return [f"{left:,} not known yet"] if left > 0 else []


def _several(found: ValueFound) -> str:
    text = str(_value(found.value))
    return text if found.records in (1, None) else f"{text} (x{found.records})"


def _value(value: Any) -> Text:
    return Text("missing" if value is None else str(value))


def _more(count: int, what: str) -> list[Text]:
    return [Text(f"... and {count:,} more {what} (--json FILE has all)")] if count > 0 else []
