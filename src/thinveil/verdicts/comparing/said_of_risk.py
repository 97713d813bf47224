"""Sentences about risk curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from thinveil.verdicts.phrases import percent

if TYPE_CHECKING:
    from thinveil.verdicts.comparing.risk import Risk

_ALWAYS: Final = 0.999  # guesses that are right more often are called certain
_USUAL_TOTALS: Final = (1.0, 10.0)  # total losses of which is said what they tell of one person
_IN_RISK: Final = {"blue": " (honest DP)", "pink": " (DP drawn in doubles)"}


def shown(curves: Risk) -> str:
    """Say what risk curves show."""
    parts: dict[str, list[str]] = {}
    for name in curves.against_loss.mechanisms:
        least, idle = curves.least_loss(name), curves.idle_loss(name)
        who = name + _IN_RISK.get(curves.kinds.get(name, ""), "")
        said = [] if idle is None else [f"this search found no record up to a total of {idle:g}"]
        if least is not None:
            said.append(f"{'' if said else 'this search found '}every record at {least:g}")
        said += _one_person(curves, name)
        parts.setdefault(", ".join(said) or "this search found some records", []).append(who)
    if not parts:
        return "No curve was drawn."
    return "; ".join(f"{', '.join(names)}: {said}" for said, names in parts.items()) + "."


def _one_person(curves: Risk, name: str) -> list[str]:
    """Say how often the best attack is right about one person, where that is interesting."""
    told = curves.one_person(name)
    if not told:
        return []
    if told[0].right > _ALWAYS:
        return ["and whether one person is in the table at every total"]
    shown = [each for total in _USUAL_TOTALS if (each := curves.advantage_at(name, total))]
    if not shown:
        return []
    rights = " and ".join(f"{percent(each.right)} at {each.epsilon:g}" for each in shown)
    return [f"but guesses whether one person is in the table can be right in {rights}"]


def stopped(curves: Risk) -> str:
    """Say that somebody stopped the curves; else nothing."""
    if not curves.interrupted:
        return ""
    return "The risk curves were stopped by hand: what is drawn is what was done by then."


def lacks(curves: Risk, names: Sequence[str], control: bool) -> str:
    """Say which kind of mechanism a curve lacks, without which it would mislead; else nothing."""
    kinds = {curves.kinds.get(name) for name in names}
    if "red" not in kinds:
        return "no relaxed mechanism was reached"
    return "the honest control was not reached" if control and "blue" not in kinds else ""
