"""Every sentence about trials, in one place: what they show beside the claim, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinveil.verdicts.phrases import many, short, spelled, sureness

if TYPE_CHECKING:  # it says its sentences by this module
    from thinveil.verdicts.membership import Trial

HOW_DRAWN: Final = (
    "Each trial drew a record that no other record equals, known by all attributes, and "
    "flipped a coin: the table as it is, or its neighbour in which this record became a copy "
    "of another one. Both worlds draw targets alike. This attacker is the one that "
    "differential privacy guards against, not a typical one."
)
"""How targets and worlds of trials are drawn."""
SIMULATED: Final = (
    "The trials were run on the auditor's machine, by the mechanism's description and the table "
    "given as truth: the target itself was not asked."
)
ASKING_NOTHING: Final = "somebody who asks nothing and flips a coin"


def trials(trial: Trial) -> str:
    """Say what the trials show, beside the claim, and no more than that."""
    parts = [_shown(trial)]
    if trial.interrupted:
        parts.append(
            f"The trials were stopped by hand after {trial.trials:,} of {trial.asked_for:,}."
        )
    return " ".join([*parts, SIMULATED] if trial.simulated else parts)


def _shown(trial: Trial) -> str:
    tried, sure = many(trial.trials, "trial"), sureness(trial.confidence)
    if not trial.queries:
        why = f": {trial.reason}" if trial.reason else ""
        return f"Nothing was asked in {tried} of membership{why}."
    claimed, claim = trial.epsilon_claimed, "Of one person's membership the mechanism claims "
    claim += "nothing" if claimed is None else f"{spelled(claimed)} in the sense of {trial.sense}"
    bound, most = trial.epsilon_at_least, trial.ceiling
    if trial.undecided == trial.trials:
        return (
            f"{claim}; no usable difference was found in {tried} of up to "
            f"{many(trial.most_queries, 'answer')} each."
        )
    if not bound:
        few = "" if most else ", and so few can show none, whatever the attack does"
        right = f"the attack was right in {trial.correct:,} of {tried}"
        return f"{claim}; {right}, which shows no bound above 0 at {sure} confidence{few}."
    said = f" (the most that {tried} can show)" if bound >= most - 1e-9 else ""
    return (
        f"{claim}; in the sense of differential privacy it is at least {bound:.2f}, at {sure} "
        f"confidence{said}."
    )


def trials_headline(trial: Trial) -> str:
    """Say the bound; a bound of 0 says nothing of a difference, so then what was seen instead."""
    sure, bound = sureness(trial.confidence), trial.epsilon_at_least
    if bound > 0:
        return (
            f"In the sense of differential privacy the loss is at least {short(bound)}, "
            f"at {sure} confidence"
        )
    if trial.ceiling == 0:
        return "So few trials can show no bound, whatever the attack does"
    if trial.queries == 0:
        return "Nothing was asked in the trials"
    if trial.undecided == trial.trials:
        return "No usable difference was found in the trials"
    return f"No bound above 0 on epsilon was shown, at {sure} confidence"


def trials_explained(trial: Trial) -> str:
    """Say what a trial is, and whether somebody stopped them."""
    said = (
        f"In each of {many(trial.trials, 'trial')} a coin decides whether a person's record is "
        "in the table or was replaced by another; the attacker asks, and says which. A mechanism "
        "with differential privacy must keep both rates close to each other."
    )
    if trial.interrupted:
        of = f"{trial.trials:,} of {many(trial.asked_for, 'trial')}"
        said += f" This was stopped by hand after {of}."
    return said


def trials_note(trial: Trial) -> str:
    """Say what the bound means, what its ceiling is, and what it does not mean."""
    most = f"no more than {short(trial.ceiling)}" if trial.ceiling else "no bound above 0"
    parts = [
        f"Even a perfect score in {many(trial.trials, 'trial')} shows {most} at "
        f"{sureness(trial.confidence)} confidence; more trials raise this ceiling",
    ]
    if trial.epsilon_claimed is not None and trial.sense != "differential privacy":
        parts.append(
            f"This does not refute the claim: {trial.sense} promises less than "
            "differential privacy does"
        )
    parts.append(f"{many(trial.queries, 'answer')} in all")
    if trial.undecided:
        parts.append(
            f"{many(trial.undecided, 'trial')} stayed undecided and counted as “not in the table”"
        )
    if trial.reason and (trial.undecided or not trial.queries):
        parts.append(f"Why nothing was said: {trial.reason}")
    parts += [HOW_DRAWN, f"The baseline is {ASKING_NOTHING}"]
    return " ".join(part.rstrip(". ") + "." for part in parts)
