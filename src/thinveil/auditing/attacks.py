"""From options to an attack: which search goes with which mechanism, strategy and wish."""

from __future__ import annotations

from collections.abc import Sequence

from thinveil.attacker.attacks import distinct_searches as existence
from thinveil.attacker.attacks import distinct_table as presence
from thinveil.attacker.attacks import learned_people, table
from thinveil.attacker.attacks import learned_table as adaptive
from thinveil.attacker.attacks import noisy_table as weak
from thinveil.attacker.attacks import people as targeted
from thinveil.attacker.engines import any_law as foreign
from thinveil.attacker.engines.unions import Thrift
from thinveil.attacker.evidence.error_budget import SEQUENTIAL, Care
from thinveil.attacker.evidence.rephrasing import worded
from thinveil.attacker.evidence.true_bit import else_by_bits
from thinveil.attacker.findings import Found
from thinveil.attacker.strategies import Strategy, strategy_named
from thinveil.attacker.terms import Attack, Person
from thinveil.auditing.options import Options, span
from thinveil.errors import SchemaError, UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.shapes import holds


def attack_on(options: Options, facts: PublicFacts) -> Attack[Found]:
    """Return the attack, made for a target of which only public facts are known.

    Raises:
        UsageError: Something asked for does not fit the schema.
    """
    care = options.care(facts.records * len(facts.schema))

    def attack(facts: PublicFacts) -> Attack[Found]:
        made = _attack(options, facts, care)
        if options.attack != "dataset":
            return worded(facts, care, made)
        nothing = table.nothing_of(facts, options.widths(facts.schema))
        return worded(facts, care, made, lambda: nothing)

    try:
        return else_by_bits(facts, attack(facts), attack, options.test in (None, SEQUENTIAL))
    except SchemaError as error:
        raise UsageError(str(error)) from None


def _attack(options: Options, facts: PublicFacts, care: Care) -> Attack[Found]:
    schema = facts.schema
    strategy = strategy_named(options.strategy_for(facts.claim))
    if not holds(facts.claim.sensitivity, facts.claim.shape, facts.records):
        raise UsageError(
            f"the noise of {facts.claim.name} has another shape in a table of {facts.records:,} "
            "records than in small ones: its sensitivity must say shape = Shape(level=False)"
        )
    if not facts.claim.zoned:
        return _foreign(options, facts, care)
    if not facts.claim.counts:
        return _existence(options, facts, care)
    widths = options.widths(schema)
    if strategy.learns and options.attack in ("dataset", "column"):
        return _learned(options, facts, strategy, care)
    if options.attack == "dataset":
        return table.table(facts, strategy, _order(options, facts), widths, options.force, care)
    if options.attack == "column":
        return table.columns(facts, strategy, _columns(options, facts), widths, options.force, care)
    if options.attack == "count":
        return table.count(facts, strategy, options.box_of(facts), options.force, care)
    people = options.codes_of_people(facts)
    if options.attack == "membership":
        return targeted.membership(facts, strategy, people, care)
    if options.attack == "uniqueness":
        return targeted.uniqueness(facts, people, options.present, care)
    wanted = _wanted(options, facts, people)
    for name in (*options.priors, *options.precision):
        if schema.column(name) not in wanted:
            raise UsageError(f"the column {name!r} is not searched, so it takes no bounds")
    priors = {
        schema.column(name): span(schema[schema.column(name)], text)
        for name, text in options.priors.items()
    }
    if strategy.learns and _weakly(facts, care):  # carrying evidence saves more than learning
        strategy = strategy_named("posterior")
    if strategy.learns:
        return learned_people.attributes(
            facts,
            strategy,
            people,
            wanted,
            widths=widths,
            priors=priors,
            care=care,
            thrift=_thrift(options, facts),
        )
    return targeted.attributes(
        facts,
        strategy,
        people,
        wanted,
        widths=widths,
        priors=priors,
        force=options.force,
        care=care,
    )


def _foreign(options: Options, facts: PublicFacts, care: Care) -> Attack[Found]:
    """Return the attack on a mechanism with a law of its own."""
    widths = options.widths(facts.schema)
    if options.attack == "dataset":
        return foreign.table(facts, _order(options, facts), widths, care)
    if options.attack == "column":
        return foreign.columns(facts, _columns(options, facts), widths, care)
    if options.attack == "count":
        return foreign.count(facts, options.box_of(facts), care)
    people = options.codes_of_people(facts)
    if options.attack == "membership":
        return foreign.membership(facts, people, care)
    if options.attack == "uniqueness":
        return foreign.uniqueness(facts, people, options.present, care)
    if options.priors:
        raise UsageError(f"prior bounds are of no use against {facts.claim.name}")
    return foreign.attributes(facts, people, _wanted(options, facts, people), widths, care)


def _learned(options: Options, facts: PublicFacts, strategy: Strategy, care: Care) -> Attack[Found]:
    """Return an attack that learns what is likely while it asks."""
    widths = options.widths(facts.schema)
    weakly = _weakly(facts, care)
    if options.attack == "column":
        wanted = _columns(options, facts)
        if weakly:  # nothing can be learned from one column to the next
            return table.columns(facts, strategy_named("posterior"), wanted, widths, care=care)
        return adaptive.columns(facts, strategy, wanted, widths, care, _thrift(options, facts))
    order, thrift = _order(options, facts), _thrift(options, facts)
    how = weak.table if weakly else adaptive.table
    return how(facts, strategy, order, widths, care, thrift)


def _weakly(facts: PublicFacts, care: Care) -> bool:
    """Tell whether single answers tell little, and may be weighed rather than settled."""
    return not facts.claim.reads_exactly and care.test == SEQUENTIAL


def _thrift(options: Options, facts: PublicFacts) -> Thrift | None:
    """Return how to ask about unions; not where the same question must be put in new words."""
    if facts.policies.cache and not facts.claim.reads_exactly:
        return None
    return options.thrift()


def _order(options: Options, facts: PublicFacts) -> list[int]:
    return [facts.schema.column(name) for name in options.order]


def _columns(options: Options, facts: PublicFacts) -> list[int]:
    return [facts.schema.column(name) for name in options.columns]


def _wanted(options: Options, facts: PublicFacts, people: Sequence[Person]) -> list[int]:
    """Return the columns to find of people."""
    schema = facts.schema
    columns = _columns(options, facts)
    overlap = [schema[column].name for column in columns if column in people[0]]
    if overlap:
        raise UsageError(f"the column {overlap[0]!r} is both known and to be found")
    unknown = [column for column in range(len(schema)) if column not in people[0]]
    if not unknown:
        raise UsageError("every column is known already: there is nothing to find")
    return columns or unknown


def _existence(options: Options, facts: PublicFacts, care: Care) -> Attack[Found]:
    """Return the attack on a mechanism that shows which records exist."""
    widths = options.widths(facts.schema)
    if options.attack == "dataset":
        thrift = _thrift(options, facts)
        unions = thrift is not None and not thrift.boxes_only
        return presence.table(facts, _order(options, facts), widths, care, thrifty=unions)
    if options.attack == "column":
        return presence.columns(facts, _columns(options, facts), widths, care)
    if options.attack == "count":
        return existence.exists(facts, options.box_of(facts), care)
    if options.attack == "uniqueness":
        raise UsageError(
            f"the mechanism {facts.claim.name} shows which records exist, not how many: it "
            "tells nothing of uniqueness"
        )
    people = options.codes_of_people(facts)
    if options.attack == "membership":
        return existence.membership(facts, people, care)
    if options.priors:
        raise UsageError(f"prior bounds are of no use against {facts.claim.name}")
    return existence.attributes(facts, people, _wanted(options, facts, people), widths, care)
