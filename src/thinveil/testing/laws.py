"""Is this a law? Masses add up to one, draws follow them, tails and overlaps agree."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np

from thinveil.language.contracts import Law, Post
from thinveil.language.laws import LAWS, law_from_plain, law_to_plain
from thinveil.language.laws.additive import rounded
from thinveil.language.mechanisms.claim import POSTS
from thinveil.language.plugins import check_members
from thinveil.language.queries import Floats

_SCALES: Final = (0.4, 3.0, 50.0)  # at which a law is looked at (round figures)
_DRAWS: Final = 40_000
_SIGMAS: Final = 6.0  # a figure of sound draws strays so far with probability 2e-9
_SHARES: Final = np.linspace(0.05, 0.95, 10)
_CLOSE: Final = 2e-3  # what integration on a grid may be off


def ensure(sound: object, words: str) -> None:
    """Raise an AssertionError with these words unless something is so."""
    if not sound:
        raise AssertionError(words)


def check_law(law: Law) -> None:
    """Check a noise law against its contract, by sums and by drawing.

    Draws come from a fixed stream of words, so a law passes always or never. A sound law is
    refused with a probability below one in a million.
    """
    try:
        check_members(law)
    except Exception as error:
        raise AssertionError(str(error)) from None
    same = law.name not in LAWS or law_from_plain(law_to_plain(law)) == law
    ensure(same, f"{law.name} changes on the wire")
    for epsilon in (1e-10, 0.5):
        wide, both = law.widen(epsilon), np.asarray(law.widen(np.array([epsilon, epsilon])))
        ensure(np.all(np.asarray(wide) > 0), f"{law.name} has no width at epsilon {epsilon}")
        ensure((both == wide).all(), f"{law.name} has another width where losses are a column")
    words = np.random.Philox(key=7).random_raw(_DRAWS)
    posts = [post for post in POSTS if post != "none" or not law.discrete]
    for scale, bit in product(_SCALES, (False, True)):
        _check_overlaps(law, scale)
        answers = law.draw(words, np.full(_DRAWS, float(bit)), scale)
        few = [law.draw(words[i : i + 1], np.full(1, float(bit)), scale)[0] for i in range(9)]
        same = np.array_equal(few, answers[:9], equal_nan=True)
        ensure(same, f"{law.name}: answer i is not drawn from word i alone")
        told = law.silent or not np.isnan(answers).any()
        ensure(told, f"{law.name} is silent and does not say so")
        for post in posts:
            _check_draws(law, rounded(answers, post), bit, scale, post)


def masses(law: Law, edges: Floats, bit: bool, scale: float, post: Post) -> Floats:
    """Return the chances of answers between neighbouring edges, or of whole numbers."""

    def density(x: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            told = law.loglik(x, np.full(x.shape, bit), np.full(x.shape, 1 / scale), post, False)
        return np.exp(told)

    if post != "none":
        return density(edges)
    steps = max(4, 20_000 // len(edges))
    # a trapezoid rule over each interval; the kink of a law at its bit costs next to nothing
    inner = density(np.linspace(edges[:-1], edges[1:], steps + 1))
    found: Floats = (inner.sum(axis=0) - (inner[0] + inner[-1]) / 2) * np.diff(edges) / steps
    return found


def _check_draws(law: Law, answers: Floats, bit: bool, scale: float, post: Post) -> None:
    """Compare how often answers came with how often they should."""
    where = f"{law.name} at scale {scale:g}, bit {int(bit)}, rounding {post}"
    quiet = masses(law, np.array([np.nan]), bit, scale, "integer")[0] if law.silent else 0.0
    ensure(_near(np.isnan(answers).mean(), quiet), f"{where}: silence is not as likely as it says")
    if post == "none":
        edges = float(bit) + law.quantile(_SHARES, scale)
        ensure((np.diff(edges) > 0).all(), f"{where}: quantiles do not ascend")
        wanted = masses(law, edges, bit, scale, post)
        fits = np.abs(wanted - np.diff(_SHARES) * (1 - quiet)).max() < _CLOSE
        ensure(fits, f"{where}: the density is not that of the quantiles")
        seen = np.histogram(answers[~np.isnan(answers)], edges)[0] / _DRAWS
    else:
        whole, beyond = np.arange(0.0, 2.0), 0.0
        if post == "integer":
            most = int(3 * scale) + 3
            whole = np.arange(-most, most + 1.0) + bit
            beyond = 2 * float(law.tail(most + 0.5, 1 / scale))
        wanted = masses(law, whole, bit, scale, post)
        seen = (answers[:, None] == whole).mean(axis=0)
        total = wanted.sum() + beyond * (1 - quiet) + quiet
        ensure(abs(total - 1) < _CLOSE, f"{where}: masses add up to {total:.4f}, not to 1")
    off = [share for share, chance in zip(seen, wanted, strict=True) if not _near(share, chance)]
    ensure(not off, f"{where}: draws do not follow the density, at a share of {off[:1]}")


def _near(share: float, chance: float) -> bool:
    """Tell whether a share of draws fits a chance."""
    spread = np.sqrt(max(chance * (1 - chance), 1 / _DRAWS) / _DRAWS)
    return bool(abs(share - chance) <= _SIGMAS * spread)


def _check_overlaps(law: Law, scale: float) -> None:
    scales, others = np.full(3, scale), scale * np.array([1.0, 2.0, 2.0])
    same, *apart = law.overlap(scales, others, np.array([False, False, True])).tolist()
    ensure(abs(same - 1) < 1e-9, f"{law.name}: a law overlaps itself by {same:.4f}, not by 1")
    between = all(0 <= overlap < 1 for overlap in apart)
    ensure(between, f"{law.name}: an overlap of two laws is not between 0 and 1")
    ensure(law.distance(scale, scale) == 0, f"{law.name}: a law is apart from itself")
    ensure(0 < law.distance(scale, 2 * scale) <= 1, f"{law.name}: a distance is not up to 1")
    ensure(law.bits(1 / scale) >= 0, f"{law.name}: an answer tells less than nothing")
