"""Claims by the names of their mechanisms: the built-in ones and those of plug-ins."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from thinveil.errors import BudgetError
from thinveil.language.contracts import Law, Post
from thinveil.language.laws.cauchy import CAUCHY
from thinveil.language.mechanisms import BUILT_IN
from thinveil.language.mechanisms.bdp import Bootstrap, bdp
from thinveil.language.mechanisms.claim import POSTS, SMALLEST_EPSILON, Claim, Sampler, Universe
from thinveil.language.mechanisms.claim import composed as _composed
from thinveil.language.mechanisms.dp_laplace import Global
from thinveil.language.mechanisms.dp_smooth import Smooth
from thinveil.language.mechanisms.idp import KLocal, idp
from thinveil.language.mechanisms.unprotected import Insensitive, unprotected

__all__ = [
    "CAUCHY", "MECHANISMS", "POSTS", "SMALLEST_EPSILON", "Bootstrap", "Claim", "Global",
    "Insensitive", "KLocal", "Post", "Sampler", "Smooth", "Universe", "bdp", "claim_named", "idp",
    "reduce_group", "unprotected",
]  # fmt: skip

MECHANISMS: Final = tuple(BUILT_IN)
"""The names of all built-in mechanisms, sorted; `plugins.mechanism_names` has all there are."""


def claim_named(
    name: str,
    k: int = 1,
    universe: Universe = "unbounded",
    *,
    offset: float | None = None,
    post: Post | None = None,
    noise: Law | None = None,
) -> Claim:
    """Return the claim behind a mechanism's name, perhaps composed with other parts.

    >>> claim_named("idp", 2, offset=0.5).name
    'idp-noisy'
    >>> claim_named("bdp", post="binary").name
    'bdp-binary'

    Raises:
        UsageError: There is no such mechanism, or the parts do not go together.
        PluginError: The mechanism is a plug-in's, and the plug-in is broken.
    """
    if name in BUILT_IN:
        return BUILT_IN[name].claim(k, universe, offset, post, noise)
    from thinveil.language.plugins import mechanism  # it builds on this module

    return _composed(mechanism(name, k, universe), offset, post, noise)


def reduce_group(epsilons: Sequence[Fraction]) -> tuple[int, Fraction]:
    """Reduce the original (epsilon_1, ..., epsilon_k) of Group IDP to k and one epsilon.

    A mechanism that meets the smallest of them for groups of k meets them all.

    >>> reduce_group([Fraction(1, 2), Fraction(1, 4)])
    (2, Fraction(1, 4))
    """
    if not epsilons or min(epsilons) <= 0:
        raise BudgetError("the original Group IDP needs k losses, each above zero")
    return len(epsilons), min(epsilons)
