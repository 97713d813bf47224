"""The texts of the report that do not depend on figures: attacks, method, limits.

Glossary and references stand beside the page itself, in assets/.
"""

from __future__ import annotations

from typing import Final

from thinveil.verdicts.names import ClaimRecord

ATTACKS: Final = {
    "attribute": "Attributes of people",
    "column": "Reconstruction of columns",
    "count": "How many records match",
    "dataset": "Reconstruction of the whole table",
    "membership": "Membership of people",
    "uniqueness": "Uniqueness of people",
}
"""What attacks are called below the headline."""

SCENE: Final = (
    "A curator holds the table. Anybody may ask questions of one form: are there more than b "
    "records of a certain kind? The questioner chooses the kind and b. Each answer costs a little "
    "privacy loss, which the curator adds up and announces: that sum is the claimed loss.",
    "The attacker of this audit sees the answers and the public facts listed below, and nothing "
    "else. Every answer passes through one meter, which counts and charges it. What the attacker "
    "found is compared with the true table only after the last question.",
)

HOW_NOISE_TELLS: Final = {
    "idp": (
        "Individual DP adds noise only where changing {k} could change the answer. Far from the "
        "true count the answer is therefore exact, next to it there is noise. So whether an answer "
        "is noisy says where the count is, however large the noise: making the noise larger, which "
        "lowers the claimed loss, hides nothing more. Counts of many kinds together give whole "
        "records."
    ),
    "idp-integer": (
        "Individual DP adds noise only where changing {k} could change the answer, and here the "
        "result is rounded to a whole number. Large noise still stands out from exact zeros and "
        "ones, so the place of the noise still gives counts away."
    ),
    "idp-binary": (
        "Individual DP adds noise only where changing {k} could change the answer, and here the "
        "result is rounded to 0 or 1. Noise then looks like a coin: asked again, a noisy question "
        "changes its answer and an exact one does not. So repeating questions gives counts away."
    ),
    "idp-noisy": (
        "This variant of Individual DP puts noise into every answer, but more of it where changing "
        "{k} could change the true answer. Repeated questions show how large the noise is, and its "
        "size gives counts away."
    ),
    "bdp": (
        "Bootstrap DP adds noise where some but not all records are of the kind asked about. An "
        "exact answer therefore says that there is no such record, or that all are. That gives "
        "away which records exist, though not how often each occurs."
    ),
    "unprotected": (
        "Every answer is true. Halving the range of b finds a count in a few questions, and counts "
        "of many kinds together give whole records."
    ),
    "dp": (
        "Under differential privacy the noise does not depend on the table in a way that shows: "
        "only the true answer behind it does, and at a small loss the noise drowns it. An attack "
        "must repeat questions until the mean tells, which is what the privacy loss pays for."
    ),
    "textbook": (
        "The noise has the same distribution whatever the table says. But it is drawn as a double "
        "and added to a double, and each step rounds: which doubles can come out depends on the "
        "true answer. Many can come from one true answer only, of large and small noise alike, and "
        "the attack checks which (Mironov 2012)."
    ),
    "": (
        "The attack works from the public description of this mechanism: how likely each answer is "
        "for each possible count."
    ),
}
"""How each kind of mechanism gives counts away, or does not."""

LIMITS: Final = (
    "One attack was tried on one table. A better attack may recover more with fewer questions; "
    "this report says what was shown, not the most that could be.",
    "The attacker may choose the questions. A fixed set of statistics that nobody can choose gives "
    "away what it gives away, which this report does not measure.",
    "The facts under Assumptions were taken as known to the attacker. If some are secret in "
    "truth, the attack needs more questions or recovers less.",
    "Recovered records are rows of the table. Whether a row can be tied to a person depends on "
    "what else is known about people.",
    "Figures about chance rest on the noise being drawn as the mechanism says.",
)

CLAIM_LIMITS: Final = (
    "Answers were held against the claim, and nothing else was: not the program behind them.",
    "A target that answers from another table, always the same one, or that knows checks when it "
    "sees them, passes; so does one that changes a record after it was read.",
)
"""What a check of a claim does not show."""

AGGREGATES: Final = (
    "This page holds aggregate figures of the table: shares that guessing or the most common value "
    "gets right, and the number of trials. It holds no record, no value and no count of a subset."
)
"""A limit of pages whose values are masked."""


def how_noise_tells(claim: ClaimRecord) -> str:
    """Say how a mechanism gives counts away, or does not; by its honesty, not by its name."""
    family = claim.among(set(HOW_NOISE_TELLS) - {"dp", "textbook", ""})
    if claim.control or claim.textbook:
        family = "dp" if claim.control else "textbook"
    k = claim.k or 1
    told = HOW_NOISE_TELLS[family]
    return told.format(k="one record" if k == 1 else f"up to {k:,} records")
