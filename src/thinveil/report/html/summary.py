"""The top of the report: the verdict, three numbers, and how alarming they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from thinveil.report.html.accuracy import judged_one
from thinveil.report.html.markup import Html, paragraph, tag
from thinveil.report.html.prose import family
from thinveil.report.html.spelling import amount, loss, many, percent
from thinveil.report.html.targets import (
    GUESSES_MASKED,
    TARGETED,
    YES_OR_NO,
    is_one,
    is_unsettled,
    only_trials,
    unit_of,
)

UNSCORED: Final = "the true table was not at hand"
UNSETTLED: Final = "nothing was settled"
UNSHARED: Final = "nobody asked about is alone in what was known of them"
"""Why there is no share."""


class Share(NamedTuple):
    """What share was recovered: the figure, what it is of, and what guessing gets."""

    figure: str
    of: str
    baseline: str


def verdict(run: Mapping[str, Any]) -> Html:
    """Return the verdict in words, and three numbers."""
    share, trial = recovered(run), run["membership"]
    simulated = only_trials(run) and trial.get("simulated")
    claimed = trial["epsilon_claimed"] if simulated else run["epsilon_claimed"]
    asked = f"{many(run['questions'] or 0, 'question')} in {many(run['rounds'] or 0, 'round')}"
    if simulated:
        drawn = many(trial["queries"], "answer")
        asked = f"of the target; the trials drew {drawn} on the auditor's machine"
    rows = (
        (
            "Claimed loss",
            loss(None if claimed is None else float(f"{claimed:.4g}")),
            "no protection is claimed"
            if claimed is None
            else f"epsilon, {_whole(run)}; {run['budget'] or ''}".rstrip("; "),
        ),
        (
            _asked_after(run),
            share.figure,
            f"{share.of}. {share.baseline}".strip(),
        ),
        (
            "Answers asked for",
            amount(run["queries"] or 0),
            asked,
        ),
    )
    numbers = [
        tag("div", tag("dt", name), tag("dd", figure, class_="figure"), tag("dd", said))
        for name, figure, said in rows
    ]
    said = [paragraph(run["verdict"], class_="verdict")]
    if trial and str(trial["sentence"]) not in run["verdict"]:
        said.append(paragraph(_bound(trial), class_="verdict second"))
    if run["doubts"]:
        columns = many(len(run["doubts"]), "column")
        link = tag("a", "Assumptions", href="#assumptions")
        told = f"The attacker was told the list of texts of {columns}; see "
        said.append(paragraph(told, link, ".", class_="note"))
    if run["notice"]:
        said.append(paragraph(tag("strong", "Note: "), run["notice"], class_="note"))
    return tag(
        "section",
        tag("h2", "Verdict", id="verdict-title"),
        *said,
        tag("dl", *numbers, class_="numbers"),
        id="verdict",
        class_=f"tone-{tone(run)}",
        aria_labelledby="verdict-title",
    )


def _asked_after(run: Mapping[str, Any]) -> str:
    """Return what the second number is about."""
    if is_one(run) and run["accuracy"]:
        return "What was said is"
    return "Right" if run["attack"] in ("count", *YES_OR_NO) else "Recovered"


def _whole(run: Mapping[str, Any]) -> str:
    """Say what the claimed loss is the loss of."""
    return "for the answers of one trial" if only_trials(run) else "for all answers together"


def _bound(trial: Mapping[str, Any]) -> str:
    """Say the bound of the membership trial, as it was said with the run."""
    sentence = str(trial["sentence"]).rstrip(".")
    return f"{sentence[:1].upper()}{sentence[1:]}."


def recovered(run: Mapping[str, Any]) -> Share:
    """Return what share was recovered, and what guessing gets; never one without the other."""
    kind = "different records" if run["distinct_only"] else "records"
    precise = ", at the chosen precision" if run["precision"] else ""
    if run["accuracy"]:
        return _judged(run, kind, precise)
    if run["records_recovered"] is not None:
        return _counted(run, kind, precise)
    if only_trials(run):
        return _of_trials(run["membership"])
    if is_unsettled(run):
        return Share("nothing", UNSETTLED, "")
    checked = run["result"] and run["result"]["checked"]
    return Share("not scored", UNSHARED if checked else UNSCORED, "")


def _of_trials(trial: Mapping[str, Any]) -> Share:
    """Return how often trials were right; where the attack said nothing, it was not."""
    trials, undecided = many(trial["trials"], "trial"), trial.get("undecided") or 0
    if undecided == trial["trials"]:
        what = "no usable difference was found" if trial["queries"] else "nothing was asked"
        return Share("nothing", f"{what} in {trials}", "")
    right = trial["true_positives"] + trial["out"] - trial["false_positives"]
    of = f"{right:,} of {trials} of membership right"
    if undecided:
        of += f", where {undecided:,} without an answer count as “not in the table”"
    return Share(percent(right / trial["trials"]), of, "Asking nothing: half of them")


def _judged(run: Mapping[str, Any], kind: str, precise: str) -> Share:
    """Return the share that is right; of one person only whether it is."""
    found = run["accuracy"]
    whole, hidden = found["records"], found.get("guesses_masked")
    of = f"{amount(whole['recovered'])} of {amount(whole['of'])} {unit_of(run, kind)}"
    if is_one(run):
        if is_unsettled(run):
            return Share("nothing", UNSETTLED, "")
        if run["attack"] in YES_OR_NO:
            return Share(judged_one(run), "beside a coin flip", "")
        what = "about one count" if run["attack"] == "count" else f"{of} are right"
        return Share(judged_one(run), f"{what}{precise}", GUESSES_MASKED if hidden else "")
    guess = (
        GUESSES_MASKED
        if hidden
        else f"Asking nothing: {percent(whole['nothing_share'])}; knowing every histogram: "
        f"{percent(whole['marginals_share'])}"
    )
    return Share(percent(whole["share"]), f"{of} are right{precise}", guess)


def _counted(run: Mapping[str, Any], kind: str, precise: str) -> Share:
    """Return the share by the score alone, as runs without intervals have it."""
    found, guessed, records = run["records_recovered"], run["records_guessed"] or 0, run["records"]
    if run["distinct_only"]:
        figure = percent(1.0) if run["exact"] else amount(found)
        return Share(
            figure,
            f"{amount(found)} {kind} are right{precise}",
            f"Asking nothing: {amount(guessed)} of them",
        )
    of = f"{amount(found)} of {amount(records)} {kind} are right{precise}"
    return Share(percent(found / records), of, f"Asking nothing: {percent(guessed / records)}")


def tone(run: Mapping[str, Any]) -> str:
    """Return how alarming a run is: "leak", "part", "calm" or "open".

    Calm is a run that found nothing usable; open one that was not scored or went no further
    than guessing.
    """
    if run["ended"] == "undecided":
        return "calm" if not run["records_recovered"] else "part"
    if run["accuracy"]:
        whole = run["accuracy"]["records"]
        # Where guesses are masked, the colour must not tell them either.
        guess = whole["nothing_share"] or 0.0
        if run["attack"] != "column":  # whoever knows a histogram has the column by definition
            guess = max(guess, whole["marginals_share"] or 0.0)
        beyond = whole["share"] > guess
        every = whole["share"] == 1
    elif run["records_recovered"] is not None:
        beyond = run["records_recovered"] > (run["records_guessed"] or 0)
        every = bool(run["exact"])
    elif run["attack"] in (*TARGETED, "column") and run["result"]:
        beyond = bool(run["result"]["settled"])
        every = run["ended"] == "complete" and run["result"]["right"] == run["result"]["checked"]
    else:
        trial = run["membership"]
        beyond = every = bool(trial) and trial["epsilon_at_least"] > 0
    if not beyond:
        return "open"
    admitted = family(str(run["mechanism"])) == "dp"  # it says itself how much it has lost
    return "leak" if every and run["ended"] == "complete" and not admitted else "part"
