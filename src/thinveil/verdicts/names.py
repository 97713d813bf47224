"""How a mechanism is spoken of and drawn: its title, its line, its colour, and whether it leaks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from thinveil.language.claims import Claim
from thinveil.language.mechanisms import BUILT_IN

LINES: Final = {
    "bdp": "Bootstrap DP: noise unless nobody or everybody fits.",
    "dp-laplace": "Honest differential privacy: the same noise on every answer.",
    "dp-opendp": "Honest differential privacy, noise drawn by the OpenDP library.",
    "dp-smooth": "Honest differential privacy by smooth sensitivity: always noise.",
    "dp-textbook": "Claimed differential privacy, drawn in doubles that tell the answer.",
    "idp": "Individual DP: noise only where k people could tip the answer.",
    "idp-binary": "Individual DP, answers rounded to yes or no.",
    "idp-integer": "Individual DP, answers rounded to whole numbers.",
    "idp-noisy": "Individual DP with some noise on every answer: a repair that fails.",
    "unprotected": "True answers: no protection, and none is claimed.",
}
"""A line for each built-in mechanism; its title stands in its own file, in language/mechanisms."""
_COLOURS: Final = {
    "unprotected": "grey",
    "idp": "red",
    "idp-binary": "pink",
    "idp-integer": "green",
    "idp-noisy": "orange",
    "bdp": "sky",
    "dp-laplace": "blue",
    "dp-textbook": "pink",
}
PARTS: Final = frozenset({"noisy", "integer", "binary", ""})
"""What the name of a mechanism gets where an offset or rounding is put upon it."""
KINDS: Final = {
    "grey": "no protection",
    "red": "noise follows the data (IDP, Bootstrap DP)",
    "pink": "claimed differential privacy, drawn in doubles",
    "blue": "honest differential privacy, as a control",
}
"""What the colours of the four kinds of mechanisms mean."""


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A mechanism as a result names it: what it claims, and whether that claim is honest.

    `which_is` says what it does, in a phrase, and `sense` in which sense it claims its privacy
    loss. It is `protected` if it claims any, `leaks` if the scale of its noise gives counts away,
    `textbook` if which doubles come out does, is a `control` if it is honest, there to show what
    staying safe looks like, and `counts` if answers tell counts, and not merely none, some or all.
    """

    DERIVED: ClassVar = ("title",)

    name: str
    k: int | None
    universe: str
    which_is: str
    protected: bool
    leaks: bool
    textbook: bool
    control: bool
    counts: bool
    sense: str

    @staticmethod
    def of(claim: Claim) -> ClaimRecord:
        """Return how a claim is spoken of."""
        same = ("name", "k", "universe", "protected", "leaks", "textbook", "control", "counts")
        told = {name: getattr(claim, name) for name in same}
        return ClaimRecord(which_is=claim.describe(), sense=sense_of(claim), **told)

    @property
    def title(self) -> str:
        """What it is called in a headline; a plug-in by its name."""
        name = BUILT_IN[self.name].title if self.name in BUILT_IN else self.name
        group = f"Group IDP (k = {self.k})"
        return name if self.k in (None, 1) else name.replace("Individual DP", group)

    @property
    def kind(self) -> str:
        """The colour of its kind: no protection, noise that follows the data, doubles, honest."""
        if not self.protected:
            return "grey"
        if self.textbook:
            return "pink"
        return "blue" if self.control else "red"

    def among(self, families: Iterable[str]) -> str:
        """Return which of some built-in mechanisms it is or is composed from; else nothing.

        Whoever is no mechanism of ours is not taken for one because of how it is called.
        """
        mine = f"{self.name}-"
        fitting = [
            name
            for name in families
            if mine.startswith(f"{name}-") and PARTS.issuperset(mine[len(name) + 1 : -1].split("-"))
        ]
        return max(fitting, key=len, default="")


def sense_of(claim: Claim) -> str:
    """Say in which sense a mechanism claims its privacy loss."""
    if not claim.leaks:
        return "differential privacy"
    if claim.shape.presence:
        return "Bootstrap DP"
    if claim.k is None:
        return f"the mechanism {claim.name}"
    return "Individual DP" if claim.k == 1 else f"Group IDP for groups of {claim.k}"


def colour_of(name: str) -> str:
    """Return the colour in which a mechanism's curve is drawn; grey for a plug-in's."""
    return _COLOURS.get(name, "grey")
