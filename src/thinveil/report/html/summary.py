"""The top of the report: the verdict, three numbers, and how alarming they are."""

from __future__ import annotations

from typing import Final, NamedTuple

from thinveil.report.html.markup import Html, paragraph, tag
from thinveil.report.html.masking import View, for_readers
from thinveil.verdicts import sentences
from thinveil.verdicts.judging.accuracy import Accuracy
from thinveil.verdicts.judging.intervals import Share
from thinveil.verdicts.judging.scoring import Score
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.phrases import amount, loss, many, out_of, percent, upper
from thinveil.verdicts.sentences import GUESSES_MASKED, PRECISE, YES_OR_NO

UNSCORED: Final = "the true table was not at hand"
UNSETTLED: Final = "nothing was settled"
UNSHARED: Final = "nobody asked about is alone in what was known of them"
"""Why there is no share."""


class Figure(NamedTuple):
    """What share was recovered: the figure, what it is of, and what guessing gets."""

    figure: str
    of: str
    baseline: str = ""


def verdict(view: View) -> Html:
    """Return the verdict in words, and three numbers."""
    run, share, trial = view.run, recovered(view), view.run.membership
    claimed = run.epsilon_claimed
    asked = f"{many(run.questions, 'question')} in {many(run.rounds, 'round')}"
    if view.only_trials and trial and trial.simulated:
        claimed = trial.epsilon_claimed
        drawn = many(trial.queries, "answer")
        asked = f"of the target; the trials drew {drawn} on the auditor's machine"
    whole = "for the answers of one trial" if view.only_trials else "for all answers together"
    if run.delta_claimed:
        whole += f", with a delta of {loss(run.delta_claimed)}"
    recovery = (_asked_after(view), share.figure, f"{share.of}. {share.baseline}".strip())
    rows = (
        (
            "Claimed loss",
            loss(claimed),
            "no protection is claimed"
            if claimed is None
            else f"epsilon, {whole}; {run.budget}".rstrip("; "),
        ),
        *([] if run.only_claim else [recovery]),
        ("Answers asked for", amount(run.queries), asked),
        *([("Checks of the claim", amount(run.checks), "answers beside these")] * bool(run.checks)),
    )
    numbers = [
        tag("div", tag("dt", name), tag("dd", figure, class_="figure"), tag("dd", said))
        for name, figure, said in rows
    ]
    law = [] if run.possible is None else [paragraph(run.possible.sentence(), class_="law")]
    said = [*law, paragraph(view.verdict, class_="verdict")]
    if trial and not view.only_trials:
        said.append(paragraph(upper(for_readers(trial.sentence())), class_="verdict second"))
    if run.doubts:
        columns = many(len(run.doubts), "column")
        link = tag("a", "Assumptions", href="#assumptions")
        told = f"The attacker was told the list of texts of {columns}; see "
        said.append(paragraph(told, link, ".", class_="note"))
    if run.notice:
        said.append(paragraph(tag("strong", "Note: "), run.notice, class_="note"))
    return tag(
        "section",
        tag("h2", "Verdict", id="verdict-title"),
        *said,
        tag("dl", *numbers, class_="numbers"),
        id="verdict",
        class_=f"tone-{tone(view)}",
        aria_labelledby="verdict-title",
    )


def _asked_after(view: View) -> str:
    """Return what the second number is about."""
    if view.is_one and (view.run.accuracy or (view.result and view.result.checked)):
        return "What was said is"
    return "Right" if view.run.attack in ("count", *YES_OR_NO) else "Recovered"


def recovered(view: View) -> Figure:
    """Return what share was recovered, and what guessing gets; never one without the other."""
    run = view.run
    precise = f", {PRECISE}" if run.precision else ""
    if run.attack == "dataset" and run.ended != "complete" and not run.is_nothing:
        return _known(view, precise)
    if run.accuracy:
        return _judged(view, run.accuracy, precise)
    if run.score is not None:
        return _counted(view, run.score, precise)
    if view.only_trials and run.membership:
        return _of_trials(run.membership)
    if view.unsettled:
        return Figure("nothing", UNSETTLED)
    found = view.result
    if not found or not found.checked:
        return Figure("not scored", UNSCORED)
    said = "right" if found.right == found.checked else "wrong"
    several = f"{found.right:,} of {found.checked:,}"
    return Figure(said if view.is_one else several, f"{UNSHARED}, so values have no share")


def _known(view: View, precise: str) -> Figure:
    """Return the share of all bits that a run knew when it ended, and the records among them."""
    run, judged = view.run, view.run.accuracy
    records = f"{many(run.records_rebuilt or 0, 'record')} rebuilt"
    baseline = ""
    if judged is not None:
        records = f"{_right(judged.whole, sentences.unit_of(run, 'records'))}{precise}"
        guess, told = percent(judged.whole.nothing_share), percent(judged.whole.marginals_share)
        baseline = f"Of records, asking nothing: {guess}; knowing every histogram: {told}"
    besides = sentences.known_besides(run)
    if run.bits_share is None:
        return Figure("part", f"{besides}; {records}", baseline)
    least = "" if run.score is not None else "at least "
    besides = besides.rpartition(", ")[0]  # the share stands above
    said = "; ".join(filter(None, ("of all bits", besides, records)))
    return Figure(f"{least}{percent(run.bits_share)}", said, baseline)


def _of_trials(trial: Trial) -> Figure:
    """Return how often guesses were right, every trial taken as one."""
    trials = many(trial.trials, "trial")
    if not trial.queries:
        return Figure("nothing", f"nothing was asked in {trials}")
    of = f"{trial.guessed_right:,} of {trials} of membership guessed rightly"
    share = percent(trial.guessed_right / max(trial.trials, 1))
    return Figure(share, of, "Asking nothing: half of them")


def judged_one(found: Accuracy) -> str:
    """Return whether what was said of one person or one count is right."""
    if 0 < found.whole.right < found.whole.of:
        return "partly right"
    return "right" if found.whole.right else "wrong"


def of_one(view: View, found: Accuracy) -> Html:
    """Say whether what was said of one person or one count is right: a share would mean little."""
    run = view.run
    what = "count" if run.attack == "count" else "person"
    if view.unsettled:
        return tag("div", tag("h3", f"Nothing was said of the {what} asked about"), id="accuracy")
    beside = GUESSES_MASKED if found.whole.nothing is None else ""
    if run.attack in YES_OR_NO:
        beside = "It stands beside a coin flip."
    precise = f", {PRECISE}" if run.precision else ""
    said = tag("h3", f"What was said of one {what} is {judged_one(found)}{precise}")
    return tag("div", said, paragraph(beside) if beside else "", id="accuracy")


def _judged(view: View, found: Accuracy, precise: str) -> Figure:
    """Return the share that is right; of one person only whether it is."""
    run, whole = view.run, found.whole
    right = _right(whole, sentences.unit_of(run, "records"))
    hidden = GUESSES_MASKED if whole.nothing is None else ""
    if view.is_one:
        if view.unsettled:
            return Figure("nothing", UNSETTLED)
        if run.attack in YES_OR_NO:
            return Figure(judged_one(found), "beside a coin flip")
        what = "about one count" if run.attack == "count" else right
        return Figure(judged_one(found), f"{what}{precise}", hidden)
    guess = (
        f"Asking nothing: {percent(whole.nothing_share)}; knowing every histogram: "
        f"{percent(whole.marginals_share)}"
    )
    if whole.others_share is not None:
        guess += f"; knowing all other records: {percent(whole.others_share)}"
    return Figure(percent(whole.share), f"{right}{precise}", hidden or guess)


def _right(whole: Share, unit: str) -> str:
    """Say how many of them are right."""
    return f"{out_of(whole.right, whole.of, unit)} {'is' if whole.right == 1 else 'are'} right"


def _counted(view: View, score: Score, precise: str) -> Figure:
    """Return the share by the score alone, as older files have it."""
    kind = "different records" if view.run.distinct_only else "records"
    verb = "is" if score.recovered == 1 else "are"
    of = f"{out_of(score.recovered, score.records, kind)} {verb} right{precise}"
    guess = percent(score.guessed / max(score.records, 1))
    share = percent(score.recovered / max(score.records, 1))
    return Figure(share, of, f"Asking nothing: {guess}")


def tone(view: View) -> str:
    """Return how alarming a run is: "broken", "leak", "part", "calm" or "open".

    Calm is a run that found nothing usable; open one that was not scored or went no further
    than guessing.
    """
    run, score, trial = view.run, view.run.score, view.run.membership
    if run.claim_check is not None and run.only_claim:
        accused = run.claim_check.broken and not run.claim_check.doubtful
        return "broken" if accused else "calm" if run.ended == "complete" else "open"
    if run.ended == "undecided":
        return "part" if (score and score.recovered) or not run.is_nothing else "calm"
    if run.accuracy:
        whole = run.accuracy.whole
        # Where guesses are masked, the colour must not tell them either; and whoever knows a
        # histogram has the column by definition.
        guess = (whole.nothing_share or 0.0) if run.attack == "column" else whole.guess
        beyond, every = whole.share > guess, whole.share == 1
        beyond = beyond or (run.attack == "dataset" and bool(run.columns_begun))
    elif score is not None:
        beyond = score.recovered > score.guessed or bool(run.columns_begun)
        every = score.exact
    elif run.attack in (*sentences.TARGETED, "column") and view.result:
        beyond = view.result.settled > 0
        every = run.ended == "complete" and view.result.right == view.result.checked
    else:
        beyond = every = trial is not None and trial.epsilon_at_least > 0
    if not beyond:
        return "open"
    # an honest mechanism says itself how much it has lost
    return "leak" if every and run.ended == "complete" and not run.claim.control else "part"
