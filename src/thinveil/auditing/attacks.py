"""From options to an attack: what is wished for, and the strategy that carries it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from thinveil.attacker.attacks.table import Wish, nothing_of
from thinveil.attacker.channel import Looked, by_doubles, simpler
from thinveil.attacker.checks.found import Checked
from thinveil.attacker.checks.watch import MOST, SHARE, Plan, claim_alone, watched
from thinveil.attacker.evidence.error_budget import SEQUENTIAL, Care
from thinveil.attacker.evidence.rephrasing import worded
from thinveil.attacker.evidence.true_bit import else_by_bits
from thinveil.attacker.findings import Found
from thinveil.attacker.longest import most_questions
from thinveil.attacker.scored import Means, score
from thinveil.attacker.strategies import shape_of, strategy_named
from thinveil.attacker.terms import Attack, Person
from thinveil.auditing.entries import ON_PEOPLE
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import Equal, Fixed, Free, first_loss, most_answers
from thinveil.errors import SchemaError, UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Box
from thinveil.language.shapes import holds


def attack_on(
    options: Options, facts: PublicFacts, ulps: int = 0, *, checks: bool = False
) -> Attack[Found]:
    """Return the attack, made for a target of which only public facts are known.

    Where doubles are looked at, so many of them may lie between the noise of the target and ours
    at scale 1: none where our own library draws it. With `checks` it is also looked at whether
    the target does what it claims; they take their share of the error.

    Raises:
        UsageError: Something asked for does not fit the schema.
    """
    try:
        care = care_for(options, facts)
        if not checks:
            return _unwatched(options, facts, ulps, care, 0)
        plan = plan_of(options, facts)
        care = replace(care, error=care.error - plan.alarm)
        attack = _unwatched(options, facts, ulps, care, plan.most or 0)
        return watched(attack, facts, Checked(plan.alarm), plan)
    except SchemaError as error:
        raise UsageError(str(error)) from None


def checks_on(options: Options, facts: PublicFacts) -> Attack[None]:
    """Return what checks that a target does what it claims, and attacks nobody."""
    plan = replace(plan_of(options, facts), most=_most(options, facts))
    return claim_alone(facts, Checked(plan.alarm), plan)


def plan_of(options: Options, facts: PublicFacts) -> Plan:
    """Return how a target is watched: how many answers there are, and of which error."""
    schedule, most = options.schedule(facts.claim), _most(options, facts)
    limits = [] if most is None else [most // SHARE]
    if isinstance(schedule, Equal):  # as `planned` sets aside
        limits.append(max(0, MOST + ((schedule.answers or 0) - MOST) // 101))
    boxes: list[Box] = []
    if options.attack == "count":
        boxes = [options.box_of(facts)]
    elif options.attack in ON_PEOPLE:
        people = options.codes_of_people(facts)
        boxes = [{column: (code, code + 1) for column, code in each.items()} for each in people]
    return Plan(
        options.seed,
        options.care().error,
        min(limits, default=None),
        boxes,
        early=facts.claim.leaks or isinstance(schedule, (Equal, Fixed, Free)),
    )


def _unwatched(
    options: Options, facts: PublicFacts, ulps: int, care: Care, aside: int
) -> Attack[Found]:
    """Return the attack by itself, where so many answers are set aside."""
    again = facts.policies.cache and not facts.claim.reads_exactly
    most = _most(options, facts)
    most = None if most is None else max(1, most - aside)

    def attack(facts: PublicFacts) -> Attack[Found]:
        made = _attack(options, facts, care, again, most)
        if options.attack != "dataset":
            return worded(facts, care, made)
        nothing = nothing_of(facts, options.widths(facts.schema))
        return worded(facts, care, made, lambda: nothing)

    def by_noise() -> Attack[Found]:
        return else_by_bits(facts, attack(facts), attack, options.test in (None, SEQUENTIAL))

    clean = _as_doubles_show_it(options, facts)
    if clean is None:
        return by_noise()
    attack(clean).close()  # what does not fit is said now, not after the first question
    return by_doubles(facts, care, attack, by_noise, Looked(ulps=ulps))


def care_for(options: Options, facts: PublicFacts) -> Care:
    """Return how careful an attack is: its error is shared over as many decisions as it takes.

    A question about a person is one decision, or two where the direction of noise is hidden or
    a strategy asks the printed pair: they have the whole error. The others are estimates, which
    cost little where they are wrong.
    """
    schema, people = facts.schema, max(1, len(options.people))
    if options.attack in ("membership", "uniqueness"):
        each = 1 if options.attack == "membership" or options.present else 2
        twice = facts.claim.hides_direction or options.strategy_for(facts.claim) == "published"
        return options.care(people, people * (each + twice))
    if options.attack == "count":
        return options.care(facts.records.bit_length())
    names = options.columns or schema.names
    sizes = [schema[schema.column(name)].size or facts.records for name in names]
    halvings = facts.records.bit_length()
    expected = {
        "attribute": people * sum(halvings + size.bit_length() for size in sizes),
        "column": halvings * sum(min(size, facts.records) for size in sizes),
    }
    most = facts.records * len(schema)
    return options.care(min(expected.get(options.attack, most), most))


def _as_doubles_show_it(options: Options, facts: PublicFacts) -> PublicFacts | None:
    """Return what the target looks like to an attack that reads doubles; None if it does not.

    Raises:
        UsageError: It is asked to, and cannot.
    """
    claim = facts.claim
    if options.channel == "doubles":
        if options.test is not None:
            raise UsageError("--test weighs noise, which --channel doubles does not: give one")
        return simpler(facts)
    honest = claim.textbook or claim.control
    if options.channel == "noise" or options.test is not None or not honest:
        return None
    with suppress(UsageError):
        return simpler(facts)
    return None


def trial_on(options: Options, facts: PublicFacts, person: Person) -> Attack[float]:
    """Return one trial of membership: is this person in the table? It returns a score.

    Whatever the strategy, it is the likelihood ratio that speaks.

    Raises:
        UsageError: The mechanism is not what its description says in a table of this size.
    """
    _check_shape(facts)
    schedule = options.schedule(facts.claim)
    most, even = most_answers(schedule, options.cap_value()), isinstance(schedule, (Equal, Fixed))
    # trials are held on curators of ours, who draw as they say
    doubles = _as_doubles_show_it(options, facts) is not None and facts.claim.in_doubles
    means = Means(first_loss(schedule), most, even, doubles)
    return score(facts, options.care(1), person, means)


def planned(options: Options, facts: PublicFacts, checked: bool = False) -> Options:
    """Return options that say over how many answers a total is split, where that was left open.

    Where the target is `checked` in passing, answers are set aside for that.

    Raises:
        UsageError: It is not known beforehand how many the attack asks for at most.
    """
    if options.split != "equal" or options.answers is not None or options.trials_only:
        return options
    claim = facts.claim
    strategy, repeats = strategy_named(options.strategy_for(claim)), options.repeats or 1
    most = None
    if claim.reads_exactly or options.repeats is not None:
        engine = strategy.engine(facts, options.care())
        most = most_questions(options.attack, engine, wish_of(options, facts, again=False))
    if most is None:
        raise UsageError(
            "--split equal: nobody knows beforehand how many answers this attack takes at most; "
            "give --answers N, or use --strategy published (or linear, where all columns have "
            "bounds) against a mechanism whose single answers tell"
        )
    most *= repeats
    aside = MOST + most // 100 if checked else 0
    return replace(options, answers=max(1, most + aside))


def _attack(
    options: Options, facts: PublicFacts, care: Care, again: bool, most: int | None
) -> Attack[Found]:
    strategy = strategy_named(options.strategy_for(facts.claim))
    _check_shape(facts)
    return strategy.attack(options.attack, facts, care, wish_of(options, facts, again, most))


def _check_shape(facts: PublicFacts) -> None:
    """Refuse a law that is another in a table of this size than in small ones."""
    if not holds(facts.claim.sensitivity, facts.claim.shape, facts.records):
        raise UsageError(
            f"the noise of {facts.claim.name} has another shape in a table of {facts.records:,} "
            "records than in small ones: its sensitivity must say shape = Shape(level=False)"
        )


def wish_of(options: Options, facts: PublicFacts, again: bool, most: int | None = None) -> Wish:
    """Return what the options wish for, in codes; of questions asked `again` in new words.

    There will be at most so many answers, where anybody says.

    Raises:
        UsageError: Something asked for does not fit the schema or the mechanism.
    """
    schema = facts.schema
    wish = Wish(
        columns=[schema.column(name) for name in options.columns],
        order=[schema.column(name) for name in options.order],
        widths=options.widths(schema),
        present=options.present,
        force=options.force,
        thrift=None if again else options.thrift(),  # no unions where questions need new words
        most=most,
        hasty=options.rounds == "few",
    )
    more = _MORE.get(options.attack)
    return wish if more is None else more(options, facts, wish)


def _most(options: Options, facts: PublicFacts) -> int | None:
    """Return how many answers there will be at most; None where nobody says."""
    within = most_answers(options.schedule(facts.claim), options.cap_value())
    limits = (facts.policies.max_queries, within)
    return min((each for each in limits if each is not None), default=None)


def _with_box(options: Options, facts: PublicFacts, wish: Wish) -> Wish:
    return replace(wish, box=options.box_of(facts))


def _with_people(options: Options, facts: PublicFacts, wish: Wish) -> Wish:
    if options.attack == "uniqueness" and shape_of(facts.claim) == "presence":
        raise UsageError(
            f"the mechanism {facts.claim.name} shows which records exist, not how many: it "
            "tells nothing of uniqueness"
        )
    return replace(wish, people=options.codes_of_people(facts))


def _with_unknown(options: Options, facts: PublicFacts, wish: Wish) -> Wish:
    """Add people and the columns to find of them."""
    schema, zoned = facts.schema, shape_of(facts.claim) == "zones"
    if options.priors and not zoned:
        raise UsageError(f"prior bounds are of no use against {facts.claim.name}")
    wish = _with_people(options, facts, wish)
    known = wish.people[0]
    overlap = [schema[column].name for column in wish.columns if column in known]
    if overlap:
        raise UsageError(f"the column {overlap[0]!r} is both known and to be found")
    unknown = [column for column in range(len(schema)) if column not in known]
    if not unknown:
        raise UsageError("every column is known already: there is nothing to find")
    wanted = wish.columns or unknown
    for name in (*options.priors, *options.precision) if zoned else ():
        if schema.column(name) not in wanted:
            raise UsageError(f"the column {name!r} is not searched, so it takes no bounds")
    return replace(wish, columns=wanted, priors=options.believed(schema))


_MORE: Final[Mapping[str, Callable[[Options, PublicFacts, Wish], Wish]]] = {
    "attribute": _with_unknown,
    "count": _with_box,
    "membership": _with_people,
    "uniqueness": _with_people,
}
"""What attacks want besides, by name."""
