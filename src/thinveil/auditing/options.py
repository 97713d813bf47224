"""What the user asked for, in plain words, and what it means for one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from typing import Any, Final

from thinveil.attacker.engines.unions import STATES, WINDOWS, Thrift
from thinveil.attacker.evidence.error_budget import MOST_REPEATS, SEQUENTIAL, USUAL_ERROR, Care
from thinveil.attacker.evidence.noise_tests import noise_test
from thinveil.attacker.strategies import USUAL, strategy_for
from thinveil.attacker.terms import Person
from thinveil.auditing.schedule import DEFAULT, Fixed, Free, Schedule, exact_epsilon, shared_out
from thinveil.errors import ThinveilError, UsageError
from thinveil.language.claims import MECHANISMS, POSTS, Claim, claim_named, reduce_group
from thinveil.language.facts import PublicFacts
from thinveil.language.plugins import mechanism_names
from thinveil.language.policies import Policies
from thinveil.language.schema import LOWEST, MISSING, Attribute, Schema

ATTACKS: Final = ("attribute", "column", "count", "dataset", "membership", "uniqueness")
"""The names of all attacks, sorted."""
UNIVERSES: Final = ("bounded", "unbounded")

USUAL_CONFIDENCE: Final = "0.999"
"""How sure statements are meant to be, unless told otherwise."""


def confidence_of(text: object) -> float:
    """Read a confidence such as 0.999.

    Raises:
        UsageError: It does not lie between a half and one.
    """
    try:
        value = float(str(text))
    except ValueError:
        value = math.nan
    if not 0.5 <= value < 1:
        raise UsageError(f"--confidence must be at least 0.5 and below 1, not {text}")
    return value


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one audit. All values are plain, so that they survive as JSON.

    Args:
        mechanism: The mechanism's name.
        k: The group size of IDP.
        offset: Added to the sensitivity, so that every answer is noisy; a number as text.
        post: What is done to noisy answers, beyond what the mechanism's name says.
        epsilons: The original Group IDP losses (epsilon_1, ..., epsilon_k). They stand for
            the whole run: k is their number, their smallest is the total.
        epsilon_per_query: The claimed loss of each answer.
        epsilon: The claimed loss of all answers together.
        split: How a total is shared out: "shrinking" (the default), "equal" or "halving".
        answers: Over how many answers a total is split equally.
        cap: The claimed loss above which a batch is refused.
        min_epsilon: The smallest share of loss that the curator answers for.
        max_queries: How many answers the curator gives at most.
        cache: Whether the curator always gives the same question the same answer.
        universe: "unbounded" or "bounded".
        strategy: The strategy's name.
        effort: For the thrifty strategy, how many hypotheses a window weighs.
        windows: For the thrifty strategy, how many windows ask side by side.
        boxes_only: For the thrifty strategy, whether to do without unions of boxes.
        attack: The attack's name.
        columns: The columns to find, where the attack wants some.
        people: What is known about each person (or, for a count, the predicate).
        priors: For some columns, text such as "low..high".
        precision: For some columns, a coarser step.
        order: The order of attributes, or its beginning.
        seed: The seed of the noise.
        error: The chance of any wrong decision in the whole attack, where answers must be
            repeated to be read.
        most_repeats: How many answers to one question are tried at most.
        test: How repeated answers are read; None leaves it to the strategy.
        repeats: How many answers a test of the paper gets; None plans it from the error.
        present: For uniqueness, whether everybody is known to be in the table.
        force: Whether to go ahead with a very long attack.
        trials: How many trials of membership to run, on the table and its neighbours. The attack
            membership with nothing known of anybody is these trials alone.
        confidence: How sure intervals and bounds are; a number as text.
    """

    mechanism: str = "idp"
    k: int = 1
    offset: str | None = None
    post: str | None = None
    epsilons: tuple[str, ...] = ()
    epsilon_per_query: str | None = None
    epsilon: str | None = None
    split: str | None = None
    answers: int | None = None
    cap: str | None = None
    min_epsilon: str | None = None
    max_queries: int | None = None
    cache: bool = False
    universe: str = "unbounded"
    strategy: str = USUAL
    effort: int | None = None
    windows: int | None = None
    boxes_only: bool = False
    attack: str = "dataset"
    columns: tuple[str, ...] = ()
    people: tuple[Mapping[str, str], ...] = ()
    priors: Mapping[str, str] = field(default_factory=dict)
    precision: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    seed: int = 0
    error: str = str(USUAL_ERROR)
    most_repeats: int = MOST_REPEATS
    test: str | None = None
    repeats: int | None = None
    present: bool = False
    force: bool = False
    trials: int = 0
    confidence: str = USUAL_CONFIDENCE

    def __post_init__(self) -> None:
        if type(self.k) is not int or type(self.seed) is not int:
            raise UsageError("the group size k and the seed must be whole numbers")
        if self.attack not in ATTACKS:
            raise UsageError(
                f"there is no attack {self.attack!r}; choose from {', '.join(ATTACKS)}"
            )
        if self.universe not in UNIVERSES:
            raise UsageError(f"the universe is one of {', '.join(UNIVERSES)}")
        self.care()
        self.strategy_for(self.claim())
        self.thrift()
        if self.claim().k is None and self.k != 1:
            raise UsageError(f"--k: the mechanism {self.mechanism} has no group size")
        if self.epsilons and self.k not in (1, len(self.epsilons)):
            raise UsageError(f"--epsilons stands for k = {len(self.epsilons)}, --k says {self.k}")
        self.schedule(self.claim())
        self.cap_value()
        self.policies()
        confidence_of(self.confidence)
        if type(self.trials) is not int or self.trials < 0 or self.trials == 1:
            raise UsageError("--trials must be a whole number: 0, or at least 2 for two worlds")
        needs_people = self.attack in ("attribute", "count", "membership", "uniqueness")
        if needs_people and not any(self.people) and not self.trials_only:
            raise UsageError(
                f"the attack {self.attack} needs something known: --known COLUMN=VALUE"
                + ("" if self.attack == "count" else " or --people FILE")
            )
        if self.people and not needs_people:
            raise UsageError(f"the attack {self.attack} has no use for what is known of people")
        if self.attack == "count" and len(self.people) > 1:
            raise UsageError("the attack count takes one predicate")
        if self.attack == "column" and not self.columns:
            raise UsageError("the attack column needs --column NAME")
        if self.columns and self.attack not in ("attribute", "column"):
            raise UsageError(f"the attack {self.attack} has no use for --column")
        if len(set(self.columns)) != len(self.columns):
            raise UsageError("--column: a column is given twice")
        if self.present and self.attack != "uniqueness":
            raise UsageError("--present matters to the attack uniqueness only")
        if self.order and self.attack != "dataset":
            raise UsageError("an order of attributes matters to the attack dataset only")
        if self.priors and self.attack != "attribute":
            raise UsageError("prior bounds matter to the attack attribute only")
        if self.precision and self.attack in ("count", "membership", "uniqueness"):
            raise UsageError(f"the attack {self.attack} finds no values, so it has no precision")

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Options:
        """Read options back from JSON."""
        known = {each.name for each in fields(Options)}
        values = {name: value for name, value in plain.items() if name in known}
        for name in ("epsilons", "columns", "people", "order"):
            values[name] = tuple(values.get(name, ()))
        return Options(**values)

    @property
    def trials_only(self) -> bool:
        """Whether trials of membership are all that is asked for."""
        return self.attack == "membership" and self.trials > 0 and not any(self.people)

    def plain(self) -> dict[str, Any]:
        """Return the options as plain JSON values."""
        return asdict(self)

    def group(self) -> tuple[int, Fraction | None]:
        """Return the group size, and the total loss where the original form gives one."""
        if not self.epsilons:
            return self.k, None
        return reduce_group([exact_epsilon(each, "an epsilon") for each in self.epsilons])

    def claim(self) -> Claim:
        """Return the claim that is audited."""
        if self.post not in (None, *POSTS):
            raise UsageError(f"--post is one of {', '.join(POSTS)}")
        offset = None if self.offset is None else number(self.offset, "--offset")
        return claim_named(
            self.mechanism,
            self.group()[0],
            self.universe,  # type: ignore[arg-type]
            offset=offset,
            post=self.post,  # type: ignore[arg-type]
        )

    def care(self, decisions: int = 1000) -> Care:
        """Return how careful the attack is, for about so many decisions."""
        if self.repeats is not None and self.test is None:
            raise UsageError("--repeats: say which --test is to get so many answers")
        error = number(self.error, "--error")
        return Care(error, self.most_repeats, decisions, self.test or SEQUENTIAL, self.repeats)

    def strategy_for(self, claim: Claim) -> str:
        """Return the name of the strategy that is used against a mechanism.

        Raises:
            UsageError: The strategy or the test does not fit the mechanism.
        """
        name = self.strategy
        if self.test is not None:
            if claim.reads_exactly:
                raise UsageError(f"--test: single answers of {claim.name} tell; none is repeated")
            if self.test != SEQUENTIAL and claim.zoned:
                noise_test(claim, self.test)
            if strategy_for(name, claim) == "posterior":
                raise UsageError("--test: the posterior strategy has a way of its own")
        return strategy_for(name, claim)

    def thrift(self) -> Thrift | None:
        """Return how thrifty the attack is; None where its strategy is not.

        Raises:
            UsageError: A setting makes no sense, or the strategy has no use for it.
        """
        if self.strategy == "thrifty":
            states = STATES if self.effort is None else self.effort
            windows = WINDOWS if self.windows is None else self.windows
            return Thrift(states, windows, self.boxes_only)
        for name, given in (
            ("--effort", self.effort is not None),
            ("--windows", self.windows is not None),
            ("--boxes-only", self.boxes_only),
        ):
            if given:
                raise UsageError(f"{name} is for --strategy thrifty")
        return None

    def schedule(self, claim: Claim) -> Schedule:
        """Return how the claimed loss is shared out."""
        given = [
            name
            for name, value in (
                ("--epsilon-per-query", self.epsilon_per_query),
                ("--epsilon", self.epsilon),
                ("--epsilons", self.epsilons),
            )
            if value not in (None, ())
        ]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} exclude each other: give one of them")
        if not claim.protected:
            if self.cap is not None:
                given.append("--cap")
            if self.min_epsilon is not None:
                given.append("--min-epsilon")
            if self.split is not None or self.answers is not None:
                given.append("--split")
            if given:
                raise UsageError(f"{given[0]}: an unprotected mechanism claims no privacy loss")
            return Free()
        total = self.group()[1]
        if self.epsilon is not None:
            total = exact_epsilon(self.epsilon, "--epsilon")
        if total is not None:
            return shared_out(total, self.split or "shrinking", self.answers)
        if self.split is not None or self.answers is not None:
            raise UsageError("--split shares out a total: it needs --epsilon EPS")
        if self.epsilon_per_query is not None:
            return Fixed(exact_epsilon(self.epsilon_per_query, "--epsilon-per-query"))
        each = exact_epsilon(DEFAULT)
        if self.min_epsilon is not None:  # public, so nobody offers less
            each = max(each, exact_epsilon(self.min_epsilon, "--min-epsilon"))
        return Fixed(each)

    def cap_value(self) -> Fraction | None:
        """Return the cap as an exact number."""
        return None if self.cap is None else exact_epsilon(self.cap, "--cap")

    def policies(self) -> Policies:
        """Return what the curator does besides adding noise."""
        least = None
        if self.min_epsilon is not None:
            least = float(exact_epsilon(self.min_epsilon, "--min-epsilon"))
        return Policies(least, self.max_queries, self.cache)

    def box_of(self, facts: PublicFacts) -> dict[int, tuple[int, int]]:
        """Return the predicate of a count as a box."""
        return _box(facts, self.people[0])

    def widths(self, schema: Schema) -> dict[int, int]:
        """Return, for columns at a coarser precision, how many steps it spans."""
        return {
            schema.column(name): schema[schema.column(name)].widths(step)
            for name, step in self.precision.items()
        }

    def codes_of_people(self, facts: PublicFacts) -> list[Person]:
        """Return what is known about people in codes, the same columns for all."""
        people: list[Person] = []
        for number, who in enumerate(self.people, start=1):
            person = {}
            for name, text in who.items():
                column = facts.schema.column(name)
                person[column] = _code(facts, column, text, number)
            if people and person.keys() != people[0].keys():
                raise UsageError(f"person {number}: the same columns must be known of all people")
            people.append(person)
        return people


def own_settings(facts: PublicFacts) -> dict[str, Any]:
    """Return the settings that a target's own facts stand for.

    A claim that no name stands for gives none: the facts themselves decide.
    """
    claim, policies = facts.claim, facts.policies
    rules = {
        "min_epsilon": None if policies.min_epsilon is None else repr(policies.min_epsilon),
        "max_queries": policies.max_queries,
        "cache": policies.cache,
    }
    offset, post = claim.offset or None, None if claim.post == "none" else claim.post
    for name in mechanism_names():
        if name not in MECHANISMS and not claim.name.startswith(name):
            continue  # a plug-in that has nothing to do with it is not loaded
        with suppress(ThinveilError):
            if claim_named(name, claim.k or 1, claim.universe, offset=offset, post=post) == claim:
                return {
                    "mechanism": name,
                    "k": claim.k or 1,
                    "offset": None if offset is None else repr(offset),
                    "post": post,
                    "universe": claim.universe,
                    **rules,
                }
    return rules


def number(text: object, what: str) -> float:
    """Read a plain number.

    Raises:
        UsageError: It is none.
    """
    try:
        value = float(str(text))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{what} must be a number")
    return value


def _code(facts: PublicFacts, column: int, text: str, number: int = 1) -> int:
    """Return the code of something known; what the attacker knows may be shown to him."""
    attribute = facts.schema[column]
    if attribute.missing and text == "":
        return MISSING
    if text == "":
        raise UsageError(
            f"person {number}, column {attribute.name!r}: nothing is given; the same columns must "
            "be known of all people, and values of this one cannot be missing"
        )
    try:
        code = attribute.encode(text)
    except ValueError as error:
        raise UsageError(
            f"person {number}, column {attribute.name!r}: the known value is {error}"
        ) from None
    if facts.claim.universe == "bounded" and not _inside(attribute, code):
        raise UsageError(
            f"person {number}, column {attribute.name!r}: the known value lies outside the bounds"
        )
    return code


def _inside(attribute: Attribute, code: int) -> bool:
    assert attribute.lower is not None
    assert attribute.upper is not None
    return attribute.lower <= code <= attribute.upper


def span(attribute: Attribute, text: str) -> tuple[int, int]:
    """Read "low..high", both ends included; ends between two steps are moved outwards."""
    low, dots, high = text.partition("..")
    try:
        if not dots:
            raise ValueError("two values with .. between them are needed")
        span = attribute.around(low.strip())[0], attribute.around(high.strip())[1]
    except ValueError as error:
        raise UsageError(f"column {attribute.name!r}: cannot read LOW..HIGH: {error}") from None
    if span[0] > span[1]:
        raise UsageError(f"column {attribute.name!r}: LOW is above HIGH")
    return span


def _box(facts: PublicFacts, predicate: Mapping[str, str]) -> dict[int, tuple[int, int]]:
    """Read a predicate of single values and of ranges written as low..high."""
    box = {}
    for name, text in predicate.items():
        column = facts.schema.column(name)
        attribute = facts.schema[column]
        if ".." in text and attribute.kind != "category":
            low, high = span(attribute, text)
            box[column] = (max(low, LOWEST), high + 1)
        else:
            code = _code(facts, column, text)
            box[column] = (code, code + 1)
    return box


def people_of(
    known: Mapping[str, object] | Sequence[Mapping[str, object]],
) -> tuple[Mapping[str, str], ...]:
    """Return one person or many as plain options: text for every value, "" for missing."""
    many = [known] if isinstance(known, Mapping) else known
    return tuple(
        {name: "" if value is None else str(value) for name, value in who.items()} for who in many
    )
