"""The tour's second part: which mechanism satisfies which definition, and what that is worth."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

from thinveil.paper.theory.chapters import Chapter, Held, Setting, group_name, positive
from thinveil.paper.theory.definitions import (
    bdp_loss,
    diagnose,
    dp_loss,
    group_idp_loss,
    satisfies_original,
    worst_loss,
)
from thinveil.paper.theory.empirical import multiset
from thinveil.paper.theory.functions import Count, Median, Remembered, Threshold
from thinveil.paper.theory.laplace import KLaplace, Noisy, cauchy_loss, laplace
from thinveil.paper.theory.losses import Loss
from thinveil.paper.theory.mechanisms import (
    compose,
    constant,
    geometric,
    postprocess,
    randomised_response,
    truthful,
)
from thinveil.paper.theory.sensitivities import global_sensitivity
from thinveil.paper.theory.worlds import Data

LN2 = Loss(Fraction(2))


def _quiet(setting: Setting) -> int:
    """Return a threshold that k people cannot make the actual count cross, if there is one."""
    n, c, k = setting.world.size, setting.count, setting.k
    return c + k if c + k < n else c - k - 1 if c > k else n - 1


def definitions(setting: Setting) -> Chapter:
    """Hold finite mechanisms against every definition at ln 2."""
    world, data, n = setting.world, setting.actual, setting.world.size
    quiet, near = _quiet(setting), min(setting.count, n - 1)
    mechanisms = {
        "nothing": constant(world, "nothing"),
        f"noisy bit, count > {near}?": randomised_response(world, Threshold(positive, near), 2),
        "noisy count": geometric(world, Count(positive), 2, 0, n),
        f"the truth, count > {quiet}?": truthful(world, Threshold(positive, quiet)),
    }
    original = tuple(Loss(Fraction(2) ** each) for each in range(1, setting.k + 1))
    rows = []
    for name, mechanism in mechanisms.items():
        losses = [
            dp_loss(mechanism, world),
            *(group_idp_loss(mechanism, world, data, k) for k in setting.groups),
            bdp_loss(mechanism, world, data),
        ]
        held = [Held(loss, loss <= LN2) for loss in losses]
        rows.append((name, *held, satisfies_original(mechanism, world, data, original)))
    dp, group = rows[-1][1], rows[-1][len(setting.groups) + 1]
    loud = isinstance(dp, Held) and isinstance(group, Held) and group.holds and not dp.holds
    return Chapter(
        "definitions",
        "Does this mechanism satisfy that definition at epsilon = ln 2?",
        "Definitions epsilon-DP, Group IDP (also its original form) and BDP. Noisy bit: randomised "
        "response; noisy count: geometric noise; both with exact probabilities",
        ("mechanism", "DP", *map(group_name, setting.groups), "BDP", "original"),
        tuple(rows),
        "Each cell has the exact worst loss over the pairs of that definition; the original form "
        f"is held against ({', '.join(map(str, original))}). "
        + (
            "The last mechanism has no randomness at all and tells the truth, and at this data "
            "set Group IDP calls its loss 0."
            if loud
            else "In so small a table no question is out of the group's reach."
        ),
    )


def readings(setting: Setting) -> Chapter:
    """Show that k-Laplace satisfies Group IDP in one reading only."""
    world, data, k = setting.world, setting.actual, setting.k
    rows = []
    multisets = sorted(set(map(multiset, world)), key=repr)
    for name, function in setting.functions().items():
        mechanism = KLaplace(function, k, setting.epsilon)
        chosen, running = mechanism.chosen_for(data), mechanism.recalibrated()
        # none of the functions depends on the order of records: one order of each is enough
        worst = max(
            group_idp_loss(mechanism.chosen_for(each), world, each, k) for each in multisets
        )
        here, anew = (group_idp_loss(each, world, data, k) for each in (chosen, running))
        rows.append((name, here, worst, anew, dp_loss(running, world)))
    kept = all(row[2] <= Loss.of(setting.epsilon) for row in rows)
    broken = sum(row[4].ratio is None for row in rows)
    return Chapter(
        "readings",
        f"Does k-Laplace satisfy Group IDP? (k = {k}, epsilon = {setting.epsilon})",
        "Definitions Group IDP and k-Laplace Mechanism, Section 3.1; erratum 18",
        ("function", "fixed, here", "fixed, worst", "anew, here", "anew, DP"),
        tuple(rows),
        f"With the scale chosen once for a data set and then fixed, {'yes' if kept else 'NO'}: the "
        "definition asks how that one mechanism behaves nearby. But the scale is what the data "
        "decides. Taken as one algorithm that scales its noise anew on whatever it is given, "
        f"{broken} of {len(rows)} lose without bound: two scales of Laplace noise, or noise and "
        "no noise, can be told apart.",
    )


def combining(setting: Setting) -> Chapter:
    """Check post-processing and composition of Group IDP on examples."""
    world, data, n, k = setting.world, setting.actual, setting.world.size, setting.k
    half = Fraction(1, 2)
    first = geometric(world, Count(positive), 2, 0, n)
    second = randomised_response(world, Threshold(positive, min(setting.count, n - 1)), 3)
    made = {
        "A, told as low or high": (postprocess(first, lambda each: 2 * each > n), "A"),
        "A, told as even or odd": (postprocess(first, lambda each: each % 2), "A"),
        "A, plus a fair coin": (postprocess(first, lambda each: {each: half, each + 1: half}), "A"),
        "A and B together": (compose(first, second), "A + B"),
        "A twice": (compose(first, first), "A + A"),
    }
    a, b = (group_idp_loss(each, world, data, k) for each in (first, second))
    allowed = {"A": a, "A + B": a + b, "A + A": a + a}
    rows: list[tuple[Any, ...]] = [
        ("A: noisy count", a, None, None, None),
        ("B: noisy bit", b, None, None, None),
    ]
    for name, (mechanism, limit) in made.items():
        loss = group_idp_loss(mechanism, world, data, k)
        rows.append((name, loss, limit, allowed[limit], loss <= allowed[limit]))
    return Chapter(
        "combining",
        f"What becomes of losses when results are processed or combined? ({group_name(k)})",
        "Section 3.1, postprocessing invariance and composition of Group IDP",
        ("mechanism", "loss", "at most", "that is", "kept"),
        tuple(rows),
        "Post-processing adds nothing and losses add up at most"
        + (", as the paper says. " if all(row[4] for row in rows[2:]) else ": NOT SO HERE. ")
        + "So Group IDP passes the usual tests of a privacy definition, and gives the data away "
        "all the same.",
    )


def smooth(setting: Setting) -> Chapter:
    """Show that smooth sensitivity repairs what local sensitivity breaks."""
    world, data, epsilon = setting.world, setting.actual, setting.epsilon
    rows = []
    for b in range(world.size):
        query = Threshold(positive, b)

        @cache
        def scale(each: Data, query: Threshold = query) -> Fraction:
            return Fraction(6 * query.smooth(each, float(epsilon / 6))) / epsilon

        loss = worst_loss(Noisy(Remembered(query), scale, cauchy_loss), world.pairs())
        local = dp_loss(KLaplace(Remembered(query), 1, epsilon).recalibrated(), world)
        smoothed = query.smooth(data, float(epsilon / 6))
        rows.append((b, smoothed, loss, loss <= Loss.of(epsilon), local))
    return Chapter(
        "smooth",
        f"What would be safe? (epsilon = {epsilon})",
        "Section 5; Cauchy noise of scale 6 S / epsilon, S smooth at beta = epsilon / 6",
        ("b", "smooth here", "DP loss, smooth", "at most epsilon", "DP loss, local"),
        tuple(rows),
        "Noise at smooth sensitivity also depends on the data, but so gently that "
        + (
            "differential privacy holds for every threshold."
            if all(row[3] for row in rows)
            else "DIFFERENTIAL PRIVACY SHOULD HOLD, AND DOES NOT."
        )
        + f" Its true loss is {max(row[2] for row in rows)}, less than it claims. Noise at local "
        "sensitivity loses without bound.",
    )


def instance(setting: Setting) -> Chapter:
    """Diagnose a differentially private mechanism at the actual data set."""
    world, data = setting.world, setting.actual
    function = Remembered(Median(0, setting.top))
    mechanism = laplace(function, global_sensitivity(world, function), setting.epsilon)
    found = diagnose(mechanism, world, data)
    rows = [
        ("differential privacy", found.general),
        ("at the actual data set", found.actual),
        *(
            (f"person {place + 1} of it, whose record is {record}", loss)
            for place, (record, loss) in enumerate(zip(data, found.people, strict=True))
        ),
        ("at the luckiest data set", found.smallest),
    ]
    return Chapter(
        "instance",
        "What did a DP mechanism lose on the data it ran on?",
        "Section 7, related work: the loss as a diagnostic (Charest and Hou; Redberg and Wang)",
        ("median + Laplace noise at global sensitivity", "loss"),
        tuple(rows),
        f"The loss at the data is {found.actual} where DP states {found.general}, which "
        f"{found.reaching} of {len(world)} data sets reach. As a diagnostic that is fine. It "
        "depends on the data, so it must not be published as it is, nor be a reason for less "
        "noise: that would be IDP.",
    )
