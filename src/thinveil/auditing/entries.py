"""What an entry of the table of options says, and how values are read: from words to codes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from thinveil.attacker.strategies import LEARNING
from thinveil.attacker.terms import Person
from thinveil.errors import UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.schema import LOWEST, MISSING, Attribute

USUAL_CONFIDENCE: Final = "0.999"
"""How sure statements are meant to be, unless told otherwise."""

CHANNELS: Final = ("doubles", "noise")
"""What an attack looks at besides values: which doubles can come out, or nothing."""
CHECKS: Final = ("on", "off")
"""Whether an attack also checks that its target does what it claims."""
ROUNDS: Final = ("auto", "few", "usual")
"""Whether more is asked at once, to have few rounds; auto leaves it to what the target states."""
ON_PEOPLE: Final = ("attribute", "count", "membership", "uniqueness")
"""The attacks that begin with something known."""
USUAL_CANARIES: Final = 10**12
"""From how many values a planted one is drawn, unless told otherwise."""
MOST_TRIED: Final = 10**9
"""The most trials or canaries: each is a run of its own, so no machine ends more of them."""

Texts = Mapping[str, str]
Kind = Literal["text", "number", "whole", "flag", "names", "numbers", "pairs", "people"]
"""What an option holds; numbers are kept as text, so that none of their digits is lost."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the table says of an option, beyond its name and its usual value.

    Args:
        help: A line for the command line; empty where the name says it, or there is no such line.
        kind: What it holds.
        metavar: What stands for its value there.
        flag: Its name on the command line, where it is another.
        choices: All values that it may have, where they are few.
        repeated: Whether it may be given several times there, as all pairs may.
        quiet: Whether a command line that leaves it out decides by itself.
        curators: Whether it describes a curator of ours: a service or a plug-in brings its own.
        attacks: The attacks that have a use for it; empty where all have.
    """

    help: str = ""
    kind: Kind = "text"
    metavar: str | None = None
    flag: str | None = None
    choices: tuple[str, ...] = ()
    repeated: bool = False
    quiet: bool = False
    curators: bool = False
    attacks: tuple[str, ...] = ()

    def called(self, name: str) -> str:
        """Return the name of an option on the command line."""
        return self.flag or "--" + name.replace("_", "-")


def option(usual: Any, *entry: Any, **more: Any) -> Any:
    """Return a field of the table: what it usually is, and its entry."""
    told = {"entry": Entry(*entry, **more)}
    if isinstance(usual, dict):
        return field(default_factory=dict, metadata=told)
    return field(default=usual, metadata=told)


def ours(usual: Any, *entry: Any, **more: Any) -> Any:
    """Return a field that describes a curator of ours."""
    return option(usual, *entry, curators=True, **more)


def only_for(attacks: tuple[str, ...], usual: Any, *entry: Any, **more: Any) -> Any:
    """Return a field that some attacks only have a use for."""
    return option(usual, *entry, attacks=attacks, **more)


def check_attack(options: Any, table: Mapping[str, Entry]) -> None:
    """Refuse an attack that lacks something, and options that it has no use for."""
    attack, people = options.attack, options.people
    if attack in ON_PEOPLE and not any(people) and not options.trials_only:
        raise UsageError(
            f"the attack {attack} needs something known: --known COLUMN=VALUE"
            + ("" if attack == "count" else " or --people FILE")
        )
    if options.check_claim and (options.trials or options.canaries or options.checks == "off"):
        raise UsageError(
            "--check-claim attacks nobody: leave --trials, --canaries and --checks off out"
        )
    if options.rounds == "few" and options.strategy not in LEARNING:
        raise UsageError(f"--rounds few is for --strategy {' and '.join(LEARNING)}")
    if attack == "count" and len(people) > 1:
        raise UsageError("the attack count takes one predicate")
    if attack == "column" and not options.columns:
        raise UsageError("the attack column needs --column NAME")
    for name, entry in table.items():
        if entry.attacks and attack not in entry.attacks and getattr(options, name):
            fit = " and ".join(entry.attacks)
            raise UsageError(
                f"{entry.called(name)}: the attack {attack} has no use for it, only {fit} do"
            )
    if len(set(options.columns)) != len(options.columns):
        raise UsageError("--column: a column is given twice")


def check_kind(name: str, kind: Kind, value: object, usual: object) -> None:
    """Refuse what a file says of an option where it is of another kind.

    Raises:
        UsageError: It is.
    """
    parts = value if isinstance(value, list | tuple) else None
    if kind == "people":
        fits = parts is not None and all(map(_is_texts, parts))
    elif kind in ("names", "numbers"):
        fits = parts is not None and all(isinstance(each, str) for each in parts)
    elif kind == "pairs":
        fits = _is_texts(value)
    else:
        fits = type(value) is {"whole": int, "flag": bool}.get(kind, str)
    if not fits and not (value is None and usual is None):
        raise UsageError(f"the option {name} is not of the kind that it should be")


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def check_tried(trials: object, canaries: object, values: object) -> None:
    """Refuse trials and canaries that show nothing, or never end."""
    if type(trials) is not int or trials == 1 or not 0 <= trials <= MOST_TRIED:
        worlds = f"0, or from 2, for two worlds, to {MOST_TRIED:,}"
        raise UsageError(f"--trials must be a whole number: {worlds}")
    if type(canaries) is not int or not 0 <= canaries <= MOST_TRIED:
        raise UsageError(f"--canaries must be a whole number from 0 to {MOST_TRIED:,}")
    if type(values) is not int or not 2 <= values <= 2**53:
        raise UsageError("--canary-values must be a whole number from 2 to 2^53")


def confidence_of(text: object) -> float:
    """Read a confidence such as 0.999.

    Raises:
        UsageError: It does not lie between a half and one.
    """
    with suppress(ValueError):
        if 0.5 <= (value := float(str(text))) < 1:
            return value
    raise UsageError(f"--confidence must be at least 0.5 and below 1, not {text}")


def number(text: object, what: str) -> float:
    """Read a plain number.

    Raises:
        UsageError: It is none.
    """
    with suppress(ValueError):
        if math.isfinite(value := float(str(text))):
            return value
    raise UsageError(f"{what} must be a number")


def people_of(known: Mapping[str, object] | Sequence[Mapping[str, object]]) -> tuple[Texts, ...]:
    """Return one person or many as plain options: text for every value, "" for missing."""
    many = [known] if isinstance(known, Mapping) else known
    return tuple(
        {name: "" if value is None else str(value) for name, value in who.items()} for who in many
    )


def codes_of(facts: PublicFacts, people: Sequence[Texts]) -> list[Person]:
    """Return what is known about people in codes, the same columns for all."""
    coded: list[Person] = []
    for number, who in enumerate(people, start=1):
        person = {}
        for name, text in who.items():
            column = facts.schema.column(name)
            person[column] = _code(facts, column, text, number)
        if coded and person.keys() != coded[0].keys():
            raise UsageError(f"person {number}: the same columns must be known of all people")
        coded.append(person)
    return coded


def _code(facts: PublicFacts, column: int, text: str, number: int = 1) -> int:
    """Return the code of something known; what the attacker knows may be shown to him."""
    attribute = facts.schema[column]
    if attribute.missing and text == "":
        return MISSING
    who = f"person {number}, column {attribute.name!r}"
    if text == "":
        raise UsageError(
            f"{who}: nothing is given; the same columns must be known of all people, and values "
            "of this one cannot be missing"
        )
    try:
        code = attribute.encode(text)
    except ValueError as error:
        raise UsageError(f"{who}: the known value is {error}") from None
    if facts.claim.universe == "bounded":
        lower, upper = attribute.lower, attribute.upper
        if lower is None or upper is None or not lower <= code <= upper:
            raise UsageError(f"{who}: the known value lies outside the bounds")
    return code


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


def box_of(facts: PublicFacts, predicate: Texts) -> dict[int, tuple[int, int]]:
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
