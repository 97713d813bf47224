"""From what is natural in Python to options, and from a source to a table or a target."""

from __future__ import annotations

import operator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from thinveil.auditing.options import Options, own_settings, people_of
from thinveil.auditing.sources import opened
from thinveil.auditing.targets import Target
from thinveil.curator.tables.dataset import Held
from thinveil.errors import UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.policies import NO_POLICIES
from thinveil.language.schema import Schema

_NUMBERS: Final = (
    "epsilon", "epsilon_per_query", "cap", "min_epsilon", "offset", "error", "confidence",
)  # fmt: skip
"""Settings that are numbers, and kept as text so that none of their digits is lost."""


def held_of(source: Any, schema: Schema | None = None, table: str | None = None) -> Held | Target:
    """Return the table or target that a source stands for.

    Raises:
        UsageError: A target or an address is given what it cannot use.
    """
    if isinstance(source, Target):
        if not isinstance(source.facts, PublicFacts):
            raise UsageError("the facts of a target must be thinveil.PublicFacts")
        if schema is not None:
            raise UsageError("a target brings its own schema")
        return source
    if hasattr(type(source), "counter"):  # a table of ours; a data frame may have such a column
        held: Held = source
        return held
    return opened(source, schema, table)


def options_of(options: Options | None, settings: dict[str, Any], held: Held | Target) -> Options:
    """Return all settings; what a target says of itself stands in them."""
    if options is not None and settings:
        raise UsageError("give options or settings, not both")
    if not isinstance(held, Target):
        return Options(**settings_of(settings)) if options is None else options
    own = own_settings(held.facts)
    if options is None:
        wanted = settings_of(settings)
        _check_settings(Options(**{**own, **wanted}), held)
        return Options(**{**wanted, **own})
    _check_settings(options, held)
    return replace(options, **own)


def _check_settings(options: Options, target: Target) -> None:
    """Refuse settings that contradict what a target brings with it."""
    usual, claim = Options(), target.facts.claim
    own = {
        "mechanism": claim.name,
        "k": claim.k,
        "universe": claim.universe,
        "seed": getattr(target, "seed", options.seed),
    }
    if options.mechanism == own_settings(target.facts).get("mechanism"):
        own["mechanism"] = options.mechanism  # the same claim, composed of parts
    for name, value in own.items():
        asked = options.group()[0] if name == "k" else getattr(options, name)
        if asked != value and asked != getattr(usual, name):
            raise UsageError(f"{name}: the target has its own, {value}; leave it out")
    if options.policies() not in (NO_POLICIES, target.facts.policies):
        raise UsageError("the target has its own policies: leave min_epsilon and the like out")


def settings_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Turn what is natural in Python into plain options."""
    plain = dict(settings)
    if "known" in plain:
        if "people" in plain:
            raise UsageError("give known or people, not both")
        plain["people"] = people_of(plain.pop("known"))
    elif "people" in plain:
        plain["people"] = people_of(plain["people"])
    for name in ("columns", "order", "epsilons"):
        if name in plain:
            value = plain[name]
            if isinstance(value, str):
                value = value.split(",") if name == "epsilons" else [value]
            plain[name] = tuple(map(str, value))
    for name in ("k", "seed", "answers", "max_queries", "most_repeats", "repeats", "trials"):
        if name in plain:
            with suppress(TypeError):  # what is no whole number is refused with the rest
                plain[name] = operator.index(plain[name])
    for name in ("priors", "precision"):
        if name in plain:
            plain[name] = {column: _text(value) for column, value in plain[name].items()}
    for name in (
        "epsilon",
        "epsilon_per_query",
        "cap",
        "min_epsilon",
        "offset",
        "error",
        "confidence",
    ):
        if plain.get(name) is not None:
            plain[name] = str(plain[name])
    unknown = set(plain) - set(Options.__slots__)
    if unknown:
        raise UsageError(f"there is no setting {sorted(unknown)[0]!r}")
    return plain


def _text(value: object) -> str:
    """Write a value, or a pair of bounds as low..high."""
    return "..".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
