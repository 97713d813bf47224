"""Every sentence about trials, in one place: what they show beside the claim, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinveil.verdicts.phrases import many, short, spelled, sureness

if TYPE_CHECKING:  # it says its sentences by this module
    from thinveil.verdicts.canaries import Canaries
    from thinveil.verdicts.judging.tradeoff import Curve
    from thinveil.verdicts.membership import Trial

HOW_DRAWN: Final = (
    "Each trial drew a record that no other record equals, known by all attributes, and "
    "flipped a coin: the table as it is, or its neighbour in which this record became a copy "
    "of another one. Both worlds draw targets alike. This attacker is the one that "
    "differential privacy guards against, not a typical one."
)
"""How targets and worlds of trials are drawn."""
_DP: Final = "differential privacy"
SIMULATED: Final = (
    "The trials were run on the auditor's machine, by the mechanism's description and the table "
    "given as truth: the target itself was not asked."
)
SIMULATED_CANARIES: Final = SIMULATED.replace("trials were", "canaries were")
ASKING_NOTHING: Final = "somebody who asks nothing and flips a coin"


def trials(trial: Trial) -> str:
    """Say what the trials show, beside the claim, and no more than that."""
    parts = [_shown(trial), _cut(trial), _stopped(trial), SIMULATED if trial.simulated else ""]
    return " ".join(filter(None, parts))


def _shown(trial: Trial) -> str:
    tried, sure = many(trial.trials, "trial"), sureness(trial.confidence)
    if not trial.queries:
        why = f": {trial.reason}" if trial.reason else ""
        return f"Nothing was asked in {tried} of membership{why}."
    claimed, claim = trial.epsilon_claimed, "Of one person's membership the mechanism claims "
    claim += "nothing" if claimed is None else f"{spelled(claimed)} in the sense of {trial.sense}"
    bound = trial.epsilon_at_least
    if not bound:
        return (
            f"{claim}; {_guessed(trial)}, which shows no bound above 0 at {sure} confidence. "
            f"{power(trial)}"
        )
    said = f" (the most that {tried} can show)" if bound >= trial.ceiling - 1e-9 else ""
    delta = f" with a delta of {spelled(trial.delta_claimed)}" if trial.delta_claimed else ""
    sense = "" if trial.sense == _DP and claimed is not None else f"in the sense of {_DP} "
    return (
        f"{claim}; {sense}it is at least {bound:.2f}{delta}, at {sure} confidence{said}: "
        f"{_guessed(trial)}."
    )


def _guessed(trial: Trial) -> str:
    """Say how many guesses were right; of those that count, where some do not."""
    guesses = trial.guesses
    if guesses.made == trial.trials:
        return f"{guesses.right:,} of {many(trial.trials, 'guess', 'guesses')} were right"
    made = many(guesses.made, "guess that counts", "guesses that count")
    return f"of {made}, in {many(trial.trials, 'trial')}, {guesses.right:,} were right"


def power(trial: Trial) -> str:
    """Say which loss would have been seen, and with which chance: that is what nothing means."""
    if trial.seen_loss is None:
        return "So few trials can show none, whatever is given away."
    return (
        f"A loss of {short(trial.seen_loss)} in the sense of differential privacy, all of it given "
        "away in each trial (as randomised response does), would have shown one with a "
        f"probability of {_chance(trial)}; noise of the same loss gives away less."
    )


def power_of(trial: Trial) -> str:
    """Say the same of trials that were not spoken of before."""
    if trial.seen_loss is None:
        return f"{many(trial.trials, 'trial')} of membership can show no bound."
    return (
        f"{many(trial.trials, 'trial')} of membership would have shown a bound above 0 at a loss "
        f"of {short(trial.seen_loss)} that each gives away in full, with a probability of "
        f"{_chance(trial)}."
    )


def _chance(trial: Trial) -> str:
    return f"{100 * trial.seen_chance:.0f} %"


def _cut(trial: Trial) -> str:
    """Say how many trials ended before they were sure, and why: by nothing that was learned."""
    if not trial.cut or not trial.queries:
        return ""
    of = "All trials" if trial.cut == trial.trials else f"Of the trials, {trial.cut:,}"
    return f"{of} ended before they were sure, and count with what they had: {trial.reason}."


def _stopped(trial: Trial) -> str:
    if not trial.interrupted:
        return ""
    done = f"The trials were stopped by hand after {trial.trials:,} of {trial.asked_for:,}"
    return f"{done}; the bound holds whenever that is done."


def trials_headline(trial: Trial) -> str:
    """Say the bound; a bound of 0 says nothing of a difference, so then what would be seen."""
    sure, bound = sureness(trial.confidence), trial.epsilon_at_least
    if bound > 0:
        return (
            f"In the sense of differential privacy the loss is at least {short(bound)}, "
            f"at {sure} confidence"
        )
    if trial.queries == 0:
        return "Nothing was asked in the trials"
    if trial.ceiling == 0:
        return "So few trials can show no bound, whatever the attack does"
    return f"No bound above 0 on epsilon was shown, at {sure} confidence"


def trials_explained(trial: Trial) -> str:
    """Say what a trial is, and whether somebody stopped them."""
    said = (
        f"In each of {many(trial.trials, 'trial')} a coin decides whether a person's record is "
        "in the table or was replaced by another; the attacker asks, and guesses which. A "
        "mechanism with differential privacy must keep both rates close to each other."
    )
    if trial.interrupted:
        of = f"{trial.trials:,} of {many(trial.asked_for, 'trial')}"
        said += f" This was stopped by hand after {of}."
    return said


def trials_note(trial: Trial) -> str:
    """Say what the bound means, what its ceiling is, and what it does not mean."""
    most = f"no more than {short(trial.ceiling)}" if trial.ceiling else "no bound above 0"
    parts = [
        f"The bound is by right guesses: {_guessed(trial)}",
        f"Even a perfect score in {many(trial.trials, 'trial')} shows {most} at "
        f"{sureness(trial.confidence)} confidence; more trials raise this ceiling",
    ]
    if trial.queries and not trial.epsilon_at_least:
        parts.append(power(trial))
    if trial.epsilon_claimed is not None and trial.sense != _DP:
        parts.append(
            f"This does not refute the claim: {trial.sense} promises less than "
            "differential privacy does"
        )
    parts.append(f"{many(trial.queries, 'answer')} in all")
    if trial.guesses.held_out:
        held = many(trial.guesses.held_out, "trial")
        parts.append(f"By the first {held} it was seen how sure a guess must be to count")
    if not trial.queries and trial.reason:
        parts.append(f"Why nothing was asked: {trial.reason}")
    parts += [_cut(trial), HOW_DRAWN, f"The baseline is {ASKING_NOTHING}"]
    return " ".join(part.rstrip(". ") + "." for part in parts if part)


def trade_off_headline(curve: Curve) -> str:
    """Say what the whole curve shows."""
    if not curve.mu_at_least:
        return f"No threshold on the scores shows a difference, at {sureness(curve.confidence)}"
    far = short(curve.mu_at_least)
    return f"The worlds are as far apart as bell curves {far} standard deviations away, or more"


def trade_off_note(curve: Curve) -> str:
    """Say what the band is, and what mu is."""
    mu = f"mu is at least {short(curve.mu_at_least)}" if curve.mu_at_least else "any mu is possible"
    return (
        f"The curve of f-differential privacy: of {curve.inside:,} trials on the table and "
        f"{curve.outside:,} on neighbours. The band holds at all thresholds at once, at "
        f"{sureness(curve.confidence)} confidence. As Gaussian differential privacy, {mu}."
    )


# Planted values


def canaries(found: Canaries) -> str:
    """Say how many planted values came back, and what that shows beside the claim."""
    if not found.queries:
        why = f": {found.reason}" if found.reason else ""
        return f"Nothing was asked for {many(found.planted, 'planted value')}{why}."
    sure, claimed = sureness(found.confidence), found.epsilon_claimed
    came = f"{found.right:,}" if found.right else "none"
    said = (
        f"Of {many(found.planted, 'planted value')}, each one of {found.values:,} that were "
        f"equally likely, {came} came back exactly"
    )
    claim = "nothing is claimed"
    if claimed is not None:
        claim = f"{spelled(claimed)} is claimed in the sense of {found.sense}"
    bound = found.epsilon_at_least
    delta = f" with a delta of {spelled(found.delta_claimed)}" if found.delta_claimed else ""
    if bound:
        said += (
            f": in the sense of differential privacy the loss is at least {short(bound)}{delta}, "
            f"at {sure} confidence, while for one run {claim}."
        )
    else:
        said += f", which shows no bound above 0 at {sure} confidence. {_canary_power(found)}"
    if found.silent and found.reason:
        said += f" {many(found.silent, 'run')} named no value: {found.reason}."
    if found.interrupted:
        said += f" This was stopped by hand after {found.reached:,}; the others count as not found."
    return f"{said} {SIMULATED_CANARIES}" if found.simulated else said


def _canary_power(found: Canaries) -> str:
    if found.seen_share is None:
        return "So few can show none, whatever is given away."
    share, loss = f"{100 * found.seen_share:.2g} %", found.seen_loss
    takes = "" if loss is None else f", which takes a loss of at least {short(loss)}"
    return (
        f"If each came back with a probability of {share}{takes}, they would have shown one with "
        f"a probability of {100 * found.seen_chance:.0f} %."
    )


def canaries_headline(found: Canaries) -> str:
    """Say in a title what planted values show."""
    back = f"{found.right:,} of {many(found.planted, 'planted value')} came back"
    bound = found.epsilon_at_least
    return f"{back}: the loss is at least {short(bound)}" if bound else back


def canaries_explained(found: Canaries) -> str:
    """Say what a planted value is."""
    return (
        f"In each of {many(found.planted, 'run')} one record got a value that was drawn evenly "
        f"from {found.values:,} public ones, in an attribute made for this. The attacker knows "
        "all else of the record and looks for the value."
    )
