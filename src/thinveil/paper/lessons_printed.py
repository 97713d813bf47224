"""The tour's last part: the paper's noise test, and what comes of following the paper literally."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np

from thinveil.attacker.engines import linear
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Axis, Rules, Search
from thinveil.errors import EvidenceError
from thinveil.paper.printed import (
    Failure,
    boundary_failures,
    column_reconstruct,
    count_reconstruct,
    halved,
    literal_mean,
    psi,
    seen,
)
from thinveil.paper.simulation import PSI, laplace, printed_psi
from thinveil.paper.theory.chapters import Chapter, Setting, shown
from thinveil.paper.theory.definitions import bdp_loss, group_idp_loss
from thinveil.paper.theory.functions import Threshold
from thinveil.paper.theory.laplace import KLaplace, Noisy
from thinveil.paper.theory.losses import Loss
from thinveil.paper.theory.worlds import World

_T = TypeVar("_T")

M: Final = 10
"""Answers to one question: with so few, the printed centre matters most."""
SIMULATIONS: Final = 20_000
"""Simulations of each scale: the mean of psi_m is then known to about 0.01."""
WHERE: Final = (
    (Fraction(1, 2), 0),
    (Fraction(1, 10**10), 0),
    (Fraction(1, 10**10), 1),
    (Fraction(1), 1),
    (Fraction(1), 20),
)
"""Losses, and the true answers that noise is added to."""
SIX: Final = 6  # records in the largest tables of the enumeration
BOUNDED: Final = (31, 30, 5)
"""Days of a month, whose bounds are public: 0 and 31, as in the experiments."""


def decision(setting: Setting) -> Chapter:
    """Show that psi_m does not depend on epsilon or mu, and that the printed one does.

    The same random words are put to it everywhere (Lemma on the decision rule). In exact
    arithmetic psi_m is the same fraction: (epsilon / m) (z_i - mean) is alpha (l_i - mean) for
    noise l_i at scale 1, whatever epsilon and mu.
    """
    words = laplace(np.random.default_rng(setting.seed), (2 * SIMULATIONS, M))
    scales = np.repeat([[1.0], [2.0]], SIMULATIONS, axis=0)
    sample = [Fraction(each) for each in words[0].tolist()]
    first: tuple[Any, ...] | None = None
    rows = []
    for epsilon, mu in WHERE:
        drawn = [mu + each * M / epsilon for each in sample]
        answers = mu + words * scales * float(M / epsilon)
        share = float(epsilon / M)
        mine = psi(drawn, epsilon), psi(drawn, epsilon, literally=True)
        told = PSI.decide(answers, share), printed_psi(answers * share) >= PSI.threshold
        first = (*mine, *told) if first is None else first
        same, literal = (one == other for one, other in zip(mine, first, strict=False))
        moved, literally = (
            int(np.count_nonzero(one != other)) for one, other in zip(told, first[2:], strict=True)
        )
        rows.append((float(epsilon), mu, same, moved, literal, literally))
    mean = float(printed_psi(words[:SIMULATIONS]).mean())
    held = all(row[2] and not row[3] for row in rows)
    return Chapter(
        "decision",
        f"Does psi_m depend on epsilon, or on the true answer mu? (m = {M})",
        "Lemma on the decision rule; errata 4 and 19",
        ("epsilon", "mu", "same psi_m", "decisions moved", "same as printed", "moved as printed"),
        tuple(rows),
        (
            "Around the mean of all answers it depends on neither: the same random words give the "
            f"same fraction, and of {2 * SIMULATIONS:,} decisions none moves. "
            if held
            else "IT SHOULD NOT, AND IT DOES: NOT INDEPENDENT. "
        )
        + "As printed, around (z_1 + z_m) / m, it moves with mu. Its mean over noise of scale 1 is "
        f"{shown(float(literal_mean(M)))} where the lemma says 2 ({shown(mean)} here, simulated).",
    )


def letter(setting: Setting) -> Chapter:
    """Follow the paper literally where that goes wrong, and our own code beside it."""
    failures, one = list(boundary_failures(SIX)), Fraction(1)
    top, low = max(BOUNDED), (31, 30, 0)
    printed = column_reconstruct(BOUNDED, 1, 0, top)
    found, answers = _column(BOUNDED, 1, 0, top)
    stuck = column_reconstruct(low, 1, 0, top + 1)
    n, losses = len(BOUNDED), _losses(setting.epsilon)
    rows: list[tuple[Any, ...]] = [
        (6, "halving: spent of a total of 1", float(halved(one, 60)), float(halved(one / 2, 60))),
        (
            10,
            f"Algorithm 2 on {shown(low)}, lower bound 0",
            stuck.values if stuck.ended else "no end",
            _column(low, 1, 0, top)[0],
        ),
        (
            10,
            "Algorithm 1 on a range that can hold nobody",
            count_reconstruct(BOUNDED, 1, 0, 0)[0],
            _nobody(),
        ),
        (15, f"Lemma boundary, n <= {SIX}: wrong counts", len(failures), _inside(failures)),
        (16, f"Algorithm 2 on {shown(BOUNDED)}, upper bound {top}", printed.values, found),
        (
            17,
            "Algorithm 2: spent of a total of 1",
            float(printed.spent(n, one)),
            float(answers * one / (top + 1) / n),
        ),
        (18, f"loss under IDP, claimed {setting.epsilon}", *losses[:2]),
        (18, f"loss under BDP, claimed {setting.epsilon}", *losses[2:]),
        (20, "counts found in tables of exactly 2k records", "not claimed", _in_smallest()),
    ]
    return Chapter(
        "letter",
        "What if one follows the paper literally?",
        "Algorithms 1 and 2, Lemma boundary, Equation 2, the halving schedule; the errata named",
        ("erratum", "what", "as printed", "right"),
        tuple(rows),
        "The attacks are right; these are slips of the text. thinveil builds what is on the right.",
    )


def _asked(search: Search[_T], data: Sequence[int], k: int) -> tuple[_T, int]:
    """Run a search of ours on answers as they show; return what it found, and the answers."""
    zone, answers = None, 0
    while True:
        try:
            asked = next(search) if zone is None else search.send(zone)
        except StopIteration as stop:
            return stop.value, answers
        zone = {None: NOISY, 0: BELOW, 1: ABOVE}[seen(data, k, *asked)]
        answers += 1


def _nobody() -> int | str:
    """Count an empty range by our Algorithm 1: no count explains its answers, so it is refused."""
    rules = Rules(len(BOUNDED), 1, bounded=False)
    try:
        return _asked(linear.count(rules, 0, 0, rules.n), BOUNDED, 1)[0]
    except EvidenceError:
        return "refused"


def _column(data: Sequence[int], k: int, lower: int, upper: int) -> tuple[tuple[int, ...], int]:
    """Find a column by our Algorithm 2; return its values, the largest first, and the answers."""
    rules = Rules(len(data), k, bounded=False)
    search = linear.values(rules, Axis(0, lower, upper), len(data), [])
    found, answers = _asked(search, data, k)
    return tuple(value for value, many in found for _ in range(many)), answers


def _inside(failures: Sequence[Failure]) -> int:
    """Count the failures at thresholds that are not trivial: 0 <= b < n."""
    return sum(0 <= each.b < each.n for each in failures)


def _losses(epsilon: Fraction) -> tuple[Loss, ...]:
    """Return losses under IDP, then BDP: noise scaled anew on each input, and at D_act.

    The first is what Equation 2 and the definition of the Bootstrap mechanism print.
    """
    world, data = World((0, 1), 4), (0, 0, 0, 1)
    near, some = Threshold(bool, 1), Threshold(bool, 0)
    mechanism = KLaplace(near, 1, epsilon)

    def scale(each: Any) -> Fraction:
        return Fraction(some.bootstrap(each)) / epsilon

    return (
        group_idp_loss(mechanism.recalibrated(), world, data),
        group_idp_loss(mechanism.chosen_for(data), world, data),
        bdp_loss(Noisy(some, scale), world, data),
        bdp_loss(Noisy(some, lambda _: scale(data)), world, data),
    )


def _in_smallest() -> str:
    """Tell which counts Algorithm 1 finds in tables of exactly 2k records, for k up to 3."""
    right = [
        count_reconstruct([1] * c + [3] * (2 * k - c), k, 0, 2)[0] == c
        for k in (1, 2, 3)
        for c in range(2 * k + 1)
    ]
    return "all" if all(right) else f"{sum(right)} of {len(right)}"
