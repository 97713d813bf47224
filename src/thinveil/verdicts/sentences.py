"""Every sentence about a result, with values and without them, in one place.

Whoever hands a report on must not hand on what was found. So of people, what was learned is said
in two ways: what it is, and, masked, of what kind it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from thinveil.attacker.evidence.power import weakest
from thinveil.verdicts import said_of_trials
from thinveil.verdicts.phrases import (
    many,
    percent,
    public_numbers,
    rounded_away,
    short,
    spelled,
    upper,
)

if TYPE_CHECKING:  # these say their sentences by this module
    from thinveil.verdicts.comparing.outcomes import Comparison, Line
    from thinveil.verdicts.record import Channel, Record
    from thinveil.verdicts.results import CountResult, PersonResult

TARGETED: Final = ("attribute", "count", "membership", "uniqueness")
"""Attacks on people or on one count, not on whole columns."""
YES_OR_NO: Final = ("membership", "uniqueness")
"""Attacks whose answer a coin could give."""
PRECISE: Final = "at the stated precision"
GUESSES_MASKED: Final = (
    "What guessing gets is masked: of so few people it would tell what is true of them."
)
MASK: Final = "\u2022\u2022\u2022"
"""What stands where a value is not shown."""
SILENT: Final = "no usable difference"
"""What stands where an attack said nothing; the reason beside it says what would have shown."""


# One run


def outcome(run: Record, masked: bool = False) -> str:
    """Say the outcome of a run in a plain sentence or two; masked, without values of people."""
    if run.claim_check is not None and run.only_claim:
        said = run.claim_check.sentence()
        early = run.ended not in ("complete", "broken")
        if run.checks and not run.claim_check.broken and run.epsilon_claimed is not None:
            said += f" The claimed loss of these answers is {spelled(run.epsilon_claimed)}."
        return f"The check ended early: {run.reason}. {said}" if early else said
    if run.only_trials and run.membership is not None:
        return said_of_trials.trials(run.membership)
    precise = f" ({PRECISE})" if run.precision else ""
    claim = (
        "and the mechanism claims no protection"
        if run.epsilon_claimed is None
        else f"while the mechanism claims a privacy loss of {spelled(run.epsilon_claimed)}"
    )
    claim += f" and a delta of {spelled(run.delta_claimed)}" if run.delta_claimed else ""
    hide = masked and run.attack in TARGETED and run.settled > 0
    who = f"An outsider learned {_kind_learned(run)}" if hide else _learned(run)
    parts = [f"{who}{precise} from {many(run.queries, 'answer')}{_checks(run)}, {claim}."]
    if run.ended == "undecided":
        parts.insert(0, f"{upper(run.reason)}.")
    parts += [public_numbers(run.numbers_public), rounded_away(run.rounded_away)]
    parts.append(_but_guessing(run, masked))
    looked = run.channel
    if looked is not None and (looked.settled or looked.wanted or run.claim.textbook):
        parts.append(channel(looked))
    if any(each.judged is False for each in run.entries if run.attack != "column"):
        parts.append("Checked against the table, part of this is wrong.")
    if run.ended not in ("complete", "undecided"):
        parts.append(f"The run ended early: {run.reason}.")
    return " ".join(filter(None, parts))


def _checks(run: Record) -> str:
    """Name the answers that checked the claim, which are part of its loss."""
    return f" and {run.checks:,} that checked the claim" if run.checks else ""


def _but_guessing(run: Record, masked: bool) -> str:
    """Say where somebody who never asks gets as much; of people only where nothing is masked."""
    score, judged = run.score, run.accuracy
    if score is not None and score.recovered and score.guessed >= score.recovered:
        return (
            f"But guessing from the public facts alone gets {short(score.guessed)} as well: here "
            "it is the public list of values that gives the table away."
        )
    if run.attack != "attribute" or masked or judged is None or not judged.given_away:
        return ""
    return given_away(judged.given_away, " as well")


def channel(looked: Channel) -> str:
    """Say what came of looking at which doubles came."""
    answers = many(looked.answers, "answer")
    if looked.settled:
        off = f" (or up to {looked.ulps} beside them)" if looked.ulps else ""
        return (
            "Its noise is drawn in doubles, and many of them can come from one true answer only: "
            f"which doubles came{off} settled {many(looked.settled, 'question')}."
        )
    if looked.used:
        return "Its answers had no noise: of their doubles nothing was to be read."
    why = looked.why or "there were too few of them"
    return f"The doubles of {answers} were looked at, and none was believed: {why}."


def unit_of(run: Record, usual: str) -> str:
    """Return what the accuracy of a run counts, as something that can be right."""
    unit = run.accuracy.unit if run.accuracy else usual
    return "statements about people" if unit == "people" else unit


def given_away(names: Sequence[str], whom: str = " of 99 % of the people or more") -> str:
    """Say which attributes other people's records name anyway."""
    return (
        f"Other people's records alone name {', '.join(names)}{whom}: that the attack names it too "
        "is no merit of the attack."
    )


UNPROVED: Final = "not bounded: proofs come at the end, which the run did not reach"
"""What stands for the chance of an error where a run ended before its proofs."""
NOTHING: Final = "Nothing was settled"
"""What is said where an attack decided nothing: not that there was nothing to see."""


def _learned(run: Record) -> str:
    """Say who learned what: the first words of a sentence."""
    if run.ended == "undecided" and run.is_nothing:
        return NOTHING
    if run.records_rebuilt is not None:
        return f"An outsider {_rebuilt(run, run.records_rebuilt)}"
    if run.columns:
        names = ", ".join(each.column for each in run.columns)
        judged = {each.judged for each in run.columns}
        if judged == {None}:
            part = "" if run.ended == "complete" else "part of "
            return f"An outsider rebuilt {part}the column {names}"
        how = "exactly" if judged == {True} else "in part"
        return f"An outsider recovered the column {names} {how}"
    if run.count is not None and run.settled:
        return f"An outsider learned that {_counted(run.count)}"
    if run.people and run.settled:
        return f"An outsider learned {_about_people(run)}"
    return NOTHING


def known_besides(run: Record) -> str:
    """Say what is known of columns, of an average record, and in bits; nothing where none is.

    Whoever reads how many records were rebuilt must not take the rest for unknown.
    """
    known, begun, of = run.columns_known, run.columns_begun, len(run.attributes)
    parts = []
    if of == 1 and run.values_rebuilt:
        known = begun = ()  # in one column values are records, which are said anyway
    if known:
        which = "all " if len(known) == of > 1 else ""
        how = "" if run.distinct_only else " and how often each occurs"
        parts.append(f"every value of {which}{many(len(known), 'column')}{how} (not whose)")
    if some := len(begun) - len(known):
        more = "more column" if known else "column"
        parts.append(f"something of {many(some, more)}")
    values = (run.values_rebuilt or 0) / max(run.records, 1)
    if values and of > 1 and not run.distinct_only:
        parts.append(f"{short(values)} of {many(of, 'attribute')} of an average record together")
    share = run.bits_share
    if share is not None and (run.bits_known or 0) > 0:
        least = "" if run.score is not None else "at least "
        parts.append(f"{least}{percent(share)} of all bits")
    elif run.bits_known:
        parts.append(f"{short(run.bits_known)} bits")
    return ", ".join(parts)


def _rebuilt(run: Record, whole: int) -> str:
    """Say how much of the table stands; of different records, where counts cannot be known."""
    besides = known_besides(run) if run.ended != "complete" else ""
    if not besides or (run.score is not None and run.score.exact):
        return _recovered(run, whole)
    return f"learned {besides}, and {_recovered(run, whole)}"


def _recovered(run: Record, whole: int) -> str:
    score, distinct = run.score, run.distinct_only
    if score is None:
        if distinct:
            return f"found {many(whole, 'different record')}"
        return f"rebuilt {whole:,} of {many(run.records, 'record')}"
    if score.exact and distinct:
        return (
            f"recovered the distinct set of {many(score.records, 'record')} exactly (how often "
            "each occurs is not shown)"
        )
    if score.exact:
        return f"recovered all {many(run.records, 'record')} exactly"
    if distinct:
        return f"recovered {score.recovered:,} of {many(score.records, 'different record')}"
    return f"recovered {score.recovered:,} of {many(run.records, 'record')}"


def _counted(found: CountResult) -> str:
    if found.between is not None and found.count is None:
        low, high = found.between
        return f"between {low:,} and {high:,} records match"
    if found.count is None:
        return "there is a record that matches," if found.exists else "no record matches"
    return f"{many(found.count, 'record')} {'matches' if found.count == 1 else 'match'}"


def _about_people(run: Record) -> str:
    """Say what was learned of people; of those not settled yet, nothing is said."""
    people = [each for each in run.people if run.is_settled(each)]
    alone = people[0] if len(run.people) == 1 else None
    all_of_them = many(len(people), "person", "people")
    present = sum(each.present is True or run.present for each in people)
    if run.attack == "membership":
        if alone is not None:
            return f"that {'somebody' if alone.present else 'nobody'} who fits is in the table"
        return f"that {present:,} of {all_of_them} are in the table"
    if run.attack == "uniqueness":
        if alone is not None:
            return f"that the person is{_given(run)} {'' if alone.unique else 'not '}unique"
        unique = sum(each.unique is True for each in people)
        return f"that{_given(run)} {unique:,} of {all_of_them} are unique"
    if run.distinct_only:
        if present and not any(each.values for each in people):
            return f"that somebody fits {present:,} of {all_of_them}, and no value yet,"
        some = "" if run.ended == "complete" else "some of "
        whom = f"the records that fit {present:,} of {all_of_them}"
        return f"{some}the values that occur among {whom},"
    if alone is not None:
        if not alone.matches:
            return "that nobody in the table fits"
        if not alone.values:
            fit = "one record fits" if alone.matches == 1 else f"{alone.matches:,} records fit"
            return "no value yet" if run.present else f"that {fit}, and no value yet,"
        if alone.matches == 1:
            return f"{many(len(alone.values), 'attribute')} of the person"
        return f"{_some_or_all(alone)} among the {alone.matches:,} records that fit"
    there = [each for each in people if each.values]
    unique = sum(each.matches == 1 for each in there)
    part = any(each.left(name) for each in there for name in each.values or {})
    return (
        f"{'some values of ' * part}attributes of {len(there):,} of {all_of_them}, "
        f"{unique:,} of them alone in what was known of them,"
    )


def _some_or_all(person: PersonResult) -> str:
    """Name how many attributes of several records are known, and of how many some values."""
    left = [person.left(name) for name in person.values or {}]
    some = sum(each > 0 for each in left)
    kinds = {"the values of": len(left) - some, "some values of": some}
    return " and ".join(f"{of} {many(n, 'attribute')}" for of, n in kinds.items() if n)


def _given(run: Record) -> str:
    return ", presence taken as given," if run.present else ""


def _kind_learned(run: Record) -> str:
    """Say what a targeted attack learned, without it; never more than the terminal says.

    Of the records that fit, it may show whether there is one or several, and not how many.
    """
    if run.count is not None:
        known = run.count.count is not None
        what = "how many records match" if known else "whether any record matches"
        if run.count.between is not None and not known:
            what = "about how many records match"
        return f"{what} what was asked"
    if run.attack == "attribute":
        return _kind_of_attributes(run.people)
    settled, of = run.settled, len(run.people)
    some = f"{settled:,} of {of:,} people" if settled < of else many(settled, "person", "people")
    some += " is" if settled == 1 else " are"
    if run.attack == "membership":
        return f"whether {'somebody who fits is' if of == 1 else some} in the table"
    return f"whether{_given(run)} {'a person is' if of == 1 else some} alone in what was known"


def _kind_of_attributes(people: Sequence[PersonResult]) -> str:
    there = [each for each in people if each.values]
    if not there:
        return "whether anybody fits what was known"
    if len(people) > 1:
        return f"attributes of people out of {len(people):,} who were asked about,"
    values, matches = many(len(there[0].values or {}), "attribute"), there[0].matches
    if matches is None:
        return f"which values of {values} occur among the records that fit"
    if matches == 1:
        return f"{values} of a person"
    return f"{_some_or_all(there[0])} among several records that fit"


# All mechanisms


def comparison(compared: Comparison) -> str:
    """Say what a comparison shows, and no more than that."""
    parts = []
    veiled = [each for each in compared.lines if each.claim.leaks]
    gave = [each for each in veiled if each.everything]
    bare = any(not each.claim.protected and each.everything for each in compared.lines)
    if gave:
        loss = max(each.epsilon_claimed or 0.0 for each in gave)
        parts.append(
            f"{many(len(gave), 'relaxed mechanism')} gave everything away at a claimed loss "
            f"of at most {spelled(loss)}{', as no protection does.' if bare else '.'}"
        )
    elif bare:
        parts.append("Without protection everything was given away.")
    some = [each.mechanism for each in veiled if each.done and not each.everything]
    if some:
        parts.append(f"Only a part, or nothing, was recovered from {', '.join(some)}.")
    parts += [_in_doubles(each) for each in compared.lines if each.claim.textbook and each.done]
    controls = [each for each in compared.lines if each.claim.control and each.done]
    calm = [each for each in controls if each.at_baseline]
    if calm:
        said = f"{many(len(calm), 'control')} stayed at the baseline"
        tried = [one for each in calm for one in each.tried]
        silent = all(one.trial or one.reason.startswith(SILENT) for one in tried)
        shown = dict.fromkeys(said_of_trials.power_of(one.trial) for one in tried if one.trial)
        parts += [f"{said}{_null(compared, calm) if silent else ''}.", *shown]
    parts += [
        f"{each.mechanism} went beyond the baseline, at a claimed loss of "
        f"{spelled(each.epsilon_claimed or 0.0)}: so large a loss promises little."
        for each in controls
        if not each.at_baseline
    ]
    if compared.interrupted:
        parts.append("The comparison was interrupted: this is what was done so far.")
    parts += [public_numbers(compared.numbers_public), rounded_away(compared.rounded_away)]
    return " ".join(filter(None, parts)) or "Nothing was compared."


def _null(compared: Comparison, calm: Sequence[Line]) -> str:
    """Say that nothing was seen in all answers to a question, and what would have been.

    That is what the attacks said themselves; where they differ, the most that stayed unseen.
    """
    said = weakest(one.reason for each in calm for one in each.tried)
    if not said:
        return ""
    most = compared.settings.most_repeats
    return f": {SILENT} was found in {many(most, 'answer')} to one question; {'; '.join(said)}"


def _in_doubles(line: Line) -> str:
    """Say what came of a mechanism whose noise is drawn in doubles."""
    claimed = f"at a claimed loss of {spelled(line.epsilon_claimed or 0.0)}"
    if line.at_baseline:
        return f"{line.mechanism}, drawn in doubles, stayed at the baseline."
    gave = "gave everything away" if line.everything else "went beyond the baseline"
    return f"{line.mechanism} {gave} {claimed}: its noise is drawn in doubles."


def comparison_headline(lines: Sequence[Line]) -> str:
    """Say in a title what the picture of a comparison shows."""
    veiled = [each for each in lines if each.claim.kind == "red"]
    honest = [each for each in lines if each.claim.control]
    if not veiled or not all(each.everything for each in veiled):
        return "What was recovered from each mechanism"
    drawn = [each for each in lines if each.claim.textbook]
    also = ", and so did noise drawn in doubles" if drawn and drawn[0].everything else ""
    calm = bool(honest) and all(each.at_baseline for each in honest)
    more = "; controls stayed at the baseline" if calm else ""
    return f"Noise that follows the data gave everything away{also}{more}"


def comparison_stopped(compared: Comparison) -> str:
    """Say that somebody stopped a comparison, and what it did not reach; else nothing."""
    if not compared.interrupted:
        return ""
    left = ", ".join(compared.not_reached)
    more = f", and none on {left}." if left else "."
    return f"The comparison was stopped by hand: not every attack was tried{more}"
