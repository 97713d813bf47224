"""Attacks on people or on one count: what kind of thing they learned, and of how many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from thinveil.report.html.spelling import many

TARGETED: Final = ("attribute", "count", "membership", "uniqueness")
"""Attacks on people or on one count, not on whole columns."""
YES_OR_NO: Final = ("membership", "uniqueness")
"""Attacks whose answer a coin could give."""
FEW: Final = 30
"""Of fewer people, what guessing gets right would tell what is true of them."""
GUESSES_MASKED: Final = (
    "What guessing gets is masked: of so few people it would tell what is true of them."
)


def only_trials(run: Mapping[str, Any]) -> bool:
    """Tell whether a run consists of trials of membership, and attacked nobody else."""
    return run["attack"] == "membership" and bool(run["membership"]) and not run["result"]


def is_one(run: Mapping[str, Any]) -> bool:
    """Tell whether a run, as the report shows it, attacked one person or one count."""
    return run["attack"] in TARGETED and bool(run["result"]) and run["result"]["people"] == 1


def is_unsettled(run: Mapping[str, Any]) -> bool:
    """Tell whether an attack on people, a count or columns ended before it settled anything."""
    if run["attack"] == "dataset" or only_trials(run):
        return False
    result = run["result"]
    return not result["settled"] if result else run["ended"] != "complete"


def unit_of(run: Mapping[str, Any], usual: str) -> str:
    """Return what the accuracy of a run counts, as something that can be right."""
    unit = str(run["accuracy"].get("unit") or usual)
    return "statements about people" if unit == "people" else unit


def entries_of(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a run found, person by person or column by column."""
    result = run["result"]
    return result if isinstance(result, list) else [result]


def is_settled(run: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry says what the attack was after."""
    attack = run.get("attack")
    if attack == "column":
        return bool(entry.get("values"))
    if attack == "count":
        return any(entry.get(name) is not None for name in ("count", "exists"))
    field = {"membership": "present", "uniqueness": "unique"}.get(str(attack), "matches")
    occurs = bool(entry.get("values")) or "present" in entry
    return field in entry or (bool(run.get("distinct_only")) and occurs)


def learned(run: Mapping[str, Any]) -> str:
    """Say what a targeted attack learned, without it; never more than the terminal says.

    Of the records that fit, it may show whether there is one or several, and not how many.
    """
    attack, entries = run["attack"], entries_of(run)
    if attack == "attribute":
        return _attributes(entries)
    if attack == "count":
        known = entries[0].get("count") is not None
        return (
            f"{'how many records match' if known else 'whether any record matches'} what was asked"
        )
    settled, options = sum(is_settled(run, each) for each in entries), _options(run)
    some = many(settled, "person", "people")
    if settled < len(entries):
        some = f"{settled:,} of {len(entries):,} people"
    verb = "is" if settled == 1 else "are"
    if attack == "membership":
        who = "somebody who fits is" if len(entries) == 1 else f"{some} {verb}"
        return f"whether {who} in the table"
    given = ", presence taken as given," if options.get("present") else ""
    who = "a person is" if len(entries) == 1 else f"{some} {verb}"
    return f"whether{given} {who} alone in what was known"


def _options(run: Mapping[str, Any]) -> Mapping[str, Any]:
    return (run.get("provenance") or {}).get("options") or {}


def _attributes(entries: list[Mapping[str, Any]]) -> str:
    there = [each for each in entries if each.get("values")]
    if not there:
        return "whether anybody fits what was known"
    if len(entries) > 1:
        return f"attributes of people out of {len(entries):,} who were asked about,"
    values, matches = many(len(there[0]["values"]), "attribute"), there[0].get("matches")
    if matches is None:
        return f"which values of {values} occur among the records that fit"
    if matches == 1:
        return f"{values} of a person"
    return f"the values of {values} among several records that fit"
