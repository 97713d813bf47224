"""What is public about a target, as plain JSON and back.

Bounds are codes, as in questions; a claim is written as what it is composed of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any, Final, get_args

from thinveil.errors import FieldError, ThinveilError
from thinveil.language import claims, plugins
from thinveil.language.claims import Claim, Post, Sampler, Universe
from thinveil.language.facts import PublicFacts
from thinveil.language.laws import LAWS, law_from_plain, law_to_plain
from thinveil.language.policies import Policies
from thinveil.language.schema import Attribute, Categories, Grid, Schema

_SENSITIVITIES: Final[Mapping[str, type]] = {
    "none": claims.Insensitive,
    "k-local": claims.KLocal,
    "bootstrap": claims.Bootstrap,
    "global": claims.Global,
    "smooth": claims.Smooth,
}
_WORDS: Final = {"universe": Universe, "post": Post, "sampler": Sampler}


def facts_to_plain(facts: PublicFacts) -> dict[str, Any]:
    """Return public facts as plain values for JSON, or raise as `claim_to_plain` does."""
    return {
        "records": facts.records,
        "attributes": [_attribute_to_plain(each) for each in facts.schema],
        "claim": claim_to_plain(facts.claim),
        "policies": asdict(facts.policies),
    }


def facts_from_plain(plain: object) -> PublicFacts:
    """Read public facts; a FieldError says that they are malformed or contradict themselves."""
    try:
        assert isinstance(plain, dict)
        return PublicFacts(
            _typed(plain["records"], int),
            Schema(tuple(_attribute(each) for each in _typed(plain["attributes"], list))),
            _claim(_typed(plain["claim"], dict)),
            Policies(**_typed(plain.get("policies", {}), dict)),
        )
    except ThinveilError as error:
        raise FieldError("", f"the facts cannot be used here: {error}") from None
    except (AssertionError, ArithmeticError, KeyError, TypeError, ValueError):
        raise FieldError("", "these are not the facts of a thinveil service") from None


def claim_to_plain(claim: Claim) -> dict[str, Any]:
    """Return a claim as its composition; one of a plug-in by its name.

    A UsageError says that a part of it has no name, so that other programs cannot know it.
    """
    kinds = [name for name, each in _SENSITIVITIES.items() if type(claim.sensitivity) is each]
    if not kinds or (claim.noise is not None and type(claim.noise) not in LAWS.values()):
        return {"name": claim.name, "plugin": plugins.claim_to_plain(claim)}
    return {
        "name": claim.name,
        "sensitivity": {"kind": kinds[0], **({} if claim.k is None else {"k": claim.k})},
        "noise": law_to_plain(claim.noise),
        "offset": claim.offset,
        **{name: getattr(claim, name) for name in _WORDS},
    }


def _claim(plain: Mapping[str, Any]) -> Claim:
    if "plugin" in plain:
        return plugins.claim_from_plain(_typed(plain["plugin"], dict))
    given = dict(_typed(plain["sensitivity"], dict))
    make = _SENSITIVITIES[given.pop("kind")]
    words = {name: plain[name] for name in _WORDS}
    if any(word not in get_args(_WORDS[name]) for name, word in words.items()):
        raise ValueError("an unknown word")
    return Claim(
        name=_typed(plain["name"], str),
        sensitivity=make(**given),
        noise=law_from_plain(plain["noise"]),
        offset=float(plain["offset"]),
        **words,
    )


def _attribute_to_plain(attribute: Attribute) -> dict[str, Any]:
    plain = {name: getattr(attribute, name) for name in ("name", "kind", "missing")}
    if isinstance(attribute, Categories):
        return {**plain, "values": list(attribute.values)}
    bounds = {"lower": attribute.lower, "upper": attribute.upper}
    more = {"format": attribute.format, "rounded": attribute.rounded}
    told = {name: value for name, value in more.items() if value}
    return {**plain, "step": str(attribute.step), **bounds, **told}


def _attribute(plain: object) -> Attribute:
    assert isinstance(plain, dict)
    name, missing = _typed(plain["name"], str), _typed(plain["missing"], bool)
    if plain["kind"] == "category":
        values = tuple(_typed(each, str) for each in _typed(plain["values"], list))
        return Categories(name, values, missing)
    ends = plain["lower"], plain["upper"]
    lower, upper = (None if end is None else _typed(end, int) for end in ends)
    step = Decimal(_typed(plain["step"], str))
    written, rounded = (
        _typed(plain.get("format", ""), str),
        _typed(plain.get("rounded", False), bool),
    )
    return Grid(name, plain["kind"], step, lower, upper, missing, written, rounded)


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"not of type {kind.__name__}")
    return value
