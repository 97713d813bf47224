"""What the user asked for, in plain words: the one table of options, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING as NONE
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Final

from thinveil.attacker.engines.unions import MANY_WINDOWS, STATES, WINDOWS, Thrift
from thinveil.attacker.evidence.error_budget import (
    MOST_REPEATS,
    SEQUENTIAL,
    TESTS,
    USUAL_ERROR,
    Care,
)
from thinveil.attacker.evidence.noise_tests import noise_test
from thinveil.attacker.strategies import SETTLING, STRATEGIES, USUAL, strategy_for
from thinveil.attacker.terms import Person
from thinveil.auditing.entries import (
    CHANNELS,
    CHECKS,
    ON_PEOPLE,
    ROUNDS,
    USUAL_CANARIES,
    USUAL_CONFIDENCE,
    Entry,
    box_of,
    check_attack,
    check_kind,
    check_tried,
    codes_of,
    confidence_of,
    number,
    only_for,
    option,
    ours,
    span,
)
from thinveil.auditing.schedule import (
    DEFAULT,
    SPLITS,
    Fixed,
    Free,
    Schedule,
    exact_epsilon,
    shared_out,
)
from thinveil.errors import UsageError
from thinveil.language.claims import MECHANISMS, POSTS, Claim, claim_named, reduce_group
from thinveil.language.contracts import Law
from thinveil.language.facts import PublicFacts
from thinveil.language.laws import LAWS, law_named
from thinveil.language.policies import Policies
from thinveil.language.schema import Schema

ATTACKS: Final = ("attribute", "column", "count", "dataset", "membership", "uniqueness")
"""The names of all attacks, sorted."""
UNIVERSES: Final = ("unbounded", "bounded")


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one audit. All values are plain, so that they survive as JSON.

    This is the one table of options: each has its usual value, and the line that
    `thinveil audit --help` shows of it. Numbers with digits to lose are texts. What a line leaves
    open:

    Args:
        offset: Added to the sensitivity, so that every answer is noisy.
        post: What is done to noisy answers, beyond what the mechanism's name says.
        epsilons: The original Group IDP losses (epsilon_1, ..., epsilon_k). They stand for
            the whole run: k is their number, their smallest is the total.
        columns: The columns to find, where the attack wants some.
        people: What is known about each person (or, for a count, the predicate).
        present: For uniqueness, whether everybody is known to be in the table.
        priors: For some columns, text such as "low..high".
        test: How repeated answers are read; None leaves it to the strategy.
        repeats: How many answers a test of the paper gets; None plans it from the error.
        channel: Whether to look at which doubles can come out; None leaves it to the mechanism.
        canaries: How many planted values to look for, each in a table of its own.
        canary_values: From how many equally likely values each of them is drawn.
        trials: How many trials of membership to run, on the table and its neighbours. The attack
            membership with nothing known of anybody is these trials alone.
    """

    mechanism: str = ours("idp", f"One of {', '.join(MECHANISMS)}; or a plug-in's.", "text", "NAME")
    k: int = ours(1, "The group size of IDP.", "whole")
    offset: str | None = ours(None, "Noise at scale (A + sensitivity) / epsilon.", "number", "A")
    post: str | None = ours(None, "Round noisy answers.", choices=POSTS)
    noise: str | None = ours(
        None, "The law of the noise. [the mechanism's own]", choices=tuple(LAWS)
    )
    delta: str | None = ours(
        None,
        "Gaussian noise: claimed delta of each answer, or with --epsilon of all.",
        "number",
        "D",
    )
    universe: str = ours("unbounded", choices=UNIVERSES)
    min_epsilon: str | None = ours(None, "Refuse answers with a smaller share.", "number", "EPS")
    max_queries: int | None = ours(None, "Give at most so many answers.", "whole", "N")
    cache: bool = ours(False, "Give the same question the same answer, charged once.", "flag")
    epsilons: tuple[str, ...] = ours(
        (), "The original Group IDP losses, for the run.", "numbers", "E1,..,EK"
    )
    epsilon_per_query: str | None = option(
        None, "Claimed loss of each answer. [1e-10]", "number", "EPS"
    )
    epsilon: str | None = option(None, "Claimed loss of all answers together.", "number", "EPS")
    split: str | None = option(None, "How --epsilon is shared. [shrinking]", choices=SPLITS)
    answers: int | None = option(
        None, "Over how many, for --split equal. [as many as the search needs]", "whole", "N"
    )
    most_each: str | None = option(None, "Most that one answer gets of --epsilon.", "number", "EPS")
    cap: str | None = option(None, "Refuse what would pass this claimed loss.", "number", "EPS")
    strategy: str = option(
        USUAL,
        "How to search; adaptive has the fewest rounds, for databases and services.",
        choices=tuple(STRATEGIES),
    )
    effort: int | None = option(None, "Thrifty: hypotheses in a window. [1024]", "whole", "N")
    windows: int | None = option(None, "Thrifty: windows side by side. [512]", "whole", "N")
    boxes_only: bool = option(False, "Thrifty: no unions of boxes.", "flag")
    rounds: str = option("auto", "Few: ask more at once. [few if rounds are dear]", choices=ROUNDS)
    attack: str = option("dataset", choices=ATTACKS)
    columns: tuple[str, ...] = only_for(
        ("attribute", "column"),
        (),
        "A column to find (column, attribute).",
        "names",
        flag="--column",
        repeated=True,
    )
    people: tuple[Mapping[str, str], ...] = only_for(ON_PEOPLE, (), kind="people", flag="--known")
    present: bool = only_for(
        ("uniqueness",), False, "Uniqueness: the person is known to be there.", "flag"
    )
    priors: Mapping[str, str] = only_for(
        ("attribute",), {}, "Believed bounds.", "pairs", "COLUMN=LOW..HIGH", flag="--prior"
    )
    precision: Mapping[str, str] = only_for(
        ("attribute", "column", "dataset"), {}, "A coarser step.", "pairs", "COLUMN=STEP"
    )
    order: tuple[str, ...] = only_for(
        ("dataset",), (), "The order of attributes, or its beginning.", "names", "A,B,.."
    )
    seed: int = ours(0, "The seed of the noise.", "whole")
    error: str = option(
        str(USUAL_ERROR),
        "Chance of any error in a whole attack, where answers must be repeated.",
        "number",
        "P",
    )
    most_repeats: int = option(
        MOST_REPEATS, "Answers to one question before it counts as undecidable.", "whole"
    )
    test: str | None = option(None, "How repeated answers are read.", choices=TESTS)
    repeats: int | None = option(None, "Answers that the test gets. [planned]", "whole", "M")
    channel: str | None = option(
        None,
        "Read doubles that only one true bit can give, or noise alone. [doubles where the noise "
        "is claimed to be honest]",
        choices=CHANNELS,
    )
    force: bool = option(False, "Go ahead with more than ten million queries.", "flag")
    trials: int = option(
        0,
        "Trials of membership, on the table and neighbours. [2000 with --report, else 0]",
        "whole",
        "N",
        quiet=True,
    )
    canaries: int = option(
        0, "Planted values to look for, each in a table of its own.", "whole", "M"
    )
    canary_values: int = option(
        USUAL_CANARIES, "Equally likely values that each is drawn from.", "whole", "N"
    )
    confidence: str = option(
        USUAL_CONFIDENCE, "How sure intervals and bounds are.", "number", "SHARE"
    )
    checks: str | None = option(
        None,
        "Whether to check in passing that the target does what it claims. [on, unless it is ours]",
        choices=CHECKS,
    )
    check_claim: bool = option(
        False, "Check that the target does what it claims, and attack nobody.", "flag"
    )

    def __post_init__(self) -> None:
        if type(self.k) is not int or type(self.seed) is not int:
            raise UsageError("the group size k and the seed must be whole numbers")
        if self.attack not in ATTACKS:
            raise UsageError(
                f"there is no attack {self.attack!r}; choose from {', '.join(ATTACKS)}"
            )
        if self.universe not in UNIVERSES:
            raise UsageError(f"the universe is one of {', '.join(sorted(UNIVERSES))}")
        self.care()
        claim = self.claim()
        self.strategy_for(claim)
        self.thrift()
        if claim.k is None and self.k != 1:
            raise UsageError(f"--k: the mechanism {self.mechanism} has no group size")
        if self.epsilons and self.k not in (1, len(self.epsilons)):
            raise UsageError(f"--epsilons stands for k = {len(self.epsilons)}, --k says {self.k}")
        self.schedule(claim)
        self.cap_value()
        self.policies()
        confidence_of(self.confidence)
        for name, few in (("checks", CHECKS), ("channel", CHANNELS), ("rounds", ROUNDS)):
            if getattr(self, name) not in (usual(name), *few):
                raise UsageError(f"--{name} is one of {', '.join(few)}")
        check_tried(self.trials, self.canaries, self.canary_values)
        check_attack(self, TABLE)

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Options:
        """Read options back from JSON."""
        values = {name: value for name, value in plain.items() if name in TABLE}
        for name, value in values.items():
            check_kind(name, TABLE[name].kind, value, usual(name))
            if isinstance(value, list):
                values[name] = tuple(value)
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
            post=self.post,
            noise=self.law(),
        )

    def law(self) -> Law | None:
        """Return the law of the noise where the user names one; delta goes as epsilon goes."""
        if self.noise is None:
            if self.delta is not None:
                raise UsageError("--delta goes with --noise gaussian: other noise has none")
            return None
        given: dict[str, Any] = {}
        if self.delta is not None:
            total = self.total()
            per = None if total is None else float(total)
            given = {"delta": number(self.delta, "--delta"), "per": per}
        return law_named(self.noise, **given)

    def total(self) -> Fraction | None:
        """Return the loss of all answers together, where the user gives it."""
        if self.epsilon is not None:
            return exact_epsilon(self.epsilon, "--epsilon")
        return self.group()[1]

    def care(self, decisions: int = 1000, planned: int = 0) -> Care:
        """Return how careful the attack is, for about so many decisions, or those `planned`."""
        if self.repeats is not None and self.test is None:
            raise UsageError("--repeats: say which --test is to get so many answers")
        error = number(self.error, "--error")
        test = self.test or SEQUENTIAL
        return Care(error, self.most_repeats, decisions, test, self.repeats, planned, self.seed)

    def strategy_for(self, claim: Claim) -> str:
        """Return the name of the strategy that is used against a mechanism.

        Raises:
            UsageError: The strategy or the test does not fit the mechanism.
        """
        if self.test is not None and claim.reads_exactly:
            raise UsageError(f"--test: single answers of {claim.name} tell; none is repeated")
        name = strategy_for(self.strategy, claim)
        if self.test is not None and name == "posterior":
            raise UsageError("--test: the posterior strategy has a way of its own")
        if self.test not in (None, SEQUENTIAL):
            if name not in SETTLING:
                fit = " and ".join(f"--strategy {each}" for each in SETTLING)
                raise UsageError(
                    f"--test {self.test}: the {name} strategy weighs answers in its own way; "
                    f"{fit} settle each question by a test"
                )
            noise_test(claim, str(self.test))
        return name

    def thrift(self) -> Thrift | None:
        """Return how thrifty the attack is; None where its strategy is not.

        Raises:
            UsageError: A setting makes no sense, or the strategy has no use for it.
        """
        if self.strategy == "thrifty":
            states = STATES if self.effort is None else self.effort
            windows = MANY_WINDOWS if self.rounds == "few" else WINDOWS
            windows = windows if self.windows is None else self.windows
            return Thrift(states, windows, self.boxes_only)
        if given := self._given("effort", "windows", "boxes_only"):
            raise UsageError(f"{given[0]} is for --strategy thrifty")
        return None

    def _given(self, *names: str) -> list[str]:
        """Return which of some options differ from what they usually are, as flags."""
        return [flag_of(name) for name in names if getattr(self, name) != usual(name)]

    def schedule(self, claim: Claim) -> Schedule:
        """Return how the claimed loss is shared out."""
        given = self._given("epsilon_per_query", "epsilon", "epsilons")
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} exclude each other: give one of them")
        if not claim.protected:
            if given := [
                *given,
                *self._given("cap", "min_epsilon", "split", "answers", "most_each"),
            ]:
                raise UsageError(f"{given[0]}: an unprotected mechanism claims no privacy loss")
            return Free()
        total = self.total()
        if total is not None:
            most = self.most_each and exact_epsilon(self.most_each, "--most-each")
            return shared_out(total, self.split or "shrinking", self.answers, most or None)
        if given := self._given("split", "answers", "most_each"):
            raise UsageError(f"{given[0]} shares out a total: it needs --epsilon EPS")
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
        return box_of(facts, self.people[0])

    def codes_of_people(self, facts: PublicFacts) -> list[Person]:
        """Return what is known about people in codes, the same columns for all."""
        return codes_of(facts, self.people)

    def widths(self, schema: Schema) -> dict[int, int]:
        """Return, for columns at a coarser precision, how many steps it spans."""
        return {
            schema.column(name): schema[schema.column(name)].widths(step)
            for name, step in self.precision.items()
        }

    def believed(self, schema: Schema) -> dict[int, tuple[int, int]]:
        """Return, for columns with prior bounds, these in codes."""
        return {
            schema.column(name): span(schema[schema.column(name)], text)
            for name, text in self.priors.items()
        }


TABLE: Final[Mapping[str, Entry]] = {each.name: each.metadata["entry"] for each in fields(Options)}
"""All options by name, in the order in which help shows them. A new one is one entry above."""


def flag_of(name: str) -> str:
    """Return the name of an option on the command line."""
    return TABLE[name].called(name)


def usual(name: str) -> Any:
    """Return what an option is unless told otherwise."""
    [found] = [each for each in fields(Options) if each.name == name]
    return {} if found.default is NONE else found.default
