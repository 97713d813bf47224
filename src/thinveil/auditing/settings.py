"""From what is natural in Python to options, and from a source to a table or a target."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from thinveil.auditing.entries import Kind, people_of
from thinveil.auditing.options import TABLE, Options
from thinveil.auditing.sources import opened
from thinveil.auditing.targets import Target, is_target
from thinveil.curator.tables.dataset import Held
from thinveil.errors import ThinveilError, UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.plugins import claim_to_plain
from thinveil.language.policies import NO_POLICIES
from thinveil.language.schema import Schema


def held_of(
    source: Any,
    schema: Schema | None = None,
    table: str | None = None,
    steps: Mapping[str, Any] | None = None,
) -> Held | Target:
    """Return the table or target that a source stands for, its floats on some steps if wanted.

    Raises:
        UsageError: A target or an address is given what it cannot use.
    """
    if is_target(source):
        if not isinstance(source.facts, PublicFacts):
            raise UsageError("the facts of a target must be thinveil.PublicFacts")
        if schema is not None:
            raise UsageError("a target brings its own schema")
        return source
    if hasattr(type(source), "counter"):  # a table of ours; a data frame may have such a column
        held: Held = source
        return held
    more: dict[str, Any] = {"steps": steps} if steps else {}
    return opened(source, schema, table, **more)


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
        plain["people"] = plain.pop("known")
    for name, value in plain.items():
        if name not in TABLE:
            raise UsageError(f"there is no setting {name!r}")
        read = _READ.get(TABLE[name].kind)
        if value is not None and read is not None:
            plain[name] = read(value)
    return plain


def _whole(value: Any) -> Any:
    with suppress(TypeError):  # what is no whole number is refused with the rest
        return operator.index(value)
    return value


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value))


def _numbers(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value.split(",") if isinstance(value, str) else value))


def _pairs(value: Any) -> dict[str, str]:
    """Write values, and pairs of bounds as low..high."""
    return {
        column: "..".join(map(str, each)) if isinstance(each, (tuple, list)) else str(each)
        for column, each in value.items()
    }


_READ: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    "number": str,
    "whole": _whole,
    "names": _names,
    "numbers": _numbers,
    "pairs": _pairs,
    "people": people_of,
}


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
    with suppress(ThinveilError):
        named = claim_to_plain(claim)
        offset, law = named["offset"], named.pop("noise", None)
        delta = law.get("delta") if isinstance(law, dict) else None
        return {
            **named,
            "offset": None if offset is None else repr(offset),
            "post": None if named["post"] == "none" else named["post"],
            "noise": law["law"] if isinstance(law, dict) else law,
            "delta": None if delta is None else repr(delta),
            **rules,
        }
    return rules
